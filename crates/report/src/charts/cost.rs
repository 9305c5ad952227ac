//! The cost of an operation: CPU time, and I/O amplification.

use model::{Origin, Run, Unit};

use super::bars::{BarsFigure, BarsRow, Caption};
use super::{CellSeries, ShownFigure, by_category, title};
use crate::cells::ReportCell;
use crate::figure::{Bar, Entry};
use crate::format;
use crate::table::{self, Align};
use crate::tables::{self, origin_name};

/// Colours of the parts of CPU time, distinct from those of the stores.
const USER: usize = 4;
const SYSTEM: usize = 5;
const UNSPLIT: usize = 6;

/// CPU seconds for a million operations, split into user and system where both were read.
pub fn cpu(cells: &[&ReportCell], series: &CellSeries) -> Option<ShownFigure> {
    let columns = ["user, CPU-s/Mop", "system, CPU-s/Mop", "together, CPU-s/Mop"];
    let mut bars = BarsFigure::new(series, &columns.map(|head| (head, Align::Decimal)));
    let (mut split, mut unsplit) = (false, false);
    for (category, members) in by_category(cells) {
        bars.group(category);
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
            let total: f64 = parts.iter().map(|(_, _, value)| value).sum();
            let kind = origin(cell, &["cpu.user", "cpu.system", "cpu_s_per_mop"]);
            let note = qualifiers(kind, cell.counted().1);
            let mut from = 0.0;
            let drawn = parts.iter().map(|(part, color, value)| {
                let to = from + value;
                let text = format::value(*value, Unit::CpuSecondsPerMillionOps);
                let tip = format!("{}: {part} {text}{note}", title(cell));
                Bar { from: std::mem::replace(&mut from, to), to, color: *color, tip }
            });
            let number = |value: Option<f64>| {
                table::Cell::from(value.map_or(format::NONE.into(), |v| format::readable(v, 3)))
            };
            let row = BarsRow {
                label: None,
                bars: drawn.collect(),
                note: format!("{}{note}", format::readable(total, 3)),
                data: vec![number(user), number(system), number(Some(total))],
            };
            bars.row(cell, kind, row);
        }
    }
    let parts =
        [(split, "user", USER), (split, "system", SYSTEM), (unsplit, "user and system", UNSPLIT)];
    let legend = parts.into_iter().filter(|(used, ..)| *used).map(|(_, label, color)| Entry {
        label: label.to_owned(),
        color: Some(color),
        shape: None,
        line: None,
        hollow: false,
    });
    bars.into_figure(
        cells,
        legend.collect(),
        Caption {
            id: "cpu",
            title: "CPU time per operation",
            alt: "Bars: CPU seconds for a million operations, user and system",
            caption: "CPU seconds of the whole process, the store's background threads and the \
                      harness included, for a million operations; medians over valid runs.",
            axis: "CPU seconds for a million operations",
            tick: format::plain,
        },
    )
}

/// Bytes moved for each byte of the workload.
pub fn amplification(cells: &[&ReportCell], series: &CellSeries) -> Option<ShownFigure> {
    let kinds = [("written", "write_amplification"), ("read", "read_amplification")];
    let columns = [("what", Align::Left), ("amplification", Align::Decimal)];
    let mut bars = BarsFigure::new(series, &columns);
    for (category, members) in by_category(cells) {
        bars.group(category);
        for (word, signal) in kinds {
            for cell in &members {
                let of = |run: &Run| tables::named(run, signal).and_then(|r| r.value());
                let Some(value) = cell.median(of) else { continue };
                let kind = origin(cell, &[signal]);
                let label =
                    if series.several() { format!("{word}, {}", cell.series) } else { word.into() };
                let note =
                    format!("{}{}", format::ratio(value), qualifiers(kind, cell.counted().1));
                let tip = format!("{}: {note} {word}", title(cell));
                let bar = Bar { from: 0.0, to: value, color: series.color(&cell.series), tip };
                let data = vec![word.into(), format::readable(value, 3).into()];
                bars.row(cell, kind, BarsRow { label: Some(label), bars: vec![bar], note, data });
            }
        }
    }
    bars.into_figure(
        cells,
        series.legend(cells),
        Caption {
            id: "amplification",
            title: "I/O amplification",
            alt: "Bars: bytes written and read for each byte of the workload",
            caption: "Bytes moved for each byte of the workload's keys and values; the readings of \
                      each run say at which boundary the bytes were counted.",
            axis: "amplification",
            tick: format::ratio_tick,
        },
    )
}

fn per_million(run: &Run, signal: &str) -> Option<f64> {
    let reading = run.reading(signal).filter(|reading| reading.unit == Unit::Seconds)?;
    (run.operations > 0).then_some(reading.value()? / run.operations as f64 * 1e6)
}

/// The least certain origin among the readings that a number is made of.
pub(super) fn origin(cell: &ReportCell, signals: &[&str]) -> Origin {
    let readings = cell
        .runs
        .iter()
        .flat_map(|run| signals.iter().filter_map(|signal| tables::named(run, signal)));
    let mut valued = readings.filter(|reading| reading.value().is_some()).map(|r| r.origin);
    valued.find(|origin| *origin != Origin::Measured).unwrap_or(Origin::Measured)
}

/// Qualifiers of a number: its origin, invalidity.
pub(super) fn qualifiers(origin: Origin, valid: bool) -> String {
    let mut text = String::new();
    if origin != Origin::Measured {
        text += &format!(", {}", origin_name(origin));
    }
    if !valid {
        text += ", INVALID";
    }
    text
}
