//! Throughput per workload, by series; repeats as dots, their median as the bar.

use super::{Series, Shown, any_invalid, by_category, invalid_entry, title};
use crate::cells::Cell;
use crate::figure::{Axis, Bar, Chart, Dot, Group, Row, RowChart, Scale, Shape};
use crate::format;
use crate::table::{ALWAYS, Align, Table, Tone};

pub fn throughput(cells: &[&Cell], series: &Series) -> Option<Shown> {
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
            for (i, (value, valid)) in values.into_iter().enumerate() {
                let counts = if valid {
                    "yes".into()
                } else {
                    crate::table::Cell::new("INVALID", Tone::Bad)
                };
                data.row_of(
                    vec![
                        category.into(),
                        cell.series.clone().into(),
                        (i + 1).to_string().into(),
                        format::count(value.round() as u64).into(),
                        counts,
                    ],
                    valid,
                );
            }
        }
        groups.push(group);
    }
    flatten(&mut groups, series);
    let all = cells.iter().flat_map(|cell| &cell.runs).map(|run| run.throughput());
    let mut legend = series.legend(cells);
    if any_invalid(cells) {
        legend.push(invalid_entry(Shape::Diamond));
    }
    Some(Shown {
        id: "throughput".to_owned(),
        title: "Throughput per workload".to_owned(),
        alt: "Bars: the median throughput of each workload and store; dots: each run".to_owned(),
        captions: vec![
            "Bars are medians over valid runs, dots are single runs. Operations that ended in \
             the measured window, divided by its length. In an open loop throughput is what was \
             asked for, not what the store could do."
                .to_owned(),
        ],
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

/// Each run's throughput and whether it counts.
type Values = Vec<(f64, bool)>;

fn row(cell: &Cell, series: &Series) -> (Row, Values) {
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
    let dots = if values.len() > 1 { &values[..] } else { &[] };
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
        span: None,
        note: if valid { rate } else { format!("{rate} INVALID") },
        invalid: !valid,
    };
    (row, values)
}

/// With one series, rows are named by the workload and need no group.
pub(super) fn flatten(groups: &mut [Group], series: &Series) {
    if series.several() {
        return;
    }
    for group in groups {
        if let [row] = group.rows.as_mut_slice() {
            row.label = std::mem::take(&mut group.label);
        }
    }
}
