//! The built-in studies on machines that are not at hand: each has runs at every scale, whatever
//! the machine lacks.

#[path = "../../host/tests/common/mod.rs"]
mod common;

use std::collections::BTreeSet;

use common::Recorded;
use study::{BUILT_IN, Plan, Source};

/// Every recorded machine with what else is recorded of it.
fn machines() -> Vec<(&'static str, Recorded)> {
    let xeon_4114 = Recorded::named("xeon-4114").and("xeon-4114.knobs").and("xeon-4114.energy");
    let epyc = Recorded::named("epyc").and("epyc.energy");
    let plain = ["vm", "xeon", "arm", "neoverse"].map(|name| (name, Recorded::named(name)));
    plain.into_iter().chain([("xeon-4114", xeon_4114), ("epyc", epyc)]).collect()
}

/// A study and its scales, the study as it is first.
fn scaled(name: &str) -> Vec<Source> {
    let whole = Source::open(name).unwrap();
    let scales = whole.spec().unwrap().scale;
    let smaller = scales.keys().map(|scale| {
        let mut source = whole.clone();
        source.scale(scale.get_ref()).unwrap();
        source
    });
    [whole.clone()].into_iter().chain(smaller).collect()
}

fn plan(source: &Source, machine: &Recorded) -> Plan {
    let data = machine.path("data");
    Plan::of(source, &data, &machine.root).unwrap_or_else(|error| panic!("{error}"))
}

/// The values of a setting in a plan's runs.
fn values(plan: &Plan, setting: &str) -> BTreeSet<String> {
    plan.steps().filter_map(|(_, step)| step.settings.get(setting).cloned()).collect()
}

fn texts<const N: usize>(all: [&str; N]) -> BTreeSet<String> {
    all.map(str::to_owned).into()
}
