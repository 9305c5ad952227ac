//! Bytes to and from memory, counted by the memory controllers: the uncore
//! IMC PMUs of Intel servers, the UMC PMUs of AMD (Zen 4 and later, Linux 6.8).
//! Where neither is there, resctrl's traffic of the last level (`llc.rs`) is
//! the next best.

use std::time::Duration;

use model::{Reading, Scope, Unavailable, Unit};

use super::{Context, Probe, ProbeSpec, Signal, units};
use crate::perf::{EventGroup, PMUS, PerfSession};
use crate::root::{Root, RootError};

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("dram", SIGNALS, "perf_event_open: the memory controllers' PMUs", init);

const SIGNALS: &[Signal] = &[
    Signal::new("dram.read", Unit::Bytes, Scope::Machine, "perf_event_open").never_zero(),
    Signal::new("dram.written", Unit::Bytes, Scope::Machine, "perf_event_open").never_zero(),
];

/// Positions in [`SIGNALS`].
const READ: usize = 0;
const WRITTEN: usize = 1;

const INTEL: &str = "uncore_imc_";
/// CAS commands for reads and for writes, as the driver lists them.
const INTEL_EVENTS: [&str; 2] = ["cas_count_read", "cas_count_write"];
/// From Granite Rapids on each half of a channel counts for itself
/// (`gnr_uncore_imc_events` of the kernel's `uncore_snbep.c`).
const INTEL_HALVES: [&str; 2] = ["_sch0", "_sch1"];
const AMD: &str = "amd_umc_";
/// CAS commands for reads and for writes (AMD PPR, "UMC performance monitors").
const AMD_EVENTS: [&str; 2] = ["event=0x0a,rdwrmask=0x1", "event=0x0a,rdwrmask=0x2"];
/// Each CAS moves a line.
const LINE: f64 = 64.0;
const MIB: f64 = 1024.0 * 1024.0;

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    units::live(root, context, over)
}

/// The probe over a kernel, the running one or a stand-in.
pub(super) fn over(
    root: &Root,
    _: &Context,
    kernel: units::NewKernel,
) -> Result<Box<dyn Probe>, Unavailable> {
    let mut groups = Vec::new();
    let mut steps = Vec::new();
    for pmu in units::pmus_named(root, INTEL)? {
        let events = intel_events(root, &pmu);
        let names: Vec<&str> = events.iter().map(|(_, name)| name.as_str()).collect();
        groups.push(units::group(root, &pmu, &names)?);
        let step = |(way, name): &(usize, String)| Ok((*way, bytes(root, &pmu, name)?));
        steps.push(events.iter().map(step).collect::<Result<_, RootError>>()?);
    }
    if groups.is_empty() {
        for pmu in units::pmus_named(root, AMD)? {
            groups.push(units::raw_group(root, &pmu, &AMD_EVENTS)?);
            steps.push(vec![(READ, LINE), (WRITTEN, LINE)]);
        }
    }
    if groups.is_empty() {
        return Err(Unavailable::new(
            format!("there is neither a PMU {INTEL}N nor {AMD}N"),
            "measure on an Intel server or an AMD one of Zen 4 or later (Linux 6.8), not in a \
             virtual machine",
        ));
    }
    let sources = [READ, WRITTEN].map(|way| {
        let at = steps[0].iter().position(|(one, _)| *one == way).unwrap_or_default();
        source(&groups, at)
    });
    Ok(Box::new(Dram { session: PerfSession::open(kernel()?, &groups)?, steps, sources }))
}

/// The events of a controller, each with its position in [`SIGNALS`].
fn intel_events(root: &Root, pmu: &str) -> Vec<(usize, String)> {
    let listed = |name: &str| root.exists(&format!("{PMUS}/{pmu}/events/{name}"));
    let mut events = Vec::new();
    for (way, name) in [READ, WRITTEN].into_iter().zip(INTEL_EVENTS) {
        let halves = INTEL_HALVES.map(|half| format!("{name}{half}"));
        match !listed(name) && halves.iter().all(|half| listed(half)) {
            true => events.extend(halves.map(|half| (way, half))),
            false => events.push((way, name.to_owned())),
        }
    }
    events
}

/// The bytes of one step of an event, as its driver states them.
fn bytes(root: &Root, pmu: &str, event: &str) -> Result<f64, RootError> {
    let file = |part: &str| format!("{PMUS}/{pmu}/events/{event}.{part}");
    let unit = root.value(&file("unit"))?;
    if unit != "MiB" {
        return Err(RootError::malformed(&file("unit"), &unit, "the unit MiB"));
    }
    Ok(root.number::<f64>(&file("scale"))? * MIB)
}

/// `uncore_imc_0/event=0x04,umask=0x03/ and 5 more`.
fn source(groups: &[EventGroup], at: usize) -> String {
    let first = &groups[0].events[at].text;
    match groups.len() {
        1 => format!("perf_event_open: {first}"),
        n => format!("perf_event_open: {first} and {} more controllers", n - 1),
    }
}

struct Dram {
    session: PerfSession,
    /// Of each PMU's events: the position in [`SIGNALS`], and the bytes of a step.
    steps: Vec<Vec<(usize, f64)>>,
    sources: [String; 2],
}

impl Probe for Dram {
    fn start(&mut self) {
        self.session.start();
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let tallies = self.session.stop();
        let total = |way: usize| -> Result<f64, Unavailable> {
            let units = tallies.iter().zip(&self.steps);
            let events = units.flat_map(|(tally, steps)| tally.events.iter().zip(steps));
            // One controller may have no memory, but all together always have traffic.
            events
                .filter(|(_, (one, _))| *one == way)
                .map(|(counted, (_, step))| Ok(counted.clone()?.value * step))
                .sum()
        };
        let reading = |(at, signal): (usize, &Signal)| {
            let mut reading = signal.reading(total(at), window);
            reading.source.clone_from(&self.sources[at]);
            reading
        };
        SIGNALS.iter().enumerate().map(reading).collect()
    }
}
