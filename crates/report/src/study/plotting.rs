//! Gathers the numbers of a study's figure: cells with their intervals, and published points.

use std::collections::{BTreeMap, BTreeSet};

use analyse::answer::{AnswerCell, CellValues, RunWithSettings, gather, quantity};
use analyse::outliers;
use model::Origin;
use model::design::{FactorLevels, FigureSpec};

use super::StudyReport;
use super::plot::{Plot, PlotPoint, PlotValue};
use super::published;

/// The cells and published points of a figure.
///
/// Runs that agree in `x`, `series` and `panels` are one cell only if they agree in all other
/// factors too, and in store, workload and machine: what still varies distinguishes series, so that
/// nothing is averaged silently.
///
/// Errors, in words: a metric that no valid run has.
pub fn plot(study: &StudyReport, spec: &FigureSpec) -> Result<Plot, String> {
    let no_run = || format!("no run here has `{}`", spec.x);
    // Runs without a level on the axis are left out.
    let within: Vec<&RunWithSettings<'_>> = study
        .runs_with_settings
        .iter()
        .filter(|run| spec.within.hold_by(|name| run.level(name)) && run.level(&spec.x).is_some())
        .collect();
    if within.is_empty() {
        return Err(no_run());
    }
    let mut by: Vec<&str> = vec![&spec.x];
    by.extend(spec.series.as_deref());
    by.extend(spec.panels.as_deref());
    let gathered = gather(&study.design, &within, &[&spec.y], &by)?;
    let axes = Axes::of(study, spec, &gathered, &by);
    if axes.xs.is_empty() {
        return Err(no_run());
    }
    let points = gathered.cells.iter().filter_map(|cell| axes.point(cell)).collect();
    let metric = &gathered.metrics[0];
    let mut plotted = Plot {
        id: spec.id.clone(),
        title: spec.title.clone(),
        kind: spec.kind,
        x: spec.x.clone(),
        xs: axes.xs,
        y: spec.y.clone(),
        unit: metric.unit.clone(),
        origin: metric.provenance.map_or(Origin::Measured, |(_, origin)| origin),
        series: axes.series,
        panels: axes.panels,
        points,
        source: None,
        notes: gathered
            .missing
            .iter()
            .map(|(why, count)| format!("{count} runs are not drawn: {why}"))
            .collect(),
    };
    let measured = plotted.xs.len();
    published::add(study, spec, &mut plotted);
    if plotted.xs.len() > measured {
        by_size(&mut plotted);
    }
    plotted.points.sort_by_key(|point| (point.panel, point.series, point.x));
    Ok(plotted)
}

/// Where cells stand in a figure.
struct Axes<'a> {
    spec: &'a FigureSpec,
    /// The names that distinguish series besides the figure's own.
    others: Vec<String>,
    xs: Vec<String>,
    series: Vec<String>,
    panels: Vec<String>,
}

impl<'a> Axes<'a> {
    fn of(
        study: &StudyReport,
        spec: &'a FigureSpec,
        gathered: &CellValues,
        by: &[&str],
    ) -> Axes<'a> {
        let levels = |name: &Option<String>| {
            name.as_ref().map_or(Vec::new(), |name| present(gathered, study, name))
        };
        let mut axes = Axes {
            spec,
            others: other_names(gathered, by),
            xs: present(gathered, study, &spec.x),
            series: Vec::new(),
            panels: Vec::new(),
        };
        let all = || gathered.cells.iter().map(|cell| &cell.at);
        axes.panels = in_order(all().map(|at| axes.panel_of(at)), &levels(&spec.panels));
        axes.series = in_order(all().map(|at| axes.series_of(at)), &levels(&spec.series));
        axes
    }

    fn panel_of(&self, at: &FactorLevels) -> String {
        let name = self.spec.panels.as_ref();
        let panel = name.and_then(|name| Some(format!("{name} = {}", at.get(name)?)));
        panel.unwrap_or_default()
    }

    fn series_of(&self, at: &FactorLevels) -> String {
        let own = self.spec.series.as_ref().and_then(|name| at.get(name)).cloned();
        let others =
            self.others.iter().filter_map(|name| Some(format!("{name} {}", at.get(name)?)));
        own.into_iter().chain(others).collect::<Vec<_>>().join(", ")
    }

    /// The point of a cell; None if it has no place or no values.
    fn point(&self, cell: &AnswerCell) -> Option<PlotPoint> {
        let position = |all: &[String], name: &String| all.iter().position(|known| known == name);
        let x = position(&self.xs, cell.at.get(&self.spec.x)?)?;
        let series = position(&self.series, &self.series_of(&cell.at))?;
        let panel = position(&self.panels, &self.panel_of(&cell.at))?;
        let of = cell.runs[0].describe_by_median().ok()?;
        let values = cell.runs[0].values.clone();
        let value = PlotValue::Measured { of, outliers: outliers(&values), values };
        Some(PlotPoint { x, series, panel, value })
    }
}

/// Sorts the axis by size after published numbers were added, if all levels are quantities.
fn by_size(plotted: &mut Plot) {
    let sizes: Option<Vec<f64>> = plotted.xs.iter().map(|x| quantity(x)).collect();
    let Some(sizes) = sizes else { return };
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|a, b| sizes[*a].total_cmp(&sizes[*b]));
    for point in &mut plotted.points {
        point.x = order.iter().position(|old| *old == point.x).unwrap_or(point.x);
    }
    plotted.xs = order.into_iter().map(|old| plotted.xs[old].clone()).collect();
}

/// The levels of a factor or setting that the cells have, in the study's order.
fn present(gathered: &CellValues, study: &StudyReport, name: &str) -> Vec<String> {
    let present_levels: BTreeSet<&String> =
        gathered.cells.iter().filter_map(|cell| cell.at.get(name)).collect();
    let mut order = gathered.order(&study.design, name);
    let ordered = study.design.factor(name).map(|factor| &factor.levels);
    // A baseline comes first in comparisons, but not on an axis.
    if let Some(levels) = ordered {
        order = levels.clone();
    }
    order.extend(
        present_levels
            .iter()
            .filter(|level| !order.contains(level))
            .map(|l| (*l).clone())
            .collect::<Vec<_>>(),
    );
    order.retain(|level| present_levels.contains(level));
    order
}

/// The names that distinguish cells in addition to the figure's own axes.
fn other_names(gathered: &CellValues, by: &[&str]) -> Vec<String> {
    let mut levels: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
    for (name, level) in gathered.cells.iter().flat_map(|cell| &cell.at) {
        levels.entry(name).or_default().insert(level);
    }
    let lacks = |name: &String| gathered.cells.iter().any(|cell| !cell.at.contains_key(name));
    let telling = |(name, levels): &(&String, BTreeSet<&String>)| {
        !by.contains(&name.as_str()) && (levels.len() > 1 || lacks(name))
    };
    levels.into_iter().filter(telling).map(|(name, _)| name.clone()).collect()
}

/// Each name once: by the level that it begins with or holds, then by name.
fn in_order(names: impl Iterator<Item = String>, levels: &[String]) -> Vec<String> {
    let names: BTreeSet<String> = names.collect();
    let mut names: Vec<String> = names.into_iter().collect();
    let rank = |name: &String| {
        let own = name.rsplit_once(" = ").map_or(name.as_str(), |(_, level)| level);
        let own = own.split(", ").next().unwrap_or(own);
        levels.iter().position(|level| level == own).unwrap_or(levels.len())
    };
    names.sort_by_key(|name| (rank(name), name.clone()));
    names
}
