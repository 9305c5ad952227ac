//! What a study runs besides stores under load: microbenchmarks (`[micro.NAME]`) and simulations
//! (`[simulate.NAME]`). Each is a run like any other: planned, repeated, kept, resumed, answered
//! from.

mod dca;
mod keys;
mod micro;
mod play;
mod said;

use std::collections::BTreeMap;

use record::design::{Conditions, Texts};
pub(crate) use record::{MICRO, SIMULATE};
use record::{Phase, RunSettings};
use toml::Spanned;

use crate::error::StudyError;
use crate::source::StudyText;
use crate::spec::StudySpec;

pub(crate) use keys::absent;

/// One table: settings by their name.
pub type BenchTable = BTreeMap<Spanned<String>, Spanned<toml::Value>>;

/// Tables by the name of what they run.
pub type BenchTables = BTreeMap<Spanned<String>, BenchTable>;

/// What a run does instead of asking a store.
#[derive(Debug, Clone)]
pub enum Activity {
    /// A microbenchmark of this machine.
    Micro(micro::MicroJob),
    /// A cache with direct cache access that is simulated.
    Dca(Box<dca::DcaJob>),
}

/// The benches of a study at one combination of its levels, as far as `runs` says that they run.
///
/// # Errors
/// A bench or setting that is not known, a value that makes no sense, each at its place.
pub(crate) fn of_study(
    source: &StudyText,
    spec: &StudySpec,
    runs: &dyn Fn(&str, Option<&str>) -> bool,
) -> Result<Vec<Activity>, StudyError> {
    let mut benches = Vec::new();
    let wanted =
        |kind, (name, _): &(&Spanned<String>, &BenchTable)| runs(kind, Some(name.get_ref()));
    for (name, table) in spec.micro.iter().filter(|table| wanted(MICRO, table)) {
        benches.push(Activity::Micro(micro::order(source, name, table)?));
    }
    for (name, table) in spec.simulate.iter().filter(|table| wanted(SIMULATE, table)) {
        benches.push(Activity::Dca(Box::new(dca::order(source, spec.seed, name, table)?)));
    }
    Ok(benches)
}

/// The settings `store` and `workload` of every bench of a study.
pub(crate) fn places(spec: &StudySpec) -> impl Iterator<Item = (&'static str, &str)> {
    let micro = spec.micro.keys().map(|name| (MICRO, name.get_ref().as_str()));
    micro.chain(spec.simulate.keys().map(|name| (SIMULATE, name.get_ref().as_str())))
}

/// Where a factor can make a difference: what it sets is looked at by stores, by single benches,
/// or by all. In a study of one of them alone nothing is added to what the study says.
pub(crate) fn within(spec: &StudySpec, sets: &[String], said: Conditions) -> Conditions {
    if places(spec).next().is_none() {
        return said;
    }
    let (mut stores, mut benches) = (Vec::new(), Vec::new());
    let add = |all: &mut Vec<String>, name: &str| {
        if !all.iter().any(|known| known == name) {
            all.push(name.to_owned());
        }
    };
    let mut asks = false;
    for key in sets {
        let mut parts = key.split('.');
        match (parts.next(), parts.next()) {
            (Some("knobs"), _) => return said,
            (Some(kind @ (MICRO | SIMULATE)), Some(name)) => {
                add(&mut stores, kind);
                add(&mut benches, name);
            }
            _ => {
                asks = true;
                spec.store.keys().for_each(|name| add(&mut stores, name.get_ref()));
            }
        }
    }
    let Conditions(mut all) = said;
    if !stores.is_empty() {
        all.entry("store".to_owned()).or_insert(Texts(stores));
    }
    if !asks {
        all.entry("workload".to_owned()).or_insert(Texts(benches));
    }
    Conditions(all)
}

impl Activity {
    pub(crate) const fn phase(&self) -> Phase {
        match self {
            Activity::Micro(_) => Phase::Measure,
            Activity::Dca(_) => Phase::Simulate,
        }
    }

    /// What stands in place of a store and of a workload.
    pub(crate) fn place(&self) -> (&'static str, &'static str) {
        match self {
            Activity::Micro(order) => (MICRO, order.name()),
            Activity::Dca(_) => (SIMULATE, dca::NAME),
        }
    }

    pub(crate) fn label(&self) -> String {
        let (kind, name) = self.place();
        format!("{kind} {name}")
    }

    /// What a run depends on: `micro.size`, `simulate.policy` ...
    pub(crate) fn settings(&self, seed: u64) -> RunSettings {
        let (kind, name) = self.place();
        let own = match self {
            Activity::Micro(order) => &order.settings,
            Activity::Dca(order) => &order.settings,
        };
        let own = own.iter().map(|(key, value)| (format!("{kind}.{key}"), value.clone()));
        let fixed = [("store", kind.to_owned()), ("workload", name.to_owned())];
        let fixed = fixed.into_iter().chain([("seed", seed.to_string())]);
        own.chain(fixed.map(|(key, value)| (key.to_owned(), value))).collect()
    }

    /// About how long a run takes.
    pub(crate) fn seconds(&self) -> f64 {
        match self {
            Activity::Micro(order) => order.seconds,
            Activity::Dca(_) => dca::SECONDS,
        }
    }
}
