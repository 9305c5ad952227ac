//! All probes around one run.

use std::time::{Duration, Instant};

use model::signal::{PROBE_COST, Signal};
use model::{Reading, Series, Unavailable, Unit};

use super::sampler::{COST, Sampler};
use super::{Context, PROBES, Probe, ProbeSpec};
use crate::root::Root;

const COUNTERS: &str = "counters";
/// What [`RunWatch::peek`] looks at, beside the sources of energy: each costs microseconds.
const PEEKED: [&str; 3] = ["cpu", "machine", COUNTERS];

/// Probes that are made and sampled but whose window has not begun. Some take
/// a while to make (a GPU's driver, a serial port), so make them before the load.
pub struct PreparedWatch {
    slots: Vec<Slot>,
    sampler: Result<Sampler, Unavailable>,
}

/// The probes of a running window. `end` it to get the readings.
pub struct RunWatch {
    slots: Vec<Slot>,
    sampler: Result<Sampler, Unavailable>,
    opened: Instant,
}

/// The readings around a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WatchReadings {
    /// One for each signal of every probe in the order of [`PROBES`], readings
    /// of parts behind those of their probe, then what each probe and the sampler cost.
    pub readings: Vec<Reading>,
    /// The sampled series; time zero is the instant at which [`RunWatch::begin`] returned.
    pub series: Vec<Series>,
}

struct Slot {
    spec: &'static ProbeSpec,
    probe: Result<Box<dyn Probe>, Unavailable>,
    started: Instant,
    /// Time spent in the probe so far.
    cost: Duration,
}

impl PreparedWatch {
    /// Whether one of these probes works here.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.slots.iter().any(|slot| slot.probe.is_ok() && names.contains(&slot.spec.name))
    }

    /// Starts every probe. Call it right before the run: its last step reads the
    /// process's CPU time.
    pub fn begin(mut self) -> RunWatch {
        if let Ok(sampler) = &mut self.sampler {
            sampler.open();
        }
        for slot in &mut self.slots {
            if let Ok(probe) = &mut slot.probe {
                let before = Instant::now();
                probe.start();
                slot.started = Instant::now();
                slot.cost = slot.started - before;
            }
        }
        RunWatch { slots: self.slots, sampler: self.sampler, opened: Instant::now() }
    }
}

impl RunWatch {
    /// Makes every probe and starts the sampler.
    pub fn prepare(root: &Root, context: &Context) -> PreparedWatch {
        RunWatch::over(PROBES.iter(), root, context)
    }

    /// Makes every probe, then starts them at once.
    pub fn begin(root: &Root, context: &Context) -> RunWatch {
        RunWatch::prepare(root, context).begin()
    }

    pub(super) fn over(
        specs: impl Iterator<Item = &'static ProbeSpec>,
        root: &Root,
        context: &Context,
    ) -> PreparedWatch {
        let make = |spec: &'static ProbeSpec| {
            let probe = spec.make(root, context);
            Slot { spec, probe, started: Instant::now(), cost: Duration::ZERO }
        };
        let mut slots: Vec<Slot> = specs.map(make).collect();
        let probes = slots.iter_mut().filter_map(|slot| slot.probe.as_mut().ok());
        let tasks = probes.flat_map(|probe| probe.tasks()).collect();
        PreparedWatch { slots, sampler: Sampler::start(tasks, &context.cpus) }
    }

    /// Looks at the window while it is open: CPU time, power and counters, as far as they can be
    /// read in between. Where no power or no counter can, the first of their signals says why.
    pub fn peek(&mut self) -> Vec<Reading> {
        let mut readings = Vec::new();
        let mut no_power = None;
        for slot in &mut self.slots {
            let (spec, window) = (slot.spec, slot.started.elapsed());
            let energy = spec.reads_energy();
            match &mut slot.probe {
                Ok(probe) if energy || PEEKED.contains(&spec.name) => {
                    readings.extend(probe.peek(window));
                }
                Err(why) if spec.name == COUNTERS => {
                    let ipc = spec.signals.iter().find(|signal| signal.name == "ipc");
                    readings.extend(ipc.map(|ipc| ipc.reading(Err(why.clone()), window)));
                }
                // The CPU's own counters come last, and most machines have them.
                Err(why) if energy => {
                    no_power = spec.signals.first().map(|s| s.reading(Err(why.clone()), window));
                }
                Ok(_) | Err(_) => {}
            }
        }
        if !readings.iter().any(|reading| reading.unit == Unit::Watts) {
            readings.extend(no_power);
        }
        readings
    }

    /// Stops every probe, the last started first.
    pub fn end(mut self) -> WatchReadings {
        let closed = Instant::now();
        let window = closed - self.opened;
        if let Ok(sampler) = &mut self.sampler {
            sampler.close();
        }
        let opened = self.opened;
        let stop = |slot: &mut Slot| slot.stop(opened, closed);
        let mut parts: Vec<Vec<Reading>> = self.slots.iter_mut().rev().map(stop).collect();
        parts.reverse();
        let mut readings: Vec<Reading> = parts.into_iter().flatten().collect();
        readings.extend(self.slots.iter().map(Slot::cost));
        readings.push(match &mut self.sampler {
            Ok(sampler) => sampler.cost(window),
            Err(why) => COST.reading(Err(why.clone()), window),
        });
        let probes = self.slots.iter().filter_map(|slot| slot.probe.as_ref().ok());
        let series = probes.flat_map(|probe| probe.series(self.opened)).collect();
        WatchReadings { readings, series }
    }
}

impl Slot {
    fn stop(&mut self, opened: Instant, closed: Instant) -> Vec<Reading> {
        let before = Instant::now();
        let window = before - self.started;
        match &mut self.probe {
            Ok(probe) => {
                probe.set_run_window(opened, closed);
                let readings = probe.stop(window);
                self.cost += before.elapsed();
                readings
            }
            Err(why) => {
                let absent = |signal: &Signal| signal.reading(Err(why.clone()), window);
                self.spec.signals.iter().map(absent).collect()
            }
        }
    }

    /// The cost of the probe, outside its own window.
    fn cost(&self) -> Reading {
        let cost = match &self.probe {
            Ok(_) => Ok(self.cost.as_nanos() as f64),
            Err(why) => Err(why.clone()),
        };
        let signal = PROBE_COST.name_of(self.spec.name);
        Reading { signal, ..PROBE_COST.reading(cost, Duration::ZERO) }
    }
}
