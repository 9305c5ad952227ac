//! One name, one figure.

#[expect(dead_code, reason = "nothing is drawn here")]
mod synthetic;

use analyse::{BetterDirection, Metric, MetricError, metric_value};
use hdrhistogram::Histogram;
use model::{LatencyClock, LatencyScope, LoopKind, Op, ReadingValue, Run, RunLatency, Scope};
use synthetic::{reading, run};

/// An open loop whose clocks all differ: 1 us in the server, 10 us of service, 100 us of
/// response for reads, and 1000 us of response for updates.
fn an_open_loop() -> Run {
    let latency = |op, clock, us: u64| {
        let mut histogram = Histogram::<u64>::new(3).expect("digits that exist");
        histogram.record_n(us * 1000, 100).expect("it grows");
        RunLatency { op, clock, histogram: histogram.into() }
    };
    let mut run = run("memcached", &[("store", "memcached")], 1_000.0, 50_000.0, 3);
    run.pacing = LoopKind::Open { rate_ops_s: 2_000.0, arrivals: "poisson".to_owned() };
    run.latencies = vec![
        latency(LatencyScope::One(Op::Read), LatencyClock::Service, 10),
        latency(LatencyScope::One(Op::Read), LatencyClock::Response, 100),
        latency(LatencyScope::One(Op::Update), LatencyClock::Response, 1000),
        latency(LatencyScope::Any, LatencyClock::Server, 1),
    ]
    .into();
    let mut energy = reading("energy.total", 120.0);
    (energy.scope, energy.window_s) = (Scope::PackageAndMemory, 3.0);
    let mut missing = reading("ipc", 0.0);
    missing.answer = ReadingValue::Unavailable { reason: "no PMU".to_owned(), remedy: None };
    run.readings.extend([energy, missing, reading("residency.C6-SKX", 0.25)]);
    run.stream.insert("skew.alpha".to_owned(), "0.99".to_owned());
    run
}

#[track_caller]
fn near(run: &Run, name: &str, expected: f64) {
    let value = metric_value(run, name).expect("the run has it");
    assert!((value / expected - 1.0).abs() < 2e-3, "{name} is {value}, not {expected}");
}

#[test]
fn every_kind_of_name_has_a_value() {
    let run = an_open_loop();
    near(&run, "throughput_ops_s", 1000.0);
    near(&run, "target_rate_ops_s", 2000.0);
    near(&run, "latency_us.read.p99", 100.0);
    near(&run, "latency_us.update.p99_9", 1000.0);
    near(&run, "latency_us.service.read.p50", 10.0);
    near(&run, "latency_us.service.p50", 10.0);
    near(&run, "service_us.read.mean", 10.0);
    near(&run, "latency_us.server.p99", 1.0);
    near(&run, "server_latency_us.any.p99", 1.0);
    near(&run, "latency_us.max", 1000.0);
    near(&run, "latency_us.count", 200.0);
    near(&run, "power_w", 40.0);
    near(&run, "cpu_s_per_mop", 1000.0);
    near(&run, "residency.C6-SKX", 0.25);
    near(&run, "stream.skew.alpha", 0.99);
}

#[test]
fn missing_values_have_a_reason() {
    let run = an_open_loop();
    for (name, words) in [
        ("ipc", "no PMU"),
        ("mpki.llc", "no `mpki.llc` was read"),
        ("latency_us.delete.p99", "no response latency of delete"),
        ("latency_us.arrival.p99", "no arrival latency"),
        ("achieved_rate_ops_s", "client.achieved_rate"),
    ] {
        let error = metric_value(&run, name).unwrap_err();
        assert!(matches!(error, MetricError::Unavailable(_)), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn refuses_invalid_names() {
    for (name, words) in [
        ("latency_us", "latency_us.read.p99"),
        ("latency_us.reed.p99", "did you mean `read`?"),
        ("latency_us.read.p100", "`p100` is not a point"),
        ("latency_us.read", "`read` is not a point"),
        ("latency_us.service.read.extra.p99", "one part too many"),
        ("server_latency_us.service.p99", "neither an operation nor a clock"),
        ("", "letters"),
        ("a b", "letters"),
        ("stream.", "letters"),
    ] {
        let error = Metric::parse(name).unwrap_err();
        assert!(matches!(error, MetricError::Name { .. }), "{error}");
        assert!(error.to_string().contains(words), "{name}: {error}");
    }
}

#[test]
fn units_and_directions_follow_the_name() {
    let of = |name: &str| Metric::parse(name).expect("a name");
    let run = an_open_loop();
    assert_eq!(of("latency_us.read.p99").unit(None), Some("us"));
    assert_eq!(of("throughput_ops_s").unit(None), Some("ops/s"));
    assert_eq!(of("ops_per_joule").unit(None), None);
    assert_eq!(of("ipc").unit(Some(&run)), Some(""));
    assert_eq!(of("throughput_ops_s").direction(), BetterDirection::More);
    assert_eq!(of("latency_us.p50").direction(), BetterDirection::Less);
    assert_eq!(of("ops_per_joule").direction(), BetterDirection::More);
    assert_eq!(of("psi.cpu.some").direction(), BetterDirection::Neither);
}
