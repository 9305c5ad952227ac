//! The server's side against the client's.

mod synthetic;

use analyse::side_checks::checks;
use hdrhistogram::Histogram;
use model::{LatencyClock, LatencyScope, Op, Run, RunLatency};
use synthetic::{Random, run};

/// A run with these latencies in nanoseconds, as value and count.
fn both(server: &[(u64, u64)], client: &[(u64, u64)]) -> Run {
    let latency = |op, clock, values: &[(u64, u64)]| {
        let mut histogram = Histogram::<u64>::new(3).expect("digits that exist");
        for (value, count) in values {
            histogram.record_n(*value, *count).expect("it grows");
        }
        RunLatency { op, clock, histogram: histogram.into() }
    };
    let half: Vec<(u64, u64)> = client.iter().map(|(value, count)| (*value, count / 2)).collect();
    Run {
        latencies: vec![
            latency(LatencyScope::One(Op::Read), LatencyClock::Service, &half),
            latency(LatencyScope::One(Op::Update), LatencyClock::Service, &half),
            // The queue of an open loop: if this were the client's side, nothing would breach.
            latency(LatencyScope::One(Op::Read), LatencyClock::Response, &[(1 << 40, 1_000)]),
            latency(LatencyScope::Any, LatencyClock::Server, server),
        ]
        .into(),
        ..run("memcached", &[("store", "memcached")], 1_000.0, 50_000.0, 3)
    }
}

fn held(server: &[(u64, u64)], client: &[(u64, u64)]) -> Vec<bool> {
    checks(&both(server, client)).iter().map(|check| check.holds()).collect()
}

#[test]
fn a_server_within_its_client_holds() {
    let server = [(5_000, 9_800), (25_000, 200)];
    assert_eq!(held(&server, &[(60_000, 9_800), (200_000, 200)]), [true; 3]);
    // Equal to the bucket is not above.
    assert_eq!(held(&server, &server), [true; 3]);
}

/// Whatever the two distributions are, a request cannot be longer inside the server than
/// outside; only the first check depends on their shape.
#[test]
fn requests_that_also_cross_a_network_hold() {
    for seed in 1..20 {
        let mut random = Random::new(seed);
        let (mut server, mut client) = (Vec::new(), Vec::new());
        for _ in 0..2_000 {
            let inside = 5e3 * (1.5 * random.normal()).exp();
            server.push((inside as u64 + 1, 2));
            client.push(((inside + 3e4 * random.share()) as u64 + 1, 2));
        }
        assert_eq!(held(&server, &client)[1..], [true; 2], "{seed}");
    }
}

#[test]
fn each_breach_is_found_alone() {
    let server = [(5_000, 9_800), (90_000, 200)];
    // p99 above the client's, the mean below.
    assert_eq!(held(&server, &[(60_000, 10_000)]), [true, false, true]);
    // The mean above the client's, p99 below: few very slow ones on the client's side.
    let slow = [(50_000, 10_000)];
    assert_eq!(held(&slow, &[(1_000, 9_000), (60_000, 1_000)]), [true, true, false]);
    // The mean above its own p99: one in a thousand takes all the time.
    let stalled = [(5_000, 9_990), (90_000_000, 10)];
    assert_eq!(held(&stalled, &[(90_000_000, 10_000)]), [false, true, true]);
}

#[test]
fn a_breach_has_both_numbers_and_an_explanation() {
    let result = checks(&both(&[(90_000, 1_000)], &[(60_000, 1_000)]));
    let breach = result.iter().find(|check| !check.holds()).expect("p99 is above");
    assert!((breach.lesser.nanoseconds - 90_000.0).abs() < 100.0, "{breach:?}");
    assert!((breach.greater.nanoseconds - 60_000.0).abs() < 100.0, "{breach:?}");
    assert!(breach.explanation().contains("other clients"));
}

#[test]
fn without_a_side_there_is_nothing_to_check() {
    let mut run = both(&[(1, 1)], &[(1, 2)]);
    run.latencies = run.latencies[..3].to_vec().into();
    assert_eq!(checks(&run), []);
    let mut run = both(&[(1, 1)], &[(1, 2)]);
    let mut latencies = run.latencies.to_vec();
    latencies[3].histogram = model::Distribution::default();
    run.latencies = latencies.into();
    assert_eq!(checks(&run), []);
}
