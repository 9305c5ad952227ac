//! Limits of reports of many runs, which are shown by cell.

use std::collections::BTreeSet;

use analyse::Metric;
use model::signal::{
    CACHE_HIT_RATIO, CLIENT_ACHIEVED_RATE, CLIENT_ANSWERED_IN_TIME, CLIENT_BUSY, CLIENT_DUE,
    CLIENT_LATENESS, CPU_S_PER_MOP, JOULES_PER_OP, JOULES_PER_OP_NET, OPS_PER_JOULE,
    READ_AMPLIFICATION, SERVER_CONTEXT_SWITCHES_PER_MOP, SERVER_CPU_S_PER_MOP,
    SERVER_SYSCALLS_PER_MOP, WORKLOAD_READ, WRITE_AMPLIFICATION,
};
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

/// The signals that tables and figures of many runs show; `energy.*` for all of a group.
pub const SHOWN: [&str; 27] = [
    CACHE_HIT_RATIO.name,
    CLIENT_ACHIEVED_RATE.name,
    CLIENT_ANSWERED_IN_TIME.name,
    CLIENT_BUSY.name,
    CLIENT_DUE.name,
    CLIENT_LATENESS.name,
    "cpu.system",
    "cpu.user",
    CPU_S_PER_MOP.name,
    "dram.*",
    "energy.*",
    "frequency.mean",
    "ipc",
    JOULES_PER_OP.name,
    JOULES_PER_OP_NET.name,
    "limit.*",
    "machine.busy",
    "modelled.*",
    OPS_PER_JOULE.name,
    READ_AMPLIFICATION.name,
    SERVER_CONTEXT_SWITCHES_PER_MOP.name,
    SERVER_CPU_S_PER_MOP.name,
    SERVER_SYSCALLS_PER_MOP.name,
    "simulated.*",
    "volume.*",
    WORKLOAD_READ.name,
    WRITE_AMPLIFICATION.name,
];

/// Whether there are too many runs for a row each.
pub fn is_many(runs: &[(&Execution, &Run)]) -> bool {
    runs.len() > LISTED
}

/// The readings that reports of many runs need.
pub fn overview(executions: &[Execution]) -> ReadExtent {
    let mut named = BTreeSet::new();
    for design in executions.iter().map(|execution| &execution.design) {
        named.extend(design.metrics().cloned());
        // A check may name any metric.
        let checks =
            design.checks.iter().flat_map(|check| [Some(&check.that), check.when.as_ref()]);
        let no_name = |c: char| !(c.is_ascii_alphanumeric() || "_.".contains(c));
        let names = checks.flatten().flat_map(|text| text.split(no_name));
        named.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
    }
    let always = SHOWN.map(str::to_owned).into_iter();
    let distributions =
        named.iter().any(|name| Metric::parse(name).is_ok_and(|metric| metric.needs_buckets()));
    let signals = always.chain(named.iter().cloned()).collect();
    ReadExtent::Overview { signals, reasons: named, distributions }
}
