//! The kernel's files on block devices, read below one folder so that a recorded machine can stand
//! in.

#![allow(unsafe_code)]

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A machine: the running one, or one recorded in a folder.
#[derive(Debug, Clone)]
pub struct DeviceSystem {
    root: PathBuf,
}

impl DeviceSystem {
    pub fn live() -> DeviceSystem {
        DeviceSystem { root: PathBuf::from("/") }
    }

    /// The machine whose `/proc` and `/sys` lie in a folder.
    pub fn at(root: &Path) -> DeviceSystem {
        DeviceSystem { root: root.to_owned() }
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

    /// The kernel's folder of a block device, and whether it is a partition.
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

    /// Whether a whole block device, by its number `MAJOR:MINOR`, may be overwritten according to the
    /// kernel's files.
    ///
    /// # Errors
    /// Why not, in words: it is mounted, partitioned, read-only, swapped to, or part of another
    /// device.
    pub fn check(&self, number: &str) -> Result<(), String> {
        self.block(number).map(drop)
    }

    /// The attributes of a whole block device.
    ///
    /// # Errors
    /// Why it must not be overwritten, in words.
    pub(super) fn block(&self, number: &str) -> Result<BlockDevice, String> {
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
        // Mounts are checked first: they say more of what would be lost.
        if let Some(place) = self.mounted(&numbers, &name, &parts)? {
            return Err(format!("is mounted at {place}; unmount it if it may be overwritten"));
        }
        if let Some(swap) = self.swaps(&name, &parts)? {
            return Err(format!("{swap} is used as swap; end that with swapoff"));
        }
        if !parts.is_empty() {
            return Err(format!(
                "has partitions ({}); remove them if they may be lost: wipefs --all",
                parts.join(", ")
            ));
        }
        let holders = self.list(&format!("{folder}/holders"));
        if !holders.is_empty() {
            return Err(format!("is used by {}; remove it there first", holders.join(", ")));
        }
        let own =
            LoopBacking { path: format!("/dev/{name}"), file: None, number: number_of(number) };
        if let Some(holder) = self.loop_on(&own) {
            return Err(format!("is used by {holder}; detach that first"));
        }
        let sectors: u64 = attribute("size").and_then(|size| size.parse().ok()).unwrap_or(0);
        let number = |file: &str| attribute(file).and_then(|text| text.parse::<u64>().ok());
        let (names, shared) = self.names(&name);
        Ok(BlockDevice {
            bytes: sectors * super::error::SECTOR,
            logical_block: number("queue/logical_block_size").unwrap_or(512),
            can_discard: number("queue/discard_max_bytes").is_some_and(|most| most > 0),
            names,
            shared,
            name,
        })
    }

    /// The unique names of a disk, and the names that it shares with another disk, with that disk.
    fn names(&self, name: &str) -> (Vec<String>, Vec<(String, String)>) {
        let others: Vec<(String, Vec<String>)> = self
            .list("/sys/block")
            .into_iter()
            .filter(|other| other != name)
            .map(|other| (other.clone(), self.all_names(&other)))
            .collect();
        let (mut own, mut shared) = (Vec::new(), Vec::new());
        for one in self.all_names(name) {
            match others.iter().find(|(_, names)| names.contains(&one)) {
                Some((other, _)) => shared.push((one, other.clone())),
                None if own.contains(&one) => {}
                None => own.push(one),
            }
        }
        if own.is_empty() {
            // By where it is attached; virtual disks are named by the kernel's name.
            own.push(self.attachment(name).unwrap_or_else(|| name.to_owned()));
        }
        (own, shared)
    }

    /// Serial number, worldwide name, model, and the file behind a loop device.
    fn all_names(&self, name: &str) -> Vec<String> {
        let attribute = |file: &str| self.text(&format!("/sys/block/{name}/{file}"));
        let serial = attribute("device/serial").or_else(|| attribute("serial"));
        let wwid = attribute("wwid").or_else(|| attribute("device/wwid"));
        let mut names: Vec<String> =
            serial.into_iter().chain(wwid).chain(attribute("device/model")).collect();
        if let Some(backing) = attribute("loop/backing_file") {
            names.extend(names_of_file(Path::new(&backing)));
        }
        names
    }

    /// `pci0000:00/0000:00:1f.2/ata1/...`: where a disk is attached.
    fn attachment(&self, name: &str) -> Option<String> {
        let link = fs::read_link(self.path(&format!("/sys/block/{name}"))).ok()?;
        let link = link.to_str()?.split_once("devices/")?.1.to_owned();
        let (place, _) = link.rsplit_once("/block/")?;
        (!place.starts_with("virtual")).then(|| place.to_owned())
    }

    /// Why another namespace of the same NVMe controller must not be erased, if so.
    pub fn others_in_use(&self, name: &str) -> Option<String> {
        self.other_namespaces(name).into_iter().find_map(|(other, _)| {
            let number = self.text(&format!("/sys/block/{other}/dev"))?;
            self.check(&number).err().map(|why| format!("{other} {why}"))
        })
    }

    /// The other namespaces of an NVMe controller, and their bytes.
    pub(super) fn other_namespaces(&self, name: &str) -> Vec<(String, u64)> {
        let controller = |name: &str| {
            let (controller, namespace) = name.strip_prefix("nvme")?.split_once('n')?;
            namespace.parse::<u32>().is_ok().then(|| controller.to_owned())
        };
        let Some(own) = controller(name) else { return Vec::new() };
        let others = self.list("/sys/block").into_iter().filter(|other| other != name);
        let others = others.filter(|other| controller(other).as_ref() == Some(&own));
        let sized = others.map(|other| {
            let sectors = self.text(&format!("/sys/block/{other}/size"));
            let sectors = sectors.and_then(|size| size.parse::<u64>().ok()).unwrap_or(0);
            (other, sectors * super::error::SECTOR)
        });
        sized.collect()
    }

    /// The mount point of one of these devices, if there is one.
    ///
    /// # Errors
    /// The mounts cannot be read.
    fn mounted(
        &self,
        numbers: &[String],
        name: &str,
        parts: &[String],
    ) -> Result<Option<String>, String> {
        let text = fs::read_to_string(self.path("/proc/self/mountinfo")).map_err(|error| {
            format!("may be mounted: /proc/self/mountinfo cannot be read: {error}")
        })?;
        let own = |source: &str| {
            source
                .strip_prefix("/dev/")
                .is_some_and(|source| source == name || parts.iter().any(|part| part == source))
        };
        Ok(text.lines().find_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let mut before = before.split(' ').skip(2);
            let (number, point) = (before.next()?, before.nth(1)?);
            // Btrfs and its like have a number of their own and name the device.
            let source = after.split(' ').nth(1)?;
            let is_own = numbers.iter().any(|own| own == number) || own(source);
            is_own.then(|| point.replace("\\040", " "))
        }))
    }

    fn swaps(&self, name: &str, parts: &[String]) -> Result<Option<String>, String> {
        let text = match fs::read_to_string(self.path("/proc/swaps")) {
            Ok(text) => text,
            // A kernel that cannot swap has no such file.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(format!("may be used as swap: /proc/swaps cannot be read: {error}"));
            }
        };
        let paths = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        let own = |path: &&str| {
            path.strip_prefix("/dev/")
                .is_some_and(|path| path == name || parts.iter().any(|part| part == path))
        };
        Ok(paths.into_iter().find(own).map(str::to_owned))
    }

    /// The loop device on a file or device, if there is one, whatever path it was given.
    pub(super) fn loop_on(&self, what: &LoopBacking) -> Option<String> {
        self.list("/sys/block").into_iter().find(|name| {
            let Some(path) = self.text(&format!("/sys/block/{name}/loop/backing_file")) else {
                return false;
            };
            let behind = self.backing_file(name).or_else(|| {
                let metadata = fs::metadata(self.path(&path)).ok()?;
                Some((metadata.dev(), metadata.ino(), metadata.rdev()))
            });
            let same = behind.is_some_and(|(device, inode, number)| {
                what.file == Some((device, inode)) || what.number.is_some_and(|own| own == number)
            });
            same || path == what.path
        })
    }

    /// The file behind a loop device: its device, its inode and, if it is a device itself, its number.
    fn backing_file(&self, name: &str) -> Option<(u64, u64, u64)> {
        /// Of `linux/loop.h`; `struct loop_info64` begins with these three numbers.
        const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
        let file = File::open(self.path(&format!("/dev/{name}"))).ok()?;
        let mut status = [0_u64; 29];
        // SAFETY: the request writes a structure of 232 bytes, which is as long as the array.
        let code =
            unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64 as _, status.as_mut_ptr()) };
        (code == 0).then_some((status[0], status[1], status[2]))
    }
}

/// The file or device behind a loop device.
pub(super) struct LoopBacking {
    pub(super) path: String,
    /// Device and inode of a file.
    pub(super) file: Option<(u64, u64)>,
    /// Number of a device.
    pub(super) number: Option<u64>,
}

/// `MAJOR:MINOR` as one number.
fn number_of(text: &str) -> Option<u64> {
    let (major, minor) = text.split_once(':')?;
    Some(libc::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// A whole block device that is not in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockDevice {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) logical_block: u64,
    pub(super) can_discard: bool,
    /// Names that no other disk has.
    pub(super) names: Vec<String>,
    /// Names that another disk has, too, and that disk.
    pub(super) shared: Vec<(String, String)>,
}

pub(super) fn names_of_file(path: &Path) -> Vec<String> {
    let mut names = vec![path.display().to_string()];
    names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recorded machine whose disks have these serial numbers and models, each attached to a
    /// port of its own.
    fn machine(disks: &[(&str, Option<&str>, Option<&str>)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("sys/block")).unwrap();
        for (at, (name, serial, model)) in disks.iter().enumerate() {
            let place = format!("sys/devices/pci0000:00/ata{at}/block/{name}");
            fs::create_dir_all(root.join(&place).join("device")).unwrap();
            std::os::unix::fs::symlink(format!("../../{place}"), root.join("sys/block").join(name))
                .unwrap();
            for (file, text) in [("serial", serial), ("model", model)] {
                if let Some(text) = text {
                    fs::write(root.join(&place).join("device").join(file), text).unwrap();
                }
            }
        }
        folder
    }

    #[test]
    fn a_disk_is_named_by_unique_names_only() {
        let model = Some("Model X\n");
        let folder = machine(&[("sda", Some("S1\n"), model), ("sdb", Some("S2\n"), model)]);
        let (names, shared) = DeviceSystem::at(folder.path()).names("sda");
        assert_eq!(names, ["S1"]);
        assert_eq!(shared, [("Model X".to_owned(), "sdb".to_owned())]);
        let folder = machine(&[("sda", None, model), ("sdb", Some("S2"), Some("Model Y"))]);
        assert_eq!(DeviceSystem::at(folder.path()).names("sda").0, ["Model X"]);
        // Namespaces of one controller have its serial number.
        let serial = Some("S1");
        let folder = machine(&[("nvme0n1", serial, model), ("nvme0n2", serial, model)]);
        let wwid = folder.path().join("sys/block/nvme0n1/wwid");
        fs::write(wwid, "eui.1\n").unwrap();
        assert_eq!(DeviceSystem::at(folder.path()).names("nvme0n1").0, ["eui.1"]);
    }

    #[test]
    fn equal_disks_without_serial_numbers_are_named_by_attachment() {
        let folder = machine(&[("sda", None, Some("Model X")), ("sdb", None, Some("Model X"))]);
        let system = DeviceSystem::at(folder.path());
        assert_eq!(system.names("sda").0, ["pci0000:00/ata0"]);
        assert_eq!(system.names("sdb").0, ["pci0000:00/ata1"]);
        let folder = machine(&[("vda", None, None)]);
        assert_eq!(DeviceSystem::at(folder.path()).names("vda").0, ["pci0000:00/ata0"]);
    }

    #[test]
    fn unreadable_mounts_count_as_in_use() {
        let folder = machine(&[("sda", None, None)]);
        fs::write(folder.path().join("sys/block/sda/dev"), "8:0\n").unwrap();
        let why = DeviceSystem::at(folder.path()).check("8:0").unwrap_err();
        assert!(why.contains("may be mounted"), "{why}");
    }
}
