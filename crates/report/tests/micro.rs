//! Tables of microbenchmarks, of plain rows.
#![allow(clippy::unwrap_used)]

use model::{Distribution, Origin, Reading, ReadingValue, Scope, Unit};
use report::micro::{
    ClockCost, KernelRate, LatencyCurve, MemoryLevel, MemoryTraffic, NetBench, NetCell, NsSpread,
    StreamCell, clocks, latency, levels, net, stream, traffic,
};
use report::{Style, table::Table, terminal};

fn text(tables: &[Table]) -> String {
    let style = Style { color: false, width: 120, unicode: true };
    tables.iter().map(|table| terminal::table(table, &style)).collect::<Vec<_>>().join("\n")
}

fn spread(min: f64) -> NsSpread {
    NsSpread { min, median: min * 1.1, mean: min * 1.2, max: min * 3.0 }
}

#[test]
fn costs_and_latencies() {
    let clock = |name, step_ns| ClockCost { name, read: spread(21.5), step_ns, stated_ns: None };
    let huge_bytes = Ok(0);
    let curve = LatencyCurve {
        cpu: 3,
        stride_bytes: 64,
        pages: "system".to_owned(),
        huge_bytes: &huge_bytes,
        points: vec![(32 << 10, spread(1.25)), (1 << 30, spread(98.0))],
    };
    let found = [
        MemoryLevel { load_ns: 1.25, bytes: Some(32 << 10), stated: Some(("L1d", 48 << 10)) },
        MemoryLevel { load_ns: 98.0, bytes: None, stated: None },
    ];
    let tables = [
        clocks(&[clock("monotonic", Some(1.0)), clock("coarse", None)]),
        latency(&curve),
        levels(&found),
    ];
    insta::assert_snapshot!("costs", text(&tables));
}

#[test]
fn bandwidth_and_traffic() {
    let kernel = |name, best_gb_s| KernelRate {
        name,
        best_gb_s,
        mean_gb_s: best_gb_s * 0.9,
        worst_gb_s: best_gb_s * 0.5,
        min_s: 0.01,
        mean_s: 0.011,
        max_s: 0.02,
    };
    let huge_bytes = Err("no smaps".to_owned());
    let cell = StreamCell {
        threads: 2,
        cpus: &[0, 1],
        array_bytes: 128 << 20,
        stores: "plain".to_owned(),
        placement: "first-touch".to_owned(),
        rounds: 10,
        huge_bytes: &huge_bytes,
        nodes: vec![0],
        kernels: vec![kernel("copy", 21.5), kernel("triad", 19.25)],
    };
    let moved = MemoryTraffic {
        kind: "read".to_owned(),
        cpus: &[0, 1],
        buffer_bytes: 64 << 20,
        target_gb_s: Some(10.0),
        gb_s: 9.5,
        reached_target: false,
        bytes: 95_000_000_000,
        seconds: 10.0,
        intervals_gb_s: [Some(9.0), Some(9.5), Some(10.0)],
        interval_ms: 100,
    };
    insta::assert_snapshot!("bandwidth", text(&[stream(&[cell]), traffic(&moved)]));
}

#[test]
fn a_cell_without_latency_or_counters_says_why() {
    let mut histogram = hdrhistogram::Histogram::new(3).unwrap();
    (1..=1000).for_each(|us| histogram.record(us * 1000).unwrap());
    let misses = Reading {
        signal: "llc.miss_ratio".to_owned(),
        answer: ReadingValue::Unavailable {
            reason: "no hardware counters".to_owned(),
            remedy: Some("run on the physical machine".to_owned()),
        },
        unit: Unit::Ratio,
        scope: Scope::Process,
        source: String::new(),
        window_s: 1.0,
        origin: Origin::Measured,
    };
    let good = NetCell {
        message_bytes: 64,
        stack: "kernel".to_owned(),
        transport: "udp".to_owned(),
        connections: 1,
        stride_bytes: 64,
        reuse_bytes: 0,
        messages: 990,
        messages_s: Some(99_000.0),
        bytes_s: Some(6.3e6),
        latency: Ok(Distribution::from(&histogram)),
        lost: Some(10),
        late: 2,
        client_ns_per_byte: Some(12.5),
        server_ns_per_byte: None,
        misses: Some(&misses),
        polls: false,
        valid: true,
    };
    let none = NetCell {
        latency: Err("this end measures no latency"),
        messages: 0,
        messages_s: None,
        bytes_s: None,
        lost: None,
        valid: false,
        ..good.clone()
    };
    let shown = text(&[net(NetBench::Flow, &[good, none])]);
    insta::assert_snapshot!("flow", shown);
}
