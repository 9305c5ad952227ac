//! The numbers of one of the study's figures: cells with their intervals, and published points.

use std::collections::{BTreeMap, BTreeSet};

use analyse::answer::{CellValues, RunWithSettings, gather, quantity};
use analyse::{Description, outliers};
use model::Origin;
use model::design::{FigureKind, FigureSpec};

use super::StudyReport;
use super::published;

/// A figure before it is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    pub id: String,
    pub title: String,
    pub kind: FigureKind,
    /// The name of the horizontal axis, and its values in order.
    pub x: String,
    pub xs: Vec<String>,
    /// The metric by its name of `--json`, and its unit's symbol.
    pub y: String,
    pub unit: String,
    /// The origin of its own numbers; published ones are marked separately.
    pub origin: Origin,
    /// In the order of their colours; one empty name where there is one series.
    pub series: Vec<String>,
    /// In their order; one empty name where there is one panel.
    pub panels: Vec<String>,
    pub points: Vec<PlotPoint>,
    /// The source of the published numbers.
    pub source: Option<String>,
    /// Values that could not be shown, with the reason.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PlotPoint {
    pub x: usize,
    pub series: usize,
    pub panel: usize,
    pub value: PlotValue,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PlotValue {
    /// Of runs; the origin is [`Plot::origin`].
    Measured { of: Description, values: Vec<f64>, outliers: Vec<usize> },
    /// `read`: its place in the source; `nth`: which series and point of the study's published
    /// ones.
    Published { y: f64, read: String, nth: (usize, usize) },
}

/// The cells and published points of a figure.
///
/// Runs that agree in `x`, `series` and `panels` are one cell only if they agree in all other
/// factors too, and in store, workload and machine: what still varies distinguishes series, so that
/// nothing is averaged silently.
///
/// Errors, in words: a metric that no valid run has.
pub fn plot(study: &StudyReport, spec: &FigureSpec) -> Result<Plot, String> {
    // Runs without a level on the axis are left out.
    let placed = |run: &&RunWithSettings<'_>| run.level(&spec.x).is_some();
    let within: Vec<&RunWithSettings<'_>> = study
        .runs_with_settings
        .iter()
        .filter(|run| spec.within.hold_by(|name| run.level(name)))
        .filter(placed)
        .collect();
    if within.is_empty() {
        return Err(format!("no run here has `{}`", spec.x));
    }
    let mut by: Vec<&str> = vec![&spec.x];
    by.extend(spec.series.as_deref());
    by.extend(spec.panels.as_deref());
    let gathered = gather(&study.design, &within, &[&spec.y], &by)?;
    let unit = gathered.metrics[0].unit.clone();
    let xs = present(&gathered, study, &spec.x);
    if xs.is_empty() {
        return Err(format!("no run here has `{}`", spec.x));
    }
    let rest = rest(&gathered, &by);
    let panel_of = |at: &model::design::FactorLevels| match &spec.panels {
        Some(name) => at.get(name).map(|level| format!("{name} = {level}")).unwrap_or_default(),
        None => String::new(),
    };
    let series_of = |at: &model::design::FactorLevels| {
        let own = spec.series.as_ref().and_then(|name| at.get(name)).cloned();
        let others = rest.iter().filter_map(|name| Some(format!("{name} {}", at.get(name)?)));
        own.into_iter().chain(others).collect::<Vec<_>>().join(", ")
    };
    let ordered = |name: Option<&String>| -> Vec<String> {
        name.map_or(Vec::new(), |name| present(&gathered, study, name))
    };
    let panels = in_order(
        gathered.cells.iter().map(|cell| panel_of(&cell.at)),
        &ordered(spec.panels.as_ref()),
    );
    let series = in_order(
        gathered.cells.iter().map(|cell| series_of(&cell.at)),
        &ordered(spec.series.as_ref()),
    );
    let place = |all: &[String], name: &String| all.iter().position(|known| known == name);
    let mut points = Vec::new();
    for cell in &gathered.cells {
        let x = cell.at.get(&spec.x).and_then(|level| place(&xs, level));
        let series = place(&series, &series_of(&cell.at));
        let panel = place(&panels, &panel_of(&cell.at));
        let (Some(x), Some(series), Some(panel)) = (x, series, panel) else { continue };
        let values = cell.runs[0].values.clone();
        let Ok(of) = cell.runs[0].describe_by_median() else { continue };
        let value = PlotValue::Measured { of, outliers: outliers(&values), values };
        points.push(PlotPoint { x, series, panel, value });
    }
    let mut plotted = Plot {
        id: spec.id.clone(),
        title: spec.title.clone(),
        kind: spec.kind,
        x: spec.x.clone(),
        xs,
        y: spec.y.clone(),
        unit,
        origin: gathered.metrics[0].provenance.map_or(Origin::Measured, |(_, origin)| origin),
        series,
        panels,
        points,
        source: None,
        notes: gathered
            .missing
            .iter()
            .map(|(why, count)| format!("{count} runs are not in it: {why}"))
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
fn rest(gathered: &CellValues, by: &[&str]) -> Vec<String> {
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
