//! What the harness costs an operation, against the null store: draw, key, value, two clock
//! readings, recording. `cargo bench --package drive` prints nanoseconds an operation as the
//! time of one iteration; with two threads it is the wall time an operation of both together,
//! so that perfect scaling is half of one thread's.

use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use drive::{OnStart, Outcome, Plan, Quiet, Ticks, Until, What};
use model::Count;
use store::{Store, Visit};
use workload::{Spec, Workload};

struct Ask<'a> {
    clock: &'a Ticks,
    workload: &'a Arc<Workload>,
    plan: Plan,
}

impl Visit for Ask<'_> {
    type Output = Outcome;
    fn visit<S: Store>(self, store: S) -> Outcome {
        drive::drive(self.clock, &Arc::new(store), self.workload, &self.plan, &mut Quiet)
            .expect("null does not fail")
    }
}

/// One CPU a thread, as the command does it.
fn pinned() -> OnStart {
    let cpus = host::cpus(&host::Root::live()).map(|order| order.cpus).unwrap_or_default();
    Arc::new(move |thread| {
        if let Some(cpu) = cpus.get(thread) {
            let _ = host::pin_current(*cpu);
        }
    })
}

fn harness(criterion: &mut Criterion) {
    let clock = Ticks::new();
    let null = "null".parse().expect("null is a store");
    for threads in [1, 2] {
        let mut group = criterion.benchmark_group(format!("null, threads={threads}"));
        group.sample_size(20).measurement_time(Duration::from_secs(4));
        for preset in ["ycsb-c", "ycsb-a", "ycsb-load"] {
            group.bench_function(preset, |bencher| {
                bencher.iter_custom(|operations| {
                    let mut spec = Spec::preset(preset).expect(preset);
                    let what = if spec.is_load() { What::Load } else { What::Mix };
                    // A load inserts each record once, so it needs one for each operation.
                    spec.records = Count(if spec.is_load() { operations } else { 1_000_000 });
                    let workload = Arc::new(Workload::new(&spec).expect(preset));
                    let plan = Plan {
                        until: Until { operations: Some(operations), time: None },
                        on_start: pinned(),
                        ..Plan::closed(what, threads)
                    };
                    let ask = Ask { clock: &clock, workload: &workload, plan };
                    let outcome = store::open(&null, ask).expect("null opens");
                    assert_eq!(outcome.operations, operations);
                    Duration::from_secs_f64(outcome.seconds)
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, harness);
criterion_main!(benches);
