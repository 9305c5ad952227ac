//! From runs to series.

use std::collections::{BTreeMap, BTreeSet};

use analyse::answer::metric_words;
use analyse::{Metric, change_points, median};
use model::{Execution, Phase, Run};

use super::{HistoryPoint, HistorySeries};
use crate::cells::{self, CellKey, PacingKey, ReportCell, ReportFactor};

/// Settings that say which build was measured, so that they may change within a series.
const OF_THE_BUILD: [&str; 5] =
    ["server.version", "server.build", "server.binary", "server.arguments", "store.library"];

/// A run, and the file that it was read from.
pub struct HistoryRun<'a> {
    pub file: &'a str,
    pub execution: &'a Execution,
    pub run: &'a Run,
}

/// One series for each metric and cell; `across` are settings that may change within a series.
/// Invalid runs, load phases and trials are left out, as are runs without the metric.
pub fn history(
    runs: &[HistoryRun<'_>],
    metrics: &[(String, Metric)],
    across: &[String],
) -> Vec<HistorySeries> {
    let mut seen = BTreeSet::new();
    let files: BTreeMap<&str, &str> =
        runs.iter().rev().map(|one| (one.execution.id.as_str(), one.file)).collect();
    let mut counted: Vec<(&Execution, &Run)> = runs
        .iter()
        .map(|one| (one.execution, one.run))
        .filter(|(_, run)| run.valid() && run.phase != Phase::Load && !run.is_trial())
        .filter(|(_, run)| seen.insert(run.id.as_str()))
        .collect();
    // Within a second they stay as they were given.
    counted.sort_by(|(a, _), (b, _)| a.started_at.cmp(&b.started_at));
    // What writes survive follows from settings that may change.
    let across = across.iter().map(String::as_str).chain([Run::SURVIVES]);
    let but: Vec<&str> = OF_THE_BUILD.into_iter().chain(across).collect();
    let mut cells = cells::group_within(
        &counted,
        |execution| &execution.machine.id,
        |run| Some(CellKey::across_versions(run, PacingKey::of(&run.pacing), &but)),
    );
    cells::disambiguate(&mut cells, &ReportFactor::Pacing);
    let machines: BTreeSet<&str> = counted.iter().map(|(own, _)| own.machine.id.as_str()).collect();
    let executions: BTreeMap<&str, &Execution> =
        counted.iter().map(|(execution, _)| (execution.id.as_str(), *execution)).collect();
    let mut all = Vec::new();
    for cell in &cells {
        let mut title = cells::title(cell);
        let machine = format!("machine {}", cell.execution.machine.id);
        if machines.len() > 1 && !title.contains(&machine) {
            title = format!("{title}, {machine}");
        }
        for (name, metric) in metrics {
            let points = points(cell, metric, &executions, &files);
            if points.is_empty() {
                continue;
            }
            let values: Vec<f64> = points.iter().map(|point| point.value).collect();
            all.push(HistorySeries {
                title: format!("{} of {title}", metric_words(name)),
                metric: name.clone(),
                cell: title.clone(),
                unit: metric.unit(cell.runs.first().copied()).unwrap_or_default(),
                direction: metric.direction(),
                changes: change_points(&values),
                points,
            });
        }
    }
    all
}

/// One point for each execution.
fn points(
    cell: &ReportCell<'_>,
    metric: &Metric,
    executions: &BTreeMap<&str, &Execution>,
    files: &BTreeMap<&str, &str>,
) -> Vec<HistoryPoint> {
    let mut all: Vec<(&str, &str, Vec<f64>)> = Vec::new();
    for run in &cell.runs {
        let value = metric.value(run).ok().filter(|value| value.is_finite());
        let Some(value) = value else { continue };
        match all.last_mut() {
            Some((execution, _, values)) if *execution == run.execution => values.push(value),
            _ => all.push((&run.execution, &run.store_version, vec![value])),
        }
    }
    let point = |(id, version, values): (&str, &str, Vec<f64>)| {
        Some(HistoryPoint {
            started_at: executions.get(id)?.started_at.clone(),
            file: (*files.get(id)?).to_owned(),
            version: version.to_owned(),
            value: median(&values),
            runs: values.len(),
        })
    };
    all.into_iter().filter_map(point).collect()
}
