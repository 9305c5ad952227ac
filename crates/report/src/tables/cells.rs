//! Many runs by cell: one row for each configuration.

use analyse::describe_by_median;
use model::{Execution, Run};

use super::{INVALID_MARK, durability};
use crate::cells::{self, ReportCell as Gathered};
use crate::format;
use crate::overview::MAX_ROWS;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// Throughput of each configuration over its runs.
pub fn cells(runs: &[(&Execution, &Run)]) -> Table {
    let mut table = Table::new("Throughput by configuration, kops/s")
        .column("workload", Align::Left, ALWAYS)
        .column("store", Align::Left, ALWAYS)
        .column("runs", Align::Right, ALWAYS)
        .column("invalid", Align::Right, 80)
        .column("median", Align::Decimal, ALWAYS)
        .column("hit ratio", Align::Decimal, 90)
        .column("95 %", Align::Left, 70)
        .column("variation", Align::Right, 60)
        .column("least", Align::Decimal, 40)
        .column("greatest", Align::Decimal, 40)
        .column("errors", Align::Right, 50);
    let all = cells::cells(runs);
    for cell in all.iter().take(MAX_ROWS) {
        row(&mut table, cell);
    }
    if all.iter().all(|cell| cell.runs.iter().all(|run| run.errors() == 0)) {
        table.clear_column("errors");
    }
    let mut table = table.without_empty_columns();
    table.notes.extend(durability::note(runs));
    if all.len() > MAX_ROWS {
        table.note(format!("the first {MAX_ROWS} of {} configurations", all.len()));
    }
    table.note(format!(
        "{} runs are too many for a row each: the HTML page can search them, `kvmeter export` has \
         all, and `FILE?key=value` selects fewer; 95 %: interval of the median; variation: \
         coefficient of it",
        format::count(runs.len() as u64)
    ));
    table
}

fn row(table: &mut Table, cell: &Gathered) {
    let (counted, valid) = cell.counted();
    let rates: Vec<f64> = counted.iter().map(|run| run.throughput()).collect();
    let errors = model::total(cell.runs.iter().map(|run| run.errors()));
    let of = describe_by_median(&rates).ok();
    let number = |value: Option<f64>| value.map_or(format::NONE.to_owned(), format::kops);
    let interval = of.as_ref().and_then(|of| of.interval().ok());
    let cv = of.as_ref().and_then(|of| of.cv);
    let mark = if valid { "" } else { INVALID_MARK };
    let cells = vec![
        format!("{mark}{}", cell.category).into(),
        cell.series.clone().into(),
        format::count(cell.runs.len() as u64).into(),
        Cell::new(
            match cell.runs.iter().filter(|run| !run.valid()).count() {
                0 => String::new(),
                some => format::count(some as u64),
            },
            if valid { Tone::Warning } else { Tone::Bad },
        ),
        Cell::new(number(of.as_ref().map(|of| of.median)), Tone::Strong),
        cell.median(|run| run.hit_ratio().filter(|_| run.may_miss()))
            .map_or(String::new(), |ratio| format::readable(ratio, 3))
            .into(),
        interval
            .map_or(String::new(), |i| {
                format!("{} … {}", format::kops(i.low), format::kops(i.high))
            })
            .into(),
        cv.map_or(String::new(), format::percent).into(),
        number(of.as_ref().map(|of| of.min)).into(),
        number(of.as_ref().map(|of| of.max)).into(),
        format::count(errors).into(),
    ];
    table.row_of(cells, valid);
}
