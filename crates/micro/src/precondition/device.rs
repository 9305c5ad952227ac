//! What the kernel says of block devices, read below one folder so that a recorded machine can
//! stand in.

use std::fs;
use std::path::{Path, PathBuf};

/// A machine: the running one, or one recorded in a folder.
#[derive(Debug, Clone)]
pub struct System {
    root: PathBuf,
}

impl System {
    pub fn live() -> System {
        System { root: PathBuf::from("/") }
    }

    /// The machine whose `/proc` and `/sys` lie in a folder.
    pub fn at(root: &Path) -> System {
        System { root: root.to_owned() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(path)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The kernel's folder of a block device, and whether it is a part of another one.
    fn folder(&self, number: &str) -> Option<(String, bool)> {
        for disk in self.list("/sys/block") {
            let folder = format!("/sys/block/{disk}");
            if self.text(&format!("{folder}/dev")).as_deref() == Some(number) {
                return Some((folder, false));
            }
            for part in self.list(&folder).into_iter().filter(|part| part.starts_with(&disk)) {
                let folder = format!("{folder}/{part}");
                if self.text(&format!("{folder}/dev")).as_deref() == Some(number) {
                    return Some((folder, true));
                }
            }
        }
        None
    }

    /// Whether a whole block device, by its number `MAJOR:MINOR`, may be overwritten as far as the
    /// kernel's files tell.
    ///
    /// # Errors
    /// Why not, in words: it is mounted, partitioned, read-only, swapped to, or part of another
    /// device.
    pub fn check(&self, number: &str) -> Result<(), String> {
        self.block(number).map(drop)
    }

    /// What is known of a whole block device.
    ///
    /// # Errors
    /// Why it must not be overwritten, in words.
    pub(super) fn block(&self, number: &str) -> Result<Block, String> {
        let (folder, is_part) = self
            .folder(number)
            .ok_or_else(|| format!("/sys/block has no device {number}: a container may hide it"))?;
        if is_part {
            return Err("is a partition; name the whole device".to_owned());
        }
        let name = folder.rsplit('/').next().unwrap_or_default().to_owned();
        let attribute = |file: &str| self.text(&format!("{folder}/{file}"));
        if attribute("ro").as_deref() == Some("1") {
            return Err("is read-only".to_owned());
        }
        let mut numbers = vec![number.to_owned()];
        let mut parts = Vec::new();
        for part in self.list(&folder) {
            if self.path(&format!("{folder}/{part}/partition")).exists() {
                numbers.extend(attribute(&format!("{part}/dev")));
                parts.push(part);
            }
        }
        // Mounted goes first: it says more of what would be lost.
        if let Some(place) = self.mounted(&numbers, &name, &parts) {
            return Err(format!("is mounted at {place}; unmount it if it may be overwritten"));
        }
        if let Some(swap) = self.swaps(&name, &parts) {
            return Err(format!("{swap} is swapped to; end that with swapoff"));
        }
        if !parts.is_empty() {
            return Err(format!(
                "has partitions ({}); remove them if it may be overwritten: wipefs --all",
                parts.join(", ")
            ));
        }
        let holders = self.list(&format!("{folder}/holders"));
        if !holders.is_empty() {
            return Err(format!("is used by {}; take it out there first", holders.join(", ")));
        }
        if let Some(holder) = self.loop_on(&format!("/dev/{name}")) {
            return Err(format!("is used by {holder}; detach that first"));
        }
        let sectors: u64 = attribute("size").and_then(|size| size.parse().ok()).unwrap_or(0);
        let number = |file: &str| attribute(file).and_then(|text| text.parse::<u64>().ok());
        Ok(Block {
            bytes: sectors * super::error::SECTOR,
            logical_block: number("queue/logical_block_size").unwrap_or(512),
            can_discard: number("queue/discard_max_bytes").is_some_and(|most| most > 0),
            model: attribute("device/model"),
            serial: attribute("device/serial").or_else(|| attribute("serial")),
            backing: attribute("loop/backing_file"),
            name,
        })
    }

    /// Why another namespace of the same NVMe controller must not be erased, if there is one that
    /// must not.
    pub fn others_in_use(&self, name: &str) -> Option<String> {
        let controller = |name: &str| {
            let (controller, namespace) = name.strip_prefix("nvme")?.split_once('n')?;
            namespace.parse::<u32>().is_ok().then(|| controller.to_owned())
        };
        let own = controller(name)?;
        let others = self.list("/sys/block").into_iter().filter(|other| other != name);
        others.filter(|other| controller(other).as_ref() == Some(&own)).find_map(|other| {
            let number = self.text(&format!("/sys/block/{other}/dev"))?;
            self.check(&number).err().map(|why| format!("{other} {why}"))
        })
    }

    /// Where one of these devices is mounted, if it is.
    fn mounted(&self, numbers: &[String], name: &str, parts: &[String]) -> Option<String> {
        let text = fs::read_to_string(self.path("/proc/self/mountinfo")).ok()?;
        let own = |source: &str| {
            source
                .strip_prefix("/dev/")
                .is_some_and(|source| source == name || parts.iter().any(|part| part == source))
        };
        text.lines().find_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let mut before = before.split(' ').skip(2);
            let (number, point) = (before.next()?, before.nth(1)?);
            // Btrfs and its like have a number of their own and name the device.
            let source = after.split(' ').nth(1)?;
            let is_own = numbers.iter().any(|own| own == number) || own(source);
            is_own.then(|| point.replace("\\040", " "))
        })
    }

    fn swaps(&self, name: &str, parts: &[String]) -> Option<String> {
        let text = fs::read_to_string(self.path("/proc/swaps")).ok()?;
        let paths = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        let own = |path: &&str| {
            path.strip_prefix("/dev/")
                .is_some_and(|path| path == name || parts.iter().any(|part| part == path))
        };
        paths.into_iter().find(own).map(str::to_owned)
    }

    /// The loop device that lies on a file or device, if one does.
    pub(super) fn loop_on(&self, path: &str) -> Option<String> {
        self.list("/sys/block").into_iter().find(|name| {
            self.text(&format!("/sys/block/{name}/loop/backing_file")).as_deref() == Some(path)
        })
    }
}

/// A whole block device that nobody uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) logical_block: u64,
    pub(super) can_discard: bool,
    pub(super) model: Option<String>,
    pub(super) serial: Option<String>,
    /// The file behind a loop device.
    pub(super) backing: Option<String>,
}
