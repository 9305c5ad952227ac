//! What is shown of runs that are too many to be listed one by one: their cells.

use std::collections::BTreeSet;

use record::{Execution, ReadExtent, Run};

/// Up to so many runs have a row each in tables; of more, each cell has one.
pub const LISTED: usize = 100;
/// Up to so many runs have all their readings and their time series on a page; of more, the
/// first of each label.
pub const DETAILED: usize = 40;
/// A table of cells or of anything else that grows with a study ends after so many rows.
pub const MOST_ROWS: usize = 1000;
/// Bars and lines of more cells than this are not told apart.
pub const DRAWN: usize = 40;
/// So many figures of one kind are on a page.
pub const MOST_FIGURES: usize = 24;
/// Repeats of one cell that are drawn or listed one by one.
pub const REPEATS: usize = 20;

/// Whether these are too many for a row each.
pub fn many(runs: &[(&Execution, &Run)]) -> bool {
    runs.len() > LISTED
}

/// What reports of many runs are made of.
pub fn overview(executions: &[Execution]) -> ReadExtent {
    const ALWAYS: [&str; 26] = [
        "cache.hit_ratio",
        "client.achieved_rate",
        "client.answered_in_time",
        "client.busy",
        "client.due",
        "client.lateness",
        "cpu.system",
        "cpu.user",
        "cpu_s_per_mop",
        "dram.*",
        "energy.*",
        "frequency.mean",
        "ipc",
        "joules_per_op",
        "joules_per_op_net",
        "limit.*",
        "machine.busy",
        "ops_per_joule",
        "read_amplification",
        "server.context_switches_per_mop",
        "server.cpu_s_per_mop",
        "server.syscalls_per_mop",
        "simulated.*",
        "volume.*",
        "workload.read",
        "write_amplification",
    ];
    let mut told = BTreeSet::new();
    for design in executions.iter().map(|execution| &execution.design) {
        let asked = design.questions.iter();
        told.extend(asked.flat_map(|asked| asked.metric.iter().chain(&asked.pareto).cloned()));
        told.extend(design.figures.iter().map(|figure| figure.y.clone()));
        // A check may name anything.
        let checks =
            design.checks.iter().flat_map(|check| [Some(&check.that), check.when.as_ref()]);
        let no_name = |c: char| !(c.is_ascii_alphanumeric() || "_.".contains(c));
        let names = checks.flatten().flat_map(|text| text.split(no_name));
        told.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
    }
    let always = ALWAYS.map(str::to_owned).into_iter();
    ReadExtent::Overview { signals: always.chain(told.iter().cloned()).collect(), told }
}
