//! What the kernel knows of one whole disk.

use crate::format;
use crate::root::{Root, RootError};

pub(crate) const BLOCK: &str = "/sys/block";
/// The unit of sizes and counters of block devices, whatever the disk's own.
pub(crate) const SECTOR: u64 = 512;

pub(crate) struct Attribute {
    pub name: &'static str,
    pub source: String,
    pub value: Result<String, RootError>,
}

/// Model, size, rotation, scheduler, queue depth and write cache of a disk.
pub(crate) fn attributes(root: &Root, disk: &str) -> Vec<Attribute> {
    let file = |name: &str| format!("{BLOCK}/{disk}/{name}");
    let yes_no = |path: &str| {
        root.number::<u8>(path).map(|value| if value == 0 { "no" } else { "yes" }.to_owned())
    };
    let attribute = |name, path: &str, value| Attribute { name, source: file(path), value };
    vec![
        attribute("model", "device/model", root.value(&file("device/model"))),
        attribute("size", "size", size(root, disk).map(format::bytes)),
        attribute("rotational", "queue/rotational", yes_no(&file("queue/rotational"))),
        attribute("scheduler", "queue/scheduler", root.selected(&file("queue/scheduler"))),
        attribute("queue_depth", "queue/nr_requests", root.value(&file("queue/nr_requests"))),
        attribute("write_cache", "queue/write_cache", root.value(&file("queue/write_cache"))),
    ]
}

/// The size of a disk in bytes.
pub(crate) fn size(root: &Root, disk: &str) -> Result<u64, RootError> {
    Ok(root.number::<u64>(&format!("{BLOCK}/{disk}/size"))?.saturating_mul(SECTOR))
}
