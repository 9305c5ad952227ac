//! CPU time of the whole machine, and the share of other processes.

use std::time::Duration;

use model::{Reading, Scope, Unavailable, Unit};

use super::usage::{usage, usage_of_children};
use super::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;
use crate::stat::{CpuTicks, NoShare, STAT, cpu_ticks, share};

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("machine", SIGNALS, "/proc/stat, getrusage", init);

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
    watching(root, false)
}

/// The probe; with `children`, CPU time of children that end and are reaped within its window
/// does not count as other processes', either.
pub(super) fn watching(root: &Root, children: bool) -> Result<Box<dyn Probe>, Unavailable> {
    cpu_ticks(root)?;
    let not_started = Unavailable::new("the probe was not started", "start it first");
    Ok(Box::new(MachineProbe {
        root: root.clone(),
        children,
        ticks: Err(not_started.clone()),
        own: Err(not_started),
    }))
}

struct MachineProbe {
    root: Root,
    children: bool,
    ticks: Result<CpuTicks, Unavailable>,
    /// CPU seconds of this process, and of its children if they count.
    own: Result<f64, Unavailable>,
}

impl MachineProbe {
    fn look(&self) -> (Result<CpuTicks, Unavailable>, Result<f64, Unavailable>) {
        let ticks = cpu_ticks(&self.root).map_err(Unavailable::from);
        let own = || -> Result<f64, Unavailable> {
            let children_s = match self.children {
                true => usage_of_children(&self.root)?.cpu_seconds(),
                false => 0.0,
            };
            Ok(usage(&self.root)?.cpu_seconds() + children_s)
        };
        (ticks, own())
    }
}

impl Probe for MachineProbe {
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
            let (busy, steal) = (part(|ticks| ticks.busy)?, part(|ticks| ticks.steal)?);
            let own = own.clone()? - self.own.clone()?;
            let (before, after) = (self.ticks.clone()?, ticks.clone()?);
            neighbours(
                busy,
                steal,
                own,
                (after.total() - before.total()) as f64 / ticks_per_second(),
            )
        };
        vec![
            BUSY.reading(part(|ticks| ticks.busy), window),
            STEAL.reading(part(|ticks| ticks.steal), window),
            IO_WAIT.reading(part(|ticks| ticks.io_wait), window),
            INTERRUPTS.reading(part(|ticks| ticks.interrupts), window),
            NEIGHBOURS.reading(neighbours(), window),
        ]
    }

    fn peek(&mut self, window: Duration) -> Vec<Reading> {
        self.stop(window)
    }
}

/// The share of the machine that other processes and the kernel took.
/// `own_s` and `all_s` are CPU seconds of this process and of all CPUs; time that was stolen from the
/// process may be in its own, but is not in what was busy.
fn neighbours(busy: f64, steal: f64, own_s: f64, all_s: f64) -> Result<f64, Unavailable> {
    let others = busy - own_s / all_s;
    if others < -(SAMPLING_ERROR + steal) {
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
    fn neighbours_are_the_rest_of_the_busy_time() {
        assert!((neighbours(0.75, 0.0, 1.0, 2.0).unwrap() - 0.25).abs() < 1e-12);
        // A sampling error is no negative neighbour.
        assert_eq!(neighbours(0.49, 0.0, 1.0, 2.0), Ok(0.0));
        // Nor is time that was stolen from this process.
        assert_eq!(neighbours(0.4, 0.1, 1.0, 2.0), Ok(0.0));
        let why = neighbours(0.1, 0.1, 1.0, 2.0).unwrap_err();
        assert!(why.reason.contains("another machine's"), "{}", why.reason);
    }

    #[test]
    fn children_that_count_are_no_neighbours() {
        let root = Root::live();
        let mut alone = watching(&root, false).unwrap();
        let mut with_children = watching(&root, true).unwrap();
        alone.start();
        with_children.start();
        let begun = std::time::Instant::now();
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let ended = std::process::Command::new("sh").args(["-c", spin]).status().unwrap();
        assert!(ended.success());
        let window = begun.elapsed();
        let neighbours = |probe: &mut Box<dyn Probe>| {
            let readings = probe.stop(window);
            let neighbours_reading =
                readings.iter().find(|reading| reading.signal == NEIGHBOURS.name);
            // Unavailable where children of other tests ended meanwhile: more than was busy.
            neighbours_reading.and_then(Reading::value).unwrap_or(-1.0)
        };
        let (others, fewer) = (neighbours(&mut alone), neighbours(&mut with_children));
        assert!(others > fewer, "{others} {fewer}");
    }
}
