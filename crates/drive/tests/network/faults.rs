//! Servers that go bad in mid-run: each fault has its kind, its count and its words, and the
//! phase ends in bounded time with what was measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use drive::{DriveError, FailureKind, Network, PhaseOutcome};
use workload::Workload;

use crate::fake::{Do, Fake};
use crate::support::*;

/// Under way at once in these tests.
const SLOTS: u64 = 8;

struct Bad {
    server: Fake,
    network: Arc<Network>,
    workload: Arc<Workload>,
}

impl Bad {
    /// A good server with data, so far.
    fn new(preset: &str) -> Bad {
        let server = Fake::start();
        let network = network(&format!("redis://{}?timeout=300ms", server.address()));
        let workload = workload(preset, 200);
        load(&network, &workload);
        Bad { server, network, workload }
    }

    /// 2 connections of depth 4, until so many operations.
    fn run(&self, count: u64) -> PhaseOutcome {
        let mut plan = mix(1, 2, 4);
        plan.until = operations(count);
        self.within(|| ask(&self.network, &self.workload, &plan).unwrap())
    }

    fn within<T>(&self, run: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = run();
        assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
        result
    }

    /// The outcome names its server, and is invalid.
    fn told(&self, outcome: &PhaseOutcome, words: &[&str]) {
        let all = outcome.invalid_because.join("; ");
        for word in words.iter().chain([&self.server.address().as_str()]) {
            assert!(all.contains(word), "`{word}` is not told: {all}");
        }
    }
}

#[test]
fn connections_that_are_closed_again_and_again_are_made_again() {
    let bad = Bad::new("ycsb-c");
    bad.server.script(|asked| match asked.on_connection {
        49 => Do::SayAndClose(asked.answer.to_vec()),
        _ => Do::Answer,
    });
    let outcome = bad.run(2000);
    assert_eq!(outcome.operations, 2000, "failed ones included");
    let failures = failures(&outcome);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].0, FailureKind::Closed);
    // Each time, those behind the answered one are lost, and the one asked in its place where the
    // answer was seen before the end: at most its depth.
    assert!(outcome.reconnected >= 30, "{}", outcome.reconnected);
    assert!(failures[0].1 <= 4 * (outcome.reconnected + 2), "{failures:?}");
    assert_eq!(outcome.verified + failures[0].1, 2000);
    assert_eq!(bad.server.connections(), 2 + outcome.reconnected);
    assert_eq!(outcome.gave_up, None);
    bad.told(&outcome, &["closed"]);
}

#[test]
fn every_wrong_answer_has_its_kind_and_its_words() {
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
    for (what, says, kind, words) in kinds {
        let bad = Bad::new("ycsb-c");
        let says = says.to_vec();
        bad.server.script(move |asked| match asked.number {
            500 => Do::Say(says.clone()),
            _ => Do::Answer,
        });
        let outcome = bad.run(2000);
        let failures = failures(&outcome);
        assert_eq!(failures.len(), 1, "{what}: {failures:?}");
        assert_eq!(failures[0].0, kind, "{what}");
        assert!((1..=4).contains(&failures[0].1), "{what}: {failures:?}");
        assert_eq!(outcome.operations, 2000, "{what}");
        bad.told(&outcome, &[words]);
        let lines = u64::from(!matches!(kind, FailureKind::Store | FailureKind::OutOfMemory));
        // The other connection may have asked all the rest before.
        assert!(outcome.reconnected <= lines, "{what}: {}", outcome.reconnected);
        assert!(outcome.failures[0].first.len() < 400, "{what}: {}", outcome.failures[0].first);
    }
}

#[test]
fn a_wrong_value_of_the_right_length_is_found() {
    let bad = Bad::new("ycsb-c");
    bad.server.script(|asked| {
        let mut wrong = asked.answer.to_vec();
        let middle = wrong.len() / 2;
        wrong[middle] ^= 1;
        if asked.number % 100 == 7 { Do::Say(wrong) } else { Do::Answer }
    });
    let outcome = bad.run(2000);
    assert_eq!(failures(&outcome), [(FailureKind::Wrong, 20)]);
    assert_eq!((outcome.verified, outcome.reconnected), (1980, 0));
}

#[test]
fn the_value_of_another_key_is_found() {
    // RESP names no key in its answers: the value itself tells.
    let bad = Bad::new("ycsb-c");
    let last = std::sync::Mutex::new(Vec::new());
    bad.server.script(move |asked| {
        let other = std::mem::replace(&mut *last.lock().unwrap(), asked.answer.to_vec());
        match asked.number {
            700 if other != asked.answer => Do::Say(other),
            _ => Do::Answer,
        }
    });
    let outcome = bad.run(2000);
    // Two reads of one record in a row have the same answer; that one pair cannot be wrong.
    assert!(matches!(failures(&outcome)[..], [] | [(FailureKind::Wrong, 1)]));
}

#[test]
fn a_missing_record_is_a_failure_where_the_server_forgets_nothing() {
    let bad = Bad::new("ycsb-c");
    bad.server.script(|asked| match asked.number % 200 {
        3 => Do::Say(b"$-1\r\n".to_vec()),
        _ => Do::Answer,
    });
    let outcome = bad.run(2000);
    assert_eq!(failures(&outcome), [(FailureKind::Missing, 10)]);
    assert_eq!((outcome.hits, outcome.misses, outcome.missing), (1990, 0, 10));
    assert_eq!(outcome.hit_ratio(), Some(0.995), "what was not there is no hit");
}

#[test]
fn half_an_answer_and_then_nothing_is_waited_for_no_longer_than_the_timeout() {
    for closes in [false, true] {
        let bad = Bad::new("ycsb-c");
        bad.server.script(move |asked| {
            let half = asked.answer[..asked.answer.len() / 2].to_vec();
            match (asked.number, closes) {
                (500, false) => Do::SayAndFreeze(half),
                (500, true) => Do::SayAndClose(half),
                _ => Do::Answer,
            }
        });
        let outcome = bad.run(2000);
        let kind = if closes { FailureKind::Closed } else { FailureKind::Timeout };
        let failures = failures(&outcome);
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_eq!(failures[0].0, kind);
        assert!((1..=4).contains(&failures[0].1), "{failures:?}");
        assert_eq!(outcome.operations, 2000);
        bad.told(&outcome, &["bytes of"]);
        let longest = outcome.service.iter().map(|(_, h)| h.max()).max().unwrap();
        // What came to nothing has its latency too, or the tail would look better for it.
        assert!(closes || longest >= 299_000_000, "{longest}");
    }
}

#[test]
fn bytes_that_nobody_asked_for_are_garbage() {
    let bad = Bad::new("ycsb-c");
    bad.server.script(|asked| match asked.number {
        300 => Do::AnswerAndSay(b"+unasked\r\n".to_vec()),
        _ => Do::Answer,
    });
    let outcome = bad.run(2000);
    let failures = failures(&outcome);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].0, FailureKind::Garbage, "{:?}", outcome.failures);
    bad.told(&outcome, &["unasked"]);
}

#[test]
fn bytes_on_an_idle_connection_are_garbage_too() {
    let bad = Bad::new("ycsb-c");
    bad.server.script(|asked| match asked.number {
        3 => Do::AnswerAndSay(b"+unasked\r\n".to_vec()),
        _ => Do::Answer,
    });
    let mut plan = mix(1, 2, 1);
    plan.pacing = open(20.0);
    plan.until = time(500);
    let outcome = ask(&bad.network, &bad.workload, &plan).unwrap();
    assert_eq!(failures(&outcome), [(FailureKind::Garbage, 1)]);
    bad.told(&outcome, &["sent unasked: `+unasked"]);
    assert_eq!(outcome.reconnected, 1);
    assert_eq!(outcome.operations, 10, "no operation came to harm");
}

#[test]
fn an_idle_connection_that_is_closed_harms_nothing() {
    let bad = Bad::new("ycsb-c");
    bad.server.script(|asked| match asked.on_connection {
        1 => Do::SayAndClose(asked.answer.to_vec()),
        _ => Do::Answer,
    });
    let mut plan = mix(1, 2, 1);
    plan.pacing = open(20.0);
    plan.until = time(500);
    let outcome = ask(&bad.network, &bad.workload, &plan).unwrap();
    assert_eq!(outcome.failures, []);
    assert_eq!(outcome.operations, 10);
    assert!(outcome.reconnected >= 4, "{}", outcome.reconnected);
}

#[test]
fn a_server_that_dies_ends_the_run_and_what_was_measured_is_kept() {
    for (paced, warm_up) in [(None, false), (Some(open(2000.0)), false), (None, true)] {
        let bad = Bad::new("ycsb-b");
        let kill = bad.server.killer();
        bad.server.script(|_| Do::Answer);
        let mut plan = mix(2, 2, 4);
        plan.pacing = paced.unwrap_or(plan.pacing);
        plan.until = time(60_000);
        plan.warm_up = warm_up.then_some(Duration::from_secs(60));
        let later = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(400));
            kill();
        });
        let outcome = bad.within(|| ask(&bad.network, &bad.workload, &plan).unwrap());
        later.join().unwrap();
        let why = outcome.gave_up.clone().expect("it is gone");
        assert!(why.contains(&bad.server.address()) && why.contains("did not come back"), "{why}");
        let kinds: Vec<FailureKind> = outcome.failures.iter().map(|f| f.kind).collect();
        assert!(kinds.contains(&FailureKind::Lost), "{kinds:?}");
        bad.told(&outcome, &["ended early", if warm_up { "before" } else { "into the window" }]);
        assert_eq!(outcome.operations > 0, !warm_up);
        assert!(outcome.seconds < 30.0, "{}", outcome.seconds);
        assert!(!kinds.contains(&FailureKind::Timeout), "{:?}", outcome.failures);
    }
}

#[test]
fn a_real_server_that_is_killed_or_stopped_is_told() {
    for signal in ["-KILL", "-STOP"] {
        with_each_engine(|engine| {
            let Some(server) = Real::memcached(&["-m", "64"]) else { return };
            let url = format!("memcached://{}?timeout=500ms", server.address());
            let network = network(&url);
            let workload = workload("ycsb-c", 500);
            load(&network, &workload);
            let mut plan = mix(2, 2, 4);
            plan.connections.engine = Some(engine);
            plan.until = time(60_000);
            let begun = Instant::now();
            let outcome = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(400));
                    server.signal(signal);
                });
                ask(&network, &workload, &plan).unwrap()
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
fn a_server_that_stalls_for_a_while_goes_on() {
    let Some(server) = Real::memcached(&["-m", "64"]) else { return };
    let network = network(&format!("memcached://{}?timeout=30s", server.address()));
    let workload = workload("ycsb-c", 500);
    load(&network, &workload);
    let mut plan = mix(1, 2, 4);
    plan.pacing = open(1000.0);
    plan.until = time(1500);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            server.signal("-STOP");
            std::thread::sleep(Duration::from_millis(400));
            server.signal("-CONT");
        });
        ask(&network, &workload, &plan).unwrap()
    });
    assert_eq!(outcome.failures, []);
    let response = &outcome.response[0].1;
    assert!(response.max() >= 300_000_000, "{}", response.max());
    assert_eq!(outcome.operations + outcome.never_sent, outcome.due);
}

#[test]
fn a_server_that_takes_connections_and_never_greets_is_given_up() {
    let bad = Bad::new("ycsb-c");
    bad.server.script(|asked| match asked.number {
        200.. => Do::SayAndClose(Vec::new()),
        _ => Do::Answer,
    });
    bad.server.greets_no_more();
    let mut plan = mix(1, 2, 4);
    plan.until = time(60_000);
    // Connected before it went mute? Then the phase could not even begin.
    let error = bad.within(|| ask(&bad.network, &bad.workload, &plan));
    assert!(matches!(error, Err(DriveError::Store(_))), "nobody greets");
}

#[test]
fn a_server_that_goes_mute_while_connections_are_made_again_is_given_up() {
    for slams in [false, true] {
        let bad = Bad::new("ycsb-c");
        let told = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&told);
        bad.server.script(move |asked| match asked.number {
            200.. => {
                tell.store(true, Ordering::Release);
                Do::Wait(Duration::from_millis(50))
            }
            _ => Do::Answer,
        });
        let mut plan = mix(1, 2, 4);
        plan.until = time(60_000);
        let outcome = bad.within(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !told.load(Ordering::Acquire) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    if slams {
                        bad.server.slams_the_door()
                    } else {
                        bad.server.greets_no_more()
                    }
                    bad.server.script(|_| Do::SayAndClose(Vec::new()));
                });
                ask(&bad.network, &bad.workload, &plan).unwrap()
            })
        });
        let why = outcome.gave_up.clone().expect("it is gone");
        assert!(why.contains(if slams { "closed" } else { "no answer in time" }), "{why}");
        bad.told(&outcome, &["ended early"]);
        assert!(outcome.verified > 0);
    }
}

#[test]
fn nothing_but_failures_ends_the_run_and_keeps_it() {
    let bad = Bad::new("ycsb-c");
    bad.server.script(|asked| match asked.number {
        500.. => Do::Say(b"-ERR as told\r\n".to_vec()),
        _ => Do::Answer,
    });
    let mut plan = mix(1, 2, 4);
    plan.until = time(60_000);
    let outcome = bad.within(|| ask(&bad.network, &bad.workload, &plan).unwrap());
    assert_eq!(outcome.verified, 500);
    let (kind, count) = failures(&outcome)[0];
    assert_eq!(kind, FailureKind::Store);
    assert!((1000..=1000 + SLOTS).contains(&count), "{count}");
    bad.told(&outcome, &["failures in a row", "as told"]);
}

#[test]
fn connections_that_are_closed_on_every_request_end_the_run_too() {
    let bad = Bad::new("ycsb-c");
    bad.server.script(|asked| match asked.number {
        500.. => Do::SayAndClose(Vec::new()),
        _ => Do::Answer,
    });
    let mut plan = mix(1, 2, 4);
    // Pauses between the tries bound how often it is knocked at the door.
    plan.until = time(2000);
    let outcome = bad.within(|| ask(&bad.network, &bad.workload, &plan).unwrap());
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
    plan.until = time(60_000);
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        kill();
    });
    let begun = Instant::now();
    let outcome = ask(&network, &workload, &plan).unwrap();
    later.join().unwrap();
    assert!(begun.elapsed() < LONG / 2);
    let why = outcome.gave_up.expect("one is gone");
    assert!(why.contains(&names[1]) && !why.contains(&names[0]), "{why}");
    let kinds: Vec<FailureKind> = outcome.failures.iter().map(|f| f.kind).collect();
    // Whether anything was under way there just then is chance; elsewhere all ends well.
    assert!(matches!(kinds[..], [FailureKind::Closed, FailureKind::Lost] | [FailureKind::Lost]));
}
