//! The comparison of two results.

use model::Unit;

use super::grouped_notes;
use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowVerdict {
    /// B is better than A.
    Better,
    /// B is worse than A.
    Worse,
    /// It differs, and neither direction is better.
    Different,
    /// The interval covers "no change".
    NoDifference,
    /// There is no interval, so there is no verdict.
    NotEnoughData,
    /// The sides did different work, so there is no verdict.
    OtherWork,
}

impl RowVerdict {
    pub const fn text(self) -> &'static str {
        match self {
            RowVerdict::Better => "better",
            RowVerdict::Worse => "worse",
            RowVerdict::Different => "different",
            RowVerdict::NoDifference => "no difference",
            RowVerdict::NotEnoughData => "not enough data",
            RowVerdict::OtherWork => "other work",
        }
    }

    const fn tone(self) -> Tone {
        match self {
            RowVerdict::Better => Tone::Good,
            RowVerdict::Worse => Tone::Bad,
            RowVerdict::Different => Tone::Strong,
            RowVerdict::NoDifference => Tone::Muted,
            RowVerdict::NotEnoughData | RowVerdict::OtherWork => Tone::Warning,
        }
    }
}

/// One metric of A and of B. Values are in `unit`, SI.
#[derive(Debug, Clone, PartialEq)]
pub struct DifferenceRow {
    /// `ycsb-a throughput`, `ycsb-a read p99`.
    pub what: String,
    pub unit: Unit,
    /// Median of A's valid runs; None where there is none.
    pub a: Option<f64>,
    pub b: Option<f64>,
    /// B over A.
    pub ratio: Option<f64>,
    /// Ends of the ratio's 95 % interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub verdict: RowVerdict,
    /// Why it is not comparable, or the method.
    pub note: Option<String>,
    /// Valid runs behind each side.
    pub n_a: usize,
    pub n_b: usize,
}

/// `a` and `b` name the two sides.
pub fn comparison(a: &str, b: &str, rows: &[DifferenceRow]) -> Table {
    let mut table = Table::new("Comparison")
        .column("what", Align::Wrap, ALWAYS)
        .column("A → B", Align::Right, 60)
        .column("n", Align::Right, 20)
        .column("B / A", Align::Decimal, ALWAYS)
        // Never left out: a ratio means nothing without its interval.
        .column("95 %", Align::Left, ALWAYS)
        .column("verdict", Align::Left, ALWAYS);
    for row in rows {
        let interval = match (row.low, row.high) {
            (Some(low), Some(high)) => {
                format!("{}…{}", end(low), end(high))
            }
            _ => format::NONE.to_owned(),
        };
        table.row(vec![
            row.what.clone().into(),
            format::change(row.a, row.b, row.unit).into(),
            format!("{}:{}", row.n_a, row.n_b).into(),
            row.ratio.map_or(format::NONE.into(), |r| format::significant(r, 3)).into(),
            interval.into(),
            Cell::new(row.verdict.text(), row.verdict.tone()),
        ]);
    }
    table.note(format!("A: {a}"));
    table.note(format!("B: {b}"));
    table.note(
        "medians of the valid runs; n counts them (A:B); 95 %: the interval of B / A; better, \
         worse: B compared with A",
    );
    let notes: Vec<(&str, Option<&str>)> =
        rows.iter().map(|row| (row.what.as_str(), row.note.as_deref())).collect();
    for note in grouped_notes::notes(&notes) {
        table.note(note);
    }
    table
}

/// An end of an interval. Beyond a factor of a thousand its digits are irrelevant.
fn end(ratio: f64) -> String {
    match ratio {
        r if r < 1e-3 => "<0.001".to_owned(),
        r if r > 1e3 => ">1,000".to_owned(),
        r => format::significant(r, 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_intervals_are_short() {
        for (ratio, text) in
            [(1e-12, "<0.001"), (0.0123, "0.0123"), (1.0, "1.00"), (999.0, "999"), (1e30, ">1,000")]
        {
            assert_eq!(end(ratio), text);
        }
    }
}
