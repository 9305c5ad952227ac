//! Limits of reports of many runs, which are shown by cell.

use std::collections::BTreeSet;

use model::{Execution, Run};
use record::ReadExtent;

/// The most runs with a row each in tables; of more, each cell has one.
pub const LISTED: usize = 100;
/// The most runs with all their readings and time series on a page; of more, the first of each
/// label.
pub const DETAILED: usize = 40;
/// The most rows of a table that grows with a study.
pub const MAX_ROWS: usize = 1000;
/// The most cells in one figure.
pub const DRAWN: usize = 40;
/// The most figures of one kind on a page.
pub const MAX_FIGURES: usize = 24;
/// Repeats of one cell that are drawn or listed one by one.
pub const REPEATS: usize = 20;

/// Whether there are too many runs for a row each.
pub fn is_many(runs: &[(&Execution, &Run)]) -> bool {
    runs.len() > LISTED
}

/// The readings that reports of many runs need.
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
    let mut named = BTreeSet::new();
    for design in executions.iter().map(|execution| &execution.design) {
        let questions = design.questions.iter();
        named.extend(
            questions.flat_map(|question| question.metric.iter().chain(&question.pareto).cloned()),
        );
        named.extend(design.figures.iter().map(|figure| figure.y.clone()));
        // A check may name any signal.
        let checks =
            design.checks.iter().flat_map(|check| [Some(&check.that), check.when.as_ref()]);
        let no_name = |c: char| !(c.is_ascii_alphanumeric() || "_.".contains(c));
        let names = checks.flatten().flat_map(|text| text.split(no_name));
        named.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
    }
    let always = ALWAYS.map(str::to_owned).into_iter();
    ReadExtent::Overview { signals: always.chain(named.iter().cloned()).collect(), reasons: named }
}
