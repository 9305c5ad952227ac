//! What all CPUs of the machine did, and what others took from it.

use std::time::Duration;

use model::{Reading, Scope, Unit};

use super::usage::usage;
use super::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;
use crate::stat::{CpuTicks, NoShare, STAT, cpu_ticks, share};
use crate::unavailable::Unavailable;

pub(super) const SPEC: ProbeSpec =
    ProbeSpec { name: "machine", signals: SIGNALS, looks_at: "/proc/stat, getrusage", init };

const SIGNALS: &[Signal] = &[BUSY, STEAL, IO_WAIT, INTERRUPTS, NEIGHBOURS];
const BUSY: Signal =
    ratio("machine.busy", "/proc/stat: user + nice + system + irq + softirq of all");
const STEAL: Signal = ratio("machine.steal", "/proc/stat: steal of all");
const IO_WAIT: Signal = ratio("machine.io_wait", "/proc/stat: iowait of all");
const INTERRUPTS: Signal = ratio("machine.interrupts", "/proc/stat: irq + softirq of all");
const NEIGHBOURS: Signal =
    ratio("machine.neighbours", "/proc/stat: busy, less getrusage(RUSAGE_SELF)");

/// Ticks are sampled and the process's own time is exact: where they differ by
/// less than this share of the machine, the difference is the sampling's.
const SAMPLING_ERROR: f64 = 0.02;

const fn ratio(name: &'static str, source: &'static str) -> Signal {
    Signal::new(name, Unit::Ratio, Scope::Machine, source)
}

fn init(root: &Root, _: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    cpu_ticks(root)?;
    let not_started = Unavailable::new("the probe was not started", "start it first");
    Ok(Box::new(Machine {
        root: root.clone(),
        ticks: Err(not_started.clone()),
        own: Err(not_started),
    }))
}

struct Machine {
    root: Root,
    ticks: Result<CpuTicks, Unavailable>,
    /// CPU seconds of this process.
    own: Result<f64, Unavailable>,
}

impl Machine {
    fn look(&self) -> (Result<CpuTicks, Unavailable>, Result<f64, Unavailable>) {
        let ticks = cpu_ticks(&self.root).map_err(Unavailable::from);
        (ticks, usage(&self.root).map(|usage| usage.cpu_seconds()))
    }
}

impl Probe for Machine {
    fn start(&mut self) {
        (self.ticks, self.own) = self.look();
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let (ticks, own) = self.look();
        let part = |of: fn(&CpuTicks) -> u64| {
            let (before, after) = (self.ticks.as_ref(), ticks.as_ref());
            let (before, after) = (before.map_err(Clone::clone)?, after.map_err(Clone::clone)?);
            share(before, after, of).map_err(explain)
        };
        let neighbours = || {
            let busy = part(|ticks| ticks.busy)?;
            let own = own.clone()? - self.own.clone()?;
            let (before, after) = (self.ticks.clone()?, ticks.clone()?);
            neighbours(busy, own, (after.total() - before.total()) as f64 / ticks_per_second())
        };
        vec![
            BUSY.reading(part(|ticks| ticks.busy), window),
            STEAL.reading(part(|ticks| ticks.steal), window),
            IO_WAIT.reading(part(|ticks| ticks.io_wait), window),
            INTERRUPTS.reading(part(|ticks| ticks.interrupts), window),
            NEIGHBOURS.reading(neighbours(), window),
        ]
    }
}

/// The share of the machine that other processes and the kernel took.
/// `own_s` and `all_s` are CPU seconds of this process and of all CPUs.
fn neighbours(busy: f64, own_s: f64, all_s: f64) -> Result<f64, Unavailable> {
    let others = busy - own_s / all_s;
    if others < -SAMPLING_ERROR {
        return Err(Unavailable::new(
            format!(
                "{STAT} counted less CPU time for the whole machine than this process used: \
                 it is another machine's, or the window is too short"
            ),
            "measure for ten seconds or longer, outside a container that fakes /proc/stat",
        ));
    }
    Ok(others.max(0.0))
}

fn explain(why: NoShare) -> Unavailable {
    match why {
        NoShare::Backwards => Unavailable::new(
            format!("a counter of {STAT} went back"),
            "repeat the run; the kernel lets iowait and hot-plugged CPUs' time go down",
        ),
        NoShare::ShorterThanATick => Unavailable::new(
            format!("the window is shorter than a tick of {STAT}"),
            "measure for a second or longer",
        ),
    }
}

/// The unit of `/proc/stat`, which the kernel's interface fixes for a machine.
fn ticks_per_second() -> f64 {
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK);
    ticks.ok().flatten().map_or(100.0, |ticks| ticks as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_what_is_left_of_the_busy_time() {
        assert!((neighbours(0.75, 1.0, 2.0).unwrap() - 0.25).abs() < 1e-12);
        // A sampling error is no negative neighbour.
        assert_eq!(neighbours(0.49, 1.0, 2.0), Ok(0.0));
        let why = neighbours(0.1, 1.0, 2.0).unwrap_err();
        assert!(why.reason.contains("another machine's"), "{}", why.reason);
    }
}
