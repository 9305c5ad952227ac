//! Checks of the CPU's event counters, and of cachegrind as a substitute.

use super::CheckGroup;
use crate::cachegrind::{CacheGeometry, Cachegrind};
use crate::format;
use crate::perf::{CounterPlan, EventRole, PerfQuantity, plan};
use crate::probe::Context;
use crate::root::Root;

pub(super) fn add(root: &Root, context: &Context, group: &mut CheckGroup) {
    hardware(root, context, group);
    software(root, group);
}

fn hardware(root: &Root, context: &Context, group: &mut CheckGroup) {
    let why = "cycles, instructions and misses an operation come from the CPU's counters";
    let plan = match plan(root, context) {
        Ok(plan) => plan,
        Err(no) => return group.unavailable("counters", no.reason, why, &no.remedy),
    };
    let counted: usize = plan.groups.iter().map(|planned| planned.group.events.len()).sum();
    if counted == 0 {
        let no = plan.absent.first().map(|(_, no)| no.clone());
        let reason = no.as_ref().map_or("no event can be counted", |no| &no.reason);
        let remedy = no.as_ref().map_or("name raw events yourself", |no| &no.remedy);
        return group.unavailable("counters", reason, why, remedy);
    }
    let found = describe(&plan, counted);
    match (&plan.only_user, plan.absent.first()) {
        (Some(no), _) => {
            let found = format!("{found}; only user space: {}", no.reason);
            group.note("counters", found, why, &no.remedy);
        }
        (None, Some((_, no))) => group.note("counters", found, why, &no.remedy),
        (None, None) => group.ok("counters", found, why),
    }
}

/// `cpu, events of Intel Skylake and Cascade Lake: 17 events in 5 groups`.
fn describe(plan: &CounterPlan, counted: usize) -> String {
    let mut found = match &plan.core {
        Ok(core) => format!("{}, events of {}: ", core.pmu, core.table.name),
        Err(_) => String::new(),
    };
    found += &format!(
        "{} in {}",
        format::count(counted, "event"),
        format::count(plan.groups.len(), "group")
    );
    for (slot, no) in &plan.absent {
        found += &format!("; no {}: {}", name(*slot), no.reason);
    }
    for extra in &plan.user_events {
        if let Err(no) = &extra.event {
            found += &format!("; no {}: {}", extra.name, no.reason);
        }
    }
    found
}

fn name(slot: EventRole) -> &'static str {
    match slot {
        EventRole::UserInstructions => "instructions.user",
        EventRole::KernelInstructions => "instructions.kernel",
        EventRole::Of(PerfQuantity::Instructions) => "instructions",
        EventRole::Of(PerfQuantity::Cycles) => "cycles",
        EventRole::Of(PerfQuantity::Branches) => "branches",
        EventRole::Of(PerfQuantity::BranchMisses) => "branch_misses",
        EventRole::Of(PerfQuantity::L1dMisses) => "l1d.misses",
        EventRole::Of(PerfQuantity::L1iMisses) => "l1i.misses",
        EventRole::Of(PerfQuantity::L2Misses) => "l2.misses",
        EventRole::Of(PerfQuantity::LlcReferences) => "llc.references",
        EventRole::Of(PerfQuantity::LlcMisses) => "llc.misses",
        EventRole::Of(PerfQuantity::DtlbMisses) => "dtlb.misses",
        EventRole::Of(PerfQuantity::ItlbMisses) => "itlb.misses",
        EventRole::User(_) => "a raw event",
    }
}

fn software(root: &Root, group: &mut CheckGroup) {
    let why = "where the CPU's counters are out of reach, cachegrind simulates instructions, \
               branches and cache misses an operation";
    // The caches are looked up separately: the user can give them where they are not known.
    let geometry = CacheGeometry::of(root);
    let found = match &geometry {
        Ok(geometry) => Cachegrind::find(root, geometry.clone()).map(|_| geometry.to_string()),
        Err(no) => Err(no.clone()),
    };
    match found {
        Ok(caches) => group.ok("cachegrind", format!("valgrind; caches: {caches}"), why),
        Err(no) => group.unavailable("cachegrind", no.reason, why, &no.remedy),
    }
}
