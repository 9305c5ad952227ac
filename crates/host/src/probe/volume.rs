//! The block device that the file system of each store lies on, as the kernel accounts its
//! requests: how long some were under way, and how many on average. Unlike `device.*` this is
//! the uppermost device (a loop, a mapping, the disk of a partition), which is what a file
//! system waits for. `Documentation/block/stat.rst`.

use std::time::Duration;

use model::{Reading, Scope, Unavailable, Unit};

use super::{Context, Probe, ProbeSpec, Signal};
use crate::root::{Root, RootError};
use crate::storage::disk::SECTOR;
use crate::storage::volume_of;

pub(super) const SPEC: ProbeSpec = ProbeSpec::new("volume", SIGNALS, "/sys/block/*/stat", init)
    .with_parts(&[BUSY_OF_ONE, QUEUE_OF_ONE]);

const SIGNALS: &[Signal] = &[BUSY, QUEUE, READ, WRITTEN];
const BUSY: Signal = Signal::new(
    "volume.busy",
    Unit::Ratio,
    Scope::Device,
    "/sys/block/*/stat: io_ticks / time, the least busy volume",
);
const QUEUE: Signal = Signal::new(
    "volume.queue",
    Unit::Count,
    Scope::Device,
    "/sys/block/*/stat: time_in_queue / time, the shortest queue",
);
const BUSY_OF_ONE: Signal = BUSY.of_parts("volume.N.busy");
const QUEUE_OF_ONE: Signal = QUEUE.of_parts("volume.N.queue");
const READ: Signal = Signal::new(
    "volume.read",
    Unit::Bytes,
    Scope::Device,
    "/sys/block/*/stat: sectors read, of all volumes",
);
const WRITTEN: Signal = Signal::new(
    "volume.written",
    Unit::Bytes,
    Scope::Device,
    "/sys/block/*/stat: sectors written, of all volumes",
);

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let paths = context.store_paths();
    if paths.is_empty() {
        return Err(Unavailable::new(
            "no directory of a store was named, or the store keeps none here",
            "name one (`doctor --store DIR`), on the machine that holds the store's files",
        ));
    }
    let name = |path: &std::path::PathBuf| {
        volume_of(root, path).map_err(|reason| {
            Unavailable::new(
                format!("no block device is known under {}: {reason}", path.display()),
                "put the store on a file system of a block device that this machine can see",
            )
        })
    };
    // Several stores may lie on one volume, which is counted once.
    let mut names: Vec<String> = Vec::new();
    for path in paths.iter() {
        let name = name(path)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in &names {
        read_counters(root, name)?;
    }
    let before = vec![None; names.len()];
    Ok(Box::new(Volumes { root: root.clone(), names, before }))
}

struct Volumes {
    root: Root,
    /// In the order of the first store on each.
    names: Vec<String>,
    before: Vec<Option<VolumeCounters>>,
}

/// Milliseconds and bytes since the device was added.
#[derive(Debug, Clone, Copy)]
struct VolumeCounters {
    busy: u64,
    queued: u64,
    read: u64,
    written: u64,
}

/// The use of a volume in a window.
#[derive(Debug, Clone, Copy)]
struct VolumeUse {
    busy: f64,
    queue: f64,
    read: f64,
    written: f64,
}

fn read_counters(root: &Root, name: &str) -> Result<VolumeCounters, Unavailable> {
    let file = format!("/sys/block/{name}/stat");
    let text = root.text(&file)?;
    let fields: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    match fields.get(..11) {
        Some(&[_, _, read, _, _, _, written, _, _, busy, queued]) => {
            Ok(VolumeCounters { busy, queued, read: read * SECTOR, written: written * SECTOR })
        }
        _ => Err(RootError::malformed(&file, &text, "a line of 11 numbers or more").into()),
    }
}

impl Probe for Volumes {
    fn start(&mut self) {
        self.before = self.names.iter().map(|name| read_counters(&self.root, name).ok()).collect();
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let window_ms = window.as_secs_f64() * 1e3;
        let gained = |at: usize| -> Result<VolumeUse, Unavailable> {
            let name = &self.names[at];
            let after = read_counters(&self.root, name)?;
            let lost = || {
                Unavailable::new(
                    format!("the counters of {name} went back or were not there before"),
                    "repeat the run with a device that stays",
                )
            };
            let before = self.before[at].ok_or_else(lost)?;
            let gained = |of: fn(&VolumeCounters) -> u64| {
                let gained = of(&after).checked_sub(of(&before)).ok_or_else(lost)?;
                Ok::<f64, Unavailable>(gained as f64)
            };
            Ok(VolumeUse {
                // The kernel counts in ticks, so a window may seem a little more than full.
                busy: (gained(|counters| counters.busy)? / window_ms).min(1.0),
                queue: gained(|counters| counters.queued)? / window_ms,
                read: gained(|counters| counters.read)?,
                written: gained(|counters| counters.written)?,
            })
        };
        let each: Vec<_> = (0..self.names.len()).map(gained).collect();
        let of_all = |first: f64, put: fn(f64, &VolumeUse) -> f64| {
            each.iter().try_fold(first, |so_far, one| match one {
                Ok(one) => Ok(put(so_far, one)),
                Err(why) => Err(why.clone()),
            })
        };
        let mut readings = vec![
            BUSY.reading(of_all(f64::INFINITY, |least, one| least.min(one.busy)), window),
            QUEUE.reading(of_all(f64::INFINITY, |least, one| least.min(one.queue)), window),
            READ.reading(of_all(0.0, |sum, one| sum + one.read), window),
            WRITTEN.reading(of_all(0.0, |sum, one| sum + one.written), window),
        ];
        for reading in &mut readings {
            reading.source = format!("{} of {}", reading.source, self.names.join(", "));
        }
        if self.names.len() > 1 {
            for (at, (name, one)) in self.names.iter().zip(&each).enumerate() {
                let of = |signal: &Signal, pick: fn(&VolumeUse) -> f64| {
                    let mut reading =
                        signal.reading(one.as_ref().map(pick).map_err(Clone::clone), window);
                    reading.signal = signal.name_of(&(at + 1).to_string());
                    reading.source = format!("/sys/block/{name}/stat");
                    reading
                };
                readings.push(of(&BUSY_OF_ONE, |one| one.busy));
                readings.push(of(&QUEUE_OF_ONE, |one| one.queue));
            }
        }
        readings
    }
}
