//! Adds published numbers to a figure.

use analyse::answer::quantity;
use model::design::{FigureSpec, PublishedSeries};

use super::StudyReport;
use super::plot::{Plot, PlotPoint, PlotValue};
use super::units::converted;

/// Adds the points of the published series that the figure names, each at its panel, series and
/// place on the axis. Levels that were not measured are appended to the axis. Series that do not
/// fit are reported in the notes.
pub(super) fn add(study: &StudyReport, spec: &FigureSpec, plotted: &mut Plot) {
    let (Some(published), Some(id)) = (&study.design.published, &spec.published) else { return };
    for (nth, series) in published.series.iter().enumerate().filter(|(_, s)| s.id == *id) {
        match place(spec, plotted, (nth, series)) {
            Ok(()) => plotted.source = Some(published.source.clone()),
            Err(why) => plotted.notes.push(format!(
                "published numbers ({}) are not drawn: {why}",
                if series.read.is_empty() { &series.metric } else { &series.read }
            )),
        }
    }
}

fn place(
    spec: &FigureSpec,
    plotted: &mut Plot,
    (nth, series): (usize, &PublishedSeries),
) -> Result<(), String> {
    if converted(1.0, &series.unit, &plotted.unit).is_none() {
        return Err(format!("they are in {}, the figure in `{}`", series.unit, plotted.unit));
    }
    let at = |name: &Option<String>| {
        let level = name.as_ref().and_then(|name| series.at.get(name))?;
        Some(level.0.clone())
    };
    let panel = match (&spec.panels, at(&spec.panels)) {
        (None, _) => Some(0),
        (Some(name), Some(level)) => {
            position(&plotted.panels, |p| *p == format!("{name} = {level}"))
        }
        (Some(_), None) => None,
    };
    let Some(panel) = panel else {
        return Err("their panel was not measured here".to_owned());
    };
    let level = at(&spec.series);
    let own = |name: &String| {
        level.as_ref().is_some_and(|level| name.split(", ").next() == Some(level.as_str()))
    };
    let named = match (&spec.series, &level) {
        (Some(_), Some(level)) => level.clone(),
        _ => plotted.series.first().cloned().unwrap_or_default(),
    };
    let of = match position(&plotted.series, own)
        .or_else(|| position(&plotted.series, |name| *name == named))
    {
        Some(known) => known,
        None => {
            plotted.series.push(named);
            plotted.series.len() - 1
        }
    };
    for (at, point) in series.points.iter().enumerate() {
        let same = |x: &String| {
            *x == point.x.0 || quantity(x).is_some_and(|x| quantity(&point.x.0) == Some(x))
        };
        let x = match position(&plotted.xs, same) {
            Some(known) => known,
            None => {
                plotted.xs.push(point.x.0.clone());
                plotted.xs.len() - 1
            }
        };
        let Some(y) = converted(point.y, &series.unit, &plotted.unit).filter(|y| y.is_finite())
        else {
            continue;
        };
        let value = PlotValue::Published { y, read: series.read.clone(), nth: (nth, at) };
        plotted.points.push(PlotPoint { x, series: of, panel, value });
    }
    Ok(())
}

fn position(all: &[String], is: impl Fn(&String) -> bool) -> Option<usize> {
    all.iter().position(is)
}
