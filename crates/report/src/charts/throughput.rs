//! Throughput per workload, by series; repeats as dots, their median as the bar.

use super::{CellSeries, ShownFigure, any_invalid, by_category, invalid_entry, title};
use crate::cells::ReportCell;
use crate::figure::{Axis, Bar, Chart, Dot, Group, Row, RowChart, Scale, Shape};
use crate::format;
use crate::overview::REPEATS;
use crate::table::{ALWAYS, Align, Table, Tone};

pub fn throughput(cells: &[&ReportCell], series: &CellSeries) -> Option<ShownFigure> {
    if cells.is_empty() {
        return None;
    }
    let mut data = Table::new("")
        .column("workload", Align::Left, ALWAYS)
        .column("store", Align::Left, ALWAYS)
        .column("run", Align::Right, ALWAYS)
        .column("ops/s", Align::Right, ALWAYS)
        .column("counts", Align::Left, ALWAYS);
    let mut groups = Vec::new();
    for (category, members) in by_category(cells) {
        let mut group = Group { label: category.to_owned(), rows: Vec::new() };
        for cell in members {
            let (row, values) = row(cell, series);
            group.rows.push(row);
            data_rows(&mut data, category, cell, &values);
        }
        groups.push(group);
    }
    flatten(&mut groups, series);
    let all = cells.iter().flat_map(|cell| &cell.runs).map(|run| run.throughput());
    let mut legend = series.legend(cells);
    let single: Vec<&ReportCell> =
        cells.iter().copied().filter(|cell| cell.runs.len() <= REPEATS).collect();
    if any_invalid(&single) {
        legend.push(invalid_entry(Shape::Diamond));
    }
    Some(ShownFigure {
        id: "throughput".to_owned(),
        title: "Throughput per workload".to_owned(),
        alt: "Bars: the median throughput of each workload and store; dots: each run".to_owned(),
        captions: vec![
            "Bars are medians over valid runs, dots are single runs. Operations that ended in \
             the measured window, divided by its length. In an open loop throughput is the \
             target rate, not the store's maximum."
                .to_owned(),
        ]
        .into_iter()
        .chain(cells.iter().any(|cell| cell.runs.len() > REPEATS).then(|| {
            format!(
                "More than {REPEATS} runs are drawn as a line from the least to the greatest valid \
                 one."
            )
        }))
        .collect(),
        cautions: Vec::new(),
        chart: Chart::Rows(RowChart {
            groups,
            axis: Axis::new(Scale::from_zero(all), 6, "throughput", format::target_rate),
            legend,
        }),
        data,
        small: false,
    })
}

/// One row a run; of more than [`REPEATS`] one row for all.
fn data_rows(data: &mut Table, category: &str, cell: &ReportCell, values: &[(f64, bool)]) {
    let invalid = |text: String| crate::table::Cell::new(text, Tone::Bad);
    let mut row = |run: String, value: f64, counts, valid| {
        let rate = format::count(value.round() as u64);
        let series = cell.series.clone();
        data.row_of(vec![category.into(), series.into(), run.into(), rate.into(), counts], valid);
    };
    if values.len() > REPEATS {
        let valid = values.iter().filter(|(_, valid)| *valid).count();
        let median = cell.median(|run| Some(run.throughput())).unwrap_or(0.0);
        let counts = match valid {
            0 => invalid("INVALID".to_owned()),
            all if all == values.len() => "yes".into(),
            some => invalid(format!("{some} of {}", values.len())),
        };
        return row(format!("median of {}", valid.max(1)), median, counts, valid > 0);
    }
    for (i, (value, valid)) in values.iter().enumerate() {
        let counts = if *valid { "yes".into() } else { invalid("INVALID".to_owned()) };
        row((i + 1).to_string(), *value, counts, *valid);
    }
}

/// Each run's throughput and whether it is valid.
type Values = Vec<(f64, bool)>;

fn row(cell: &ReportCell, series: &CellSeries) -> (Row, Values) {
    let color = series.color(&cell.series);
    let (counted, valid) = cell.counted();
    let median = cell.median(|run| Some(run.throughput())).unwrap_or(0.0);
    let runs = match (counted.len(), valid) {
        (_, false) => "INVALID".to_owned(),
        (1, true) => "1 run".to_owned(),
        (n, true) => format!("median of {n} valid runs"),
    };
    let rate = format::rate(median);
    let bar = Bar { from: 0.0, to: median, color, tip: format!("{}: {rate}, {runs}", title(cell)) };
    let values: Values = cell.runs.iter().map(|run| (run.throughput(), run.valid())).collect();
    // A bar of one run is that run.
    let dots = if (2..=REPEATS).contains(&values.len()) { &values[..] } else { &[] };
    let ends = values.iter().filter(|(_, counts)| *counts == valid).map(|(value, _)| *value);
    let span = (values.len() > REPEATS).then(|| {
        ends.fold((f64::INFINITY, 0.0), |(low, high), value| (value.min(low), value.max(high)))
    });
    let dots = dots.iter().enumerate().map(|(i, (value, valid))| Dot {
        at: *value,
        color,
        shape: if *valid { Shape::Circle } else { Shape::Diamond },
        tip: format!(
            "{}, run {}: {}{}",
            title(cell),
            i + 1,
            format::rate(*value),
            if *valid { "" } else { ", INVALID" }
        ),
        hollow: !valid,
    });
    let row = Row {
        label: cell.series.clone(),
        bars: vec![bar],
        dots: dots.collect(),
        span,
        note: if valid { rate } else { format!("{rate} INVALID") },
        invalid: !valid,
    };
    (row, values)
}

/// With one series, rows are labelled by the workload and need no group.
pub(super) fn flatten(groups: &mut [Group], series: &CellSeries) {
    if series.several() {
        return;
    }
    for group in groups {
        if let [row] = group.rows.as_mut_slice() {
            row.label = std::mem::take(&mut group.label);
        }
    }
}
