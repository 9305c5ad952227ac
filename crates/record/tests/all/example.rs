//! An execution and runs with something in every field.

use hdrhistogram::Histogram;
use model::{
    BlockOperation, Design, Execution, Fact, Failures, HarnessTax, KernelBucket, KernelCounts,
    KernelHistogram, KernelQuantity, LatencyClock, LatencyScope, LoopKind, Machine, MissingCounts,
    Op, Origin, Phase, PlannedRun, ProfiledSide, Reading, ReadingValue, Run, RunLatency,
    RunProfile, RunSettings, SampleClock, Scope, Series, SeriesPoint, SlotCategory, SlotEvent,
    SlotShare, Stack, TcpFigures, ThreadState, TopDown, TopDownPass, Unit,
};

pub fn settings(pairs: &[(&str, &str)]) -> RunSettings {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub fn execution(id: &str) -> Execution {
    let planned = |ordinal: u32, label: &str| PlannedRun {
        ordinal,
        label: label.to_owned(),
        settings: settings(&[("store", "rocksdb"), ("repeat", &ordinal.to_string())]),
    };
    Execution {
        id: id.to_owned(),
        study: "quickstart".to_owned(),
        question: Some("Which is faster, and why?".to_owned()),
        spec: "[study]\nname = \"quickstart\"\n".to_owned(),
        seed: u64::MAX,
        command: vec!["kvmeter".to_owned(), "run".to_owned(), "a \"b\", c".to_owned()],
        version: "0.1.0".to_owned(),
        started_at: "2026-01-02T03:04:05Z".to_owned(),
        finished_at: None,
        machine: Machine {
            id: "machine-1".to_owned(),
            facts: vec![
                Fact {
                    name: "cpu.model".to_owned(),
                    value: Ok("EPYC | 7B13".to_owned()),
                    source: "/proc/cpuinfo".to_owned(),
                },
                Fact {
                    name: "memory.speed".to_owned(),
                    value: Err("needs root".to_owned()),
                    source: "dmidecode".to_owned(),
                },
            ],
        },
        // Not in the order of the ordinals, and one without settings.
        plan: vec![
            planned(1, "rocksdb ycsb-a"),
            planned(0, "rocksdb load"),
            PlannedRun { ordinal: 7, label: "idle".to_owned(), settings: RunSettings::new() },
        ],
        design: design(),
        notes: vec!["the budget left 3 of 9 repeats".to_owned()],
    }
}

fn design() -> Design {
    serde_json::from_value(serde_json::json!({
        "kind": "one-at-a-time",
        "factors": [{
            "name": "rate",
            "sets": ["measure.rate"],
            "levels": ["10k", "100k"],
            "within": { "store": ["memcached"] },
        }],
        "baseline": { "rate": "10k" },
        "skipped": [{ "levels": { "rate": "100k" }, "why": "it is not here" }],
        "adaptive": { "metric": "throughput_ops_s", "width": 0.02, "most": 20 },
        "checks": [{ "that": "ipc > 0", "when": "rate == '10k'", "why": "it worked" }],
        "questions": [{ "ask": "Why?", "metric": "ipc", "factor": "rate", "where": { "a": "b" } }],
        "figures": [{ "id": "one", "title": "One", "kind": "lines", "x": "rate", "y": "ipc" }],
        "published": {
            "source": "A. Author, 2022",
            "series": [{
                "id": "one", "metric": "ipc", "unit": "1", "at": { "rate": 10 },
                "points": [{ "x": 10, "y": 0.83 }], "read": "table 1",
            }],
            "findings": [{ "id": "f", "says": "less is more", "where": "section 4" }],
        },
        "scale": { "name": "small", "note": "A twentieth.", "set": { "data.records": "50k" } },
        "platform": "laptop",
    }))
    .unwrap()
}

pub fn histogram(seed: u64) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).unwrap();
    for n in 0..1000u64 {
        histogram.record(1000 + n * n % 97 * 131 + seed * 1000).unwrap();
    }
    histogram.record(7_000_000_000).unwrap();
    histogram
}

pub fn point(at_s: f64, op: Op) -> SeriesPoint {
    SeriesPoint {
        at_s,
        op,
        seconds: 0.999_731,
        operations: 123_457,
        p50_ns: 1234,
        p99_ns: 45_678,
        p999_ns: 98_765,
        max_ns: (1 << 60) + 1,
    }
}

pub fn reading(signal: &str, answer: ReadingValue) -> Reading {
    Reading {
        signal: signal.to_owned(),
        answer,
        unit: Unit::CpuSecondsPerMillionOps,
        scope: Scope::Process,
        source: "getrusage".to_owned(),
        window_s: 10.25,
        origin: Origin::Measured,
    }
}

fn samples(signal: &str, unit: Unit, points: &[(f64, f64)]) -> Series {
    let (at_s, values) = points.iter().copied().unzip();
    let source = "a counter".to_owned();
    let (scope, origin) = (Scope::Package, Origin::Measured);
    Series { signal: signal.to_owned(), unit, scope, source, origin, at_s, values }
}

/// An open loop with all clocks, failures, remarks and tax.
pub fn run(execution: &str, ordinal: u32) -> Run {
    let latency = |op: Op, clock, seed| RunLatency {
        op: op.into(),
        clock,
        histogram: histogram(seed).into(),
    };
    let unavailable = |remedy: Option<&str>| ReadingValue::Unavailable {
        reason: "no counter here".to_owned(),
        remedy: remedy.map(str::to_owned),
    };
    Run {
        id: format!("{execution}-{ordinal}"),
        execution: execution.to_owned(),
        ordinal,
        label: "rocksdb ycsb-a".to_owned(),
        phase: Phase::Measure,
        settings: settings(&[
            ("store", "rocksdb"),
            ("workload", "ycsb-a"),
            ("threads", "2"),
            ("repeat", &ordinal.to_string()),
            ("store.path", "/tmp/a, \"b\"\nc|d"),
        ]),
        store_version: "RocksDB 11.8.1".to_owned(),
        threads: 2,
        pacing: LoopKind::Open { rate_ops_s: 40_000.5, arrivals: "poisson".to_owned() },
        started_at: "2026-01-02T03:05:05Z".to_owned(),
        seconds: 10.0,
        operations: 400_004,
        verified: 200_001,
        misses: 3,
        failures: vec![
            Failures { kind: "torn".to_owned(), count: 2, first: "key user1".to_owned() },
            Failures { kind: "store".to_owned(), count: 5, first: "I/O error".to_owned() },
        ],
        invalid_because: vec!["the client was 97 % busy".to_owned(), "7 errors".to_owned()],
        warnings: vec!["0.3 % of the CPU time was stolen".to_owned()],
        latencies: vec![
            latency(Op::Update, LatencyClock::Response, 3),
            latency(Op::Read, LatencyClock::Service, 1),
            latency(Op::Read, LatencyClock::Response, 2),
            latency(Op::Read, LatencyClock::Arrival, 4),
            RunLatency {
                op: LatencyScope::Any,
                clock: LatencyClock::Server,
                histogram: histogram(5).into(),
            },
        ]
        .into(),
        series: vec![point(1.0, Op::Read), point(1.0, Op::Update), point(2.0, Op::Read)],
        readings: vec![
            reading("cpu_s_per_mop", ReadingValue::Value(3.25)),
            reading("energy.package", unavailable(Some("run as root"))),
            reading("energy.meter", unavailable(None)),
            Reading {
                unit: Unit::JoulesPerOp,
                scope: Scope::PackageAndMemory,
                ..reading("joules_per_op", ReadingValue::Value(0.000_25))
            },
            reading("ipc", ReadingValue::Value(1.25)),
            reading("client.achieved_rate", ReadingValue::Value(39_990.25)),
            reading("cache.hit_ratio", ReadingValue::Value(0.875)),
        ],
        samples: vec![
            samples("power.package.0", Unit::Watts, &[(-0.25, 40.5), (0.75, 61.25), (1.75, 60.0)]),
            samples("temperature.max", Unit::Celsius, &[(0.5, 54.0)]),
            samples("power.none", Unit::Watts, &[]),
        ],
        profile: None,
        tax: Some(HarnessTax {
            ns_per_op: 81.5,
            clock_ns: 22.25,
            verify_ns: Some(30.5),
            busy: 0.97,
            measured_before_run: Some(1),
        }),
        stream: settings(&[("fingerprint", "00ff"), ("skew.top_1_percent", "0.41")]),
    }
}

/// A closed loop of a load phase: valid, and with every list and option empty.
pub fn bare_run(execution: &str, ordinal: u32) -> Run {
    Run {
        label: "rocksdb load".to_owned(),
        phase: Phase::Load,
        settings: settings(&[("store", "lmdb")]),
        pacing: LoopKind::Closed { think_s: 0.001 },
        failures: Vec::new(),
        invalid_because: Vec::new(),
        warnings: Vec::new(),
        latencies: Default::default(),
        series: Vec::new(),
        readings: Vec::new(),
        samples: Vec::new(),
        profile: None,
        tax: None,
        stream: RunSettings::new(),
        ..run(execution, ordinal)
    }
}

/// What a pass after a run found.
pub fn profile() -> RunProfile {
    let stack = |state, frames: &[&str], samples| Stack {
        side: ProfiledSide::Server,
        process: "memcached".to_owned(),
        state,
        frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
        samples,
        seconds: samples as f64 / 100.0,
    };
    RunProfile {
        clock: SampleClock::Software,
        frequency: 499,
        kernel: true,
        seconds: 2.0,
        operations: 1000,
        lost: 3,
        stacks: vec![
            stack(ThreadState::OnCpu, &["main", "read_[k]"], 12),
            stack(ThreadState::Blocked, &[], 1),
        ],
        counts: Some(kernel_counts()),
        top_down: Some(top_down()),
    }
}

fn top_down() -> TopDownPass {
    let unavailable = |remedy: Option<&str>| ReadingValue::Unavailable {
        reason: "the kernel refused it".to_owned(),
        remedy: remedy.map(str::to_owned),
    };
    let process = |side, process: &str, user_only| TopDown {
        side,
        process: process.to_owned(),
        cpu: "AMD Zen 4".to_owned(),
        source: "a file".to_owned(),
        user_only,
        shares: vec![
            SlotShare { category: SlotCategory::Retiring, share: ReadingValue::Value(0.25) },
            SlotShare { category: SlotCategory::BackendBound, share: unavailable(Some("ask it")) },
            SlotShare { category: SlotCategory::MemoryBound, share: unavailable(None) },
        ],
        events: vec![
            SlotEvent {
                event: "cpu/event=0x76/ (ls_not_halted_cyc)".to_owned(),
                count: ReadingValue::Value(1e9),
                running: 0.5,
            },
            SlotEvent {
                event: "cpu/event=0x1a0/".to_owned(),
                count: unavailable(None),
                running: 0.0,
            },
        ],
    };
    TopDownPass {
        seconds: 2.5,
        operations: 70,
        processes: vec![
            process(ProfiledSide::Client, "kvmeter", false),
            process(ProfiledSide::Server, "memcached", true),
        ],
        missing: Some("redis-server: it has ended".to_owned()),
    }
}

fn kernel_counts() -> KernelCounts {
    let bucket = |low, width, count, sum| KernelBucket { low, width, count, sum };
    let histogram = |quantity, subject: &str, side, operation| KernelHistogram {
        quantity,
        subject: subject.to_owned(),
        side,
        operation,
        buckets: vec![bucket(0, 1, 2, 0), bucket(4096, 256, 3, 12_288)],
    };
    KernelCounts {
        histograms: vec![
            histogram(KernelQuantity::RunQueue, "memcached", Some(ProfiledSide::Server), None),
            histogram(KernelQuantity::BlockWait, "vda", None, Some(BlockOperation::Flush)),
            histogram(KernelQuantity::BlockSize, "vda", None, Some(BlockOperation::Write)),
            histogram(KernelQuantity::Softirq, "NET_RX", None, None),
        ],
        connections: vec![TcpFigures {
            side: ProfiledSide::Client,
            process: "kvmeter".to_owned(),
            connections: 8,
            retransmitted: 1,
            median_rtt_us: 45.0,
            max_rtt_us: 120.0,
            mean_send_queue: 0.5,
            max_send_queue: 64,
            mean_receive_queue: 12.25,
            max_receive_queue: 4096,
        }],
        missing: vec![MissingCounts {
            what: "run queues".to_owned(),
            reason: "this kernel has no bpf(2)".to_owned(),
        }],
        lost: 7,
    }
}
