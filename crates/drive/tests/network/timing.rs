//! Latencies and accounting against a server with known service times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use drive::{LoadPlan, Network, PhaseKind, PhaseOutcome};
use model::{Engine, Pacing};
use workload::Workload;

use crate::fake::{Action, Fake, Received};
use crate::support::*;

struct TimedServer {
    server: Fake,
    network: Arc<Network>,
    workload: Arc<Workload>,
}

impl TimedServer {
    fn new() -> TimedServer {
        let server = Fake::start();
        let network = network(&format!("redis://{}?timeout=20s", server.address()));
        let workload = workload("ycsb-c", 200);
        load(&network, &workload);
        server.script(|_| Action::Answer);
        TimedServer { server, network, workload }
    }

    fn with_script(
        self,
        script: impl Fn(Received<'_>) -> Action + Send + Sync + 'static,
    ) -> TimedServer {
        self.server.script(script);
        self
    }

    fn run(&self, plan: &LoadPlan) -> PhaseOutcome {
        let outcome = run_phase(&self.network, &self.workload, plan).unwrap();
        assert_eq!(outcome.failures, []);
        outcome
    }
}

fn on(engine: Engine, plan: LoadPlan) -> LoadPlan {
    let mut plan = plan;
    plan.connections.engine = Some(engine);
    plan
}

fn mean_ns(histograms: &[(model::Op, hdrhistogram::Histogram<u64>)]) -> f64 {
    let all: u64 = histograms.iter().map(|(_, h)| h.len()).sum();
    histograms.iter().map(|(_, h)| h.mean() * h.len() as f64).sum::<f64>() / all as f64
}

/// One answer takes 200 ms while requests are due every millisecond, for a second.
fn stalled_once(engine: Engine, depth: usize) -> PhaseOutcome {
    let timed = TimedServer::new().with_script(|request| match request.number {
        100 => Action::Wait(Duration::from_millis(200)),
        _ => Action::Answer,
    });
    let mut plan = on(engine, mix(1, 1, depth));
    plan.shape.pacing = open(1000.0);
    plan.shape.until = time(1000);
    timed.run(&plan)
}

#[test]
fn a_stall_counts_for_every_request_that_was_due() {
    with_each_engine(|engine| {
        for depth in [1, 1000] {
            let outcome = stalled_once(engine, depth);
            let response = &outcome.response[0].1;
            // 200 requests were due in the stall; half of them waited for more than 100 ms.
            let waited = response.len() - response.count_between(0, 99_000_000);
            assert!((90..=400).contains(&waited), "{engine} {depth}: {waited} waited for 100 ms");
            assert!(response.max() >= 199_000_000);
            let service = &outcome.service[0].1;
            let served = service.len() - service.count_between(0, 99_000_000);
            if depth == 1 {
                assert!(served <= 5, "{engine}: only the stalled one was served long: {served}");
                assert!(outcome.queued >= 150, "{engine}: {} waited in the queue", outcome.queued);
                assert!(outcome.most_queued >= 150 && outcome.most_queued <= 1000);
                // 200 requests, 100 ms on average; what waits for a moment elsewhere lowers the mean.
                let sum_s = outcome.mean_queued_s * outcome.queued as f64;
                assert!(sum_s > 15.0, "{sum_s}");
            } else {
                assert!(served >= 90, "{engine}: on a deep connection they wait at the server");
                assert_eq!((outcome.queued, outcome.most_queued), (0, 0));
            }
            assert_eq!(outcome.operations, 1000);
            // The server's slowness is not the client's lateness: 20 ms a request on average.
            let mean_s = mean_ns(&outcome.response) / 1e9;
            assert!(mean_s > 0.015, "{mean_s}");
            assert!(outcome.mean_lateness_s < 0.5 * mean_s, "{} {mean_s}", outcome.mean_lateness_s);
        }
    });
}

#[test]
fn arrival_is_before_service_and_service_before_response() {
    with_each_engine(|engine| {
        let timed = TimedServer::new().with_script(|_| Action::Wait(Duration::from_millis(2)));
        let mut plan = on(engine, mix(1, 4, 1));
        plan.shape.pacing = open(200.0);
        plan.shape.until = time(500);
        let outcome = timed.run(&plan);
        let [arrival, service, response] =
            [&outcome.arrival, &outcome.service, &outcome.response].map(|all| mean_ns(all));
        // The histograms keep three digits.
        assert!(arrival <= service * 1.002 && service <= response * 1.002, "{engine}");
        assert!(arrival >= 1.99e6, "the server waits as long as that: {arrival}");
        let wake_up = outcome.mean_wake_up_s.expect("loopback has timestamps") * 1e9;
        assert!(
            (arrival + wake_up - service).abs() < 0.01 * service,
            "{arrival} {wake_up} {service}"
        );
        let stamped: u64 = outcome.arrival.iter().map(|(_, h)| h.len()).sum();
        assert!(stamped > 50, "{stamped}");
    });
}

#[test]
fn no_connection_exceeds_its_depth() {
    with_each_engine(|engine| {
        for (count, depth) in [(1, 1), (3, 1), (2, 5), (1, 64)] {
            // So slow that all of them come while one is answered.
            let timed = TimedServer::new().with_script(|request| match request.number % 16 {
                0 => Action::Wait(Duration::from_millis(5)),
                _ => Action::Answer,
            });
            let mut closed = on(engine, mix(1, count, depth));
            closed.shape.until = operations(1000);
            timed.run(&closed);
            let most = timed.server.most_in_flight();
            assert!(most <= depth, "{engine} {count} x {depth}: {most}");
            assert!(depth == 1 || most > depth / 2, "{engine} {count} x {depth}: {most}");
            assert_eq!(timed.server.requests(), 1000);
            assert_eq!(timed.server.connections(), count as u64);
            timed.server.script(|request| match request.number % 16 {
                0 => Action::Wait(Duration::from_millis(5)),
                _ => Action::Answer,
            });
            let mut open_loop = on(engine, mix(1, count, depth));
            open_loop.shape.pacing = open(20_000.0);
            open_loop.shape.until = time(100);
            timed.run(&open_loop);
            let most = timed.server.most_in_flight();
            assert!(most <= depth, "{engine} {count} x {depth}, open: {most}");
        }
    });
}

#[test]
fn answers_that_come_in_one_burst_are_each_counted() {
    with_each_engine(|engine| {
        // The first of a batch waits, the others are answered with it at once.
        let timed = TimedServer::new().with_script(|request| match request.on_connection % 32 {
            0 => Action::Wait(Duration::from_millis(3)),
            _ => Action::Answer,
        });
        let mut plan = on(engine, mix(1, 1, 64));
        plan.shape.until = operations(3200);
        let outcome = timed.run(&plan);
        assert_eq!((outcome.operations, outcome.verified), (3200, 3200));
        assert_eq!(outcome.service[0].1.len(), 3200);
        assert_eq!(timed.server.requests(), 3200);
    });
}

#[test]
fn a_full_queue_drops_requests_with_a_warning() {
    let timed = TimedServer::new().with_script(|_| Action::Wait(Duration::from_millis(5)));
    let mut plan = mix(1, 1, 1);
    plan.shape.pacing = open(2000.0);
    plan.shape.until = time(300);
    plan.connections.queue = 10;
    let outcome = timed.run(&plan);
    assert!(outcome.dropped > 300, "{}", outcome.dropped);
    assert_eq!(outcome.most_queued, 10);
    assert!(outcome.never_sent >= outcome.dropped);
    assert_eq!(outcome.operations + outcome.never_sent, outcome.due);
    assert!(outcome.due.abs_diff(600) <= 2, "{}", outcome.due);
    let words = outcome.invalid_because.join("; ");
    assert!(words.contains("rate was not achieved"), "{words}");
    assert!(outcome.warnings.join("; ").contains("`queue`"), "{:?}", outcome.warnings);
}

#[test]
fn without_a_queue_only_what_finds_no_connection_is_dropped() {
    let timed = TimedServer::new();
    let mut plan = mix(1, 4, 4);
    plan.shape.pacing = open(200.0);
    plan.shape.until = time(300);
    plan.connections.queue = 0;
    let outcome = timed.run(&plan);
    assert_eq!((outcome.operations, outcome.dropped), (60, 0));
}

#[test]
fn a_slow_server_that_keeps_up_is_valid() {
    // 60 in flight at any instant, one thread: their last answers come after the window.
    let timed = TimedServer::new().with_script(|_| Action::Wait(Duration::from_millis(30)));
    let mut plan = mix(1, 150, 1);
    plan.shape.pacing = open(2000.0);
    plan.shape.until = time(500);
    // A machine that holds the server back in the last milliseconds is rightly reported: one
    // attempt that it left alone is enough, and without the rule none is valid.
    let reported = (0..10).map(|_| {
        let outcome = timed.run(&plan);
        assert_eq!(outcome.operations + outcome.never_sent, outcome.due);
        assert!(outcome.answered_in_time + 30 < outcome.due, "{}", outcome.answered_in_time);
        outcome.invalid_because.join("; ")
    });
    let reported: Vec<String> =
        reported.take_while(|words| words.contains("rate was not achieved")).collect();
    assert!(reported.len() < 10, "{reported:#?}");
}

#[test]
fn client_lateness_is_reported() {
    let timed = TimedServer::new();
    let mut plan = mix(1, 1, 4);
    plan.shape.pacing = open(500.0);
    plan.shape.until = time(600);
    // The client's threads share one CPU with others that spin, at a nicer priority than theirs.
    let spin = Arc::new(AtomicBool::new(true));
    plan.on_start = Arc::new(|_| {
        affinity::pin(0).unwrap();
    });
    let outcome = std::thread::scope(|scope| {
        for _ in 0..6 {
            let spin = Arc::clone(&spin);
            scope.spawn(move || {
                affinity::pin(0).unwrap();
                while spin.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let outcome = timed.run(&plan);
        spin.store(false, Ordering::Relaxed);
        outcome
    });
    let mean_s = mean_ns(&outcome.response) / 1e9;
    let share = outcome.mean_lateness_s / mean_s;
    assert!(share > 0.1, "late by {} of {mean_s}", outcome.mean_lateness_s);
    let all = [outcome.invalid_because, outcome.warnings].concat().join("; ");
    assert!(all.contains("the client's own lateness"), "{all}");
}

#[test]
fn a_warm_up_at_another_rate_does_not_count() {
    with_each_engine(|engine| {
        // 20 times what the server serves: a backlog of a second when the window opens.
        let timed = TimedServer::new().with_script(|_| Action::Wait(Duration::from_millis(1)));
        let mut plan = on(engine, mix(1, 1, 1));
        plan.shape.pacing = open(100.0);
        plan.shape.warm_up = Some(Duration::from_millis(300));
        plan.shape.warm_up_rate = Some(20_000.0);
        plan.shape.until = time(1000);
        let outcome = timed.run(&plan);
        assert!(outcome.due.abs_diff(100) <= 1, "{engine}: {}", outcome.due);
        assert_eq!(outcome.operations + outcome.never_sent, outcome.due);
        assert!(outcome.answered_in_time >= 98, "{engine}: {}", outcome.answered_in_time);
        let median = outcome.response[0].1.value_at_percentile(50.0);
        assert!(median < 100_000_000, "{engine}: the backlog is dropped: {median}");
        assert!(outcome.drawn > 5000, "the warm-up had its own rate: {}", outcome.drawn);
    });
}

#[test]
fn a_warm_up_at_the_same_rate_keeps_its_backlog() {
    // The server cannot keep up, and the window's opening makes that no better.
    let timed = TimedServer::new().with_script(|_| Action::Wait(Duration::from_millis(2)));
    let mut plan = mix(1, 1, 1);
    plan.shape.pacing = open(2000.0);
    plan.shape.warm_up = Some(Duration::from_millis(500));
    plan.shape.until = time(500);
    let outcome = timed.run(&plan);
    let least = outcome.response.first().map_or(u64::MAX, |(_, h)| h.min());
    assert!(least > 100_000_000, "the first of the window waits behind the warm-up's: {least}");
}

#[test]
fn a_think_time_is_not_latency() {
    with_each_engine(|engine| {
        let timed = TimedServer::new();
        let mut plan = on(engine, mix(1, 2, 2));
        plan.shape.pacing = Pacing::Closed { think: Duration::from_millis(20) };
        plan.shape.until = operations(40);
        let outcome = timed.run(&plan);
        assert_eq!(outcome.operations, 40);
        // 4 at once, 10 rounds, with 9 pauses between them.
        assert!(outcome.seconds >= 0.179, "{engine}: {}", outcome.seconds);
        assert!(outcome.service[0].1.value_at_percentile(50.0) < 15_000_000, "{engine}");
        assert_eq!(outcome.response.len(), 0, "a closed loop has no response time");
    });
}

#[test]
fn a_counted_window_is_exact_after_a_warm_up() {
    with_each_engine(|engine| {
        for warm_up in [None, Some(Duration::from_millis(100))] {
            let timed = TimedServer::new();
            let mut plan = on(engine, mix(3, 2, 8));
            plan.shape.until = operations(10_007);
            plan.shape.warm_up = warm_up;
            let outcome = timed.run(&plan);
            assert_eq!((outcome.operations, outcome.verified), (10_007, 10_007), "{engine}");
            assert_eq!(outcome.drawn, timed.server.requests(), "all drawn operations are issued");
            assert_eq!(outcome.drawn == 10_007, warm_up.is_none());
        }
    });
}

#[test]
fn a_timed_window_has_its_length() {
    let timed = TimedServer::new();
    for (pacing, rounds_per_second, at_once) in [
        (Pacing::Closed { think: Duration::from_secs(9) }, 1.0 / 9.0, 4.0),
        (Pacing::Closed { think: Duration::from_millis(100) }, 10.0, 4.0),
        (open(10.0), 10.0, 1.0),
    ] {
        let mut plan = mix(2, 1, 2);
        plan.shape.pacing = pacing;
        plan.shape.until = time(400);
        let outcome = timed.run(&plan);
        assert!((0.399..2.0).contains(&outcome.seconds), "{pacing:?}: {}", outcome.seconds);
        // On a busy machine the window is longer than was asked for.
        let most = (outcome.seconds * rounds_per_second).ceil() * at_once;
        let operations = outcome.operations as f64;
        assert!((1.0..=most).contains(&operations), "{pacing:?}: {operations} of {most}");
    }
}

#[test]
fn a_stop_ends_the_phase_early() {
    for warm_up in [None, Some(Duration::from_secs(60))] {
        for pacing in [open(1000.0), Pacing::Closed { think: Duration::ZERO }] {
            let timed = TimedServer::new();
            let mut plan = mix(2, 2, 4);
            plan.shape.pacing = pacing;
            plan.shape.warm_up = warm_up;
            plan.shape.until = time(60_000);
            let stop = Arc::clone(&plan.stop);
            let begun = Instant::now();
            let later = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(200));
                stop.store(true, Ordering::Relaxed);
            });
            let outcome = timed.run(&plan);
            later.join().unwrap();
            assert!(outcome.stopped && outcome.gave_up.is_none());
            assert!(begun.elapsed() < LONG / 2);
        }
    }
}

#[test]
fn a_hung_server_ends_the_phase_after_the_stall_timeout() {
    let timed = TimedServer::new().with_script(|_| Action::SendAndHang(Vec::new()));
    let mut plan = mix(1, 1, 1);
    plan.shape.until = time(60_000);
    plan.stall_timeout = Duration::from_millis(300);
    let begun = Instant::now();
    let error = run_phase(&timed.network, &timed.workload, &plan).unwrap_err();
    assert!(matches!(error, drive::DriveError::Stalled(_)), "{error}");
    assert!(begun.elapsed() < LONG / 2);
}

#[test]
fn engines_issue_the_same_operations() {
    let all = std::sync::Mutex::new(Vec::new());
    with_each_engine(|engine| {
        let timed = TimedServer::new();
        let mut plan = on(engine, plan(PhaseKind::Mix, 2, 2, 4));
        plan.shape.until = operations(3000);
        plan.connections.busy_poll = engine == Engine::Epoll;
        let outcome = timed.run(&plan);
        all.lock().unwrap().push((outcome.fingerprint, outcome.counts, outcome.bytes_read));
    });
    let all = all.into_inner().unwrap();
    assert!(all.windows(2).all(|two| two[0] == two[1]), "{all:?}");
}
