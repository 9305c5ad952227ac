//! The harness's cost of an operation against the null store: draw, key, value, two clock
//! readings, recording. `cargo bench --package drive` prints nanoseconds an operation as the
//! time of one iteration; with two threads it is the wall time an operation of both together,
//! so that perfect scaling is half of one thread's.

use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use drive::{LoadPlan, NoObserver, OnStart, PhaseKind, PhaseOutcome, Ticks, drive, open};
use model::{Arrivals, Count, LoadShape, Pacing, RateProfile, StopCondition};
use workload::{Workload, WorkloadSpec};

fn on_null(clock: &Ticks, workload: &Arc<Workload>, plan: &LoadPlan) -> PhaseOutcome {
    let store = open(&"null".parse().expect("null is a store")).expect("null opens");
    drive(clock, store, workload, plan, &mut NoObserver).expect("null does not fail")
}

/// One CPU a thread, as the command does it.
fn pinned() -> OnStart {
    let cpus = host::cpus(&host::Root::live()).map(|order| order.cpus).unwrap_or_default();
    Arc::new(move |thread| {
        if let Some(cpu) = cpus.get(thread) {
            let _ = affinity::pin(*cpu);
        }
    })
}

fn harness(criterion: &mut Criterion) {
    let clock = Ticks::new();
    for threads in [1, 2] {
        let mut group = criterion.benchmark_group(format!("null, threads={threads}"));
        group.sample_size(20).measurement_time(Duration::from_secs(4));
        for preset in ["ycsb-c", "ycsb-a", "ycsb-load"] {
            group.bench_function(preset, |bencher| {
                bencher.iter_custom(|operations| {
                    let mut spec = WorkloadSpec::preset(preset).expect(preset);
                    let what = if spec.is_load() { PhaseKind::Load } else { PhaseKind::Mix };
                    // A load inserts each record once, so it needs one for each operation.
                    spec.records = Count(if spec.is_load() { operations } else { 1_000_000 });
                    let workload = Arc::new(Workload::new(&spec).expect(preset));
                    let plan = LoadPlan {
                        shape: LoadShape {
                            until: StopCondition { operations: Some(operations), time: None },
                            ..LoadShape::default()
                        },
                        on_start: pinned(),
                        ..LoadPlan::closed(what, threads)
                    };
                    let outcome = on_null(&clock, &workload, &plan);
                    assert_eq!(outcome.operations, operations);
                    Duration::from_secs_f64(outcome.seconds)
                });
            });
        }
        group.finish();
    }
}

/// The cost of an operation that was due long ago, of which the next arrival is a part: at a constant
/// rate, and at one that moves.
fn arrivals(criterion: &mut Criterion) {
    let clock = Ticks::new();
    let mut spec = WorkloadSpec::preset("ycsb-c").expect("a preset");
    spec.records = Count(1000);
    let workload = Arc::new(Workload::new(&spec).expect("a workload"));
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let mut group = criterion.benchmark_group(format!("null, open loop, {arrivals}"));
        group.sample_size(10).measurement_time(Duration::from_secs(4));
        for profile in ["", "steps:1x@1ms,2x@1ms", "sine:mean=1x,amplitude=0.9x,period=10ms"] {
            let profile = RateProfile::parse(profile).ok();
            let name = profile.as_ref().map_or("constant rate", |profile| profile.name());
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|operations| {
                    let plan = LoadPlan {
                        shape: LoadShape {
                            pacing: Pacing::Open { rate: 1e9, arrivals },
                            profile: profile.clone(),
                            until: StopCondition {
                                operations: None,
                                time: Some(Duration::from_millis(200)),
                            },
                            ..LoadShape::default()
                        },
                        on_start: pinned(),
                        ..LoadPlan::closed(PhaseKind::Mix, 1)
                    };
                    let outcome = on_null(&clock, &workload, &plan);
                    let each = outcome.seconds / outcome.operations as f64;
                    Duration::from_secs_f64(each * operations as f64)
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, harness, arrivals);
criterion_main!(benches);
