//! Joules of an operation, each with its boundary: two boundaries never share a bar's colour row.

use model::Unit;
use record::Run;

use super::cost::{origin, said};
use super::throughput::flatten;
use super::{Series, Shown, any_invalid, by_category, invalid_entry, title};
use crate::cells::Cell;
use crate::figure::{Axis, Bar, Chart, Group, Row, RowChart, Scale, Shape};
use crate::format;
use crate::table::{ALWAYS, Align, Table};
use crate::tables;

const SIGNAL: &str = "joules_per_op";

/// None where no run read any energy.
pub fn energy(cells: &[&Cell], series: &Series) -> Option<Shown> {
    let mut data = Table::new("")
        .column("workload", Align::Left, ALWAYS)
        .column("store", Align::Left, ALWAYS)
        .column("an operation", Align::Right, ALWAYS)
        .column("net", Align::Right, ALWAYS)
        .column("ops/J", Align::Decimal, ALWAYS)
        .column("boundary", Align::Left, ALWAYS)
        .column("kind", Align::Left, ALWAYS);
    let (mut groups, mut values) = (Vec::new(), Vec::new());
    for (category, members) in by_category(cells) {
        let mut group = Group { label: category.to_owned(), rows: Vec::new() };
        for cell in members {
            let Some(joules) = cell.median(|run| run.value(SIGNAL)) else { continue };
            let valid = cell.counted().1;
            let kind = origin(cell, &[SIGNAL]);
            let boundary = boundary(cell);
            let text = format::value(joules, Unit::JoulesPerOp);
            let note = format!("{text}, {boundary}{}", said(kind, valid));
            let tip = format!("{}: {note}", title(cell));
            values.push(joules);
            group.rows.push(Row {
                label: cell.series.clone(),
                bars: vec![Bar { from: 0.0, to: joules, color: series.color(&cell.series), tip }],
                note,
                invalid: !valid,
                ..Row::default()
            });
            let of = |signal: &str, shown: fn(f64) -> String| {
                let value = cell.median(|run| run.value(signal));
                crate::table::Cell::from(value.map_or(format::NONE.into(), shown))
            };
            data.row_of(
                vec![
                    category.into(),
                    cell.series.clone().into(),
                    text.into(),
                    of("joules_per_op_net", |value| format::value(value, Unit::JoulesPerOp)),
                    of("ops_per_joule", |value| format::significant(value, 3)),
                    boundary.into(),
                    tables::origin(kind),
                ],
                valid,
            );
        }
        if !group.rows.is_empty() {
            groups.push(group);
        }
    }
    if groups.is_empty() {
        return None;
    }
    flatten(&mut groups, series);
    let mut legend = series.legend(cells);
    if any_invalid(cells) {
        legend.push(invalid_entry(Shape::Square));
    }
    Some(Shown {
        id: "energy".to_owned(),
        title: "Energy per operation".to_owned(),
        alt: "Bars: joules of an operation".to_owned(),
        captions: vec![
            "Gross joules over exactly the measured window, by the boundary beside each bar; bars \
             of different boundaries or kinds are not to be compared. Medians over valid runs."
                .to_owned(),
        ],
        cautions: Vec::new(),
        chart: Chart::Rows(RowChart {
            groups,
            axis: Axis::new(Scale::from_zero(values), 6, "joules of an operation", |value| {
                format::value(value, Unit::JoulesPerOp)
            }),
            legend,
        }),
        data,
        small: false,
    })
}

/// The boundaries of the runs' energy, in words.
fn boundary(cell: &Cell) -> String {
    let mut all: Vec<String> = cell
        .runs
        .iter()
        .filter_map(|run: &&Run| Some(run.joules_per_op()?.scope.to_string()))
        .collect();
    all.dedup();
    all.join(" and ")
}
