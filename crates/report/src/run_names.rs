//! A unique name for every run on a page.

use std::collections::BTreeMap;

use model::{Execution, LoopKind, Run};

use crate::format;

/// One name for each run: its label, numbered if several runs have it.
pub fn names(runs: &[(&Execution, &Run)]) -> Vec<String> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, run) in runs {
        *seen.entry(&run.label).or_default() += 1;
    }
    let mut used: BTreeMap<&str, usize> = BTreeMap::new();
    runs.iter()
        .map(|(_, run)| {
            let nth = used.entry(&run.label).or_default();
            *nth += 1;
            if seen[run.label.as_str()] > 1 {
                format!("{} #{nth}", run.label)
            } else {
                run.label.clone()
            }
        })
        .collect()
}

/// How requests were issued, short: `closed`, `closed, 1 ms think`, `open, 20 kops/s poisson`.
pub fn pacing(pacing: &LoopKind) -> String {
    match pacing {
        LoopKind::Closed { think_s } if *think_s > 0.0 => {
            format!("closed, {} think", format::seconds(*think_s))
        }
        LoopKind::Closed { .. } => "closed".to_owned(),
        LoopKind::Open { rate_ops_s, arrivals } => {
            format!("open, {} {arrivals}", format::target_rate(*rate_ops_s))
        }
    }
}

/// The same for a narrow column: `closed`, `open 20k/s`.
pub fn pacing_short(pacing: &LoopKind) -> String {
    match pacing {
        LoopKind::Closed { .. } => "closed".to_owned(),
        LoopKind::Open { rate_ops_s, .. } => format!("open {}/s", format::count_short(*rate_ops_s)),
    }
}

/// The store's name: the part before its path.
pub fn store(run: &Run) -> &str {
    let store = run.settings.get("store").map_or("", String::as_str);
    let name = store.split(':').next().unwrap_or(store);
    if name.is_empty() { run.store_version.split(' ').next().unwrap_or("store") } else { name }
}

/// `load` for a load phase, else the workload's name.
pub fn workload(run: &Run) -> &str {
    match run.phase {
        model::Phase::Load => "load",
        model::Phase::Measure | model::Phase::Simulate => {
            run.settings.get("workload").map_or(&run.label, |w| w)
        }
    }
}
