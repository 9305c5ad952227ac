use std::collections::BTreeSet;

use super::{Cell, Kind, Table, identity};
use crate::names::name;
use crate::run::{Execution, Loop, Phase, Run};

const COLUMNS: [(&str, Kind); 28] = [
    ("threads", Kind::Integer),
    ("loop", Kind::Text),
    ("target_rate_ops_s", Kind::Real),
    ("arrivals", Kind::Text),
    ("think_s", Kind::Real),
    ("started_at", Kind::Text),
    ("seconds", Kind::Real),
    ("operations", Kind::Integer),
    ("throughput_ops_s", Kind::Real),
    ("achieved_rate_ops_s", Kind::Real),
    ("hit_ratio", Kind::Real),
    ("cpu_s_per_mop", Kind::Real),
    ("ops_per_joule", Kind::Real),
    ("joules_per_op", Kind::Real),
    ("joules_per_op_net", Kind::Real),
    ("energy_boundary", Kind::Text),
    ("energy_origin", Kind::Text),
    ("ipc", Kind::Real),
    ("verified", Kind::Integer),
    ("misses", Kind::Integer),
    ("errors", Kind::Integer),
    ("valid", Kind::Boolean),
    ("invalid_because", Kind::Text),
    ("warnings", Kind::Text),
    ("harness_ns_per_op", Kind::Real),
    ("harness_clock_ns", Kind::Real),
    ("harness_verify_ns", Kind::Real),
    ("harness_busy", Kind::Real),
];

/// What a run is as a whole: the fixed columns, then one for each setting of any of the runs.
pub(super) struct Whole<'a> {
    settings: BTreeSet<&'a str>,
}

impl<'a> Whole<'a> {
    pub fn of(runs: &[(&Execution, &'a Run)]) -> Whole<'a> {
        let settings = runs.iter().flat_map(|(_, run)| run.settings.keys().map(String::as_str));
        Whole { settings: settings.collect() }
    }

    pub fn columns(&self) -> impl Iterator<Item = (String, Kind)> {
        let fixed = COLUMNS.into_iter().map(|(name, kind)| (name.to_owned(), kind));
        fixed.chain(self.settings.iter().map(|key| (format!("setting.{key}"), Kind::Text)))
    }

    pub fn cells(&self, run: &Run) -> Vec<Cell> {
        let (kind, rate, arrivals, think) = match &run.pacing {
            Loop::Closed { think_s } => ("closed", None, None, Some(*think_s)),
            Loop::Open { rate_ops_s, arrivals } => {
                ("open", Some(*rate_ops_s), Some(arrivals.as_str()), None)
            }
        };
        let tax = run.tax.as_ref();
        // Of a simulation nothing was asked or counted, not even none.
        let counted = |cell: Cell| if run.phase == Phase::Simulate { Cell::Null } else { cell };
        let fixed: [Cell; COLUMNS.len()] = [
            counted(run.threads.into()),
            counted(kind.into()),
            counted(rate.into()),
            counted(arrivals.into()),
            counted(think.into()),
            run.started_at.as_str().into(),
            counted(run.seconds.into()),
            counted(run.operations.into()),
            counted(run.throughput().into()),
            run.achieved_rate().into(),
            run.hit_ratio().into(),
            run.value("cpu_s_per_mop").into(),
            run.value("ops_per_joule").into(),
            run.value("joules_per_op").into(),
            run.value("joules_per_op_net").into(),
            run.joules_per_op().map(|energy| name(&energy.scope)).into(),
            run.joules_per_op().map(|energy| name(&energy.origin)).into(),
            run.value("ipc").into(),
            counted(run.verified.into()),
            counted(run.misses.into()),
            run.errors().into(),
            run.valid().into(),
            joined(&run.invalid_because),
            joined(&run.warnings),
            tax.map(|tax| tax.ns_per_op).into(),
            tax.map(|tax| tax.clock_ns).into(),
            tax.and_then(|tax| tax.verify_ns).into(),
            tax.map(|tax| tax.busy).into(),
        ];
        let setting = |key: &&str| Cell::from(run.settings.get(*key).map(String::as_str));
        fixed.into_iter().chain(self.settings.iter().map(setting)).collect()
    }
}

/// Several sentences in one cell; nothing where there is none.
fn joined(texts: &[String]) -> Cell {
    if texts.is_empty() { Cell::Null } else { texts.join("; ").into() }
}

pub(super) fn table(runs: &[(&Execution, &Run)]) -> Table {
    let whole = Whole::of(runs);
    let mut table = Table::new("runs", identity::columns().chain(whole.columns()));
    for (execution, run) in runs {
        let mut row = identity::cells(execution, run);
        row.extend(whole.cells(run));
        table.rows.push(row);
    }
    table
}
