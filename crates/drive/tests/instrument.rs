//! The instrument against a store whose behaviour is known.
#![allow(clippy::unwrap_used)]

mod fake;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use drive::{
    CpuBudget, DriveError, FailureKind, LoadPlan, NoObserver, Observer, PhaseKind, PhaseOutcome,
    PhaseProgress, PhaseStage, SteadyCriteria, Ticks, drive,
};
use fake::{Fake, Fault};
use model::{Arrivals, Count, Op, Pacing, StopCondition};
use workload::{Mix, Workload, WorkloadSpec};

fn workload(preset: &str, records: u64) -> Arc<Workload> {
    let mut spec = WorkloadSpec::preset(preset).unwrap();
    spec.records = Count(records);
    Arc::new(Workload::new(&spec).unwrap())
}

/// Short intervals, so that short runs have a series.
fn plan(what: PhaseKind, threads: usize) -> LoadPlan {
    LoadPlan { interval: Duration::from_millis(100), ..LoadPlan::closed(what, threads) }
}

fn operations(count: u64) -> StopCondition {
    StopCondition { operations: Some(count), time: None }
}

fn time(millis: u64) -> StopCondition {
    StopCondition { operations: None, time: Some(Duration::from_millis(millis)) }
}

fn open(rate: f64, arrivals: Arrivals) -> Pacing {
    Pacing::Open { rate, arrivals }
}

fn run_phase(
    store: Fake,
    workload: &Arc<Workload>,
    plan: &LoadPlan,
) -> Result<PhaseOutcome, DriveError> {
    drive(&Ticks::new(), Arc::new(store), workload, plan, &mut NoObserver)
}

/// A fake that holds every record of the workload.
fn loaded(workload: &Arc<Workload>) -> Fake {
    let store = Arc::new(Fake::default());
    let outcome =
        drive(&Ticks::new(), store.clone(), workload, &plan(PhaseKind::Load, 2), &mut NoObserver)
            .unwrap();
    assert_eq!(outcome.operations, workload.spec().records.0);
    Arc::into_inner(store).expect("the threads have released the store")
}

#[test]
fn every_preset_is_answered_and_verified() {
    for preset in ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f"] {
        let workload = workload(preset, 2000);
        for threads in [1, 3] {
            let mut plan = plan(PhaseKind::Mix, threads);
            plan.shape.until = operations(5000);
            let outcome = run_phase(loaded(&workload), &workload, &plan).unwrap();
            assert_eq!(outcome.operations, 5000, "{preset}");
            assert_eq!(outcome.failures, [], "{preset} with {threads} threads");
            assert!(outcome.verified > 0, "{preset}");
            let histograms: u64 = outcome.service.iter().map(|(_, h)| h.len()).sum();
            assert_eq!(histograms, 5000, "{preset}: every operation has its latency");
            let series: u64 = outcome.series.iter().map(|point| point.operations).sum();
            assert_eq!(series, 5000, "{preset}: every operation is in the series");
        }
    }
}

#[test]
fn the_stream_does_not_depend_on_the_threads() {
    for preset in ["ycsb-a", "ycsb-d", "ycsb-e"] {
        let workload = workload(preset, 1000);
        let run = |threads| {
            let mut plan = plan(PhaseKind::Mix, threads);
            // Not a multiple of the block: the last one is cut.
            plan.shape.until = operations(10_007);
            let store = Arc::new(loaded(&workload));
            let outcome =
                drive(&Ticks::new(), store.clone(), &workload, &plan, &mut NoObserver).unwrap();
            (outcome.fingerprint, outcome.counts, store.keys())
        };
        let alone = run(1);
        assert_eq!(alone.1.iter().map(|(_, count)| count).sum::<u64>(), 10_007);
        assert_eq!(alone, run(2), "{preset}");
        assert_eq!(alone, run(7), "{preset}");
    }
}

#[test]
fn known_service_times_are_measured() {
    let workload = workload("ycsb-c", 100);
    let store = loaded(&workload);
    store.read_takes(Duration::from_millis(2));
    let mut plan = plan(PhaseKind::Mix, 1);
    plan.shape.until = operations(100);
    let outcome = run_phase(store, &workload, &plan).unwrap();
    let (op, histogram) = &outcome.service[0];
    assert_eq!(*op, Op::Read);
    // The fake waits at least this long; an interruption can only make it longer.
    assert!(histogram.min() >= 1_990_000, "{}", histogram.min());
    assert!(histogram.min() < 3_000_000, "{}", histogram.min());
    assert!(outcome.harness_share < 0.1, "{}", outcome.harness_share);
}

/// One answer takes 200 ms while requests are due every millisecond, for a second.
fn stalled_once() -> PhaseOutcome {
    let workload = workload("ycsb-c", 100);
    let store = loaded(&workload);
    store.stall_once(100, Duration::from_millis(200));
    let mut plan = plan(PhaseKind::Mix, 1);
    plan.shape.pacing = open(1000.0, Arrivals::Constant);
    plan.shape.until = time(1000);
    run_phase(store, &workload, &plan).unwrap()
}

#[test]
fn a_stall_counts_for_every_request_that_was_due() {
    let outcome = stalled_once();
    let response = &outcome.response[0].1;
    let service = &outcome.service[0].1;
    // 200 requests were due in the stall; half of them waited for more than 100 ms.
    let waited = response.len() - response.count_between(0, 99_000_000);
    assert!((90..=130).contains(&waited), "{waited} requests waited for more than 100 ms");
    let stalled = service.len() - service.count_between(0, 99_000_000);
    assert!(stalled <= 2, "only the stalled one was served for long: {stalled}");
    assert!(response.max() >= 199_000_000);
}

#[test]
fn queueing_in_the_store_is_not_client_lateness() {
    let outcome = stalled_once();
    let mean_s = outcome.response[0].1.mean() / 1e9;
    // 200 requests waited 100 ms on average: 20 ms over all of them, the store's doing.
    assert!(mean_s > 0.015, "{mean_s}");
    assert!(outcome.mean_lateness_s < 0.25 * mean_s, "{} {mean_s}", outcome.mean_lateness_s);
}

#[test]
fn an_open_loop_issues_what_is_due() {
    let workload = workload("ycsb-c", 100);
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let mut plan = plan(PhaseKind::Mix, 2);
        plan.shape.pacing = open(2000.0, arrivals);
        plan.shape.until = time(1000);
        let outcome = run_phase(loaded(&workload), &workload, &plan).unwrap();
        // Poisson: 2000 +- 5 sigma; constant: exact but for the edges.
        let slack = if arrivals == Arrivals::Constant { 3 } else { 224 };
        assert!(outcome.due.abs_diff(2000) <= slack, "{arrivals:?}: {}", outcome.due);
        assert_eq!(outcome.operations + outcome.never_sent, outcome.due);
        assert!(outcome.response.iter().all(|(_, h)| h.len() == outcome.operations));
    }
}

#[test]
fn an_unachieved_rate_invalidates_the_run() {
    let workload = workload("ycsb-c", 100);
    let store = loaded(&workload);
    store.read_takes(Duration::from_millis(2));
    let mut plan = plan(PhaseKind::Mix, 1);
    plan.shape.pacing = open(2000.0, Arrivals::Constant);
    plan.shape.until = time(300);
    let outcome = run_phase(store, &workload, &plan).unwrap();
    let words = outcome.invalid_because.join("; ");
    assert!(words.contains("rate was not achieved"), "{words}");
    assert!(words.contains("% busy"), "{words}");
    assert!(outcome.never_sent > 0, "the drain is bounded");
    assert_eq!(outcome.operations + outcome.never_sent, outcome.due);
}

#[test]
fn threads_that_share_cpus_are_warned_about_and_accounted() {
    let workload = workload("ycsb-c", 1000);
    let with_cpus = |cpus: Option<CpuBudget>| {
        let mut plan = plan(PhaseKind::Mix, 2);
        plan.shape.pacing = open(2000.0, Arrivals::Constant);
        plan.shape.until = time(200);
        plan.cpus = cpus;
        run_phase(loaded(&workload), &workload, &plan).unwrap()
    };
    let cpus = |count, words: &str| Some(CpuBudget { count, words: words.to_owned() });
    let shared = with_cpus(cpus(1.0, "1 CPU by the mask"));
    assert!(shared.warnings.iter().any(|w| w.contains("2 threads share 1 CPU by the mask")));
    for enough in [None, cpus(2.0, "2 CPUs"), cpus(1.5, "1.5 CPUs by a quota")] {
        let outcome = with_cpus(enough);
        assert!(!outcome.warnings.iter().any(|w| w.contains("threads share")), "{outcome:?}");
        assert!(outcome.harness_share < 1.0);
    }
    // A thousandth of a CPU is used up by making requests, however idle the threads look.
    let starved = with_cpus(cpus(0.001, "0.001 CPUs by a quota"));
    assert_eq!(starved.busy_share, 1.0);
    assert!(starved.harness_share > 2.0 * with_cpus(None).harness_share, "{starved:?}");
    assert!(starved.invalid_because.iter().any(|why| why.contains("100.0 % busy")));
    // Threads that wait for a CPU within the store's calls do not wait for the harness.
    let store = loaded(&workload);
    store.read_takes(Duration::from_millis(2));
    let mut plan = plan(PhaseKind::Mix, 2);
    plan.shape.until = time(200);
    plan.cpus = cpus(0.01, "0.01 CPUs by a quota");
    let slow = run_phase(store, &workload, &plan).unwrap();
    assert!(slow.harness_share < 0.1, "{}", slow.harness_share);
}

#[test]
fn wrong_answers_are_counted_by_kind() {
    let workload = workload("ycsb-c", 1000);
    for (fault, kind) in [
        (Fault::Missing, FailureKind::Missing),
        (Fault::Torn, FailureKind::Wrong),
        (Fault::OtherKey, FailureKind::Wrong),
        (Fault::Refused, FailureKind::Store),
    ] {
        let store = loaded(&workload);
        store.fails_every(50, fault);
        let mut plan = plan(PhaseKind::Mix, 1);
        plan.shape.until = operations(1000);
        let outcome = run_phase(store, &workload, &plan).unwrap();
        assert_eq!(outcome.failures.len(), 1, "{fault:?}: {:?}", outcome.failures);
        let failure = &outcome.failures[0];
        assert_eq!((failure.kind, failure.count), (kind, 20), "{fault:?}");
        assert!(outcome.invalid_because[0].contains(kind.name()), "{fault:?}");
        assert_eq!(outcome.operations, 1000);
        if fault == Fault::Missing {
            assert_eq!(outcome.hit_ratio(), Some(0.98), "what was not there is no hit");
        }
    }
}

#[test]
fn a_scan_out_of_order_is_a_failure() {
    let workload = workload("ycsb-e", 500);
    let store = loaded(&workload);
    store.fails_every(10, Fault::Disorder);
    let mut plan = plan(PhaseKind::Mix, 1);
    plan.shape.until = operations(200);
    let outcome = run_phase(store, &workload, &plan).unwrap();
    let kinds: Vec<FailureKind> = outcome.failures.iter().map(|f| f.kind).collect();
    assert_eq!(kinds, [FailureKind::Disorder]);
}

#[test]
fn deletes_make_misses_not_failures() {
    let mut spec = WorkloadSpec::preset("ycsb-a").unwrap();
    spec.records = Count(100);
    spec.mix = Mix::parse("read=0.5,delete=0.5").unwrap();
    let workload = Arc::new(Workload::new(&spec).unwrap());
    let mut plan = plan(PhaseKind::Mix, 2);
    plan.shape.until = operations(2000);
    let outcome = run_phase(loaded(&workload), &workload, &plan).unwrap();
    assert_eq!(outcome.failures, []);
    assert!(outcome.misses > 0);
}

#[test]
fn a_full_disk_ends_the_load_with_its_error() {
    let workload = workload("ycsb-a", 5000);
    let store = Fake::default();
    store.full_after(1000);
    let error = run_phase(store, &workload, &plan(PhaseKind::Load, 2)).unwrap_err();
    assert!(matches!(error, DriveError::Store(store::StoreError::Full(_))), "{error}");
}

#[test]
fn a_store_that_only_fails_ends_the_phase() {
    let workload = workload("ycsb-c", 100);
    let store = loaded(&workload);
    store.fails_every(1, Fault::Refused);
    let mut plan = plan(PhaseKind::Mix, 1);
    plan.shape.until = time(60_000);
    let error = run_phase(store, &workload, &plan).unwrap_err();
    assert!(matches!(error, DriveError::Failing { .. }), "{error}");
}

#[test]
fn a_hung_store_ends_the_phase_after_the_stall_timeout() {
    let workload = workload("ycsb-c", 100);
    let store = loaded(&workload);
    store.stall_once(10, Duration::from_secs(20));
    let mut plan = plan(PhaseKind::Mix, 1);
    plan.shape.until = time(60_000);
    plan.stall_timeout = Duration::from_millis(300);
    let begun = Instant::now();
    let error = run_phase(store, &workload, &plan).unwrap_err();
    assert!(matches!(error, DriveError::Stalled(_)), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_thread_that_panics_is_an_error() {
    let workload = workload("ycsb-c", 100);
    let mut plan = plan(PhaseKind::Mix, 2);
    plan.shape.until = operations(1000);
    plan.on_start = Arc::new(|thread| assert!(thread != 1, "as the test requires"));
    let error = run_phase(loaded(&workload), &workload, &plan).unwrap_err();
    assert!(error.to_string().contains("thread 1 panicked"), "{error}");
}

struct RecordingObserver {
    stages: Vec<PhaseStage>,
    opened: Option<Instant>,
    closed: Option<Instant>,
    stop_in: Option<(PhaseStage, Arc<AtomicBool>)>,
}

impl Observer for RecordingObserver {
    fn window_opens(&mut self) {
        self.opened = Some(Instant::now());
    }
    fn window_closes(&mut self) {
        self.closed = Some(Instant::now());
    }
    fn progress(&mut self, progress: &PhaseProgress) {
        if self.stages.last() != Some(&progress.stage) {
            self.stages.push(progress.stage);
        }
        if let Some((stage, stop)) = &self.stop_in
            && *stage == progress.stage
        {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

fn observed(plan: &LoadPlan, stop_in: Option<PhaseStage>) -> (PhaseOutcome, RecordingObserver) {
    let workload = workload("ycsb-b", 1000);
    let stop_in = stop_in.map(|stage| (stage, Arc::clone(&plan.stop)));
    let mut observed =
        RecordingObserver { stages: Vec::new(), opened: None, closed: None, stop_in };
    let store = Arc::new(loaded(&workload));
    let outcome = drive(&Ticks::new(), store, &workload, plan, &mut observed).unwrap();
    (outcome, observed)
}

#[test]
fn warm_up_and_steady_state_come_before_the_window_and_do_not_count() {
    let mut plan = plan(PhaseKind::Mix, 2);
    plan.shape.warm_up = Some(Duration::from_millis(150));
    plan.steady = Some(SteadyCriteria {
        round: Duration::from_millis(50),
        window: 3,
        most_rounds: 8,
        rule: |rounds| rounds.len() == 3,
    });
    plan.shape.until = operations(1000);
    let (outcome, observed) = observed(&plan, None);
    assert_eq!(outcome.operations, 1000);
    assert!(outcome.drawn > 1000, "the warm-up drew from the same stream");
    let steady = outcome.steady.unwrap();
    assert_eq!((steady.rounds.len(), steady.reached), (3, true));
    assert_eq!(observed.stages[0], PhaseStage::WarmUp);
    assert!(matches!(observed.stages[1], PhaseStage::Steadying { round: 1, most: 8 }));
    let window = observed.closed.unwrap() - observed.opened.unwrap();
    assert!(window.as_secs_f64() >= outcome.seconds * 0.99);
}

#[test]
fn a_steady_state_that_is_never_reached_makes_the_run_invalid() {
    let mut plan = plan(PhaseKind::Mix, 1);
    plan.steady = Some(SteadyCriteria {
        round: Duration::from_millis(20),
        window: 2,
        most_rounds: 4,
        rule: |_| false,
    });
    plan.shape.until = operations(100);
    let (outcome, _) = observed(&plan, None);
    assert_eq!(outcome.steady.as_ref().map(|steady| steady.rounds.len()), Some(4));
    assert!(outcome.invalid_because.join("").contains("steady state was not reached"));
}

#[test]
fn a_stop_ends_the_phase_early() {
    for stage in [PhaseStage::WarmUp, PhaseStage::Measure] {
        let mut plan = plan(PhaseKind::Mix, 2);
        plan.shape.warm_up = Some(Duration::from_millis(200));
        plan.shape.until = time(60_000);
        let begun = Instant::now();
        let (outcome, observed) = observed(&plan, Some(stage));
        assert!(outcome.stopped, "{stage:?}");
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert!(observed.closed.is_some(), "the probes end whatever happens");
    }
}

#[test]
fn long_think_times_do_not_delay_a_stop() {
    let workload = workload("ycsb-c", 100);
    let mut plan = plan(PhaseKind::Mix, 2);
    // Between two blocks they come together, which such a pause puts off for days.
    plan.shape.pacing = Pacing::Closed { think: Duration::from_secs(3600) };
    plan.shape.warm_up = Some(Duration::from_millis(50));
    plan.shape.until = operations(10);
    let stop = Arc::clone(&plan.stop);
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
    });
    let begun = Instant::now();
    let outcome = run_phase(loaded(&workload), &workload, &plan).unwrap();
    later.join().unwrap();
    assert!(outcome.stopped && begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_think_time_is_not_latency() {
    let workload = workload("ycsb-c", 100);
    let mut plan = plan(PhaseKind::Mix, 1);
    plan.shape.pacing = Pacing::Closed { think: Duration::from_millis(5) };
    plan.shape.until = operations(40);
    let outcome = run_phase(loaded(&workload), &workload, &plan).unwrap();
    assert!(outcome.seconds >= 0.19, "{}", outcome.seconds);
    assert!(outcome.service[0].1.value_at_percentile(50.0) < 1_000_000);
    assert_eq!(outcome.response.len(), 0, "a closed loop has no response time");
}

#[test]
fn a_timed_window_has_its_length() {
    let workload = workload("ycsb-c", 100);
    let mut plan = plan(PhaseKind::Mix, 2);
    plan.shape.until = time(400);
    for (pacing, most) in [
        // Nothing but the first request falls into the window.
        (Pacing::Closed { think: Duration::from_secs(9) }, 2),
        (Pacing::Closed { think: Duration::from_millis(100) }, 8),
        (open(10.0, Arrivals::Constant), 4),
    ] {
        plan.shape.pacing = pacing;
        let outcome = run_phase(loaded(&workload), &workload, &plan).unwrap();
        assert!((0.399..0.45).contains(&outcome.seconds), "{pacing:?}: {}", outcome.seconds);
        assert!((1..=most).contains(&outcome.operations), "{pacing:?}: {}", outcome.operations);
    }
    plan.shape.pacing = open(10.0, Arrivals::Constant);
    let outcome = run_phase(loaded(&workload), &workload, &plan).unwrap();
    assert_eq!(outcome.operations, 4, "due at 0, 100, 200 and 300 ms");
}

#[test]
fn the_first_stop_condition_ends_the_window() {
    let workload = workload("ycsb-c", 100);
    let mut plan = plan(PhaseKind::Mix, 2);
    plan.shape.until =
        StopCondition { operations: Some(1000), time: Some(Duration::from_secs(60)) };
    let begun = Instant::now();
    let outcome = run_phase(loaded(&workload), &workload, &plan).unwrap();
    assert_eq!(outcome.operations, 1000);
    assert!(outcome.seconds < 10.0 && begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn the_harness_measures_itself() {
    let workload = workload("ycsb-a", 1000);
    let tax =
        drive::tax(&Ticks::new(), &workload, PhaseKind::Mix, &plan(PhaseKind::Mix, 1).on_start);
    let tax = tax.unwrap();
    assert!(tax.ns_per_op > 0.0 && tax.clock_ns > 0.0 && tax.verify_ns > 0.0, "{tax:?}");
    assert!(tax.ns_per_op > tax.clock_ns, "{tax:?}");
}
