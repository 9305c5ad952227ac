//! A trace and what was generated like it, side by side.

use workload::fit::{ComparedFigure, Resemblance};

use crate::format;
use crate::table::{ALWAYS, Align, Table};

/// A cache in bytes may differ by so much without a word.
const BY_BYTES: f64 = 0.02;

/// The verdict, and what a cache in bytes misses beyond it.
pub fn check_sentences(check: &Resemblance) -> Vec<String> {
    let by_bytes = check.figures.iter().find(|figure| figure.figure == ComparedFigure::BY_BYTES);
    let by_bytes = by_bytes.filter(|figure| figure.difference > BY_BYTES).map(|figure| {
        format!(
            "The miss ratio of a cache in bytes differs by {:.1} points: in the trace, sizes and \
             popularity go together.",
            figure.difference * 100.0
        )
    });
    std::iter::once(verdict(check)).chain(by_bytes).collect()
}

fn verdict(check: &Resemblance) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_in_bytes_that_differs_has_a_sentence() {
        let sentences = |difference| {
            let figure = ComparedFigure {
                figure: ComparedFigure::BY_BYTES,
                at: Some(0.5),
                trace: 0.5,
                generated: 0.5 - difference,
                difference,
                limit: None,
                holds: true,
                is_share: true,
            };
            let figures = vec![figure];
            check_sentences(&Resemblance { holds: true, figures, miss_ratios: Vec::new() })
        };
        assert_eq!(sentences(0.01), ["Generated requests are like the trace within every limit."]);
        assert!(sentences(0.098)[1].contains("differs by 9.8 points"));
    }
}
