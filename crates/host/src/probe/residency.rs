//! The time that CPUs spent in each idle state as the kernel requested it
//! (`Documentation/admin-guide/pm/cpuidle.rst`). For what the hardware granted
//! see the cstate PMUs (`states.rs`).

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Reading, Scope, Unavailable, Unit};

use super::{Context, Probe, ProbeSpec, Signal};
use crate::facts::topology::online;
use crate::root::{Root, RootError};

const CPUS: &str = "/sys/devices/system/cpu";
const SOURCE: &str = "/sys/devices/system/cpu/cpu*/cpuidle/state*: time";
const USAGE: &str = "/sys/devices/system/cpu/cpu*/cpuidle/state*: usage";

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("residency", SIGNALS, "/sys/devices/system/cpu/cpu*/cpuidle/state*", init)
        .with_parts(&[STATE, LOAD_STATE]);

const SIGNALS: &[Signal] = &[IDLE, ENTRIES];
const IDLE: Signal = Signal::new("residency.idle", Unit::Ratio, Scope::Machine, SOURCE);
const ENTRIES: Signal = Signal::new("residency.entries", Unit::Count, Scope::Machine, USAGE);
const STATE: Signal = IDLE.of_parts("residency.STATE");
const LOAD_STATE: Signal = Signal::new("residency.load.STATE", Unit::Ratio, Scope::Cpus, SOURCE);

/// A state on one CPU: microseconds in it and number of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CpuStateTime {
    name: String,
    time_us: u64,
    usage: u64,
}

/// The states by CPU and number.
type ResidencySnapshot = BTreeMap<(u32, u32), CpuStateTime>;

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    if snapshot(root)?.is_empty() {
        return Err(Unavailable::new(
            format!("{CPUS}/cpu*/cpuidle holds no states"),
            "the hypervisor or the firmware handles idle CPUs itself; a kernel with \
             CONFIG_CPU_IDLE and an idle driver reports it",
        ));
    }
    let before = Err(Unavailable::new("the probe was not started", "start it first"));
    let (root, cpus) = (root.clone(), context.cpus.clone());
    Ok(Box::new(Residency { root, cpus, before }))
}

struct Residency {
    root: Root,
    /// Those of the load, shown apart where they are known.
    cpus: Vec<u32>,
    before: Result<ResidencySnapshot, Unavailable>,
}

impl Probe for Residency {
    fn start(&mut self) {
        self.before = snapshot(&self.root).map_err(Unavailable::from);
    }

    /// The two signals, then `residency.STATE` of the machine and, where the
    /// load's CPUs are known, `residency.load.STATE` of those.
    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let after = snapshot(&self.root).map_err(Unavailable::from);
        let both = self.before.clone().and_then(|before| Ok((before, after?)));
        let (before, after) = match both {
            Ok(both) => both,
            Err(why) => {
                return SIGNALS.iter().map(|s| s.reading(Err(why.clone()), window)).collect();
            }
        };
        let machine = gains(&before, &after, |_| true);
        let all = machine.as_ref().map_err(Clone::clone);
        let share = all.clone().and_then(|states| {
            // Polling is no sleep: the CPU runs at full power.
            share(
                states.iter().filter(|state| state.name != "POLL").map(|s| s.time_us),
                states,
                window,
            )
        });
        let entries = all.map(|states| states.iter().map(|state| state.usage).sum::<u64>() as f64);
        let mut readings = vec![IDLE.reading(share, window), ENTRIES.reading(entries, window)];
        let mut add = |signal: Signal, whose: &str, states: &[ResidencyGain]| {
            for state in states {
                let share = self::share([state.time_us].into_iter(), states, window);
                let mut reading = signal.reading(share, window);
                reading.signal = signal.name_of(&state.name.replace(' ', "_"));
                reading.source = format!("{SOURCE} of {}{whose}", state.name);
                readings.push(reading);
            }
        };
        if let Ok(states) = &machine {
            add(STATE, "", states);
        }
        if !self.cpus.is_empty()
            && let Ok(states) = gains(&before, &after, |cpu| self.cpus.contains(&cpu))
        {
            let list: Vec<String> = self.cpus.iter().map(u32::to_string).collect();
            let whose = format!(", CPUs {}", list.join(","));
            add(LOAD_STATE, &whose, &states);
        }
        readings
    }
}

/// The gain of a state over some CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ResidencyGain {
    name: String,
    time_us: u64,
    usage: u64,
    cpus: u64,
}

/// The gains of each state by name, in the order of the states.
fn gains(
    before: &ResidencySnapshot,
    after: &ResidencySnapshot,
    of: impl Fn(u32) -> bool,
) -> Result<Vec<ResidencyGain>, Unavailable> {
    let mut states: Vec<ResidencyGain> = Vec::new();
    for ((cpu, number), end) in after.iter().filter(|((cpu, _), _)| of(*cpu)) {
        // A CPU that came online in the window has no beginning.
        let Some(start) = before.get(&(*cpu, *number)) else { continue };
        let gained = |from: u64, to: u64, file: &str| {
            to.checked_sub(from).ok_or_else(|| {
                Unavailable::new(
                    format!(
                        "{CPUS}/cpu{cpu}/cpuidle/state{number}/{file} went back from {from} to {to}"
                    ),
                    "repeat the run; a CPU that was taken offline begins again",
                )
            })
        };
        let time_us = gained(start.time_us, end.time_us, "time")?;
        let usage = gained(start.usage, end.usage, "usage")?;
        match states.iter_mut().find(|state| state.name == end.name) {
            Some(state) => {
                state.time_us += time_us;
                state.usage += usage;
                state.cpus += 1;
            }
            None => states.push(ResidencyGain { name: end.name.clone(), time_us, usage, cpus: 1 }),
        }
    }
    Ok(states)
}

/// The share of the time of all CPUs. The kernel accounts a sleep when it ends,
/// so one that began before the window can make it a little more than 1.
fn share(
    times_us: impl Iterator<Item = u64>,
    states: &[ResidencyGain],
    window: Duration,
) -> Result<f64, Unavailable> {
    let cpus = states.iter().map(|state| state.cpus).max().unwrap_or(0);
    let all = cpus as f64 * window.as_micros() as f64;
    if all == 0.0 {
        return Err(Unavailable::new("the window is empty", "measure for a second or longer"));
    }
    Ok((times_us.sum::<u64>() as f64 / all).min(1.0))
}

fn snapshot(root: &Root) -> Result<ResidencySnapshot, RootError> {
    let mut snapshot = ResidencySnapshot::new();
    for cpu in online(root)? {
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        for number in root.numbered(&folder, "state").unwrap_or_default() {
            let file = |name: &str| format!("{folder}/state{number}/{name}");
            let state = CpuStateTime {
                name: root.value(&file("name"))?,
                time_us: root.number(&file("time"))?,
                usage: root.number(&file("usage"))?,
            };
            snapshot.insert((cpu, number), state);
        }
    }
    Ok(snapshot)
}
