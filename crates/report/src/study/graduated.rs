//! Power over a graduated load: its table and figure.

use analyse::answer::{Answer, AnswerKind, GraduatedLoad, MetricInfo};
use analyse::{describe_by_median, outliers};
use model::Origin;
use model::design::FigureKind;

use super::plot::{Plot, PlotPoint, PlotValue};
use super::{StudyReport, units::written};
use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// The answers about graduated loads, with their power and loads.
fn graduated_answers<'s>(
    study: &'s StudyReport<'_>,
) -> impl Iterator<Item = (usize, &'s Answer, &'s MetricInfo, &'s [GraduatedLoad])> {
    study.answers.iter().enumerate().filter_map(|(nth, answer)| match &answer.kind {
        AnswerKind::Graduated { power, loads, .. } => Some((nth, answer, power, loads.as_slice())),
        _ => None,
    })
}

/// One table for each question about a graduated load: every level, and the totals.
pub fn tables(study: &StudyReport) -> Vec<Table> {
    graduated_answers(study).map(|(_, _, power, loads)| table(power, loads)).collect()
}

fn table(power: &MetricInfo, loads: &[GraduatedLoad]) -> Table {
    let mut table = Table::new("Graduated load")
        .column("cell", Align::Wrap, ALWAYS)
        .column("load", Align::Right, ALWAYS)
        .column("ops/s", Align::Right, ALWAYS)
        .column("W", Align::Right, ALWAYS)
        .column("of peak", Align::Right, 40)
        .column("ops/J", Align::Right, ALWAYS);
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    for load in loads {
        let peak = load.figures.levels.first().map_or(f64::NAN, |level| level.power_w);
        for (nth, level) in load.figures.levels.iter().enumerate() {
            let title = if nth == 0 { load.title.as_str() } else { "" };
            let name = if level.share == 0.0 { "idle".to_owned() } else { percent(level.share) };
            table.row(vec![
                title.to_owned().into(),
                name.into(),
                format::rate(level.ops_s).into(),
                written(level.power_w, "W").into(),
                percent(level.power_w / peak).into(),
                level.ops_per_joule.map_or("".into(), |per| format::readable(per, 3).into()),
            ]);
        }
        let proportionality = match load.figures.proportionality {
            Some(share) => format!("energy proportionality {share:.2}"),
            None => "energy proportionality not known".to_owned(),
        };
        table.row(vec![
            "".into(),
            "overall".into(),
            "".into(),
            "".into(),
            proportionality.into(),
            Cell::new(format::readable(load.figures.overall_ops_per_joule, 3), Tone::Strong),
        ]);
    }
    table.note(kind(power));
    table.note(
        "medians of the valid runs; load: the target rate as a share of the highest; \
         overall: all levels' ops/s over all levels' watts, the idle machine among them; energy \
         proportionality: 1 where power is proportional to load, 0 where it is constant",
    );
    for why in loads.iter().filter_map(|load| load.no_idle.as_ref()) {
        table.note(format!("without the idle machine: {why}"));
    }
    table.without_empty_columns()
}

/// `node, modelled`: the boundary and origin of the power.
fn kind(power: &MetricInfo) -> String {
    match power.provenance {
        Some((scope, origin)) => {
            format!("power of {scope}, {}", crate::tables::origin_name(origin))
        }
        None => "power of an unknown boundary".to_owned(),
    }
}

/// Power over load of every question about a graduated load.
pub(super) fn plots(study: &StudyReport) -> Vec<Plot> {
    let several = graduated_answers(study).count() > 1;
    let plot = |(nth, answer, power, loads): (usize, &Answer, &MetricInfo, &[GraduatedLoad])| {
        let id = if several {
            format!("graduated-load-{}", nth + 1)
        } else {
            "graduated-load".to_owned()
        };
        plotted(id, answer, power, loads)
    };
    graduated_answers(study).map(plot).collect()
}

fn plotted(id: String, answer: &Answer, power: &MetricInfo, loads: &[GraduatedLoad]) -> Plot {
    let name = |share: f64| format!("{}%", (share * 1000.0).round() / 10.0);
    let mut shares: Vec<f64> =
        loads.iter().flat_map(|load| &load.figures.levels).map(|level| level.share).collect();
    shares.sort_by(f64::total_cmp);
    let mut xs: Vec<String> = shares.into_iter().map(name).collect();
    xs.dedup();
    let mut points = Vec::new();
    for (series, load) in loads.iter().enumerate() {
        for (level, values) in load.figures.levels.iter().zip(&load.watts) {
            let x = xs.iter().position(|known| *known == name(level.share));
            let (Some(x), Ok(of)) = (x, describe_by_median(values)) else { continue };
            let value =
                PlotValue::Measured { of, outliers: outliers(values), values: values.clone() };
            points.push(PlotPoint { x, series, panel: 0, value });
        }
    }
    points.sort_by_key(|point| (point.series, point.x));
    Plot {
        id,
        title: answer.ask.clone(),
        kind: FigureKind::Lines,
        x: "load, of the highest level".to_owned(),
        xs,
        y: power.name.clone(),
        unit: power.unit.clone(),
        origin: power.provenance.map_or(Origin::Measured, |(_, origin)| origin),
        series: loads.iter().map(|load| load.title.clone()).collect(),
        panels: vec![String::new()],
        points,
        source: None,
        notes: vec![format!(
            "{}; a proportional machine draws a straight line from 0.",
            kind(power)
        )],
    }
}
