//! What the harness itself costs, measured in the same process on the same workload.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::StoreUrl;
use workload::trace::{ArrivalSpread, RequestChunk, TraceError, TraceRequest};
use workload::{ValueMismatch, Workload};

use crate::clock::Ticks;
use crate::controller::{NoObserver, drive};
use crate::outcome::DriveError;
use crate::plan::{LoadPlan, OnStart, PhaseKind};
use crate::replay::Replay;
use crate::target::open;
use model::{LoadShape, StopCondition};

/// Costs of the harness, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeasuredTax {
    /// One operation of the workload against the null store, by one thread that does not wait.
    pub ns_per_op: f64,
    /// One reading of the clock; each operation takes two.
    pub clock_ns: f64,
    /// Verifying one value of this workload, which the null store does not return.
    pub verify_ns: f64,
}

/// Rounds of which the best is taken, so that an interruption does not count, and the
/// operations of each.
const ROUNDS: usize = 10;
const OPERATIONS: u64 = 100_000;
/// Fewer for a trace, which has to be opened for each.
const REPLAYED_ROUNDS: usize = 3;
/// Values that are checked.
const VALUES: usize = 64;
/// Bounds a round with large values, which take long to make.
const LONGEST_ROUND: Duration = Duration::from_millis(50);

/// Measures the tax of a workload: some tens of milliseconds in the calling thread's place.
pub fn tax(
    clock: &Ticks,
    workload: &Arc<Workload>,
    phase: PhaseKind,
    on_start: &OnStart,
) -> Result<MeasuredTax, DriveError> {
    let null: StoreUrl = "null".parse()?;
    let mut ns_per_op = f64::INFINITY;
    for _ in 0..ROUNDS {
        let round = TaxRound { clock, workload, phase, trace: None, on_start };
        ns_per_op = ns_per_op.min(round.ns_per_op(&null)?);
    }
    let pairs = loaded_pairs(workload);
    let verify_ns = verify_ns(clock, &pairs, |key, value| workload.verify(key, value));
    Ok(MeasuredTax { ns_per_op, clock_ns: clock.cost_ns(), verify_ns })
}

/// Measures the tax of a replay on the beginning of its trace, without reading the file, which is
/// another thread's work; None for standard input, which can be read only once.
pub fn replay_tax(
    clock: &Ticks,
    replay: &Replay,
    workload: &Arc<Workload>,
    on_start: &OnStart,
) -> Result<Option<MeasuredTax>, DriveError> {
    if replay.file.as_os_str() == "-" {
        return Ok(None);
    }
    let null: StoreUrl = "null".parse()?;
    let most = replay.most.map_or(OPERATIONS, |most| most.min(OPERATIONS));
    let trace = Some(Arc::new(Replay { most: Some(most), ..replay.clone() }));
    let mut ns_per_op = f64::INFINITY;
    for _ in 0..REPLAYED_ROUNDS {
        let round =
            TaxRound { clock, workload, phase: PhaseKind::Mix, trace: trace.clone(), on_start };
        ns_per_op = ns_per_op.min(round.ns_per_op(&null)?);
    }
    let pairs = recorded_pairs(replay)?;
    let verify_ns = verify_ns(clock, &pairs, |key, value| replay.values.verify(key, value));
    Ok(Some(MeasuredTax { ns_per_op, clock_ns: clock.cost_ns(), verify_ns }))
}

/// A key and its value.
type Pair = (Vec<u8>, Vec<u8>);

/// Keys of the beginning of a trace, with values of their sizes.
fn recorded_pairs(replay: &Replay) -> Result<Vec<Pair>, TraceError> {
    let mut chunk = RequestChunk::new();
    replay.open()?.next_second(ArrivalSpread::Even, &mut chunk)?;
    let pair = |request: TraceRequest<'_>| {
        let mut value = Vec::new();
        replay.values.write(request.key, request.index, request.value_size as usize, &mut value);
        (request.key.to_vec(), value)
    };
    Ok(chunk.iter().take(VALUES).map(pair).collect())
}

struct TaxRound<'a> {
    clock: &'a Ticks,
    workload: &'a Arc<Workload>,
    phase: PhaseKind,
    trace: Option<Arc<Replay>>,
    on_start: &'a OnStart,
}

impl TaxRound<'_> {
    /// On a store of its own.
    fn ns_per_op(self, store: &StoreUrl) -> Result<f64, DriveError> {
        let plan = LoadPlan {
            trace: self.trace,
            shape: LoadShape {
                until: StopCondition { operations: Some(OPERATIONS), time: Some(LONGEST_ROUND) },
                ..LoadShape::default()
            },
            on_start: Arc::clone(self.on_start),
            ..LoadPlan::closed(self.phase, 1)
        };
        let outcome = drive(self.clock, open(store)?, self.workload, &plan, &mut NoObserver)?;
        let starved = outcome.replayed.map_or(0, |replayed| replayed.starved);
        let seconds = outcome.seconds - self.clock.seconds(0, starved);
        Ok(seconds.max(0.0) * 1e9 / (outcome.operations as f64).max(1.0))
    }
}

/// Records of the workload's data.
fn loaded_pairs(workload: &Workload) -> Vec<(Vec<u8>, Vec<u8>)> {
    let records = workload.spec().records.0.max(1);
    (0..VALUES as u64)
        .map(|i| {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            let record = i % records;
            workload.key(record, &mut key);
            workload.value(&key, workload.load_salt(record), &mut value);
            (key, value)
        })
        .collect()
}

/// Nanoseconds to verify one value; the best of several batches.
fn verify_ns(
    clock: &Ticks,
    pairs: &[(Vec<u8>, Vec<u8>)],
    verify: impl Fn(&[u8], &[u8]) -> Result<(), ValueMismatch>,
) -> f64 {
    (0..20)
        .map(|_| {
            let begin = clock.now();
            for (key, value) in pairs {
                // A wrong answer shows in the run itself; here only the time matters.
                let _ = std::hint::black_box(verify(key, value));
            }
            clock.nanos(begin, clock.now()) as f64 / pairs.len().max(1) as f64
        })
        .fold(f64::INFINITY, f64::min)
}
