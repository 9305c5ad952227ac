//! A study as it might have run: the YCSB sequence on RocksDB with repeats, an open loop,
//! runs that do not count, warnings and readings that are missing; and LMDB beside it.
//! Everything follows from fixed seeds: the snapshots are of it.

mod factorial;
mod sweep;

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use model::{
    BlockOperation, Execution, Fact, Failures, HarnessTax, KernelBucket, KernelCounts,
    KernelHistogram, KernelQuantity, LatencyClock, LoopKind, Machine, MissingCounts, Op, Origin,
    Phase, PlannedRun, ProfiledSide, Reading, ReadingValue, Run, RunLatency, RunProfile,
    RunSettings, SampleClock, Scope, SeriesPoint, SlotCategory, SlotShare, Stack, ThreadState,
    TopDown, TopDownPass, Unit,
};

pub use factorial::factorial;
pub use sweep::sweep;

const SAMPLES: u64 = 20_000;
const SECONDS: f64 = 10.0;

/// The same numbers on every machine.
struct Dice(u64);

impl Dice {
    fn uniform(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal: the sum of twelve uniform numbers.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// A body around `median_ns`, and a tail of rare stalls.
fn histogram(dice: &mut Dice, median_ns: f64, stall_ns: f64, count: u64) -> Histogram<u64> {
    let mut h = Histogram::<u64>::new(3).expect("3 digits are allowed");
    let weight = (count / SAMPLES).max(1);
    for _ in 0..SAMPLES.min(count) {
        // Powers of two by multiplication and a root: the same to the last bit everywhere.
        let body = median_ns * (1.0 + 0.18 * dice.normal()).max(0.35);
        let value = match dice.uniform() {
            u if u < 0.0008 => stall_ns * (1.0 + 3.0 * dice.uniform()),
            u if u < 0.012 => body * (4.0 + 8.0 * dice.uniform()),
            _ => body,
        };
        h.record_n(value as u64, weight).expect("it grows");
    }
    h
}

struct RunParameters {
    store: &'static str,
    version: &'static str,
    workload: &'static str,
    phase: Phase,
    ops: &'static [(Op, f64, f64)],
    kops: f64,
    pacing: LoopKind,
    repeat: u32,
}

const ROCKS: (&str, &str) = ("rocksdb:/data/kvmeter/db?cache=1GiB", "RocksDB 11.8.1");
const LMDB: (&str, &str) = ("lmdb:/data/kvmeter/lmdb", "LMDB 0.9.33");

fn closed() -> LoopKind {
    LoopKind::Closed { think_s: 0.0 }
}

fn open(rate_ops_s: f64) -> LoopKind {
    LoopKind::Open { rate_ops_s, arrivals: "poisson".to_owned() }
}

/// Operations with their share and their median service time in µs.
fn mix(workload: &str) -> &'static [(Op, f64, f64)] {
    match workload {
        "ycsb-a" => &[(Op::Read, 0.5, 4.1), (Op::Update, 0.5, 7.3)],
        "ycsb-b" => &[(Op::Read, 0.95, 3.6), (Op::Update, 0.05, 7.9)],
        "ycsb-c" => &[(Op::Read, 1.0, 3.2)],
        "ycsb-d" => &[(Op::Read, 0.95, 2.7), (Op::Insert, 0.05, 9.1)],
        "ycsb-e" => &[(Op::Scan, 0.95, 61.0), (Op::Insert, 0.05, 10.2)],
        "ycsb-f" => &[(Op::Read, 0.5, 4.0), (Op::ReadModifyWrite, 0.5, 11.8)],
        _ => &[(Op::Insert, 1.0, 6.4)],
    }
}

fn parameters(
    store: (&'static str, &'static str),
    workload: &'static str,
    kops: f64,
    repeat: u32,
) -> RunParameters {
    let phase = if workload == "load" { Phase::Load } else { Phase::Measure };
    RunParameters {
        store: store.0,
        version: store.1,
        workload,
        phase,
        ops: mix(workload),
        kops,
        pacing: closed(),
        repeat,
    }
}

fn settings(parameters: &RunParameters) -> RunSettings {
    let mut settings: RunSettings = BTreeMap::new();
    let mut set = |key: &str, value: String| settings.insert(key.to_owned(), value);
    set("store", parameters.store.to_owned());
    set(
        "workload",
        if parameters.workload == "load" { "ycsb-a" } else { parameters.workload }.to_owned(),
    );
    set("workload.records", "1M".to_owned());
    set("workload.value_size", "1000".to_owned());
    set("threads", "2".to_owned());
    set("repeat", parameters.repeat.to_string());
    if let LoopKind::Open { rate_ops_s, arrivals } = &parameters.pacing {
        set("rate", format!("{rate_ops_s}"));
        set("arrivals", arrivals.clone());
    }
    settings
}

fn reading(signal: &str, answer: ReadingValue, unit: Unit, scope: Scope, source: &str) -> Reading {
    Reading {
        signal: signal.to_owned(),
        answer,
        unit,
        scope,
        source: source.to_owned(),
        window_s: SECONDS,
        origin: Origin::Measured,
    }
}

fn readings(parameters: &RunParameters, operations: u64) -> Vec<Reading> {
    let value = |v: f64| ReadingValue::Value(v);
    let mop = operations as f64 / 1e6;
    let cpu = 1.6 * 1000.0 / parameters.kops;
    let mut all = vec![
        reading(
            "cpu.user",
            value(cpu * 0.78 * mop),
            Unit::Seconds,
            Scope::Process,
            "getrusage: ru_utime",
        ),
        reading(
            "cpu.system",
            value(cpu * 0.22 * mop),
            Unit::Seconds,
            Scope::Process,
            "getrusage: ru_stime",
        ),
        reading(
            "cpu_s_per_mop",
            value(cpu),
            Unit::CpuSecondsPerMillionOps,
            Scope::Process,
            "cpu.user + cpu.system over operations",
        ),
        reading(
            "memory.peak",
            value(1.31e9),
            Unit::Bytes,
            Scope::Process,
            "/proc/self/status: VmHWM",
        ),
        reading("steal.share", value(0.0021), Unit::Ratio, Scope::Machine, "/proc/stat: steal"),
        Reading {
            window_s: 0.0,
            ..reading(
                "energy.package",
                ReadingValue::Unavailable {
                    reason: "/sys/class/powercap holds no intel-rapl zone: a virtual machine"
                        .to_owned(),
                    remedy: Some("run on the physical machine, as root".to_owned()),
                },
                Unit::Joules,
                Scope::Machine,
                "/sys/class/powercap",
            )
        },
    ];
    let writes: f64 =
        parameters.ops.iter().filter(|(op, _, _)| op.writes()).map(|(_, share, _)| share).sum();
    if writes > 0.0 && parameters.store == ROCKS.0 {
        all.push(reading(
            "io.written",
            value(3.4 * writes * operations as f64 * 1024.0),
            Unit::Bytes,
            Scope::Process,
            "/proc/self/io: write_bytes",
        ));
        all.push(reading(
            "write_amplification",
            value(2.9 + writes),
            Unit::Ratio,
            Scope::Process,
            "io.written over bytes asked to be written",
        ));
    }
    if parameters.store == LMDB.0 {
        all.push(Reading {
            origin: Origin::Modelled,
            ..reading(
                "write_amplification",
                value(4.5),
                Unit::Ratio,
                Scope::Store,
                "page size over value size",
            )
        });
    }
    all
}

fn series(parameters: &RunParameters, dice: &mut Dice) -> Vec<SeriesPoint> {
    let mut points = Vec::new();
    for second in 1..=10u32 {
        let stalled = second == 7 && parameters.ops.iter().any(|(op, _, _)| op.writes());
        let dip = if stalled { 0.55 } else { 1.0 + 0.03 * dice.normal() };
        for (op, share, median_us) in parameters.ops {
            let ns = median_us * 1e3 * (1.0 + 0.04 * dice.normal());
            let tail = if stalled { 40.0 } else { 1.0 + 0.1 * dice.uniform() };
            points.push(SeriesPoint {
                at_s: f64::from(second),
                op: *op,
                seconds: 1.0,
                operations: (parameters.kops * 1e3 * share * dip) as u64,
                p50_ns: ns as u64,
                p99_ns: (ns * 5.0 * tail) as u64,
                p999_ns: (ns * 11.0 * tail) as u64,
                max_ns: (ns * 300.0 * tail) as u64,
            });
        }
    }
    points
}

fn run(parameters: &RunParameters, ordinal: u32, execution: &str) -> Run {
    let mut dice = Dice(0x5eed ^ u64::from(ordinal) << 8);
    let operations = (parameters.kops * 1e3 * SECONDS) as u64;
    let mut latencies = Vec::new();
    for (op, share, median_us) in parameters.ops {
        let count = (operations as f64 * share) as u64;
        let service = histogram(&mut dice, median_us * 1e3, 4.0e6, count);
        if let LoopKind::Open { rate_ops_s, .. } = parameters.pacing {
            let behind = if rate_ops_s > parameters.kops * 1e3 * 1.01 { 900.0 } else { 1.35 };
            let response = histogram(&mut dice, median_us * 1e3 * behind, 2.1e7, count);
            latencies.push(RunLatency {
                op: (*op).into(),
                clock: LatencyClock::Response,
                histogram: response.into(),
            });
        }
        latencies.push(RunLatency {
            op: (*op).into(),
            clock: LatencyClock::Service,
            histogram: service.into(),
        });
    }
    let store = parameters.store.split(':').next().unwrap_or_default();
    Run {
        id: format!("{execution}-{ordinal}"),
        execution: execution.to_owned(),
        ordinal,
        label: format!("{store} {}", parameters.workload),
        phase: parameters.phase,
        settings: settings(parameters),
        store_version: parameters.version.to_owned(),
        threads: 2,
        pacing: parameters.pacing.clone(),
        started_at: "2026-03-01T10:00:00Z".to_owned(),
        seconds: SECONDS,
        operations,
        verified: operations / 2,
        misses: 0,
        failures: Vec::new(),
        invalid_because: Vec::new(),
        warnings: Vec::new(),
        latencies: latencies.into(),
        series: series(parameters, &mut dice),
        readings: readings(parameters, operations),
        profile: None,
        tax: (parameters.phase == Phase::Measure).then_some(HarnessTax {
            ns_per_op: 81.0,
            clock_ns: 26.0,
            verify_ns: Some(112.0),
            busy: 0.043,
            measured_before_run: None,
        }),
        samples: Vec::new(),
        stream: BTreeMap::from([
            ("top 1 % of keys".to_owned(), "54.2 % of requests".to_owned()),
            ("top 10,000 keys".to_owned(), "40.0 % of requests".to_owned()),
        ]),
    }
}

fn machine() -> Machine {
    let fact = |name: &str, value: &str, source: &str| Fact {
        name: name.to_owned(),
        value: Ok(value.to_owned()),
        source: source.to_owned(),
    };
    let unknown = |name: &str, reason: &str, source: &str| Fact {
        name: name.to_owned(),
        value: Err(reason.to_owned()),
        source: source.to_owned(),
    };
    Machine {
        id: "m-4f2a91c07b3e".to_owned(),
        facts: vec![
            fact("cpu.model", "AMD EPYC 9B45", "/proc/cpuinfo"),
            fact("cpu.topology", "1 socket, 1 core, 2 threads", "/sys/devices/system/cpu"),
            fact(
                "cpu.caches",
                "L1d 48 KiB, L2 1 MiB, L3 32 MiB",
                "/sys/devices/system/cpu/cpu0/cache",
            ),
            unknown(
                "cpu.governor",
                "no cpufreq here: the host decides",
                "/sys/devices/system/cpu/cpu0/cpufreq",
            ),
            fact("memory.total", "7.75 GiB", "/proc/meminfo"),
            fact("memory.huge_pages", "madvise", "/sys/kernel/mm/transparent_hugepage/enabled"),
            fact("kernel.release", "6.12.9", "/proc/sys/kernel/osrelease"),
            fact(
                "kernel.mitigations",
                "spectre_v2: retpolines; retbleed: not affected",
                "/sys/devices/system/cpu/vulnerabilities",
            ),
            fact("storage.filesystem", "ext4, rw, relatime", "/proc/self/mountinfo"),
            unknown("storage.device", "the device hides behind virtio", "/sys/dev/block"),
        ],
    }
}

fn execution(id: &str, study: &str, question: Option<&str>, runs: &[Run]) -> Execution {
    Execution {
        id: id.to_owned(),
        study: study.to_owned(),
        question: question.map(str::to_owned),
        spec: "question = \"How fast does RocksDB serve YCSB here?\"\n\n[store.rocksdb]\ncache = \"1GiB\"\n\n[workload]\nrecords = \"1M\"\n".to_owned(),
        seed: 42,
        command: ["kvmeter", "run", "quickstart", "--set", "store.rocksdb.cache=1GiB & more"].map(str::to_owned).to_vec(),
        version: "kvmeter 0.1.0".to_owned(),
        started_at: "2026-03-01T09:58:12Z".to_owned(),
        finished_at: Some("2026-03-01T10:02:40Z".to_owned()),
        machine: machine(),
        plan: runs
            .iter()
            .map(|run| PlannedRun {
                ordinal: run.ordinal,
                label: run.label.clone(),
                settings: run.settings.clone(),
            })
            .collect(),
        design: model::Design::default(),
        notes: Vec::new(),
    }
}

/// A run over three servers, of which one serves nothing and one cannot be watched.
pub fn servers() -> Vec<(Execution, Vec<Run>)> {
    let mut own =
        run(&parameters(("redis://10.0.0.2", "Redis 7.0.15"), "ycsb-b", 90.0, 1), 0, "e3");
    own.label = "redis ycsb-b".to_owned();
    let names = ["10.20.30.40:7000", "server-2.rack-17.example.org:7001", "replica:7002"];
    for (name, kops, micros) in
        [(names[0], 60.0, 85.0), (names[1], 30.0, 1234.5), (names[2], 0.0, 0.0)]
    {
        let put = |figure: &str, value: f64, unit| {
            let signal = format!("node.{name}.{figure}");
            reading(&signal, ReadingValue::Value(value), unit, Scope::Client, "")
        };
        own.readings.push(put("rate", kops * 1e3, Unit::OpsPerSecond));
        if kops > 0.0 {
            own.readings.push(put("latency", micros / 1e6, Unit::Seconds));
            own.readings.push(put("p99", micros * 3.0 / 1e6, Unit::Seconds));
            own.readings.push(put("hit_ratio", 0.875, Unit::Ratio));
        }
        let failed = if kops > 0.0 { 0.0 } else { 1675.0 };
        own.readings.push(put("failed", failed, Unit::Count));
        if name != names[1] {
            own.readings.push(put("cpu", 0.05 + kops / 10.0, Unit::Seconds));
        }
    }
    own.readings.push(reading(
        "node.imbalance",
        ReadingValue::Value(1.33),
        Unit::Ratio,
        Scope::Client,
        "",
    ));
    let runs = vec![own];
    vec![(execution("e3", "bench", None, &runs), runs)]
}

/// One execution of RocksDB and one of LMDB.
pub fn study() -> Vec<(Execution, Vec<Run>)> {
    let mut asks: Vec<RunParameters> = [
        ("load", 131.0, 1),
        ("ycsb-a", 172.4, 1),
        ("ycsb-b", 251.7, 1),
        ("ycsb-c", 301.2, 1),
        ("ycsb-c", 297.9, 2),
        ("ycsb-c", 212.0, 3),
        ("ycsb-f", 118.6, 1),
        ("ycsb-d", 322.1, 1),
        ("load", 128.5, 2),
        ("ycsb-e", 15.43, 1),
    ]
    .map(|(workload, kops, repeat)| parameters(ROCKS, workload, kops, repeat))
    .into();
    asks.push(RunParameters { pacing: open(40_000.0), ..parameters(ROCKS, "ycsb-a", 39.98, 1) });
    asks.push(RunParameters { pacing: open(200_000.0), ..parameters(ROCKS, "ycsb-a", 168.3, 1) });
    let mut rocks: Vec<Run> =
        asks.iter().enumerate().map(|(i, ask)| run(ask, i as u32, "e1")).collect();
    rocks[5].invalid_because.push(
        "11.3 % of the CPU time was stolen by other guests of this host; repeat it when the host \
         is quieter, or allow more with --max-steal"
            .to_owned(),
    );
    rocks[11].invalid_because.push(
        "168,300 of 200,000 ops/s were achieved (84 %, less than 99 %): the store was saturated; \
         lower --rate or add --threads"
            .to_owned(),
    );
    rocks[11].failures.push(Failures {
        kind: "store".to_owned(),
        count: 3,
        first: "Resource temporarily unavailable".to_owned(),
    });
    for i in [0, 8] {
        rocks[i]
            .warnings
            .push("the window was shorter than a compaction; load more with --records".to_owned());
    }
    rocks[1]
        .warnings
        .push("throughput fell by 45 % at 7 s: a write stall; see the time series".to_owned());
    let asks = [("load", 402.0), ("ycsb-a", 203.3), ("ycsb-b", 512.4), ("ycsb-c", 684.0)];
    let lmdb: Vec<Run> = asks
        .iter()
        .enumerate()
        .map(|(i, (workload, kops))| {
            run(&parameters(LMDB, workload, *kops, 1), 40 + i as u32, "e2")
        })
        .collect();
    let question = Some("How fast does RocksDB serve YCSB on this machine?");
    let first = execution("e1", "quickstart", question, &rocks);
    let second = execution("e2", "bench", None, &lmdb);
    vec![(first, rocks), (second, lmdb)]
}

/// A study's runs, each with its execution.
pub fn pairs(study: &[(Execution, Vec<Run>)]) -> Vec<(&Execution, &Run)> {
    study
        .iter()
        .flat_map(|(execution, runs)| runs.iter().map(move |run| (execution, run)))
        .collect()
}

/// A run of a server, with what a pass after it found.
pub fn profiled() -> Vec<(Execution, Vec<Run>)> {
    let mut study = servers();
    let stack = |side, process: &str, state, frames: &str, samples: u64| Stack {
        side,
        process: process.to_owned(),
        state,
        frames: frames.split(';').map(str::to_owned).collect(),
        samples,
        seconds: samples as f64 / 100.0,
    };
    let (client, server) = (ProfiledSide::Client, ProfiledSide::Server);
    let send = "main;drive_machine;do_syscall_64_[k];__x64_sys_sendmsg_[k];tcp_sendmsg_[k];\
                tcp_sendmsg_locked_[k]";
    let profile = RunProfile {
        clock: SampleClock::Software,
        frequency: 100,
        kernel: true,
        seconds: 10.0,
        operations: 1000,
        lost: 0,
        stacks: vec![
            stack(client, "kvmeter", ThreadState::OnCpu, send, 200),
            stack(client, "kvmeter", ThreadState::OnCpu, "main;assoc_find", 100),
            stack(client, "kvmeter", ThreadState::OnCpu, "main;drive_machine", 100),
            stack(server, "memcached", ThreadState::Preempted, "main", 50),
            stack(server, "memcached", ThreadState::OnCpu, "main;<script>;\"x\"", 50),
        ],
        counts: Some(kernel_counts()),
        top_down: Some(top_down()),
    };
    study[0].1[0].profile = Some(Box::new(profile));
    study
}

fn top_down() -> TopDownPass {
    use SlotCategory::*;
    let shares = [
        (Retiring, 0.31),
        (BadSpeculation, 0.08),
        (FrontendBound, 0.17),
        (BackendBound, 0.44),
        (FetchLatency, 0.12),
        (FetchBandwidth, 0.05),
        (MemoryBound, 0.36),
        (CoreBound, 0.08),
    ];
    let share = |(category, share)| SlotShare { category, share: ReadingValue::Value(share) };
    TopDownPass {
        seconds: 10.0,
        operations: 1000,
        processes: vec![TopDown {
            side: ProfiledSide::Server,
            process: "memcached".to_owned(),
            cpu: "AMD Zen 4".to_owned(),
            source: "a vendor's file".to_owned(),
            user_only: false,
            shares: shares.map(share).to_vec(),
            events: Vec::new(),
        }],
        missing: None,
    }
}

fn kernel_counts() -> KernelCounts {
    let histogram = |quantity, subject: &str, side, operation, values: &[(u64, u64)]| {
        let bucket = |(value, count): &(u64, u64)| KernelBucket {
            low: *value,
            width: 1,
            count: *count,
            sum: value * count,
        };
        let buckets = values.iter().map(bucket).collect();
        KernelHistogram { quantity, subject: subject.to_owned(), side, operation, buckets }
    };
    let (server, read) = (Some(ProfiledSide::Server), Some(BlockOperation::Read));
    let waits = [(2_000, 300), (14_000, 680), (3_000_000, 20)];
    KernelCounts {
        histograms: vec![
            histogram(KernelQuantity::RunQueue, "memcached", server, None, &waits),
            histogram(KernelQuantity::BlockWait, "<vda>", None, read, &[(4_000, 100)]),
            histogram(
                KernelQuantity::BlockLatency,
                "<vda>",
                None,
                read,
                &[(80_000, 99), (1_200_000, 1)],
            ),
            histogram(KernelQuantity::BlockSize, "<vda>", None, read, &[(16_384, 100)]),
        ],
        connections: Vec::new(),
        missing: vec![MissingCounts {
            what: "softirqs".to_owned(),
            reason: "this kernel has no tracepoint softirq_entry".to_owned(),
        }],
        lost: 0,
    }
}
