//! The block device that the file system of each store lies on, as the kernel accounts its
//! requests: how long some were under way, and how many on average. Unlike `device.*` this is
//! the uppermost device (a loop, a mapping, the disk of a partition), which is what a file
//! system waits for. `Documentation/block/stat.rst`.

use std::time::Duration;

use model::{Reading, Scope, Unit};

use super::{Context, Probe, ProbeSpec, Signal};
use crate::root::{Root, RootError};
use crate::storage::volume_of;
use crate::unavailable::Unavailable;

pub(super) const SPEC: ProbeSpec =
    ProbeSpec { name: "volume", signals: SIGNALS, looks_at: "/sys/block/*/stat", init };

const SIGNALS: &[Signal] = &[BUSY, QUEUE];
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
    let names = paths.iter().map(name).collect::<Result<Vec<_>, _>>()?;
    for name in &names {
        look(root, name)?;
    }
    let before = vec![None; names.len()];
    Ok(Box::new(Volumes { root: root.clone(), names, before }))
}

struct Volumes {
    root: Root,
    /// One for each store.
    names: Vec<String>,
    before: Vec<Option<Seen>>,
}

/// Milliseconds, since the device came.
#[derive(Debug, Clone, Copy)]
struct Seen {
    busy: u64,
    queued: u64,
}

fn look(root: &Root, name: &str) -> Result<Seen, Unavailable> {
    let file = format!("/sys/block/{name}/stat");
    let text = root.text(&file)?;
    let fields: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    match fields.get(9..11) {
        Some(&[busy, queued]) => Ok(Seen { busy, queued }),
        _ => Err(RootError::malformed(&file, &text, "a line of 11 numbers or more").into()),
    }
}

impl Probe for Volumes {
    fn start(&mut self) {
        self.before = self.names.iter().map(|name| look(&self.root, name).ok()).collect();
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let window_ms = window.as_secs_f64() * 1e3;
        let gained = |at: usize| -> Result<(f64, f64), Unavailable> {
            let name = &self.names[at];
            let after = look(&self.root, name)?;
            let gone = || {
                Unavailable::new(
                    format!("the counters of {name} went back or were not there before"),
                    "repeat the run with a device that stays",
                )
            };
            let before = self.before[at].ok_or_else(gone)?;
            let busy = after.busy.checked_sub(before.busy).ok_or_else(gone)?;
            let queued = after.queued.checked_sub(before.queued).ok_or_else(gone)?;
            // The kernel counts in ticks, so a window may look a little more than full.
            Ok(((busy as f64 / window_ms).min(1.0), queued as f64 / window_ms))
        };
        let each: Vec<_> = (0..self.names.len()).map(gained).collect();
        let least = |of: fn(&(f64, f64)) -> f64| {
            each.iter().try_fold(f64::INFINITY, |least, one| match one {
                Ok(one) => Ok(least.min(of(one))),
                Err(why) => Err(why.clone()),
            })
        };
        let mut readings = vec![
            BUSY.reading(least(|(busy, _)| *busy), window),
            QUEUE.reading(least(|(_, queue)| *queue), window),
        ];
        for reading in &mut readings {
            reading.source = format!("{} of {}", reading.source, self.names.join(", "));
        }
        if self.names.len() > 1 {
            for (at, (name, one)) in self.names.iter().zip(&each).enumerate() {
                let of = |signal: &Signal, pick: fn(&(f64, f64)) -> f64| {
                    let mut reading =
                        signal.reading(one.as_ref().map(pick).map_err(Clone::clone), window);
                    let (group, what) = signal.name.split_once('.').unwrap_or((signal.name, ""));
                    reading.signal = format!("{group}.{}.{what}", at + 1);
                    reading.source = format!("/sys/block/{name}/stat");
                    reading
                };
                readings.push(of(&BUSY, |(busy, _)| *busy));
                readings.push(of(&QUEUE, |(_, queue)| *queue));
            }
        }
        readings
    }
}
