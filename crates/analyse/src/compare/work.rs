//! Whether both sides of a cell did the same work. Under the same workload a cache that evicted
//! most of its data answers with misses, and a replay that was cut elsewhere issues other
//! operations. Their figures are not ranked then.

use std::fmt;
use std::ops::Bound;

use model::{Op, Run};

use crate::describe::median;

/// The least differences of shares that make work different: of hits, of an operation in the mix,
/// of errors.
const MIN_HIT_DIFFERENCE: f64 = 0.01;
const MIN_MIX_DIFFERENCE: f64 = 0.02;
const MIN_ERROR_DIFFERENCE: f64 = 0.001;
/// The least difference in standard deviations of a difference of binomial shares.
const DEVIATIONS: f64 = 4.0;
/// The least ratio of bytes per write; random sizes vary.
const MIN_SIZE_RATIO: f64 = 1.2;

/// One respect in which the two sides did different work.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkDifference {
    /// `hit ratio`, `share of read`, `share of errors`, `bytes a write`.
    pub what: String,
    /// Medians over the repeats.
    pub a: f64,
    pub b: f64,
}

/// `hit ratio 0.146 against 1`.
impl fmt::Display for WorkDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = |value: f64| (value * 1e3).round() / 1e3;
        write!(f, "{} {} against {}", self.what, digits(self.a), digits(self.b))
    }
}

/// The work of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunWork {
    of_store: bool,
    operations: f64,
    /// Of the keys that were requested.
    hit_ratio: Option<f64>,
    keys_read: f64,
    /// A share of the operations.
    errors: f64,
    /// Shares of the issued operations, in the order of [`Op::ALL`].
    mix: Option<Vec<f64>>,
    bytes_per_write: Option<f64>,
}

impl RunWork {
    pub fn of(run: &Run) -> RunWork {
        let counts = operation_counts(run);
        let all: f64 = counts.iter().sum();
        let operations = run.operations as f64;
        RunWork {
            of_store: run.measures_store(),
            operations,
            hit_ratio: run.hit_ratio(),
            keys_read: keys_read(run, &counts),
            errors: run.errors() as f64 / operations.max(1.0),
            mix: (all > 0.0).then(|| counts.iter().map(|count| count / all).collect()),
            bytes_per_write: bytes_per_write(run, &counts),
        }
    }
}

/// How the work differs; empty if the runs show no difference.
pub fn differences(a: &[RunWork], b: &[RunWork]) -> Vec<WorkDifference> {
    if !a.iter().chain(b).all(|work| work.of_store) {
        return Vec::new();
    }
    let mut result = Vec::new();
    type Of<'a> = &'a dyn Fn(&RunWork) -> Option<f64>;
    let mut shares = |what: &str, least: f64, of: Of<'_>, out_of: fn(&RunWork) -> f64| {
        let (Some(x), Some(y)) = (median_value(a, of), median_value(b, of)) else { return };
        let spread = |share: f64, work: &[RunWork]| {
            let all: f64 = work.iter().map(out_of).sum();
            share * (1.0 - share) / all.max(1.0)
        };
        let chance = DEVIATIONS * (spread(x, a) + spread(y, b)).max(0.0).sqrt();
        if (x - y).abs() > least.max(chance) {
            result.push(WorkDifference { what: what.to_owned(), a: x, b: y });
        }
    };
    shares("hit ratio", MIN_HIT_DIFFERENCE, &|work| work.hit_ratio, |work| work.keys_read);
    shares("share of errors", MIN_ERROR_DIFFERENCE, &|work| Some(work.errors), |work| {
        work.operations
    });
    for (at, op) in Op::ALL.into_iter().enumerate() {
        let of = |work: &RunWork| work.mix.as_ref().map(|mix| mix[at]);
        shares(&format!("share of {op}"), MIN_MIX_DIFFERENCE, &of, |work| work.operations);
    }
    // Another mix implies other sizes of writes.
    let bytes = |work: &RunWork| work.bytes_per_write;
    if result.is_empty()
        && let (Some(x), Some(y)) = (median_value(a, &bytes), median_value(b, &bytes))
        && x.max(y) > MIN_SIZE_RATIO * x.min(y)
    {
        result.push(WorkDifference { what: "bytes a write".to_owned(), a: x, b: y });
    }
    result
}

/// Each respect once, with its largest difference.
pub(crate) fn largest_differences(
    result: impl Iterator<Item = WorkDifference>,
) -> Vec<WorkDifference> {
    let mut all: Vec<WorkDifference> = Vec::new();
    for one in result {
        match all.iter_mut().find(|known| known.what == one.what) {
            Some(known) if (one.a - one.b).abs() > (known.a - known.b).abs() => *known = one,
            Some(_) => {}
            None => all.push(one),
        }
    }
    all
}

/// The median; None unless every run has a value.
fn median_value(work: &[RunWork], of: &dyn Fn(&RunWork) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = work.iter().map(of).collect::<Option<_>>()?;
    (!values.is_empty()).then(|| median(&values))
}

/// The number of requested keys, of which the hit ratio is a share: a read may request several, and
/// other operations none. Without misses the number of reads will do.
fn keys_read(run: &Run, counts: &[f64]) -> f64 {
    let missed = run.hit_ratio().map(|ratio| 1.0 - ratio).filter(|missed| *missed > 0.0);
    match missed {
        Some(share) if run.misses > 0 => run.misses as f64 / share,
        _ => {
            let is_read = |op: &Op| matches!(op, Op::Read | Op::ReadModifyWrite);
            let reads = Op::ALL.iter().zip(counts).filter(|(op, _)| is_read(op));
            match reads.map(|(_, count)| count).sum::<f64>() {
                0.0 => run.operations as f64,
                reads => reads,
            }
        }
    }
}

/// The number of each operation, in the order of [`Op::ALL`].
fn operation_counts(run: &Run) -> Vec<f64> {
    let mut counts = vec![0.0; Op::ALL.len()];
    let from = (Bound::Included("asked."), Bound::Unbounded);
    let entries = run.stream.range::<str, _>(from);
    for (op, text) in entries.map_while(|(key, text)| Some((key.strip_prefix("asked.")?, text))) {
        if let Some(at) = Op::ALL.iter().position(|one| one.name() == op) {
            counts[at] = text.parse().unwrap_or(0.0);
        }
    }
    counts
}

/// Mean bytes of key and value of a write, refills after misses included.
fn bytes_per_write(run: &Run, counts: &[f64]) -> Option<f64> {
    let is_write = |op: &Op| matches!(op, Op::Insert | Op::Update | Op::ReadModifyWrite);
    let writes = Op::ALL.iter().zip(counts).filter(|(op, _)| is_write(op)).map(|(_, count)| count);
    let writes = writes.sum::<f64>() + run.value("cache.refills").unwrap_or(0.0);
    let written = run.value("workload.written")?;
    (writes > 0.0).then(|| written / writes)
}
