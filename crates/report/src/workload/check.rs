//! A trace and what was generated like it, side by side.

use workload::fit::{ComparedFigure, Resemblance};

use crate::format;
use crate::table::{ALWAYS, Align, Table};

/// The verdict in a sentence.
pub fn check_sentence(check: &Resemblance) -> String {
    let wrong: Vec<&str> =
        check.figures.iter().filter(|figure| !figure.holds).map(|figure| figure.figure).collect();
    match wrong.as_slice() {
        [] => "Generated requests are like the trace within every limit.".to_owned(),
        wrong => format!("Generated requests are not like the trace: {}.", wrong.join(", ")),
    }
}

pub fn check_tables(check: &Resemblance) -> Vec<Table> {
    let mut tables = vec![figures(&check.figures)];
    if !check.miss_ratios.is_empty() {
        tables.push(miss_ratios(check));
    }
    tables
}

fn figures(figures: &[ComparedFigure]) -> Table {
    let mut table = Table::new("Trace and generated requests")
        .column("figure", Align::Left, ALWAYS)
        .column("at", Align::Right, 2)
        .column("trace", Align::Decimal, ALWAYS)
        .column("generated", Align::Decimal, ALWAYS)
        .column("difference", Align::Decimal, ALWAYS)
        .column("limit", Align::Decimal, 1)
        .column("holds", Align::Left, ALWAYS);
    for of in figures {
        let shown = |number: f64| match of.is_share {
            true => format::percent(number),
            false => format::readable(number, 4),
        };
        let at = of.at.map(|at| match of.is_share {
            true => format::percent(at),
            false => format::seconds(at),
        });
        let holds = match (of.limit, of.holds) {
            (None, _) => "",
            (Some(_), true) => "yes",
            (Some(_), false) => "no",
        };
        table.row(vec![
            of.figure.into(),
            at.unwrap_or_default().into(),
            shown(of.trace).into(),
            shown(of.generated).into(),
            format::percent(of.difference).into(),
            of.limit.map(format::percent).unwrap_or_default().into(),
            holds.into(),
        ]);
    }
    table.note(
        "Where they differ most. Shares differ in percentage points, other figures relative to \
         the trace's. The limit of the rate allows for chance in so few requests.",
    );
    table.without_empty_columns()
}

fn miss_ratios(check: &Resemblance) -> Table {
    let mut table = Table::new("Miss ratio of both")
        .column("of the working set", Align::Right, ALWAYS)
        .column("items", Align::Right, ALWAYS)
        .column("trace", Align::Decimal, ALWAYS)
        .column("generated", Align::Decimal, ALWAYS);
    let shown = [1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
    for point in shown.iter().filter_map(|percent| check.miss_ratios.get(percent - 1)) {
        table.row(vec![
            format::percent(point.share).into(),
            format::count_short(point.items as f64).into(),
            format::percent(point.trace).into(),
            format::percent(point.generated).into(),
        ]);
    }
    table
}
