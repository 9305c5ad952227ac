//! All probes around one run.

use std::time::{Duration, Instant};

use model::{Reading, Scope, Unit};

use super::signal::{Covers, Signal};
use super::usage::usage;
use super::{Context, PROBES, Probe, ProbeSpec};
use crate::root::Root;
use crate::stat::{CpuTicks, cpu_ticks, share};
use crate::unavailable::Unavailable;

/// The probes of a run that goes on. `end` it to get the readings.
pub struct Watch {
    slots: Vec<Slot>,
    sampler: Sampler,
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
        let sampler = Sampler::new(root);
        for slot in &mut slots {
            if let Ok(probe) = &mut slot.probe {
                let before = Instant::now();
                probe.start();
                slot.started = Instant::now();
                slot.cost = slot.started - before;
            }
        }
        Watch { slots, sampler }
    }

    /// What happened since the last sample, or since the beginning. Reads one
    /// file and makes one system call; meant for once a second.
    pub fn sample(&mut self) -> Sample {
        self.sampler.sample()
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

/// One interval of a run's time series. A part is absent where it could not be
/// read; the reading of the same name at the end of the run says why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Seconds that the interval lasted.
    pub window_s: f64,
    /// Share of all CPUs' time that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// Share of all CPUs' time that anyone on this machine used.
    pub busy: Option<f64>,
    /// CPUs' worth of time that this process used: 1.5 is one and a half.
    pub process_cpus: Option<f64>,
}

struct Sampler {
    root: Root,
    last: Look,
}

struct Look {
    at: Instant,
    ticks: Option<CpuTicks>,
    cpu_s: Option<f64>,
}

impl Sampler {
    fn new(root: &Root) -> Self {
        Sampler { root: root.clone(), last: Look::now(root) }
    }

    fn sample(&mut self) -> Sample {
        let now = Look::now(&self.root);
        let window_s = (now.at - self.last.at).as_secs_f64();
        let part = |of: fn(&CpuTicks) -> u64| {
            share(self.last.ticks.as_ref()?, now.ticks.as_ref()?, of).ok()
        };
        let (steal, busy) = (part(|ticks| ticks.steal), part(|ticks| ticks.busy));
        let process_cpus = match (self.last.cpu_s, now.cpu_s) {
            (Some(before), Some(after)) if window_s > 0.0 => Some((after - before) / window_s),
            _ => None,
        };
        self.last = now;
        Sample { window_s, steal, busy, process_cpus }
    }
}

impl Look {
    fn now(root: &Root) -> Self {
        let ticks = cpu_ticks(root).ok();
        let cpu_s = usage(root).ok().map(|usage| usage.cpu_seconds());
        Look { at: Instant::now(), ticks, cpu_s }
    }
}
