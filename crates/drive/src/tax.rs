//! What the harness itself costs, measured in the same process on the same workload.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{Store, StoreUrl, Visit};
use workload::Workload;

use crate::clock::Ticks;
use crate::control::{Quiet, drive};
use crate::outcome::DriveError;
use crate::plan::{OnStart, Plan, Until, What};

/// Nanoseconds of the harness.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tax {
    /// One operation of the workload against the null store, by one thread that does not wait.
    pub ns_per_op: f64,
    /// One reading of the clock; each operation takes two.
    pub clock_ns: f64,
    /// Checking one value of this workload, which the null store does not give back.
    pub verify_ns: f64,
}

/// Rounds of which the best is taken, so that an interruption does not count, and the
/// operations of each.
const ROUNDS: usize = 10;
const OPERATIONS: u64 = 100_000;
/// Large values take longer to make than so many operations are worth.
const LONGEST_ROUND: Duration = Duration::from_millis(50);

/// Measures the tax of a workload: some tens of milliseconds in the calling thread's place.
pub fn tax(
    clock: &Ticks,
    workload: &Arc<Workload>,
    what: What,
    on_start: &OnStart,
) -> Result<Tax, DriveError> {
    let null: StoreUrl = "null".parse()?;
    let mut ns_per_op = f64::INFINITY;
    for _ in 0..ROUNDS {
        let round = Round { clock, workload, what, on_start };
        ns_per_op = ns_per_op.min(store::open(&null, round)??);
    }
    Ok(Tax { ns_per_op, clock_ns: clock.cost_ns(), verify_ns: verify_ns(clock, workload) })
}

struct Round<'a> {
    clock: &'a Ticks,
    workload: &'a Arc<Workload>,
    what: What,
    on_start: &'a OnStart,
}

impl Visit for Round<'_> {
    type Output = Result<f64, DriveError>;

    fn visit<S: Store>(self, store: S) -> Self::Output {
        let plan = Plan {
            until: Until { operations: Some(OPERATIONS), time: Some(LONGEST_ROUND) },
            on_start: Arc::clone(self.on_start),
            ..Plan::closed(self.what, 1)
        };
        let outcome = drive(self.clock, &Arc::new(store), self.workload, &plan, &mut Quiet)?;
        Ok(outcome.seconds * 1e9 / (outcome.operations as f64).max(1.0))
    }
}

/// Checking values of this workload; the best of several batches.
fn verify_ns(clock: &Ticks, workload: &Workload) -> f64 {
    const VALUES: u64 = 64;
    let records = workload.spec().records.0.max(1);
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = (0..VALUES)
        .map(|i| {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            let record = i % records;
            workload.key(record, &mut key);
            workload.value(&key, workload.load_salt(record), &mut value);
            (key, value)
        })
        .collect();
    (0..20)
        .map(|_| {
            let begin = clock.now();
            for (key, value) in &pairs {
                // A wrong answer shows in the run itself; here only the time matters.
                let _ = std::hint::black_box(workload.verify(key, value));
            }
            clock.nanos(begin, clock.now()) as f64 / VALUES as f64
        })
        .fold(f64::INFINITY, f64::min)
}
