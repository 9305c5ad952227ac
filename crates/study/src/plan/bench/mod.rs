//! Runs without a store: microbenchmarks (`[micro.NAME]`) and simulations
//! (`[simulate.NAME]`). Each is a run like any other: planned, repeated, recorded and resumed.

mod dca;
mod micro;

use model::design::{Conditions, Texts};
use model::{MICRO, Phase, RunSettings, SIMULATE};
use toml::Spanned;

use crate::error::StudyError;
use crate::text::{BenchTable, StudySpec, StudyText};

pub use dca::{DcaJob, SIMULATOR};
pub use micro::PlannedMicro;
pub(crate) use micro::absent;

/// What a run without a store does.
#[derive(Debug, Clone)]
pub enum Bench {
    /// A microbenchmark of this machine.
    Micro(Box<PlannedMicro>),
    /// A cache with direct cache access that is simulated.
    Simulate(Box<DcaJob>),
}

/// The benches of a study at one combination of its levels, filtered by `runs`.
///
/// # Errors
/// An unknown bench or setting, or an invalid value, each at its place.
pub(crate) fn of_study(
    source: &StudyText,
    spec: &StudySpec,
    runs: &dyn Fn(&str, Option<&str>) -> bool,
) -> Result<Vec<Bench>, StudyError> {
    let mut benches = Vec::new();
    let selected =
        |kind, (name, _): &(&Spanned<String>, &BenchTable)| runs(kind, Some(name.get_ref()));
    for (name, table) in spec.micro.iter().filter(|table| selected(MICRO, table)) {
        benches.push(Bench::Micro(Box::new(micro::parse(source, name, table)?)));
    }
    for (name, table) in spec.simulate.iter().filter(|table| selected(SIMULATE, table)) {
        benches.push(Bench::Simulate(Box::new(dca::parse(source, spec.seed, name, table)?)));
    }
    Ok(benches)
}

/// The settings `store` and `workload` of every bench of a study.
pub(crate) fn places(spec: &StudySpec) -> impl Iterator<Item = (&'static str, &str)> {
    let micro = spec.micro.keys().map(|name| (MICRO, name.get_ref().as_str()));
    micro.chain(spec.simulate.keys().map(|name| (SIMULATE, name.get_ref().as_str())))
}

/// Restricts a factor to the stores or activities whose settings it changes. A study of one kind
/// alone needs no restriction.
pub(crate) fn within(spec: &StudySpec, sets: &[String], conditions: Conditions) -> Conditions {
    if places(spec).next().is_none() {
        return conditions;
    }
    let (mut stores, mut activities) = (Vec::new(), Vec::new());
    let add = |all: &mut Vec<String>, name: &str| {
        if !all.iter().any(|known| known == name) {
            all.push(name.to_owned());
        }
    };
    let mut sets_store = false;
    for key in sets {
        let mut parts = key.split('.');
        match (parts.next(), parts.next()) {
            (Some("knobs"), _) => return conditions,
            (Some(kind @ (MICRO | SIMULATE)), Some(name)) => {
                add(&mut stores, kind);
                add(&mut activities, name);
            }
            _ => {
                sets_store = true;
                spec.store.keys().for_each(|name| add(&mut stores, name.get_ref()));
            }
        }
    }
    let Conditions(mut all) = conditions;
    if !stores.is_empty() {
        all.entry("store".to_owned()).or_insert(Texts(stores));
    }
    if !sets_store {
        all.entry("workload".to_owned()).or_insert(Texts(activities));
    }
    Conditions(all)
}

impl Bench {
    pub const fn phase(&self) -> Phase {
        match self {
            Bench::Micro(_) => Phase::Measure,
            Bench::Simulate(_) => Phase::Simulate,
        }
    }

    /// The settings `store` and `workload`.
    pub fn place(&self) -> (&'static str, &'static str) {
        match self {
            Bench::Micro(job) => (MICRO, job.name),
            Bench::Simulate(_) => (SIMULATE, dca::NAME),
        }
    }

    pub fn label(&self) -> String {
        let (kind, name) = self.place();
        format!("{kind} {name}")
    }

    /// The settings of a run: `micro.size`, `simulate.policy` ...
    pub fn settings(&self, seed: u64) -> RunSettings {
        let (kind, name) = self.place();
        let own = match self {
            Bench::Micro(job) => &job.settings,
            Bench::Simulate(job) => &job.settings,
        };
        let own = own.iter().map(|(key, value)| (format!("{kind}.{key}"), value.clone()));
        let fixed = [("store", kind.to_owned()), ("workload", name.to_owned())];
        let fixed = fixed.into_iter().chain([("seed", seed.to_string())]);
        own.chain(fixed.map(|(key, value)| (key.to_owned(), value))).collect()
    }

    /// About how long a run takes.
    pub fn seconds(&self) -> f64 {
        match self {
            Bench::Micro(job) => job.seconds,
            Bench::Simulate(_) => dca::SECONDS,
        }
    }
}
