//! What an operation costs: CPU time, and bytes moved for each byte asked for.

use model::{Origin, Unit};
use record::Run;

use super::bars::{About, Bars, BarsRow};
use super::{Series, Shown, by_category, title};
use crate::cells::Cell;
use crate::figure::{Bar, Entry};
use crate::format;
use crate::table::{self, Align};
use crate::tables::{self, origin_name};

/// Colours of the parts of CPU time: away from the first ones, which are the stores'.
const USER: usize = 4;
const SYSTEM: usize = 5;
const UNSPLIT: usize = 6;

/// CPU seconds for a million operations, split where the split was read.
pub fn cpu(cells: &[&Cell], series: &Series) -> Option<Shown> {
    let columns = ["user, CPU-s/Mop", "system, CPU-s/Mop", "together, CPU-s/Mop"];
    let mut bars = Bars::new(series, &columns.map(|head| (head, Align::Decimal)));
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
            let said = said(kind, cell.counted().1);
            let mut from = 0.0;
            let drawn = parts.iter().map(|(part, color, value)| {
                let to = from + value;
                let text = format::value(*value, Unit::CpuSecondsPerMillionOps);
                let tip = format!("{}: {part} {text}{said}", title(cell));
                Bar { from: std::mem::replace(&mut from, to), to, color: *color, tip }
            });
            let number = |value: Option<f64>| {
                table::Cell::from(value.map_or(format::NONE.into(), |v| format::significant(v, 3)))
            };
            let row = BarsRow {
                label: None,
                bars: drawn.collect(),
                note: format!("{}{said}", format::significant(total, 3)),
                data: vec![number(user), number(system), number(Some(total))],
            };
            bars.row(cell, kind, row);
        }
    }
    let wanted =
        [(split, "user", USER), (split, "system", SYSTEM), (unsplit, "user and system", UNSPLIT)];
    let legend = wanted.into_iter().filter(|(wanted, ..)| *wanted).map(|(_, label, color)| Entry {
        label: label.to_owned(),
        color: Some(color),
        shape: None,
        line: None,
        hollow: false,
    });
    bars.shown(
        cells,
        legend.collect(),
        About {
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

/// Bytes that the device moved for each byte that was asked for.
pub fn amplification(cells: &[&Cell], series: &Series) -> Option<Shown> {
    let kinds = [("written", "write_amplification"), ("read", "read_amplification")];
    let columns = [("what", Align::Left), ("amplification", Align::Decimal)];
    let mut bars = Bars::new(series, &columns);
    for (category, members) in by_category(cells) {
        bars.group(category);
        for (word, signal) in kinds {
            for cell in &members {
                let of = |run: &Run| tables::named(run, signal).and_then(|r| r.value());
                let Some(value) = cell.median(of) else { continue };
                let kind = origin(cell, &[signal]);
                let label =
                    if series.several() { format!("{word}, {}", cell.series) } else { word.into() };
                let note = format!("{}{}", format::ratio(value), said(kind, cell.counted().1));
                let tip = format!("{}: {note} {word}", title(cell));
                let bar = Bar { from: 0.0, to: value, color: series.color(&cell.series), tip };
                let data = vec![word.into(), format::significant(value, 3).into()];
                bars.row(cell, kind, BarsRow { label: Some(label), bars: vec![bar], note, data });
            }
        }
    }
    bars.shown(
        cells,
        series.legend(cells),
        About {
            id: "amplification",
            title: "I/O amplification",
            alt: "Bars: bytes written and read for each byte that was asked for",
            caption: "Bytes really moved for each byte of the workload's own keys and values; the \
                      readings of each run say at which boundary the bytes were counted.",
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
