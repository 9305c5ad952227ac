//! What an operation costs: CPU time, and bytes moved for each byte asked for.

use model::{Origin, Unit};
use record::Run;

use super::throughput::flatten;
use super::{Series, Shown, any_invalid, by_category, invalid_entry, title};
use crate::cells::Cell;
use crate::figure::{Axis, Bar, Chart, Entry, Group, Row, RowChart, Scale, Shape};
use crate::format;
use crate::table::{ALWAYS, Align, Table};
use crate::tables::{self, origin_name};

/// Colours of the parts of CPU time: away from the first ones, which are the stores'.
const USER: usize = 4;
const SYSTEM: usize = 5;
const UNSPLIT: usize = 6;

/// CPU seconds for a million operations, split where the split was read.
pub fn cpu(cells: &[&Cell], series: &Series) -> Option<Shown> {
    let mut data = Table::new("")
        .column("workload", Align::Left, ALWAYS)
        .column("store", Align::Left, ALWAYS)
        .column("user, CPU-s/Mop", Align::Decimal, ALWAYS)
        .column("system, CPU-s/Mop", Align::Decimal, ALWAYS)
        .column("together, CPU-s/Mop", Align::Decimal, ALWAYS)
        .column("kind", Align::Left, ALWAYS);
    let mut groups = Vec::new();
    let mut totals = Vec::new();
    let (mut split, mut unsplit) = (false, false);
    for (category, members) in by_category(cells) {
        let mut group = Group { label: category.to_owned(), rows: Vec::new() };
        for cell in members {
            let user = cell.median(|run| per_million(run, "cpu.user"));
            let system = cell.median(|run| per_million(run, "cpu.system"));
            let whole = cell.median(|run| run.value("cpu_s_per_mop"));
            let parts = match (user, system, whole) {
                (Some(user), Some(system), _) => {
                    split = true;
                    vec![("user", USER, user), ("system", SYSTEM, system)]
                }
                (_, _, Some(whole)) => {
                    unsplit = true;
                    vec![("user and system", UNSPLIT, whole)]
                }
                _ => continue,
            };
            let valid = cell.counted().1;
            let total: f64 = parts.iter().map(|(_, _, value)| value).sum();
            totals.push(total);
            let kind = origin(cell, &["cpu.user", "cpu.system", "cpu_s_per_mop"]);
            let mut from = 0.0;
            let bars = parts.iter().map(|(part, color, value)| {
                let to = from + value;
                let text = format::value(*value, Unit::CpuSecondsPerMillionOps);
                let tip = format!("{}: {part} {text}{}", title(cell), said(kind, valid));
                Bar { from: std::mem::replace(&mut from, to), to, color: *color, tip }
            });
            group.rows.push(Row {
                label: cell.series.clone(),
                bars: bars.collect(),
                note: format!("{}{}", format::significant(total, 3), said(kind, valid)),
                invalid: !valid,
                ..Row::default()
            });
            let number = |value: Option<f64>| {
                crate::table::Cell::from(
                    value.map_or(format::NONE.into(), |v| format::significant(v, 3)),
                )
            };
            data.row_of(
                vec![
                    category.into(),
                    cell.series.clone().into(),
                    number(user),
                    number(system),
                    number(Some(total)),
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
    let mut legend = Vec::new();
    let mut entry = |wanted: bool, label: &str, color: usize| {
        if wanted {
            legend.push(Entry {
                label: label.to_owned(),
                color: Some(color),
                shape: None,
                line: None,
                hollow: false,
            });
        }
    };
    entry(split, "user", USER);
    entry(split, "system", SYSTEM);
    entry(unsplit, "user and system", UNSPLIT);
    if any_invalid(cells) {
        legend.push(invalid_entry(Shape::Square));
    }
    Some(Shown {
        id: "cpu".to_owned(),
        title: "CPU time per operation".to_owned(),
        alt: "Bars: CPU seconds for a million operations, user and system".to_owned(),
        captions: vec![
            "CPU seconds of the whole process, the store's background threads and the harness \
             included, for a million operations; medians over valid runs."
                .to_owned(),
        ],
        cautions: Vec::new(),
        chart: Chart::Rows(RowChart {
            groups,
            axis: Axis::new(
                Scale::from_zero(totals),
                6,
                "CPU seconds for a million operations",
                format::plain,
            ),
            legend,
        }),
        data,
        small: false,
    })
}

/// Bytes that the device moved for each byte that was asked for.
pub fn amplification(cells: &[&Cell], series: &Series) -> Option<Shown> {
    let kinds = [("written", "write_amplification"), ("read", "read_amplification")];
    let mut data = Table::new("")
        .column("workload", Align::Left, ALWAYS)
        .column("store", Align::Left, ALWAYS)
        .column("what", Align::Left, ALWAYS)
        .column("amplification", Align::Decimal, ALWAYS)
        .column("kind", Align::Left, ALWAYS);
    let mut groups = Vec::new();
    let mut values = Vec::new();
    for (category, members) in by_category(cells) {
        let mut group = Group { label: category.to_owned(), rows: Vec::new() };
        for (word, signal) in kinds {
            for cell in &members {
                let of = |run: &Run| tables::named(run, signal).and_then(|r| r.value());
                let Some(value) = cell.median(of) else { continue };
                let valid = cell.counted().1;
                let kind = origin(cell, &[signal]);
                let label =
                    if series.several() { format!("{word}, {}", cell.series) } else { word.into() };
                let text = format!("{}{}", format::ratio(value), said(kind, valid));
                let tip = format!("{}: {text} {word}", title(cell));
                values.push(value);
                group.rows.push(Row {
                    label,
                    bars: vec![Bar {
                        from: 0.0,
                        to: value,
                        color: series.color(&cell.series),
                        tip,
                    }],
                    note: text,
                    invalid: !valid,
                    ..Row::default()
                });
                data.row_of(
                    vec![
                        category.into(),
                        cell.series.clone().into(),
                        word.into(),
                        format::significant(value, 3).into(),
                        tables::origin(kind),
                    ],
                    valid,
                );
            }
        }
        if !group.rows.is_empty() {
            groups.push(group);
        }
    }
    if groups.is_empty() {
        return None;
    }
    let mut legend = series.legend(cells);
    if any_invalid(cells) {
        legend.push(invalid_entry(Shape::Square));
    }
    Some(Shown {
        id: "amplification".to_owned(),
        title: "I/O amplification".to_owned(),
        alt: "Bars: bytes written and read for each byte that was asked for".to_owned(),
        captions: vec![
            "Bytes really moved for each byte of the workload's own keys and values; the \
             readings of each run say at which boundary the bytes were counted."
                .to_owned(),
        ],
        cautions: Vec::new(),
        chart: Chart::Rows(RowChart {
            groups,
            axis: Axis::new(Scale::from_zero(values), 6, "amplification", format::ratio_tick),
            legend,
        }),
        data,
        small: false,
    })
}

fn per_million(run: &Run, signal: &str) -> Option<f64> {
    let reading = run.reading(signal).filter(|reading| reading.unit == Unit::Seconds)?;
    (run.operations > 0).then_some(reading.value()? / run.operations as f64 * 1e6)
}

/// The least certain origin among the readings that a number is made of.
pub(super) fn origin(cell: &Cell, signals: &[&str]) -> Origin {
    let readings = cell
        .runs
        .iter()
        .flat_map(|run| signals.iter().filter_map(|signal| tables::named(run, signal)));
    let mut valued = readings.filter(|reading| reading.value().is_some()).map(|r| r.origin);
    valued.find(|origin| *origin != Origin::Measured).unwrap_or(Origin::Measured)
}

/// What must be said beside a number.
pub(super) fn said(origin: Origin, valid: bool) -> String {
    let mut text = String::new();
    if origin != Origin::Measured {
        text += &format!(", {}", origin_name(origin));
    }
    if !valid {
        text += ", INVALID";
    }
    text
}
