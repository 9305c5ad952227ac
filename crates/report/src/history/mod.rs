//! Metrics over many results: levels, and where they change.

mod figure;
mod object;
mod sentence;
mod series;

use analyse::{BetterDirection, ChangePoint};

pub use object::object;
pub use sentence::sentences;
pub use series::{HistoryRun, history};

use crate::html::{self, SheetPart};
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// A metric of a cell over time.
pub struct HistorySeries {
    /// `throughput_ops_s of ycsb-a on spill`.
    pub title: String,
    pub metric: String,
    pub cell: String,
    pub unit: &'static str,
    pub direction: BetterDirection,
    /// In the order of their time.
    pub points: Vec<HistoryPoint>,
    pub changes: Vec<ChangePoint>,
}

/// The median of a cell's repeats in one execution.
pub struct HistoryPoint {
    /// RFC 3339, UTC.
    pub started_at: String,
    pub file: String,
    /// Of the store.
    pub version: String,
    pub value: f64,
    pub runs: usize,
}

impl HistoryPoint {
    /// The day.
    fn day(&self) -> &str {
        self.started_at.get(..10).unwrap_or(&self.started_at)
    }
}

impl HistorySeries {
    /// Whether a change is for the worse; None where neither direction is better.
    fn is_worse(&self, change: &ChangePoint) -> Option<bool> {
        let fell = change.after < change.before;
        match self.direction {
            BetterDirection::More => Some(fell),
            BetterDirection::Less => Some(!fell),
            BetterDirection::Neither => None,
        }
    }
}

/// The changes of all series, and the series themselves.
pub fn tables(all: &[HistorySeries]) -> Vec<Table> {
    vec![changes(all), levels(all)]
}

fn changes(all: &[HistorySeries]) -> Table {
    let mut table = Table::new("Changes")
        .column("metric and cell", Align::Wrap, ALWAYS)
        .column("day", Align::Left, ALWAYS)
        .column("before", Align::Right, 70)
        .column("after", Align::Right, 80)
        .column("change", Align::Right, ALWAYS)
        .column("is", Align::Left, ALWAYS)
        .column("p", Align::Right, 50)
        .column("version", Align::Wrap, 60)
        .column("file", Align::Wrap, 90);
    for series in all {
        for change in &series.changes {
            let point = &series.points[change.at];
            let earlier = &series.points[change.at - 1];
            let version = match earlier.version == point.version {
                true => point.version.clone(),
                false => format!("{} after {}", point.version, earlier.version),
            };
            let (word, tone) = match series.is_worse(change) {
                Some(true) => ("worse", Tone::Bad),
                Some(false) => ("better", Tone::Good),
                None => ("other", Tone::Plain),
            };
            table.row(vec![
                series.title.clone().into(),
                point.day().into(),
                sentence::shown(series, change.before).into(),
                sentence::shown(series, change.after).into(),
                sentence::change_of(change).into(),
                Cell::new(word, tone),
                format!("{:.3}", change.p).into(),
                version.into(),
                point.file.clone().into(),
            ]);
        }
    }
    if all.iter().all(|series| series.changes.is_empty()) {
        table.note("None.".to_owned());
    } else {
        table.note(
            "before, after: medians of the levels. p: how often chance would give such a change, by \
             permutations."
                .to_owned(),
        );
    }
    table
}

fn levels(all: &[HistorySeries]) -> Table {
    let mut table = Table::new("Series")
        .column("metric and cell", Align::Wrap, ALWAYS)
        .column("results", Align::Right, ALWAYS)
        .column("from", Align::Left, 60)
        .column("to", Align::Left, 60)
        .column("first", Align::Right, 70)
        .column("last", Align::Right, ALWAYS)
        .column("changes", Align::Right, ALWAYS);
    for series in all {
        let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else {
            continue;
        };
        table.row(vec![
            series.title.clone().into(),
            series.points.len().to_string().into(),
            first.day().into(),
            last.day().into(),
            sentence::shown(series, first.value).into(),
            sentence::shown(series, last.value).into(),
            series.changes.len().to_string().into(),
        ]);
    }
    table
}

/// The page.
pub fn page(all: &[HistorySeries]) -> String {
    let (tables, figures) = (tables(all), figure::figures(all));
    let mut parts = vec![SheetPart::Table(&tables[0])];
    parts.extend(figures.iter().map(SheetPart::Figure));
    parts.push(SheetPart::Table(&tables[1]));
    html::sheet("What has changed", &sentences(all), &parts)
}
