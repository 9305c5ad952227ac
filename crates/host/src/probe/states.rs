//! The time that cores and packages really spent in idle states: the cstate
//! PMUs of Intel CPUs (`arch/x86/events/intel/cstate.c`), which count at the
//! rate of the time-stamp counter. What the kernel asked for is in `residency.rs`.

use std::time::Duration;

use model::{Reading, Scope, Unavailable, Unit};

use super::{Context, Probe, ProbeSpec, Signal, units};
use crate::perf::{CountedEvent, EventGroup, PerfSession, named};
use crate::root::Root;

pub(super) const SPEC: ProbeSpec = ProbeSpec::new(
    "cstates",
    SIGNALS,
    "perf_event_open: the cstate_core and cstate_pkg PMUs",
    init,
)
.with_parts(&[
    state("residency.core.STATE", "perf_event_open: cstate_core"),
    state("residency.package.STATE", "perf_event_open: cstate_pkg"),
]);

/// The state that nearly every Intel server has; others follow it by name.
const SIGNALS: &[Signal] = &[
    state("residency.core.c6", "perf_event_open: cstate_core"),
    state("residency.package.c6", "perf_event_open: cstate_pkg"),
];

const PMUS: [(&str, &str); 2] =
    [("cstate_core", "residency.core"), ("cstate_pkg", "residency.package")];
const SUFFIX: &str = "-residency";

const fn state(name: &'static str, source: &'static str) -> Signal {
    Signal::new(name, Unit::Ratio, Scope::Machine, source)
}

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    units::live(root, context, over)
}

/// A state of one of the PMUs: `residency.core.c1`, `cstate_core/c1-residency/`.
struct CState {
    signal: String,
    event: String,
}

/// The probe over a kernel, the running one or a stand-in.
pub(super) fn over(
    root: &Root,
    _: &Context,
    kernel: units::NewKernel,
) -> Result<Box<dyn Probe>, Unavailable> {
    let (mut states, mut groups) = (Vec::new(), Vec::new());
    for (pmu, prefix) in PMUS {
        // Virtual machines, AMD and Arm have neither PMU, some Intel CPUs but one.
        let names = units::listed(root, pmu).unwrap_or_default();
        for name in names.iter().filter_map(|name| name.strip_suffix(SUFFIX)) {
            // The counters are in one group with the clock that measures them.
            let event = format!("{name}{SUFFIX}");
            let group = units::group(root, pmu, &[&event])?;
            let tsc = EventGroup { events: vec![named(root, "msr", "tsc")?], ..group.clone() };
            groups.extend([group, tsc]);
            states.push(CState {
                signal: format!("{prefix}.{name}"),
                event: format!("{pmu}/{event}/"),
            });
        }
    }
    if states.is_empty() {
        return Err(Unavailable::new(
            "there is neither a PMU cstate_core nor cstate_pkg",
            "measure on an Intel CPU, not in a virtual machine; elsewhere the kernel's requests \
             (residency.*) are all that is known",
        ));
    }
    Ok(Box::new(CStates { states, session: PerfSession::open(kernel()?, &groups)? }))
}

struct CStates {
    states: Vec<CState>,
    session: PerfSession,
}

impl Probe for CStates {
    fn start(&mut self) {
        self.session.start();
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let tallies = self.session.stop();
        let one = |at: usize| -> Result<CountedEvent, Unavailable> {
            let event = tallies.get(at).and_then(|tally| tally.events.first().cloned());
            event
                .unwrap_or_else(|| Err(Unavailable::new("the event was not opened", "report this")))
        };
        let share = |at: usize| {
            one(2 * at).and_then(|in_it| {
                let all = one(2 * at + 1)?.value;
                match all > 0.0 {
                    true => Ok((in_it.value / all).min(1.0)),
                    false => Err(Unavailable::new(
                        "the time-stamp counter stood still in the window",
                        "measure for a second or longer",
                    )),
                }
            })
        };
        let state_readings: Vec<_> =
            self.states.iter().enumerate().map(|(at, state)| (state, share(at))).collect();
        let mut readings = Vec::new();
        for signal in SIGNALS {
            let state = state_readings.iter().find(|(state, _)| state.signal == signal.name);
            let reading = match state {
                Some((state, value)) => named_source(signal.reading(value.clone(), window), state),
                None => signal.reading(
                    Err(Unavailable::new(
                        "this CPU counts no such state",
                        "see the states that it counts beside this one",
                    )),
                    window,
                ),
            };
            readings.push(reading);
        }
        for (state, value) in state_readings {
            if SIGNALS.iter().all(|signal| signal.name != state.signal) {
                let mut reading = SIGNALS[0].reading(value, window);
                reading.signal.clone_from(&state.signal);
                readings.push(named_source(reading, state));
            }
        }
        readings
    }
}

fn named_source(mut reading: Reading, state: &CState) -> Reading {
    reading.source = format!("perf_event_open: {} / msr/tsc/", state.event);
    reading
}
