use super::Facts;
use crate::format;
use crate::parse::{field, kilobytes};
use crate::root::{Root, RootError};

pub(crate) const MEMINFO: &str = "/proc/meminfo";
pub(crate) const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const SWAPS: &str = "/proc/swaps";
const BUSES: &str = "/sys/bus";
const VIRTIO: &str = "/sys/bus/virtio/devices";
/// A memory balloon among virtio's devices, and its feature that free pages go back to the host
/// while the guest runs (virtio 1.2, sections 5 and 5.5.3).
const BALLOON: &str = "0x0005";
const PAGE_REPORTING: usize = 5;

pub(super) fn add(root: &Root, facts: &mut Facts) {
    facts.add("memory.total", MEMINFO, total_bytes(root).map(format::bytes));
    facts.add("memory.huge_pages", MEMINFO, huge_pages(root));
    facts.selected(root, "memory.thp", THP);
    facts.selected(root, "memory.thp_defrag", "/sys/kernel/mm/transparent_hugepage/defrag");
    let swap = swap(root).map(|swap| match swap.total {
        0 => "none".to_owned(),
        total => format!("{}, {} of it used", format::bytes(total), format::bytes(swap.used)),
    });
    facts.add("memory.swap", SWAPS, swap);
    let given_back = free_page_reporting(root).map(|device| match device {
        Some(device) => format!("yes, by {device}"),
        None => "no virtio balloon that does".to_owned(),
    });
    facts.add("memory.free_pages_given_back", VIRTIO, given_back);
    facts.file(root, "memory.swappiness", "/proc/sys/vm/swappiness");
    facts.file(root, "memory.overcommit", "/proc/sys/vm/overcommit_memory");
    for (name, file) in [("ratio", "dirty_ratio"), ("background_ratio", "dirty_background_ratio")] {
        let name = format!("memory.dirty_{name}");
        facts.file(root, &name, &format!("/proc/sys/vm/{file}"));
    }
}

/// The memory that the kernel manages, in bytes (`/proc/meminfo: MemTotal`).
pub fn total_bytes(root: &Root) -> Result<u64, RootError> {
    let text = root.text(MEMINFO)?;
    kilobytes(&text, "MemTotal")
        .ok_or_else(|| RootError::malformed(MEMINFO, &text, "a list with a MemTotal in kB"))
}

/// The memory that is available without swapping, in bytes
/// (`/proc/meminfo: MemAvailable`).
///
/// # Errors
/// The file cannot be read or has no such line.
pub fn available_bytes(root: &Root) -> Result<u64, RootError> {
    let text = root.text(MEMINFO)?;
    kilobytes(&text, "MemAvailable")
        .ok_or_else(|| RootError::malformed(MEMINFO, &text, "a list with a MemAvailable in kB"))
}

fn huge_pages(root: &Root) -> Result<String, String> {
    let text = root.text(MEMINFO).map_err(|error| error.to_string())?;
    let lacks = |key: &str| format!("{MEMINFO} has no {key}: the kernel is built without them");
    let total = field(&text, "HugePages_Total").ok_or_else(|| lacks("HugePages_Total"))?;
    let size = kilobytes(&text, "Hugepagesize").ok_or_else(|| lacks("Hugepagesize"))?;
    Ok(format!("{total} of {}", format::bytes(size)))
}

/// The virtio device that reports free pages to the host, if there is one: the next use of such a
/// page is a fault in the host.
pub(crate) fn free_page_reporting(root: &Root) -> Result<Option<String>, RootError> {
    let devices = match root.list(VIRTIO) {
        // A machine without such devices.
        Err(RootError::Missing { .. }) if root.exists(BUSES) => return Ok(None),
        devices => devices?,
    };
    for device in devices {
        let read = |file: &str| root.value(&format!("{VIRTIO}/{device}/{file}"));
        let reports =
            || read("features").map(|bits| bits.as_bytes().get(PAGE_REPORTING) == Some(&b'1'));
        if read("device")? == BALLOON && reports()? {
            return Ok(Some(device));
        }
    }
    Ok(None)
}

/// Swap space of all devices and files, in bytes.
pub(crate) struct Swap {
    pub total: u64,
    pub used: u64,
}

pub(crate) fn swap(root: &Root) -> Result<Swap, RootError> {
    let text = root.text(SWAPS)?;
    let mut sum = Swap { total: 0, used: 0 };
    for line in text.lines().skip(1) {
        // Filename Type Size Used Priority, with blanks of the name escaped.
        let numbers = line.split_whitespace().skip(2).take(2).map(str::parse::<u64>);
        let numbers: Result<Vec<u64>, _> = numbers.collect();
        match numbers.as_deref() {
            Ok([total, used]) => {
                sum.total += total * 1024;
                sum.used += used * 1024;
            }
            _ => return Err(RootError::malformed(SWAPS, line, "a swap area with size and use")),
        }
    }
    Ok(sum)
}
