//! Events that the kernel itself counts for the threads: time on a CPU,
//! switches, moves between CPUs, page faults. They need no PMU.

use std::time::Duration;

use model::{Reading, Scope, Unavailable, Unit};

use super::{Context, Probe, ProbeSpec, Signal, units};
use crate::perf::{EventGroup, GroupCounts, PerfSession, PerfTarget, Privilege, encode, targets};
use crate::root::Root;

pub(super) const SPEC: ProbeSpec = ProbeSpec::new("software", SIGNALS, "perf_event_open", init);

const SIGNALS: &[Signal] = &[
    event("software.task_clock", Unit::Seconds, "perf_event_open: PERF_COUNT_SW_TASK_CLOCK"),
    event(
        "software.context_switches",
        Unit::Count,
        "perf_event_open: PERF_COUNT_SW_CONTEXT_SWITCHES",
    ),
    event("software.migrations", Unit::Count, "perf_event_open: PERF_COUNT_SW_CPU_MIGRATIONS"),
    event("software.page_faults", Unit::Count, "perf_event_open: PERF_COUNT_SW_PAGE_FAULTS"),
];

/// `config` of each event (`perf_event_open(2)`), and what one step of it is.
const EVENTS: [(&str, f64); 4] =
    [("config=0x1", 1e-9), ("config=0x3", 1.0), ("config=0x4", 1.0), ("config=0x2", 1.0)];

const fn event(name: &'static str, unit: Unit, source: &'static str) -> Signal {
    Signal::new(name, unit, Scope::Process, source)
}

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    units::live(root, context, over)
}

/// The probe over a kernel, the running one or a stand-in.
pub(super) fn over(
    root: &Root,
    context: &Context,
    kernel: units::NewKernel,
) -> Result<Box<dyn Probe>, Unavailable> {
    // A switch happens in the kernel: without its part the count would be zero.
    Privilege::of(root)?.kernel_mode()?;
    let (scope, targets) = targets(root, context)?;
    let inherit = targets.iter().any(|target| matches!(target, PerfTarget::Thread(_)));
    // Each event alone: the kernel has as many of these counters as are asked for.
    let group = |(terms, _): &(&str, f64)| {
        let events = vec![encode(root, "software", terms)?];
        Ok(EventGroup { events, targets: targets.clone(), inherit })
    };
    let groups: Result<Vec<EventGroup>, Unavailable> = EVENTS.iter().map(group).collect();
    Ok(Box::new(Software { scope, session: PerfSession::open(kernel()?, &groups?)? }))
}

struct Software {
    scope: Scope,
    session: PerfSession,
}

impl Probe for Software {
    fn start(&mut self) {
        self.session.start();
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let tallies = self.session.stop();
        let reading = |((signal, (_, step)), tally): ((&Signal, &(&str, f64)), GroupCounts)| {
            let counted = tally.events.into_iter().next().unwrap_or_else(|| {
                Err(Unavailable::new("the event was not opened", "report this"))
            });
            let mut reading = signal.reading(counted.map(|counted| counted.value * step), window);
            reading.scope = self.scope;
            reading
        };
        SIGNALS.iter().zip(&EVENTS).zip(tallies).map(reading).collect()
    }
}
