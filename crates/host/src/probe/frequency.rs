//! The frequency at which the CPUs really ran, from the counters APERF and
//! MPERF through the kernel's `msr` PMU (Intel SDM volume 3, "Hardware
//! Feedback"; AMD PPR). `scaling_cur_freq` is one instant and no mean.

use std::time::Duration;

use model::{Reading, Scope, Unavailable, Unit};

use super::{Context, Probe, ProbeSpec, Signal, units};
use crate::facts::topology::online;
use crate::perf::{CountedEvent, EventGroup, PerfSession, PerfTarget, Privilege, named};
use crate::root::{Root, RootError};

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("frequency", SIGNALS, "perf_event_open: the msr PMU", init);

const SIGNALS: &[Signal] = &[MEAN, AWAKE];
/// Over the time in which a CPU was not idle.
const MEAN: Signal = Signal::new(
    "frequency.mean",
    Unit::Hertz,
    Scope::Machine,
    "perf_event_open: msr/aperf/ / msr/mperf/ * rate of msr/tsc/",
);
const AWAKE: Signal = Signal::new(
    "residency.awake",
    Unit::Ratio,
    Scope::Machine,
    "perf_event_open: msr/mperf/ / msr/tsc/",
);

const MSR: &str = "msr";
const EVENTS: [&str; 3] = ["aperf", "mperf", "tsc"];

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    units::live(root, context, over)
}

/// The probe over a kernel, the running one or a stand-in. It reads the CPUs
/// of the load where they are known, else all.
pub(super) fn over(
    root: &Root,
    context: &Context,
    kernel: units::NewKernel,
) -> Result<Box<dyn Probe>, Unavailable> {
    let mut events = Vec::new();
    for name in EVENTS {
        events.push(named(root, MSR, name).map_err(explain)?.always());
    }
    Privilege::of(root)?.whole_cpus()?;
    let (scope, cpus) = match context.cpus.is_empty() {
        true => (Scope::Machine, online(root)?),
        false => (Scope::Cpus, context.cpus.clone()),
    };
    let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
    let targets = cpus.into_iter().map(PerfTarget::Cpu).collect();
    let session = PerfSession::open(kernel()?, &[EventGroup { events, targets, inherit: false }])?;
    Ok(Box::new(Frequency { session, scope, cpus: list.join(",") }))
}

fn explain(why: Unavailable) -> Unavailable {
    let missing = RootError::Missing { path: format!("{}/{MSR}/type", crate::perf::PMUS) };
    let remedy = "use bare metal with an x86 CPU that has APERF and MPERF; a hypervisor hides \
                  them, and an Arm kernel offers no such PMU";
    if why.reason == missing.to_string() || why.reason.contains("has no event") {
        return Unavailable::new(why.reason, remedy);
    }
    why
}

struct Frequency {
    session: PerfSession,
    scope: Scope,
    cpus: String,
}

impl Probe for Frequency {
    fn start(&mut self) {
        self.session.start();
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let tally = self.session.stop().into_iter().next();
        let counted = |at: usize| -> Result<CountedEvent, Unavailable> {
            let event = tally.as_ref().and_then(|tally| tally.events.get(at).cloned());
            event.unwrap_or_else(|| {
                Err(Unavailable::new("the events were not opened", "report this"))
            })
        };
        let mean = || {
            let (aperf, mperf, tsc) = (counted(0)?, counted(1)?, counted(2)?);
            divide(aperf.value, mperf.value).and_then(|f| Ok(f * divide(tsc.value, tsc.seconds)?))
        };
        let awake = || divide(counted(1)?.value, counted(2)?.value);
        let readings = [(MEAN, mean()), (AWAKE, awake())].map(|(signal, value)| {
            let mut reading = signal.reading(value, window);
            reading.scope = self.scope;
            if self.scope == Scope::Cpus {
                reading.source = format!("{}, CPUs {}", reading.source, self.cpus);
            }
            reading
        });
        readings.to_vec()
    }
}

fn divide(part: f64, of: f64) -> Result<f64, Unavailable> {
    if of > 0.0 {
        return Ok(part / of);
    }
    Err(Unavailable::new(
        "the CPUs were not awake in the window, or their counters stand still",
        "measure for a second or longer; a hypervisor may show counters that never move",
    ))
}
