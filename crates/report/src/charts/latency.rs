//! Latency per workload and operation: p50, p99 and p99.9 on one line.

use model::{LatencyClock, Op};

use super::{CellSeries, ShownFigure, any_invalid, by_category, invalid_entry, title};
use crate::cells::ReportCell;
use crate::figure::{Axis, Chart, Dot, Entry, Group, Row, RowChart, Scale, Shape};
use crate::format;
use crate::table::{ALWAYS, Align, Table};
use crate::tables::op_name;

const SHOWN: [(f64, Shape); 3] =
    [(50.0, Shape::Circle), (99.0, Shape::Diamond), (99.9, Shape::Triangle)];

pub fn latency(cells: &[&ReportCell], series: &CellSeries) -> Option<ShownFigure> {
    let mut data = Table::new("")
        .column("workload", Align::Left, ALWAYS)
        .column("store", Align::Left, ALWAYS)
        .column("operation", Align::Left, ALWAYS)
        .column("from", Align::Left, ALWAYS);
    for (percentile, _) in SHOWN {
        data =
            data.column(format!("{}, µs", format::percentile(percentile)), Align::Decimal, ALWAYS);
    }
    let mut groups = Vec::new();
    let mut all = Vec::new();
    for (category, members) in by_category(cells) {
        let mut group = Group { label: category.to_owned(), rows: Vec::new() };
        let ops = Op::ALL.into_iter().filter(|op| members.iter().any(|c| c.ops().contains(op)));
        for op in ops {
            for cell in &members {
                for clock in [LatencyClock::Response, LatencyClock::Service] {
                    let Some((row, values)) = row(cell, op, clock, series) else { continue };
                    let mut cells = vec![
                        category.into(),
                        cell.series.clone().into(),
                        op_name(op).into(),
                        clock_name(cell.clock(), clock).into(),
                    ];
                    cells.extend(
                        values.iter().map(|v| crate::table::Cell::from(format::micros(*v))),
                    );
                    data.row_of(cells, !row.invalid);
                    group.rows.push(row);
                    all.extend(values);
                }
            }
        }
        if !group.rows.is_empty() {
            groups.push(group);
        }
    }
    if groups.is_empty() {
        return None;
    }
    let mut legend: Vec<Entry> = SHOWN
        .into_iter()
        .map(|(percentile, shape)| Entry {
            label: format::percentile(percentile),
            color: None,
            shape: Some(shape),
            line: None,
            hollow: false,
        })
        .collect();
    legend.extend(series.legend(cells));
    if any_invalid(cells) {
        legend.push(invalid_entry(Shape::Circle));
    }
    let mut captions =
        vec!["Logarithmic axis. Repeats of a run are added up, not averaged.".to_owned()];
    captions.extend(loop_captions(cells));
    Some(ShownFigure {
        id: "latency".to_owned(),
        title: "Latency per workload and operation".to_owned(),
        alt: "For each workload, store and operation the p50, p99 and p99.9 latency as points \
              on a logarithmic axis"
            .to_owned(),
        captions,
        cautions: Vec::new(),
        chart: Chart::Rows(RowChart {
            groups,
            axis: Axis::new(Scale::log(all), 7, "latency", format::latency_tick),
            legend,
        }),
        data,
        small: false,
    })
}

/// How the operations of a latency figure were issued, each kind of loop once.
pub(super) fn loop_captions(cells: &[&ReportCell]) -> Vec<String> {
    let mut captions: Vec<String> = Vec::new();
    for run in cells.iter().flat_map(|cell| &cell.runs) {
        let text = crate::tables::how_issued(&run.pacing);
        if !captions.contains(&text) {
            captions.push(text);
        }
    }
    captions
}

/// The clock in words that fit the kind of loop.
pub(super) fn clock_name(own: LatencyClock, clock: LatencyClock) -> &'static str {
    match (own, clock) {
        (_, LatencyClock::Response) => "response, from due",
        (LatencyClock::Response, LatencyClock::Service) => "service, from sent",
        (_, LatencyClock::Service) => "service, closed loop",
        (_, LatencyClock::Arrival) => "arrival in the client's kernel",
        (_, LatencyClock::Server) => "inside the server",
    }
}

fn row(
    cell: &ReportCell,
    op: Op,
    clock: LatencyClock,
    series: &CellSeries,
) -> Option<(Row, Vec<f64>)> {
    let histogram = cell.merged(op, clock)?;
    let (_, valid) = cell.counted();
    let color = series.color(&cell.series);
    let mut label = op_name(op).to_owned();
    if series.several() {
        label = format!("{label}, {}", cell.series);
    }
    if cell.clock() == LatencyClock::Response {
        label += if clock == LatencyClock::Response { ", from due" } else { ", from sent" };
    }
    let values: Vec<f64> =
        SHOWN.iter().map(|(p, _)| histogram.value_at_percentile(*p) as f64).collect();
    let dots = SHOWN.iter().zip(&values).map(|((percentile, shape), value)| Dot {
        at: *value,
        color,
        shape: *shape,
        tip: format!(
            "{} {}, {}: {} = {}{}",
            title(cell),
            op_name(op),
            clock_name(cell.clock(), clock),
            format::percentile(*percentile),
            format::latency(*value),
            if valid { "" } else { ", INVALID" }
        ),
        hollow: !valid,
    });
    let row = Row {
        label,
        dots: dots.collect(),
        span: values.first().copied().zip(values.last().copied()),
        note: if valid { String::new() } else { "INVALID".to_owned() },
        invalid: !valid,
        ..Row::default()
    };
    Some((row, values))
}
