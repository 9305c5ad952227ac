//! Two servers at rising rates, watched from both sides, with an objective: what a sweep
//! leaves. One server's count holds requests of others, and both end beyond what they can do.

use hdrhistogram::Histogram;
use model::{
    Execution, LatencyClock, LatencyScope, LoopKind, Op, Origin, Phase, Reading, ReadingValue, Run,
    RunLatency, RunSettings, Scope, Unit,
};

use super::execution;

const SAMPLES: u64 = 20_000;
const SECONDS: f64 = 10.0;

struct Server {
    url: &'static str,
    version: &'static str,
    /// Operations per second that it can do.
    capacity: f64,
    cpu_s_per_mop: f64,
}

const MEMCACHED: Server = Server {
    url: "memcached://127.0.0.1:21211",
    version: "memcached 1.6.18",
    capacity: 118_000.0,
    cpu_s_per_mop: 8.4,
};
const REDIS: Server = Server {
    url: "redis://127.0.0.1:26379",
    version: "Redis 7.0.15",
    capacity: 92_000.0,
    cpu_s_per_mop: 10.7,
};

/// Samples at even quantiles: a body from `least_ns` on and a tail that is steeper the larger
/// `scale_ns` is. A root is the same to the last bit everywhere.
fn histogram(least_ns: f64, scale_ns: f64, each: u64) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("3 digits are allowed");
    for i in 0..SAMPLES {
        let quantile = (i as f64 + 0.5) / SAMPLES as f64;
        let value = least_ns + scale_ns * (quantile / (1.0 - quantile)).sqrt();
        histogram.record_n(value as u64, each).expect("it grows");
    }
    histogram
}

fn reading(signal: &str, value: f64, unit: Unit, scope: Scope, source: &str) -> Reading {
    Reading {
        signal: signal.to_owned(),
        answer: ReadingValue::Value(value),
        unit,
        scope,
        source: source.to_owned(),
        window_s: SECONDS,
        origin: Origin::Measured,
    }
}

fn readings(server: &Server, rate: f64, achieved: f64) -> Vec<Reading> {
    let mops = achieved * SECONDS / 1e6;
    // Fewer wake-ups an operation the busier it is.
    let cpu = server.cpu_s_per_mop * (1.35 - 0.35 * (rate / server.capacity).min(1.0));
    let switches = 9e5 * (1.02 - rate / server.capacity).max(0.02);
    let (per_mop, proc) = (Unit::PerMillionOps, "/proc/PID/stat over operations");
    vec![
        reading("client.achieved_rate", achieved, Unit::OpsPerSecond, Scope::Client, "answers"),
        reading("cache.hit_ratio", 0.934, Unit::Ratio, Scope::Client, "answers"),
        reading("server.cpu", cpu * mops, Unit::Seconds, Scope::Server, "/proc/PID/stat"),
        reading(
            "server.cpu_s_per_mop",
            cpu,
            Unit::CpuSecondsPerMillionOps,
            Scope::Server,
            "server.cpu / operations",
        ),
        reading("server.context_switches_per_mop", switches, per_mop, Scope::Server, proc),
        reading("server.syscalls_per_mop", 2.1e6, per_mop, Scope::Server, proc),
    ]
}

fn settings(server: &Server, rate: f64) -> RunSettings {
    [
        ("store", server.url.to_owned()),
        ("workload", "etc".to_owned()),
        ("threads", "1".to_owned()),
        ("rate", rate.to_string()),
        ("arrivals", "poisson".to_owned()),
        ("slo", "p99<1ms".to_owned()),
        ("repeat", "1".to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

fn run(server: &Server, rate: f64, ordinal: u32) -> Run {
    let achieved = rate.min(server.capacity * 0.995);
    let behind = achieved < 0.99 * rate;
    let spare = (server.capacity - rate).max(0.004 * server.capacity);
    let queue_ns = if behind { 4e7 } else { 1e9 / spare };
    let each = (achieved * SECONDS) as u64 / SAMPLES;
    let latency = |op, clock, least: f64, scale: f64| RunLatency {
        op,
        clock,
        histogram: histogram(least, scale, each).into(),
    };
    let read = LatencyScope::One(Op::Read);
    let service = (queue_ns * 0.8).min(1e6);
    let mut server_side = latency(LatencyScope::Any, LatencyClock::Server, 3.1e3, 2.2e3);
    if server.url == REDIS.url && rate == 20_000.0 {
        // Another client's requests are in its count.
        let mut both = server_side.histogram.histogram();
        both.record_n(450_000, SAMPLES * each / 50).expect("it grows");
        server_side.histogram = both.into();
    }
    let kind = server.url.split(':').next().unwrap_or_default();
    Run {
        id: format!("sweep-{ordinal}"),
        execution: "e3".to_owned(),
        ordinal,
        label: format!("{kind} etc {}k", rate / 1e3),
        phase: Phase::Measure,
        settings: settings(server, rate),
        store_version: server.version.to_owned(),
        threads: 1,
        pacing: LoopKind::Open { rate_ops_s: rate, arrivals: "poisson".to_owned() },
        started_at: "2026-03-02T10:00:00Z".to_owned(),
        seconds: SECONDS,
        operations: (achieved * SECONDS) as u64,
        verified: (achieved * SECONDS) as u64,
        misses: 0,
        failures: Vec::new(),
        invalid_because: match behind {
            true => vec![format!("{achieved:.0} of {rate:.0} ops/s were achieved; lower --rate")],
            false => Vec::new(),
        },
        warnings: Vec::new(),
        latencies: vec![
            latency(read, LatencyClock::Response, 48e3, queue_ns),
            latency(read, LatencyClock::Service, 46e3, service),
            latency(read, LatencyClock::Arrival, 31e3, service * 0.9),
            server_side,
        ]
        .into(),
        series: Vec::new(),
        readings: readings(server, rate, achieved),
        profile: None,
        tax: None,
        samples: Vec::new(),
        stream: std::collections::BTreeMap::new(),
    }
}

/// Both servers in turn, in an order that is not that of the rates.
pub fn sweep() -> Vec<(Execution, Vec<Run>)> {
    let rates = [60.0, 20.0, 100.0, 40.0, 120.0, 80.0, 110.0].map(|kops| kops * 1e3);
    let parameters = rates.into_iter().flat_map(|rate| [(&MEMCACHED, rate), (&REDIS, rate)]);
    let runs: Vec<Run> =
        parameters.enumerate().map(|(i, (server, rate))| run(server, rate, i as u32)).collect();
    vec![(execution("e3", "which-cache", Some("Which cache holds 1 ms at p99?"), &runs), runs)]
}
