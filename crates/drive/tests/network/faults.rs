//! Servers that fail during a run: each fault has its kind, count and message, and the phase ends
//! in bounded time with what was measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use drive::{DriveError, FailureKind, Network, PhaseOutcome};
use workload::Workload;

use crate::fake::{Action, Fake};
use crate::support::*;

/// Requests in flight in these tests.
const SLOTS: u64 = 8;

struct Faulty {
    server: Fake,
    network: Arc<Network>,
    workload: Arc<Workload>,
}

impl Faulty {
    /// A loaded server, without faults yet.
    fn new(preset: &str) -> Faulty {
        Faulty::speaking("resp2", preset)
    }

    fn speaking(protocol: &str, preset: &str) -> Faulty {
        let server = Fake::start();
        let url = format!("redis://{}?timeout=300ms&protocol={protocol}", server.address());
        let network = network(&url);
        let workload = workload(preset, 200);
        load(&network, &workload);
        Faulty { server, network, workload }
    }

    /// 2 connections of depth 4, until so many operations.
    fn run(&self, count: u64) -> PhaseOutcome {
        let mut plan = mix(1, 2, 4);
        plan.shape.until = operations(count);
        self.within(|| run_phase(&self.network, &self.workload, &plan).unwrap())
    }

    fn within<T>(&self, run: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = run();
        assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
        result
    }

    /// The outcome names its server, and is invalid.
    fn assert_reported(&self, outcome: &PhaseOutcome, words: &[&str]) {
        let all = outcome.invalid_because.join("; ");
        for word in words.iter().chain([&self.server.address().as_str()]) {
            assert!(all.contains(word), "`{word}` is not reported: {all}");
        }
    }
}

#[test]
fn closed_connections_are_reconnected() {
    let faulty = Faulty::new("ycsb-c");
    faulty.server.script(|request| match request.on_connection {
        49 => Action::SendAndClose(request.answer.to_vec()),
        _ => Action::Answer,
    });
    let outcome = faulty.run(2000);
    assert_eq!(outcome.operations, 2000, "failed ones included");
    let failures = failures(&outcome);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].0, FailureKind::Closed);
    // Each time, the requests behind the answered one are lost, and one more that was sent after
    // its answer: at most the depth.
    assert!(outcome.reconnected >= 30, "{}", outcome.reconnected);
    assert!(failures[0].1 <= 4 * (outcome.reconnected + 2), "{failures:?}");
    assert_eq!(outcome.verified + failures[0].1, 2000);
    assert_eq!(faulty.server.connections(), 2 + outcome.reconnected);
    assert_eq!(outcome.gave_up, None);
    faulty.assert_reported(&outcome, &["closed"]);
}

#[test]
fn every_wrong_answer_has_its_kind_and_message() {
    let junk = vec![b'x'; 10 << 20];
    let kinds: [(&str, &[u8], FailureKind, &str); 6] = [
        ("garbage", b"HTTP/1.1 200 OK\r\n\r\n", FailureKind::Garbage, "HTTP/1.1"),
        ("another kind of answer", b":7\r\n", FailureKind::Garbage, "7"),
        (
            "a length that nothing has",
            b"$99999999999999\r\n",
            FailureKind::Garbage,
            "99999999999999",
        ),
        ("junk without an end", &junk, FailureKind::Garbage, "xxxx"),
        ("an error", b"-ERR as told\r\n", FailureKind::Store, "as told"),
        ("a refusal", b"-OOM command not allowed\r\n", FailureKind::OutOfMemory, "OOM"),
    ];
    for (what, statistic, kind, words) in kinds {
        let faulty = Faulty::new("ycsb-c");
        let statistic = statistic.to_vec();
        faulty.server.script(move |request| match request.number {
            500 => Action::Send(statistic.clone()),
            _ => Action::Answer,
        });
        let outcome = faulty.run(2000);
        let failures = failures(&outcome);
        assert_eq!(failures.len(), 1, "{what}: {failures:?}");
        assert_eq!(failures[0].0, kind, "{what}");
        assert!((1..=4).contains(&failures[0].1), "{what}: {failures:?}");
        assert_eq!(outcome.operations, 2000, "{what}");
        faulty.assert_reported(&outcome, &[words]);
        let lines = u64::from(!matches!(kind, FailureKind::Store | FailureKind::OutOfMemory));
        // The other connection may have issued all the rest before.
        assert!(outcome.reconnected <= lines, "{what}: {}", outcome.reconnected);
        assert!(outcome.failures[0].first.len() < 400, "{what}: {}", outcome.failures[0].first);
    }
}

#[test]
fn a_wrong_value_of_the_right_length_is_a_failure() {
    let faulty = Faulty::new("ycsb-c");
    faulty.server.script(|request| {
        let mut wrong = request.answer.to_vec();
        let middle = wrong.len() / 2;
        wrong[middle] ^= 1;
        if request.number % 100 == 7 { Action::Send(wrong) } else { Action::Answer }
    });
    let outcome = faulty.run(2000);
    assert_eq!(failures(&outcome), [(FailureKind::Wrong, 20)]);
    assert_eq!((outcome.verified, outcome.reconnected), (1980, 0));
}

#[test]
fn the_value_of_another_key_is_a_failure() {
    // RESP names no key in its answers: the value itself tells.
    let faulty = Faulty::new("ycsb-c");
    let last = std::sync::Mutex::new(Vec::new());
    faulty.server.script(move |request| {
        let other = std::mem::replace(&mut *last.lock().unwrap(), request.answer.to_vec());
        match request.number {
            700 if other != request.answer => Action::Send(other),
            _ => Action::Answer,
        }
    });
    let outcome = faulty.run(2000);
    // Two reads of one record in a row have the same answer; that one pair cannot be wrong.
    assert!(matches!(failures(&outcome)[..], [] | [(FailureKind::Wrong, 1)]));
}

#[test]
fn a_missing_record_is_a_failure_without_eviction() {
    let faulty = Faulty::new("ycsb-c");
    faulty.server.script(|request| match request.number % 200 {
        3 => Action::Send(b"$-1\r\n".to_vec()),
        _ => Action::Answer,
    });
    let outcome = faulty.run(2000);
    assert_eq!(failures(&outcome), [(FailureKind::Missing, 10)]);
    assert_eq!((outcome.hits, outcome.misses, outcome.missing), (1990, 0, 10));
    assert_eq!(outcome.hit_ratio(), Some(0.995), "what was not there is no hit");
}

#[test]
fn a_partial_answer_times_out() {
    for closes in [false, true] {
        let faulty = Faulty::new("ycsb-c");
        faulty.server.script(move |request| {
            let half = request.answer[..request.answer.len() / 2].to_vec();
            match (request.number, closes) {
                (500, false) => Action::SendAndHang(half),
                (500, true) => Action::SendAndClose(half),
                _ => Action::Answer,
            }
        });
        let outcome = faulty.run(2000);
        let kind = if closes { FailureKind::Closed } else { FailureKind::Timeout };
        let failures = failures(&outcome);
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_eq!(failures[0].0, kind);
        assert!((1..=4).contains(&failures[0].1), "{failures:?}");
        assert_eq!(outcome.operations, 2000);
        faulty.assert_reported(&outcome, &["bytes of"]);
        let longest = outcome.service.iter().map(|(_, h)| h.max()).max().unwrap();
        // Failed operations are in the histogram too, or the tail would look better for them.
        assert!(closes || longest >= 299_000_000, "{longest}");
    }
}

#[test]
fn unrequested_bytes_are_garbage() {
    let faulty = Faulty::new("ycsb-c");
    faulty.server.script(|request| match request.number {
        300 => Action::AnswerAndSend(b"+unrequested\r\n".to_vec()),
        _ => Action::Answer,
    });
    let outcome = faulty.run(2000);
    let failures = failures(&outcome);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].0, FailureKind::Garbage, "{:?}", outcome.failures);
    faulty.assert_reported(&outcome, &["unrequested"]);
}

/// In front of an answer, behind one, and in two pieces around one that comes later.
#[test]
fn push_messages_are_no_answers() {
    const PUSH: &[u8] = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n";
    let (first, second) = PUSH.split_at(17);
    let faulty = Faulty::speaking("resp3", "ycsb-c");
    let pushes = move |request: crate::fake::Received<'_>| match request.on_connection % 4 {
        0 => Action::AnswerAndSend(PUSH.to_vec()),
        1 => Action::Send([PUSH, PUSH, request.answer].concat()),
        2 => Action::AnswerAndSend(first.to_vec()),
        _ => Action::Send([second, request.answer].concat()),
    };
    faulty.server.script(pushes);
    let outcome = faulty.run(2000);
    assert_eq!(outcome.failures, []);
    assert_eq!((outcome.operations, outcome.verified, outcome.reconnected), (2000, 2000, 0));

    // Nothing is under way on these connections for most of the time.
    let mut plan = mix(1, 2, 1);
    plan.shape.pacing = open(40.0);
    plan.shape.until = time(500);
    faulty.server.script(pushes);
    let outcome = run_phase(&faulty.network, &faulty.workload, &plan).unwrap();
    assert_eq!(outcome.failures, []);
    assert_eq!((outcome.operations, outcome.verified, outcome.reconnected), (20, 20, 0));

    // Version 2 of the protocol has none.
    let faulty = Faulty::new("ycsb-c");
    faulty.server.script(pushes);
    let outcome = faulty.run(200);
    assert!(failures(&outcome).iter().any(|(kind, _)| *kind == FailureKind::Garbage));
}

#[test]
fn unrequested_bytes_on_an_idle_connection_are_garbage() {
    let faulty = Faulty::new("ycsb-c");
    faulty.server.script(|request| match request.number {
        3 => Action::AnswerAndSend(b"+unrequested\r\n".to_vec()),
        _ => Action::Answer,
    });
    let mut plan = mix(1, 2, 1);
    plan.shape.pacing = open(20.0);
    plan.shape.until = time(500);
    let outcome = run_phase(&faulty.network, &faulty.workload, &plan).unwrap();
    assert_eq!(failures(&outcome), [(FailureKind::Garbage, 1)]);
    faulty.assert_reported(&outcome, &["sent unrequested bytes: `+unrequested"]);
    assert_eq!(outcome.reconnected, 1);
    assert_eq!(outcome.operations, 10, "no operation came to harm");
}

#[test]
fn closing_an_idle_connection_fails_no_operation() {
    let faulty = Faulty::new("ycsb-c");
    faulty.server.script(|request| match request.on_connection {
        1 => Action::SendAndClose(request.answer.to_vec()),
        _ => Action::Answer,
    });
    let mut plan = mix(1, 2, 1);
    plan.shape.pacing = open(20.0);
    plan.shape.until = time(500);
    let outcome = run_phase(&faulty.network, &faulty.workload, &plan).unwrap();
    assert_eq!(outcome.failures, []);
    assert_eq!(outcome.operations, 10);
    assert!(outcome.reconnected >= 4, "{}", outcome.reconnected);
}

#[test]
fn a_lost_server_ends_the_run_and_keeps_the_measurement() {
    for (paced, warm_up) in [(None, false), (Some(open(2000.0)), false), (None, true)] {
        let faulty = Faulty::new("ycsb-b");
        let kill = faulty.server.killer();
        faulty.server.script(|_| Action::Answer);
        let mut plan = mix(2, 2, 4);
        plan.shape.pacing = paced.unwrap_or(plan.shape.pacing);
        plan.shape.until = time(60_000);
        plan.shape.warm_up = warm_up.then_some(Duration::from_secs(60));
        let later = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(400));
            kill();
        });
        let outcome =
            faulty.within(|| run_phase(&faulty.network, &faulty.workload, &plan).unwrap());
        later.join().unwrap();
        let why = outcome.gave_up.clone().expect("the server is lost");
        assert!(
            why.contains(&faulty.server.address()) && why.contains("did not come back"),
            "{why}"
        );
        let kinds: Vec<FailureKind> = outcome.failures.iter().map(|f| f.kind).collect();
        assert!(kinds.contains(&FailureKind::Lost), "{kinds:?}");
        faulty.assert_reported(
            &outcome,
            &["ended early", if warm_up { "before" } else { "into the window" }],
        );
        assert_eq!(outcome.operations > 0, !warm_up);
        assert!(outcome.seconds < 30.0, "{}", outcome.seconds);
        assert!(!kinds.contains(&FailureKind::Timeout), "{:?}", outcome.failures);
    }
}

#[test]
fn a_killed_or_stopped_server_is_reported() {
    for signal in ["-KILL", "-STOP"] {
        with_each_engine(|engine| {
            let Some(server) = Real::memcached(&["-m", "64"]) else { return };
            let url = format!("memcached://{}?timeout=500ms", server.address());
            let network = network(&url);
            let workload = workload("ycsb-c", 500);
            load(&network, &workload);
            let mut plan = mix(2, 2, 4);
            plan.connections.engine = Some(engine);
            plan.shape.until = time(60_000);
            let begun = Instant::now();
            let outcome = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(400));
                    server.signal(signal);
                });
                run_phase(&network, &workload, &plan).unwrap()
            });
            assert!(begun.elapsed() < LONG / 2, "{signal}: {:?}", begun.elapsed());
            let all = outcome.invalid_because.join("; ");
            assert!(all.contains(&server.address()), "{signal}: {all}");
            assert!(outcome.gave_up.is_some(), "{signal}: {all}");
            assert!(outcome.verified > 0);
            let first = if signal == "-STOP" { FailureKind::Timeout } else { FailureKind::Closed };
            let kinds: Vec<FailureKind> = outcome.failures.iter().map(|f| f.kind).collect();
            assert!(kinds.contains(&first), "{signal} {engine}: {kinds:?}");
        });
    }
}

#[test]
fn a_stalled_server_may_continue() {
    let Some(server) = Real::memcached(&["-m", "64"]) else { return };
    let network = network(&format!("memcached://{}?timeout=30s", server.address()));
    let workload = workload("ycsb-c", 500);
    load(&network, &workload);
    let mut plan = mix(1, 2, 4);
    plan.shape.pacing = open(1000.0);
    plan.shape.until = time(1500);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            server.signal("-STOP");
            std::thread::sleep(Duration::from_millis(400));
            server.signal("-CONT");
        });
        run_phase(&network, &workload, &plan).unwrap()
    });
    assert_eq!(outcome.failures, []);
    let response = &outcome.response[0].1;
    assert!(response.max() >= 300_000_000, "{}", response.max());
    assert_eq!(outcome.operations + outcome.never_sent, outcome.due);
}

#[test]
fn a_server_without_greeting_is_given_up() {
    let faulty = Faulty::new("ycsb-c");
    faulty.server.script(|request| match request.number {
        200.. => Action::SendAndClose(Vec::new()),
        _ => Action::Answer,
    });
    faulty.server.stop_greeting();
    let mut plan = mix(1, 2, 4);
    plan.shape.until = time(60_000);
    // The threads connect after it stopped greeting, so the phase does not begin.
    let error = faulty.within(|| run_phase(&faulty.network, &faulty.workload, &plan));
    assert!(matches!(error, Err(DriveError::Store(_))), "no greeting");
}

#[test]
fn a_server_that_stops_greeting_during_reconnects_is_given_up() {
    for closes in [false, true] {
        let faulty = Faulty::new("ycsb-c");
        let told = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&told);
        faulty.server.script(move |request| match request.number {
            200.. => {
                tell.store(true, Ordering::Release);
                Action::Wait(Duration::from_millis(50))
            }
            _ => Action::Answer,
        });
        let mut plan = mix(1, 2, 4);
        plan.shape.until = time(60_000);
        let outcome = faulty.within(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !told.load(Ordering::Acquire) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    if closes {
                        faulty.server.close_in_greeting()
                    } else {
                        faulty.server.stop_greeting()
                    }
                    faulty.server.script(|_| Action::SendAndClose(Vec::new()));
                });
                run_phase(&faulty.network, &faulty.workload, &plan).unwrap()
            })
        });
        let why = outcome.gave_up.clone().expect("the server is lost");
        assert!(why.contains(if closes { "closed" } else { "no answer in time" }), "{why}");
        faulty.assert_reported(&outcome, &["ended early"]);
        assert!(outcome.verified > 0);
    }
}

#[test]
fn failures_in_a_row_end_the_run_and_keep_the_measurement() {
    let faulty = Faulty::new("ycsb-c");
    faulty.server.script(|request| match request.number {
        500.. => Action::Send(b"-ERR as told\r\n".to_vec()),
        _ => Action::Answer,
    });
    let mut plan = mix(1, 2, 4);
    plan.shape.until = time(60_000);
    let outcome = faulty.within(|| run_phase(&faulty.network, &faulty.workload, &plan).unwrap());
    assert_eq!(outcome.verified, 500);
    let (kind, count) = failures(&outcome)[0];
    assert_eq!(kind, FailureKind::Store);
    assert!((1000..=1000 + SLOTS).contains(&count), "{count}");
    faulty.assert_reported(&outcome, &["failures in a row", "as told"]);
}

#[test]
fn connections_closed_on_every_request_back_off() {
    let faulty = Faulty::new("ycsb-c");
    faulty.server.script(|request| match request.number {
        500.. => Action::SendAndClose(Vec::new()),
        _ => Action::Answer,
    });
    let mut plan = mix(1, 2, 4);
    // Backoff bounds the number of reconnects.
    plan.shape.until = time(2000);
    let outcome = faulty.within(|| run_phase(&faulty.network, &faulty.workload, &plan).unwrap());
    assert_eq!(outcome.verified, 500);
    let (kind, count) = failures(&outcome)[0];
    assert_eq!(kind, FailureKind::Closed);
    assert!(count >= 4 && outcome.reconnected < 200, "{count} {}", outcome.reconnected);
}

#[test]
fn a_lost_server_among_three_is_named() {
    let servers: Vec<Fake> = (0..3).map(|_| Fake::start()).collect();
    let names: Vec<String> = servers.iter().map(Fake::address).collect();
    let network = network(&format!("redis://{}?timeout=300ms", names.join(",")));
    let workload = workload("ycsb-c", 500);
    load(&network, &workload);
    let kill = servers[1].killer();
    let mut plan = mix(2, 2, 4);
    plan.shape.until = time(60_000);
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        kill();
    });
    let begun = Instant::now();
    let outcome = run_phase(&network, &workload, &plan).unwrap();
    later.join().unwrap();
    assert!(begun.elapsed() < LONG / 2);
    let why = outcome.gave_up.expect("a server is lost");
    assert!(why.contains(&names[1]) && !why.contains(&names[0]), "{why}");
    assert!(why.contains(" % of the keys, was lost"), "{why}");
    let kinds: Vec<FailureKind> = outcome.failures.iter().map(|f| f.kind).collect();
    // Requests may or may not have been in flight there; the other servers fail nothing.
    assert!(matches!(kinds[..], [FailureKind::Closed, FailureKind::Lost] | [FailureKind::Lost]));
}

/// Three servers share the keys; the second gets the signals, each after so many milliseconds.
fn without_one_of_three(
    options: &str,
    signals: &'static [(u64, &'static str)],
) -> Option<(PhaseOutcome, String)> {
    let servers: Vec<Real> = (0..3).filter_map(|_| Real::memcached(&["-m", "64"])).collect();
    if servers.len() < 3 {
        return None;
    }
    let names: Vec<String> = servers.iter().map(Real::address).collect();
    let network = network(&format!("memcached://{}?timeout=300ms{options}", names.join(",")));
    let mut spec = spec("ycsb-b", 2000);
    spec.multi_get = 4;
    let workload = made(&spec);
    load(&network, &workload);
    let mut plan = mix(2, 2, 2);
    (plan.shape.pacing, plan.shape.until) = (open(2000.0), time(4000));
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            for (millis, signal) in signals {
                std::thread::sleep(Duration::from_millis(*millis));
                servers[1].signal(signal);
            }
        });
        run_phase(&network, &workload, &plan).unwrap()
    });
    Some((outcome, names[1].clone()))
}

#[test]
fn a_killed_server_is_ejected_where_the_url_says_so() {
    let signals = &[(1500, "-KILL")];
    let Some((outcome, name)) = without_one_of_three("&eject=on", signals) else { return };
    assert_eq!(outcome.failures, []);
    assert_eq!(outcome.gave_up, None);
    let ring = outcome.ring.clone().unwrap();
    assert_eq!(ring.servers, 3);
    assert!((0.2..0.5).contains(&ring.lost_share), "{ring:?}");
    // At most what was in flight.
    assert!(ring.failed <= 2 * 2 * 2, "{ring:?}");
    let words = format!("the server of {:.0} % of the keys was lost", ring.lost_share * 100.0);
    assert!(outcome.warnings.iter().any(|own| own.contains(&words)), "{:?}", outcome.warnings);
    assert!(outcome.misses > 0 && outcome.hits > outcome.misses);
    assert!(outcome.operations > 7500, "{}", outcome.operations);
    assert_eq!(outcome.nodes[&name].intervals.last().unwrap().answers, 0);
    assert_eq!(outcome.nodes[&name].failed, ring.failed);

    // Without the option it ends the run.
    let Some((outcome, name)) = without_one_of_three("", signals) else { return };
    let why = outcome.gave_up.expect("it is lost");
    assert!(why.contains(&name) && why.contains(" % of the keys, was lost"), "{why}");
    assert_eq!(outcome.ring, None);
}

#[test]
fn an_ejected_server_comes_back() {
    let signals = &[(800, "-STOP"), (1200, "-CONT")];
    let Some((outcome, name)) = without_one_of_three("&eject=on", signals) else { return };
    assert_eq!(outcome.failures, []);
    let ring = outcome.ring.clone().unwrap();
    assert!((0.2..0.5).contains(&ring.lost_share) && ring.failed > 0, "{ring:?}");
    let intervals = &outcome.nodes[&name].intervals;
    assert!(intervals.iter().any(|own| own.answers == 0), "it was out");
    let last = &intervals[intervals.len() - 3..];
    assert!(last.iter().any(|own| own.answers > 0), "{intervals:?}");
}
