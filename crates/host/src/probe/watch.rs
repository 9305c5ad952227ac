//! All probes around one run.

use std::time::{Duration, Instant};

use model::{Reading, Scope, Unit};

use super::signal::{Covers, Signal};
use super::{Context, PROBES, Probe, ProbeSpec};
use crate::root::Root;
use crate::unavailable::Unavailable;

/// The probes of a run that goes on. `end` it to get the readings.
pub struct Watch {
    slots: Vec<Slot>,
}

struct Slot {
    spec: &'static ProbeSpec,
    probe: Result<Box<dyn Probe>, Unavailable>,
    started: Instant,
    /// Time spent in the probe so far.
    cost: Duration,
}

impl Watch {
    /// Makes every probe, then starts them. Call it right before the run: the
    /// last thing it does is the first look at the process's CPU time.
    pub fn begin(root: &Root, context: &Context) -> Watch {
        Watch::over(PROBES, root, context)
    }

    fn over(specs: &'static [ProbeSpec], root: &Root, context: &Context) -> Watch {
        let make = |spec: &'static ProbeSpec| {
            let probe = (spec.init)(root, context);
            Slot { spec, probe, started: Instant::now(), cost: Duration::ZERO }
        };
        let mut slots: Vec<Slot> = specs.iter().map(make).collect();
        for slot in &mut slots {
            if let Ok(probe) = &mut slot.probe {
                let before = Instant::now();
                probe.start();
                slot.started = Instant::now();
                slot.cost = slot.started - before;
            }
        }
        Watch { slots }
    }

    /// Stops every probe, the last started first. One reading for each signal
    /// of every probe, in the order of [`PROBES`], then what each probe cost.
    pub fn end(mut self) -> Vec<Reading> {
        let mut parts: Vec<Vec<Reading>> = self.slots.iter_mut().rev().map(Slot::stop).collect();
        parts.reverse();
        let costs: Vec<Reading> = self.slots.iter().map(Slot::cost).collect();
        parts.into_iter().flatten().chain(costs).collect()
    }
}

impl Slot {
    fn stop(&mut self) -> Vec<Reading> {
        let before = Instant::now();
        let window = before - self.started;
        match &mut self.probe {
            Ok(probe) => {
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

    /// What both looks of the probe took, outside its own window.
    fn cost(&self) -> Reading {
        let signal = Signal {
            name: "probe.cost",
            unit: Unit::Nanoseconds,
            scope: Scope::Harness,
            source: "the clock around the probe's two looks",
            covers: Covers::End,
        };
        let cost = match &self.probe {
            Ok(_) => Ok(self.cost.as_nanos() as f64),
            Err(why) => Err(why.clone()),
        };
        let mut reading = signal.reading(cost, Duration::ZERO);
        reading.signal = format!("probe.{}.cost", self.spec.name);
        reading
    }
}
