use std::collections::BTreeSet;

use super::{ColumnKind, DataCell, DataTable, identity};
use crate::names::name;
use model::{Execution, LoopKind, Phase, Run};

const COLUMNS: [(&str, ColumnKind); 28] = [
    ("threads", ColumnKind::Integer),
    ("loop", ColumnKind::Text),
    ("target_rate_ops_s", ColumnKind::Real),
    ("arrivals", ColumnKind::Text),
    ("think_s", ColumnKind::Real),
    ("started_at", ColumnKind::Text),
    ("seconds", ColumnKind::Real),
    ("operations", ColumnKind::Integer),
    ("throughput_ops_s", ColumnKind::Real),
    ("achieved_rate_ops_s", ColumnKind::Real),
    ("hit_ratio", ColumnKind::Real),
    ("cpu_s_per_mop", ColumnKind::Real),
    ("ops_per_joule", ColumnKind::Real),
    ("joules_per_op", ColumnKind::Real),
    ("joules_per_op_net", ColumnKind::Real),
    ("energy_boundary", ColumnKind::Text),
    ("energy_origin", ColumnKind::Text),
    ("ipc", ColumnKind::Real),
    ("verified", ColumnKind::Integer),
    ("misses", ColumnKind::Integer),
    ("errors", ColumnKind::Integer),
    ("valid", ColumnKind::Boolean),
    ("invalid_because", ColumnKind::Text),
    ("warnings", ColumnKind::Text),
    ("harness_ns_per_op", ColumnKind::Real),
    ("harness_clock_ns", ColumnKind::Real),
    ("harness_verify_ns", ColumnKind::Real),
    ("harness_busy", ColumnKind::Real),
];

/// The columns of a whole run: fixed ones, then one for each setting of any of the runs.
pub(super) struct RunRow<'a> {
    settings: BTreeSet<&'a str>,
}

impl<'a> RunRow<'a> {
    pub fn of(runs: &[(&Execution, &'a Run)]) -> RunRow<'a> {
        let settings = runs.iter().flat_map(|(_, run)| run.settings.keys().map(String::as_str));
        RunRow { settings: settings.collect() }
    }

    pub fn columns(&self) -> impl Iterator<Item = (String, ColumnKind)> {
        let fixed = COLUMNS.into_iter().map(|(name, kind)| (name.to_owned(), kind));
        fixed.chain(self.settings.iter().map(|key| (format!("setting.{key}"), ColumnKind::Text)))
    }

    pub fn cells(&self, run: &Run) -> Vec<DataCell> {
        let (kind, rate, arrivals, think) = match &run.pacing {
            LoopKind::Closed { think_s } => ("closed", None, None, Some(*think_s)),
            LoopKind::Open { rate_ops_s, arrivals } => {
                ("open", Some(*rate_ops_s), Some(arrivals.as_str()), None)
            }
        };
        let tax = run.tax.as_ref();
        // A simulation has no load and no counts, not even 0.
        let counted =
            |cell: DataCell| if run.phase == Phase::Simulate { DataCell::Null } else { cell };
        let fixed: [DataCell; COLUMNS.len()] = [
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
            join_texts(&run.invalid_because),
            join_texts(&run.warnings),
            tax.map(|tax| tax.ns_per_op).into(),
            tax.map(|tax| tax.clock_ns).into(),
            tax.and_then(|tax| tax.verify_ns).into(),
            tax.map(|tax| tax.busy).into(),
        ];
        let setting = |key: &&str| DataCell::from(run.settings.get(*key).map(String::as_str));
        fixed.into_iter().chain(self.settings.iter().map(setting)).collect()
    }
}

/// Several sentences in one cell; nothing where there is none.
fn join_texts(texts: &[String]) -> DataCell {
    if texts.is_empty() { DataCell::Null } else { texts.join("; ").into() }
}

pub(super) fn table(runs: &[(&Execution, &Run)]) -> DataTable {
    let whole = RunRow::of(runs);
    let mut table = DataTable::new("runs", identity::columns().chain(whole.columns()));
    for (execution, run) in runs {
        let mut row = identity::cells(execution, run);
        row.extend(whole.cells(run));
        table.rows.push(row);
    }
    table
}
