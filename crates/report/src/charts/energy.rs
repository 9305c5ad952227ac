//! Joules of an operation, each with its boundary.

use model::signal::{JOULES_PER_OP, JOULES_PER_OP_NET, OPS_PER_JOULE};
use model::{Run, Unit};

use super::bars::{BarsFigure, BarsRow, Caption};
use super::cost::{origin, qualifiers};
use super::{CellSeries, ShownFigure, by_category, title};
use crate::cells::ReportCell;
use crate::figure::Bar;
use crate::format;
use crate::table::{self, Align};

const SIGNAL: &str = JOULES_PER_OP.name;

/// None where no run read any energy.
pub fn energy(cells: &[&ReportCell], series: &CellSeries) -> Option<ShownFigure> {
    let columns = [
        ("an operation", Align::Right),
        ("net", Align::Right),
        ("ops/J", Align::Decimal),
        ("boundary", Align::Left),
    ];
    let mut bars = BarsFigure::new(series, &columns);
    for (category, members) in by_category(cells) {
        bars.group(category);
        for cell in members {
            let Some(joules) = cell.median(|run| run.value(SIGNAL)) else { continue };
            let kind = origin(cell, &[SIGNAL]);
            let boundary = boundary(cell);
            let text = format::value(joules, Unit::JoulesPerOp);
            let note = format!("{text}, {boundary}{}", qualifiers(kind, cell.counted().1));
            let tip = format!("{}: {note}", title(cell));
            let bar = Bar { from: 0.0, to: joules, color: series.color(&cell.series), tip };
            let of = |signal: &str, shown: fn(f64) -> String| {
                let value = cell.median(|run| run.value(signal));
                table::Cell::from(value.map_or(format::NONE.into(), shown))
            };
            let data = vec![
                text.into(),
                of(JOULES_PER_OP_NET.name, |value| format::value(value, Unit::JoulesPerOp)),
                of(OPS_PER_JOULE.name, |value| format::readable(value, 3)),
                boundary.into(),
            ];
            let row = BarsRow { label: None, bars: vec![bar], note, data };
            bars.row(cell, kind, row);
        }
    }
    bars.into_figure(
        cells,
        series.legend(cells),
        Caption {
            id: "energy",
            title: "Energy per operation",
            alt: "Bars: joules of an operation",
            caption: "Gross joules over exactly the measured window, by the boundary beside each \
                      bar; do not compare bars of different boundaries or kinds. Medians over \
                      valid runs.",
            axis: "joules of an operation",
            tick: |value| format::value(value, Unit::JoulesPerOp),
        },
    )
}

/// The boundaries of the runs' energy.
fn boundary(cell: &ReportCell) -> String {
    let mut all: Vec<String> = cell
        .runs
        .iter()
        .filter_map(|run: &&Run| Some(run.joules_per_op()?.scope.to_string()))
        .collect();
    all.dedup();
    all.join(" and ")
}
