//! What the probes of performance events share: the kernel that counts, and
//! the units outside the cores, which are counted for the whole machine.

use model::Unavailable;

use super::{Context, Probe};
use crate::perf::{
    EncodedEvent, EventGroup, PMUS, PerfKernel, PerfTarget, Privilege, RunningKernel, cpumask,
    encode, named, pmus,
};
use crate::root::{Root, RootError};
use crate::unavailable::live_only;

/// Makes a kernel to count with, once all that files tell is decided.
pub type NewKernel<'a> = &'a dyn Fn() -> Result<Box<dyn PerfKernel>, Unavailable>;

/// Makes a probe over a kernel, or says why it cannot work here.
pub type PerDuration = fn(&Root, &Context, NewKernel) -> Result<Box<dyn Probe>, Unavailable>;

/// The probe over the running kernel, which answers for the running machine alone.
pub(super) fn live(
    root: &Root,
    context: &Context,
    over: PerDuration,
) -> Result<Box<dyn Probe>, Unavailable> {
    let kernel = || -> Result<Box<dyn PerfKernel>, Unavailable> {
        match root.is_live() {
            true => Ok(Box::<RunningKernel>::default()),
            false => Err(live_only("perf_event_open")),
        }
    };
    over(root, context, &kernel)
}

/// The PMUs called `PREFIX` or `PREFIXn`.
pub(super) fn pmus_named(root: &Root, prefix: &str) -> Result<Vec<String>, RootError> {
    let is_one = |name: &String| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
    };
    Ok(pmus(root)?.into_iter().filter(is_one).collect())
}

/// A group of a PMU's own events on each of its units.
pub(super) fn group(root: &Root, pmu: &str, names: &[&str]) -> Result<EventGroup, Unavailable> {
    let events: Result<Vec<EncodedEvent>, _> =
        names.iter().map(|name| named(root, pmu, name)).collect();
    on_units(root, pmu, events?)
}

/// The same with the terms written out, for a PMU that lists no events.
pub(super) fn raw_group(root: &Root, pmu: &str, terms: &[&str]) -> Result<EventGroup, Unavailable> {
    let events: Result<Vec<EncodedEvent>, _> =
        terms.iter().map(|terms| encode(root, pmu, terms)).collect();
    on_units(root, pmu, events?)
}

fn on_units(root: &Root, pmu: &str, events: Vec<EncodedEvent>) -> Result<EventGroup, Unavailable> {
    Privilege::of(root)?.whole_cpus()?;
    let targets = cpumask(root, pmu)?.into_iter().map(PerfTarget::Cpu).collect();
    Ok(EventGroup { events, targets, inherit: false })
}

/// The names that a PMU gives to its events.
pub(super) fn listed(root: &Root, pmu: &str) -> Result<Vec<String>, RootError> {
    root.list(&format!("{PMUS}/{pmu}/events"))
}
