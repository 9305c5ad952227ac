//! What the CPU's counters can count here, and what stands in for them.

use super::Group;
use crate::cachegrind::{Cachegrind, Geometry};
use crate::human;
use crate::perf::{Plan, Quantity, Slot, plan};
use crate::probe::Context;
use crate::root::Root;

pub(super) fn add(root: &Root, context: &Context, group: &mut Group) {
    hardware(root, context, group);
    software(root, group);
}

fn hardware(root: &Root, context: &Context, group: &mut Group) {
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
fn describe(plan: &Plan, counted: usize) -> String {
    let mut found = match &plan.core {
        Ok(core) => format!("{}, events of {}: ", core.pmu, core.table.name),
        Err(_) => String::new(),
    };
    found += &format!(
        "{} in {}",
        human::count(counted, "event"),
        human::count(plan.groups.len(), "group")
    );
    for (slot, no) in &plan.absent {
        found += &format!("; no {}: {}", name(*slot), no.reason);
    }
    for extra in &plan.extras {
        if let Err(no) = &extra.event {
            found += &format!("; no {}: {}", extra.name, no.reason);
        }
    }
    found
}

fn name(slot: Slot) -> &'static str {
    match slot {
        Slot::UserInstructions => "instructions.user",
        Slot::KernelInstructions => "instructions.kernel",
        Slot::Of(Quantity::Instructions) => "instructions",
        Slot::Of(Quantity::Cycles) => "cycles",
        Slot::Of(Quantity::Branches) => "branches",
        Slot::Of(Quantity::BranchMisses) => "branch_misses",
        Slot::Of(Quantity::L1dMisses) => "l1d.misses",
        Slot::Of(Quantity::L1iMisses) => "l1i.misses",
        Slot::Of(Quantity::L2Misses) => "l2.misses",
        Slot::Of(Quantity::LlcReferences) => "llc.references",
        Slot::Of(Quantity::LlcMisses) => "llc.misses",
        Slot::Of(Quantity::DtlbMisses) => "dtlb.misses",
        Slot::Of(Quantity::ItlbMisses) => "itlb.misses",
        Slot::Extra(_) => "a raw event",
    }
}

fn software(root: &Root, group: &mut Group) {
    let why = "where the CPU's counters are out of reach, cachegrind simulates instructions, \
               branches and cache misses an operation";
    // The caches are looked up apart: they can be given where they are not known.
    let geometry = Geometry::of(root);
    let found = match &geometry {
        Ok(geometry) => Cachegrind::find(root, geometry.clone()).map(|_| geometry.to_string()),
        Err(no) => Err(no.clone()),
    };
    match found {
        Ok(caches) => group.ok("cachegrind", format!("valgrind; caches: {caches}"), why),
        Err(no) => group.unavailable("cachegrind", no.reason, why, &no.remedy),
    }
}
