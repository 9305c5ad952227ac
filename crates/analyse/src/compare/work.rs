//! Whether both sides of a cell did the same work. They were asked the same, but a cache that
//! forgot most of its data answers with misses, and a replay that was cut elsewhere asks other
//! things: then figures next to each other are of different work, and neither side is better,
//! worse or equal in them.

use std::fmt;
use std::ops::Bound;

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
/// The same of the bytes that a write moves, as a factor: sizes that are drawn vary.
const BYTES: f64 = 1.2;

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

/// What a run tells of the work that it did.
#[derive(Debug, Clone, PartialEq)]
pub struct RunWork {
    of_store: bool,
    operations: f64,
    /// Of the keys that were read.
    hit_ratio: Option<f64>,
    keys_read: f64,
    /// A share of the operations.
    errors: f64,
    /// Shares of the operations that were asked, in the order of [`Op::ALL`].
    mix: Option<Vec<f64>>,
    bytes_a_write: Option<f64>,
}

impl RunWork {
    pub fn of(run: &Run) -> RunWork {
        let asked = asked(run);
        let all: f64 = asked.iter().sum();
        let operations = run.operations as f64;
        RunWork {
            of_store: run.of_store(),
            operations,
            hit_ratio: run.hit_ratio(),
            keys_read: keys_read(run, &asked),
            errors: run.errors() as f64 / operations.max(1.0),
            mix: (all > 0.0).then(|| asked.iter().map(|count| count / all).collect()),
            bytes_a_write: bytes(run, &asked),
        }
    }
}

/// In what the work differs; empty where it is the same as far as the runs tell.
pub fn differences(a: &[RunWork], b: &[RunWork]) -> Vec<WorkDifference> {
    if !a.iter().chain(b).all(|work| work.of_store) {
        return Vec::new();
    }
    let mut found = Vec::new();
    type Of<'a> = &'a dyn Fn(&RunWork) -> Option<f64>;
    let mut shares = |what: &str, least: f64, of: Of<'_>, out_of: fn(&RunWork) -> f64| {
        let (Some(x), Some(y)) = (typical(a, of), typical(b, of)) else { return };
        let spread = |share: f64, work: &[RunWork]| {
            let all: f64 = work.iter().map(out_of).sum();
            share * (1.0 - share) / all.max(1.0)
        };
        let chance = DEVIATIONS * (spread(x, a) + spread(y, b)).max(0.0).sqrt();
        if (x - y).abs() > least.max(chance) {
            found.push(WorkDifference { what: what.to_owned(), a: x, b: y });
        }
    };
    shares("hit ratio", HITS, &|work| work.hit_ratio, |work| work.keys_read);
    shares("share of errors", ERRORS, &|work| Some(work.errors), |work| work.operations);
    for (at, op) in Op::ALL.into_iter().enumerate() {
        let of = |work: &RunWork| work.mix.as_ref().map(|mix| mix[at]);
        shares(&format!("share of {op}"), MIX, &of, |work| work.operations);
    }
    // Another mix writes other things too.
    let bytes = |work: &RunWork| work.bytes_a_write;
    if found.is_empty()
        && let (Some(x), Some(y)) = (typical(a, &bytes), typical(b, &bytes))
        && x.max(y) > BYTES * x.min(y)
    {
        found.push(WorkDifference { what: "bytes a write".to_owned(), a: x, b: y });
    }
    found
}

/// Each respect once, as where it differs most.
pub(crate) fn most(found: impl Iterator<Item = WorkDifference>) -> Vec<WorkDifference> {
    let mut all: Vec<WorkDifference> = Vec::new();
    for one in found {
        match all.iter_mut().find(|known| known.what == one.what) {
            Some(known) if (one.a - one.b).abs() > (known.a - known.b).abs() => *known = one,
            Some(_) => {}
            None => all.push(one),
        }
    }
    all
}

/// None unless every run of a side tells.
fn typical(work: &[RunWork], of: &dyn Fn(&RunWork) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = work.iter().map(of).collect::<Option<_>>()?;
    (!values.is_empty()).then(|| median(&values))
}

/// Keys that reads asked for, of which the hit ratio is a share: a read may ask for many, and other
/// operations ask for none. Where nothing missed, the ratio has no chance in it.
fn keys_read(run: &Run, asked: &[f64]) -> f64 {
    let missed = run.hit_ratio().map(|ratio| 1.0 - ratio).filter(|missed| *missed > 0.0);
    match missed {
        Some(share) if run.misses > 0 => run.misses as f64 / share,
        _ => {
            let is_read = |op: &Op| matches!(op, Op::Read | Op::ReadModifyWrite);
            let reads = Op::ALL.iter().zip(asked).filter(|(op, _)| is_read(op));
            match reads.map(|(_, count)| count).sum::<f64>() {
                0.0 => run.operations as f64,
                reads => reads,
            }
        }
    }
}

/// How often each operation was asked, in the order of [`Op::ALL`].
fn asked(run: &Run) -> Vec<f64> {
    let mut asked = vec![0.0; Op::ALL.len()];
    let from = (Bound::Included("asked."), Bound::Unbounded);
    let counts = run.stream.range::<str, _>(from);
    for (op, text) in counts.map_while(|(key, text)| Some((key.strip_prefix("asked.")?, text))) {
        if let Some(at) = Op::ALL.iter().position(|one| one.name() == op) {
            asked[at] = text.parse().unwrap_or(0.0);
        }
    }
    asked
}

/// Keys and values that a write gives to the store, those after misses among them. What reads give
/// back is verified, or is no value at all, as of a store that keeps nothing.
fn bytes(run: &Run, asked: &[f64]) -> Option<f64> {
    let is_write = |op: &Op| matches!(op, Op::Insert | Op::Update | Op::ReadModifyWrite);
    let writes = Op::ALL.iter().zip(asked).filter(|(op, _)| is_write(op)).map(|(_, count)| count);
    let writes = writes.sum::<f64>() + run.value("cache.refills").unwrap_or(0.0);
    let written = run.value("workload.written")?;
    (writes > 0.0).then(|| written / writes)
}
