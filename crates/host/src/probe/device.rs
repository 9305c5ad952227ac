//! Counters of the disks under the store.

use model::{Scope, Unavailable, Unit};

use super::counters::{CounterValues, Counters, OfDevices, Scale};
use super::{Context, Probe, ProbeSpec, Signal};
use crate::root::{Root, RootError};
use crate::storage::disk::SECTOR;
use crate::storage::stack_of;

const DISKSTATS: &str = "/proc/diskstats";

pub(super) const SPEC: ProbeSpec = ProbeSpec::new("device", SIGNALS, DISKSTATS, init);

const SIGNALS: &[Signal] = &[
    device("device.read", Unit::Bytes, "/proc/diskstats: sectors read"),
    device("device.written", Unit::Bytes, "/proc/diskstats: sectors written"),
    device("device.reads", Unit::Count, "/proc/diskstats: reads completed"),
    device("device.writes", Unit::Count, "/proc/diskstats: writes completed"),
    device("device.flushes", Unit::Count, "/proc/diskstats: flush requests completed"),
    device("device.busy", Unit::Seconds, "/proc/diskstats: time spent doing I/O"),
];

/// Field of each signal behind the device's name, and its unit.
const FIELDS: [(usize, f64); 6] = [
    (2, SECTOR as f64),
    (6, SECTOR as f64),
    (0, 1.0),
    (4, 1.0),
    (15, 1.0),
    // Milliseconds.
    (9, 1e-3),
];

const fn device(name: &'static str, unit: Unit, source: &'static str) -> Signal {
    Signal::new(name, unit, Scope::Device, source)
}

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let paths = context.store_paths();
    if paths.is_empty() {
        return Err(Unavailable::new(
            "no directory of a store was named, or the store keeps none here",
            "name one (`doctor --store DIR`), on the machine that holds the store's files",
        ));
    }
    let mut disks: Vec<String> = Vec::new();
    for path in &paths {
        let stack = stack_of(root, path).map_err(|reason| {
            Unavailable::new(
                format!("no disk is known under {}: {reason}", path.display()),
                "put the store on a file system of a disk that this machine can see",
            )
        })?;
        disks.extend(stack.disks);
    }
    // Several stores may lie on one disk, which is counted once.
    disks.sort();
    disks.dedup();
    let text = root.text(DISKSTATS)?;
    for disk in &disks {
        counters(&text, disk)?;
    }
    let scales = FIELDS.map(|(_, scale)| Scale(scale)).to_vec();
    let (root, names) = (root.clone(), disks.join(", "));
    let counters = Counters::new(SIGNALS, scales, move || read_counters(&root, &disks));
    Ok(Box::new(OfDevices { counters, devices: names, except: &[] }))
}

/// The counters of several disks, summed.
fn read_counters(root: &Root, disks: &[String]) -> CounterValues {
    let text = root.text(DISKSTATS)?;
    let each: Result<Vec<Vec<u64>>, Unavailable> =
        disks.iter().map(|disk| counters(&text, disk)).collect();
    let each = each?;
    let sum = |at: usize| {
        let values: Option<Vec<u64>> = each.iter().map(|disk| disk.get(at).copied()).collect();
        values.map(|values| values.iter().sum()).ok_or_else(|| {
            Unavailable::new(
                format!("{DISKSTATS} of this kernel has no field {}", at + 4),
                "use Linux 5.5 or later, which counts flushes",
            )
        })
    };
    Ok(FIELDS.iter().map(|(at, _)| sum(*at)).collect())
}

/// The numbers behind a device's name.
fn counters(text: &str, disk: &str) -> Result<Vec<u64>, Unavailable> {
    let line = text.lines().find(|line| line.split_whitespace().nth(2) == Some(disk)).ok_or_else(
        || {
            Unavailable::new(
                format!("{DISKSTATS} has no line for {disk}"),
                "run outside the container that hides the device",
            )
        },
    )?;
    let values: Vec<u64> =
        line.split_whitespace().skip(3).map_while(|word| word.parse().ok()).collect();
    if values.len() < 11 {
        return Err(RootError::malformed(DISKSTATS, line, "a line of 11 counters or more").into());
    }
    Ok(values)
}
