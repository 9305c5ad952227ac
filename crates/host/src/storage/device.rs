//! Resolves a mount to its disks.

use std::path::Path;

use super::disk::BLOCK;
use super::mount::{self, DeviceNumber, Mount};
use crate::root::Root;

/// Limit on stacked devices, against cycles.
const DEEPEST: usize = 16;

/// The devices under a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceStack {
    /// From the top: `dm-0 on nvme0n1p3 on nvme0n1`.
    pub description: String,
    /// The devices at the bottom, each once: what `/proc/diskstats` counts.
    pub disks: Vec<String>,
}

/// A block device: a whole one, or a part of one.
enum DevicePosition {
    Disk(String),
    Partition { disk: String, name: String },
}

/// The devices under a mount, or why there are none here.
pub(crate) fn under(root: &Root, mount: &Mount) -> Result<DeviceStack, String> {
    let mut disks = Vec::new();
    let description = below_mount(root, mount, 0, &mut disks)?;
    Ok(DeviceStack { description, disks })
}

fn below_mount(
    root: &Root,
    mount: &Mount,
    depth: usize,
    disks: &mut Vec<String>,
) -> Result<String, String> {
    if depth > DEEPEST {
        return Err(format!("devices are stacked more than {DEEPEST} deep"));
    }
    if let Some(place) = by_number(root, mount.number) {
        return below(root, &place, depth, disks);
    }
    let kind = &mount.kind;
    match kind.as_str() {
        "tmpfs" | "ramfs" | "devtmpfs" => {
            return Err(format!("{kind} is in memory: it has no device"));
        }
        "overlay" => {
            let upper = mount
                .option("upperdir")
                .ok_or_else(|| "the overlay is read-only and names no upper folder".to_owned())?;
            let mounts = mount::mounts(root).map_err(|error| error.to_string())?;
            let device = root.is_live().then(|| mount::device_number(Path::new(upper))).flatten();
            let lower = mount::holding(&mounts, Path::new(upper), device)
                .filter(|lower| lower.kind != "overlay")
                .ok_or_else(|| {
                    format!("the overlay's upper folder {upper} is not visible from here")
                })?;
            let text = below_mount(root, lower, depth + 1, disks)?;
            return Ok(format!("overlay on {text}"));
        }
        _ => {}
    }
    // Btrfs and the like have a number of their own but name their device.
    let name = mount.source.strip_prefix("/dev/").ok_or_else(|| {
        format!("{kind} from `{}` is not on a block device of this machine", mount.source)
    })?;
    let place = by_name(root, name).ok_or_else(|| {
        let (major, minor) = mount.number;
        format!("{BLOCK} has neither {major}:{minor} nor {name}: a container may hide it")
    })?;
    below(root, &place, depth, disks)
}

fn below(
    root: &Root,
    place: &DevicePosition,
    depth: usize,
    disks: &mut Vec<String>,
) -> Result<String, String> {
    if depth > DEEPEST {
        return Err(format!("devices are stacked more than {DEEPEST} deep"));
    }
    let name = match place {
        DevicePosition::Partition { disk, name } => {
            let text = below(root, &DevicePosition::Disk(disk.clone()), depth + 1, disks)?;
            return Ok(format!("{name} on {text}"));
        }
        DevicePosition::Disk(name) => name,
    };
    let slaves = root.list(&format!("{BLOCK}/{name}/slaves")).unwrap_or_default();
    if !slaves.is_empty() {
        let mut texts = Vec::new();
        for slave in &slaves {
            let place = by_name(root, slave)
                .ok_or_else(|| format!("{name} lies on {slave}, which {BLOCK} does not have"))?;
            texts.push(below(root, &place, depth + 1, disks)?);
        }
        return Ok(match texts.as_slice() {
            [one] => format!("{name} on {one}"),
            many => format!("{name} on ({})", many.join(", ")),
        });
    }
    if let Ok(file) = root.value(&format!("{BLOCK}/{name}/loop/backing_file")) {
        // A loop may be on a device.
        if let Some(place) = file.strip_prefix("/dev/").and_then(|name| by_name(root, name)) {
            let text = below(root, &place, depth + 1, disks)?;
            return Ok(format!("{name} on {text}"));
        }
        let mounts = mount::mounts(root).map_err(|error| error.to_string())?;
        let device = root.is_live().then(|| mount::device_number(Path::new(&file))).flatten();
        let holder = mount::holding(&mounts, Path::new(&file), device)
            .ok_or_else(|| format!("no mount holds {file}, the file behind {name}"))?;
        let text = below_mount(root, holder, depth + 1, disks)?;
        return Ok(format!("{name} on {file} on {text}"));
    }
    if !disks.contains(name) {
        disks.push(name.clone());
    }
    Ok(name.clone())
}

/// The uppermost whole block device under a mount.
pub(crate) fn whole_disk(root: &Root, mount: &Mount) -> Result<String, String> {
    let named = || mount.source.strip_prefix("/dev/").and_then(|name| by_name(root, name));
    match by_number(root, mount.number).or_else(named) {
        Some(DevicePosition::Disk(disk) | DevicePosition::Partition { disk, .. }) => Ok(disk),
        // An overlay has no device of its own, but may be on one disk.
        None => match under(root, mount)?.disks.as_slice() {
            [disk] => Ok(disk.clone()),
            many => Err(format!("{} lies on {} disks", mount.kind, many.len())),
        },
    }
}

fn by_number(root: &Root, number: DeviceNumber) -> Option<DevicePosition> {
    find(root, |folder, _| {
        root.value(&format!("{folder}/dev")).ok().and_then(|text| mount::number(&text))
            == Some(number)
    })
}

/// By the kernel's name, or by the one that a mapping was given.
fn by_name(root: &Root, name: &str) -> Option<DevicePosition> {
    let mapped = name.strip_prefix("mapper/");
    find(root, |folder, kernel_name| match mapped {
        Some(mapped) => root.value(&format!("{folder}/dm/name")).is_ok_and(|text| text == mapped),
        // `/dev/cciss/c0d0` is written with `!` in sysfs.
        None => kernel_name == name.replace('/', "!"),
    })
}

/// The first disk or partition for which `matches(folder, name)`.
fn find(root: &Root, matches: impl Fn(&str, &str) -> bool) -> Option<DevicePosition> {
    for disk in root.list(BLOCK).ok()? {
        let folder = format!("{BLOCK}/{disk}");
        if matches(&folder, &disk) {
            return Some(DevicePosition::Disk(disk));
        }
        for name in root.list(&folder).unwrap_or_default() {
            let part = format!("{folder}/{name}");
            if name.starts_with(&disk)
                && root.exists(&format!("{part}/partition"))
                && matches(&part, &name)
            {
                return Some(DevicePosition::Partition { disk, name });
            }
        }
    }
    None
}
