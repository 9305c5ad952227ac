//! Whether both sides of a cell did the same work. They were asked the same, but a cache that
//! forgot most of its data answers with misses, and a replay that was cut elsewhere asks other
//! things: then figures next to each other are of different work, and neither side is better,
//! worse or equal in them.

use std::fmt;

use model::Op;
use record::Run;

use crate::describe::median;

/// Differences of shares from which on the work is another: of reads that hit, of an operation in
/// the mix, of answers that failed.
const HITS: f64 = 0.01;
const MIX: f64 = 0.02;
const ERRORS: f64 = 0.001;
/// And more than chance, in standard deviations of a difference of binomial shares.
const DEVIATIONS: f64 = 4.0;
/// The same of the bytes that an operation moves, as a factor: sizes that are drawn vary.
const BYTES: f64 = 1.2;

/// One respect in which the two sides did different work.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherWork {
    /// `hit ratio`, `share of read`, `share of errors`, `bytes an operation`.
    pub what: String,
    /// Medians over the repeats.
    pub a: f64,
    pub b: f64,
}

/// `hit ratio 0.146 against 1`.
impl fmt::Display for OtherWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = |value: f64| (value * 1e3).round() / 1e3;
        write!(f, "{} {} against {}", self.what, digits(self.a), digits(self.b))
    }
}

/// In what the work differs; empty where it is the same as far as the runs tell.
pub(super) fn differences(a: &[&Run], b: &[&Run]) -> Vec<OtherWork> {
    if !a.iter().chain(b).all(|run| run.of_store()) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut shares = |what: &str, least: f64, of: &dyn Fn(&Run) -> Option<f64>| {
        let (Some(x), Some(y)) = (typical(a, of), typical(b, of)) else { return };
        let spread = |share: f64, runs: &[&Run]| {
            let operations: u64 = runs.iter().map(|run| run.operations).sum();
            share * (1.0 - share) / (operations as f64).max(1.0)
        };
        let chance = DEVIATIONS * (spread(x, a) + spread(y, b)).max(0.0).sqrt();
        if (x - y).abs() > least.max(chance) {
            found.push(OtherWork { what: what.to_owned(), a: x, b: y });
        }
    };
    shares("hit ratio", HITS, &|run| run.hit_ratio());
    shares("share of errors", ERRORS, &|run| {
        Some(run.errors() as f64 / (run.operations as f64).max(1.0))
    });
    for op in Op::ALL {
        shares(&format!("share of {op}"), MIX, &|run| share_of(run, op));
    }
    // Misses move fewer bytes, and an operation other ones than its like.
    if found.is_empty()
        && let (Some(x), Some(y)) = (typical(a, &bytes), typical(b, &bytes))
        && x.max(y) > BYTES * x.min(y)
    {
        found.push(OtherWork { what: "bytes an operation".to_owned(), a: x, b: y });
    }
    found
}

/// None unless every run of a side tells.
fn typical(runs: &[&Run], of: &dyn Fn(&Run) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = runs.iter().map(|run| of(run)).collect::<Option<_>>()?;
    (!values.is_empty()).then(|| median(&values))
}

fn share_of(run: &Run, op: Op) -> Option<f64> {
    let count = |op: Op| -> f64 {
        let text = run.stream.get(&format!("asked.{op}"));
        text.and_then(|text| text.parse().ok()).unwrap_or(0.0)
    };
    let all: f64 = Op::ALL.into_iter().map(count).sum();
    (all > 0.0).then(|| count(op) / all)
}

/// Keys and values that an operation moves.
fn bytes(run: &Run) -> Option<f64> {
    let moved = run.value("workload.read")? + run.value("workload.written")?;
    (run.operations > 0).then(|| moved / run.operations as f64)
}
