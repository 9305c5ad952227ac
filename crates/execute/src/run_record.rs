//! Assembles the record of a run: outcome, readings and derived figures.

use std::collections::BTreeMap;

use analyse::cost::{Platform, usd_per_gop};
use analyse::meter_checks::{MeterContext, meter_breaches};
use analyse::{IdleContext, efficiency};
use drive::{ClusterCounts, PhaseOutcome};
use host::Throttled;
use model::signal::{
    CACHE_HIT_RATIO, CACHE_REFILLS, CALIBRATED_MAXIMUM, CLIENT_ACHIEVED_RATE,
    CLIENT_ANSWERED_IN_TIME, CLIENT_BUSY, CLIENT_DROPPED, CLIENT_DUE, CLIENT_LATENESS,
    CLIENT_NEVER_SENT, CLIENT_QUEUE_LONGEST, CLIENT_QUEUE_WAIT, CLIENT_QUEUED, CLIENT_RECONNECTED,
    CLIENT_WAKE_UP, CLUSTER_ASKED, CLUSTER_JOINED, CLUSTER_LOST_KEYS, CLUSTER_LOST_SLOTS,
    CLUSTER_MOVED, CLUSTER_RETRIED, CLUSTER_SERVED_LATE, CLUSTER_UNAVAILABLE, CPU_PACER_SPIN,
    DATABASE_LATENCY, DISK_BYTES, MISS_COUNT, MISS_LATENCY, MISS_P50, MISS_P99, RING_FAILED,
    RING_LOST_SHARE, SERVER_IO_READ, SERVER_IO_WRITTEN, SETTLING, SPACE_AMPLIFICATION,
    STORE_STATISTIC, Signal, WORKLOAD_READ, WORKLOAD_WRITTEN, WRITE_AMPLIFICATION_SETTLED,
};
use model::{
    Execution, Failures, HarnessTax, LatencyClock, LatencyScope, LoopKind, Op, Origin, Pacing,
    Phase, Reading, ReadingValue, Run, RunLatency, RunSettings, Scope, Series, Unavailable, Unit,
};
use store::{ANY_CERTIFICATE, Statistic, Survives};
use study::{LoadConfig, Maximum};
use workload::Skew;

use crate::co_runner;
use crate::execution_cache::CachedTax;
use crate::hit_ratio;
use crate::load_step::LoadStep;
use crate::nodes;
use crate::server_side::WindowReadings;

/// A shorter window says little about a rate. Below one second, because a window of a second may
/// end some milliseconds early.
const SHORT_WINDOW_S: f64 = 0.9;

pub(crate) struct MeasuredRun<'a> {
    pub(crate) execution: &'a Execution,
    pub(crate) step: LoadStep<'a>,
    /// The load configuration of the run.
    pub(crate) load_config: &'a LoadConfig,
    pub(crate) started_at: String,
    pub(crate) version: String,
    pub(crate) options: Vec<(String, String)>,
    pub(crate) survives: Option<Survives>,
    pub(crate) outcome: &'a PhaseOutcome,
    /// Readings of the window.
    pub(crate) readings: Vec<Reading>,
    /// Samples over the window.
    pub(crate) samples: Vec<Series>,
    /// The power of the idle machine.
    pub(crate) idle: &'a [Reading],
    pub(crate) platform: Result<&'a Platform, &'a Unavailable>,
    /// The store runs on this machine.
    pub(crate) here: bool,
    /// Readings of the time in which the store settled afterwards.
    pub(crate) settling: Option<Vec<Reading>>,
    /// The store's own: before the window, after it, and when the store has settled.
    pub(crate) statistics: (Vec<Statistic>, Vec<Statistic>, Vec<Statistic>),
    /// None where it was not measured.
    pub(crate) tax: Option<CachedTax>,
    pub(crate) skew: Option<Skew>,
    pub(crate) disk_bytes: Option<u64>,
    /// The store is behind a network.
    pub(crate) networked: bool,
    /// The store is in other processes.
    pub(crate) in_servers: bool,
    /// Readings of its servers.
    pub(crate) servers: WindowReadings,
    pub(crate) facts: &'a RunSettings,
    /// Records that the store holds after the run, as far as they were not deleted.
    pub(crate) records: u64,
    /// Warnings besides those derived from the readings.
    pub(crate) warnings: Vec<String>,
}

pub(crate) fn assemble(measured: MeasuredRun<'_>) -> Run {
    let MeasuredRun { execution, step, outcome, .. } = &measured;
    let mut settings = step.settings.clone();
    settings.extend(measured.facts.clone());
    for (option, value) in &measured.options {
        settings.insert(format!("store.{option}"), value.clone());
    }
    let survives =
        measured.survives.map(|survives| (Run::SURVIVES.to_owned(), survives.to_string()));
    settings.extend(survives);
    let readings = readings(&measured);
    let quota = QuotaReadings::of(&readings);
    let mut warnings = quota.advised(&outcome.warnings);
    warnings.extend(quota.doubts.iter().cloned());
    warnings.extend(measured.warnings.iter().cloned());
    warnings.extend(measured.servers.warnings.iter().cloned());
    warnings.extend(unverified(&settings).map(str::to_owned));
    warnings.extend(doubts(step.phase(), outcome, &readings));
    warnings.extend(contradictions(&measured.readings, measured.here));
    let (before, after, _) = &measured.statistics;
    warnings.extend(hit_ratio::doubt(*step, outcome));
    warnings.extend(hit_ratio::lost_loading(*step, outcome, before, after));
    let named = |clock, histograms: &[(Op, _)]| {
        let latency = move |(op, histogram): &(Op, hdrhistogram::Histogram<u64>)| RunLatency {
            op: (*op).into(),
            clock,
            histogram: histogram.into(),
        };
        histograms.iter().map(latency).collect::<Vec<_>>()
    };
    let mut latencies = named(LatencyClock::Response, &outcome.response);
    latencies.extend(named(LatencyClock::Service, &outcome.service));
    latencies.extend(named(LatencyClock::Arrival, &outcome.arrival));
    if let Some(histogram) = measured.servers.latency.clone() {
        latencies.push(RunLatency {
            op: LatencyScope::Any,
            clock: LatencyClock::Server,
            histogram: histogram.into(),
        });
    }
    let failure = |failure: &drive::AnswerFailure| Failures {
        kind: failure.kind.name().to_owned(),
        count: failure.count,
        first: failure.first.clone(),
    };
    let mut run = Run {
        id: uuid::Uuid::new_v4().to_string(),
        execution: execution.id.clone(),
        ordinal: step.ordinal,
        label: step.label.clone(),
        phase: step.phase(),
        settings,
        store_version: measured.version.clone(),
        threads: outcome.threads as u32,
        pacing: match measured.load_config.shape.pacing {
            Pacing::Closed { think } => LoopKind::Closed { think_s: think.as_secs_f64() },
            Pacing::Open { rate, arrivals } => LoopKind::Open {
                rate_ops_s: measured.load_config.mean_rate().unwrap_or(rate),
                arrivals: arrivals.to_string(),
            },
            Pacing::Recorded { .. } => LoopKind::Open {
                rate_ops_s: crate::replay_notes::rate(outcome.due, outcome.seconds),
                arrivals: step.load.load_config.arrivals(),
            },
        },
        started_at: measured.started_at.clone(),
        seconds: outcome.seconds,
        operations: outcome.operations,
        verified: outcome.verified,
        misses: outcome.misses,
        failures: outcome.failures.iter().map(failure).collect(),
        invalid_because: quota.advised(&outcome.invalid_because),
        warnings,
        latencies: latencies.into(),
        series: outcome.series.clone(),
        readings,
        samples: [
            crate::offered_rate::series(measured.load_config, outcome).into_iter().collect(),
            measured.samples.clone(),
            nodes::series(outcome),
        ]
        .concat(),
        profile: None,
        tax: measured.tax.map(|CachedTax { tax, run }| HarnessTax {
            ns_per_op: tax.ns_per_op,
            clock_ns: tax.clock_ns,
            verify_ns: Some(tax.verify_ns),
            busy: outcome.harness_share,
            measured_before_run: Some(run),
        }),
        stream: stream(outcome, measured.skew.as_ref(), measured.step),
    };
    // In work units the platform's CPU is part of what is measured.
    match run.settings.contains_key(analyse::mbwu::keys::STAGE) {
        true => run.warnings.extend(quota.rules),
        false => run.invalid_because.extend(quota.rules),
    }
    run.invalid_because.extend(run.unexpected_hit_ratio());
    run
}

fn stream(
    outcome: &PhaseOutcome,
    skew: Option<&Skew>,
    step: LoadStep<'_>,
) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut put = |key: &str, value: String| drop(facts.insert(key.to_owned(), value));
    put("operations_drawn", outcome.drawn.to_string());
    for (op, count) in outcome.counts.iter().filter(|(_, count)| **count > 0) {
        put(&format!("asked.{op}"), count.to_string());
    }
    if outcome.scanned > 0 {
        put("records_scanned", outcome.scanned.to_string());
    }
    if outcome.fingerprint != 0 {
        put("fingerprint", format!("{:016x}", outcome.fingerprint));
    }
    // The stream can be generated again from it.
    if step.phase() == Phase::Measure
        && step.activity.trace().is_none()
        && let Ok(workload) = serde_json::to_string(&step.load.workload)
    {
        put(Run::WORKLOAD, workload);
    }
    if outcome.redirected > 0 {
        put("redirected_reads", outcome.redirected.to_string());
    }
    if let Some(skew) = skew {
        put("skew.top_1_percent", format!("{:.4}", skew.top_1_percent));
        put("skew.top_10000", format!("{:.4}", skew.top_10_000));
        put("skew.operations", skew.operations.to_string());
        put("skew.method", skew.method.clone());
    }
    if let Some(replayed) = &outcome.replayed {
        crate::replay_notes::facts(replayed, &mut put);
    }
    if let Some(steady) = &outcome.steady {
        put("steady.rounds", steady.rounds.len().to_string());
        put("steady.reached", steady.reached.to_string());
    }
    facts
}

/// The probes' readings and derived figures, each with its scope.
fn readings(measured: &MeasuredRun<'_>) -> Vec<Reading> {
    let MeasuredRun { outcome, .. } = measured;
    let read = |from: &[Reading], signal: &str| -> Reading {
        let found = from.iter().find(|reading| reading.signal == signal);
        found.cloned().unwrap_or_else(|| absent(signal))
    };
    let window = |signal: &str| read(&measured.readings, signal);
    let of_servers = |signal: Signal| {
        let found = measured.servers.readings.iter().find(|read| read.signal == signal.name);
        let nowhere = || {
            let reason = "the servers' processes are not on this machine".to_owned();
            signal.answered(ReadingValue::Unavailable { reason, remedy: None }, outcome.seconds)
        };
        found.cloned().unwrap_or_else(nowhere)
    };
    let mut all = measured.readings.clone();
    all.extend(measured.servers.readings.iter().cloned());
    let split = analyse::energy_split(&all);
    let mut put = |reading: Reading| all.push(reading);

    put(analyse::cpu_s_per_mop(&[&window("cpu.user"), &window("cpu.system")], outcome.operations));
    let seconds = outcome.seconds;
    if outcome.spun_s > 0.0 {
        put(CPU_PACER_SPIN.value(outcome.spun_s, seconds));
    }
    if measured.load_config.is_open() {
        put(CLIENT_DUE.value(outcome.due as f64, seconds));
        put(CLIENT_ANSWERED_IN_TIME.value(outcome.answered_in_time as f64, seconds));
        put(CLIENT_NEVER_SENT.value(outcome.never_sent as f64, seconds));
        put(CLIENT_LATENESS.value(outcome.mean_lateness_s, seconds));
        put(CLIENT_BUSY.value(outcome.busy_share, seconds));
        let achieved = outcome.answered_in_time as f64 / outcome.window_s.max(1e-9);
        put(CLIENT_ACHIEVED_RATE.value(achieved, seconds));
    }
    if let Some(Maximum { rate_ops_s, words }) = &measured.step.load.maximum {
        let source = format!("{} {words}", CALIBRATED_MAXIMUM.source);
        put(Reading { source, ..CALIBRATED_MAXIMUM.value(*rate_ops_s, seconds) });
    }
    if let Some(replayed) = &outcome.replayed {
        crate::replay_notes::readings(replayed, seconds).into_iter().for_each(&mut put);
    }
    if measured.networked {
        of_connections(outcome).into_iter().for_each(&mut put);
    }
    measured.idle.iter().cloned().for_each(&mut put);
    let around = IdleContext {
        idle: measured.idle,
        is_local: measured.here,
        may_be_elsewhere: host::probe::energy::may_be_elsewhere,
    };
    efficiency(&measured.readings, outcome.operations, around).into_iter().for_each(&mut put);
    split.into_iter().for_each(&mut put);
    if let Some(ratio) = outcome.hit_ratio() {
        put(CACHE_HIT_RATIO.value(ratio, seconds));
    }
    if outcome.refills > 0 {
        put(CACHE_REFILLS.value(outcome.refills as f64, seconds));
    }
    of_misses(outcome).into_iter().for_each(&mut put);
    put(WORKLOAD_WRITTEN.value(outcome.bytes_written as f64, seconds));
    put(WORKLOAD_READ.value(outcome.bytes_read as f64, seconds));
    // What this process moves is not the store's where that is in servers.
    let (written, read_bytes) = match measured.in_servers {
        true => (of_servers(SERVER_IO_WRITTEN), of_servers(SERVER_IO_READ)),
        false => (window("io.written"), window("io.read")),
    };
    put(analyse::write_amplification(&written, outcome.bytes_written));
    put(analyse::read_amplification(&read_bytes, outcome.bytes_read));
    put(analyse::write_amplification(&window("device.written"), outcome.bytes_written));
    put(analyse::read_amplification(&window("device.read"), outcome.bytes_read));
    let user_bytes = outcome.bytes_read + outcome.bytes_written;
    put(analyse::management_traffic(&window("device.read"), &window("device.written"), user_bytes));
    if let Some(settling) = &measured.settling {
        for signal in ["cpu.user", "cpu.system", "io.read", "io.written"] {
            let reading = read(settling, signal);
            put(Reading { signal: SETTLING.name_of(signal), ..reading });
        }
        put(with_settling(&window("io.written"), &read(settling, "io.written"), outcome));
    }
    if let Some(bytes) = measured.disk_bytes {
        put(DISK_BYTES.value(bytes as f64, seconds));
        let spec = &measured.step.load.workload;
        let each = spec.data_bytes() as f64 / (spec.records.0 as f64).max(1.0);
        let data = each * measured.records as f64;
        if data > 0.0 {
            put(SPACE_AMPLIFICATION.value(bytes as f64 / data, seconds));
        }
    }
    let (before, after, settled) = &measured.statistics;
    for statistic in settled {
        // Counters are reported over the window, gauges at the end.
        let at = |all: &[Statistic]| {
            all.iter().find(|other| other.name == statistic.name).map_or(0.0, |other| other.value)
        };
        let signal = STORE_STATISTIC.name_of(statistic.name.trim_end_matches(".total"));
        let (value, when) = match statistic.name.ends_with(".total") {
            true => (at(after) - at(before), "over the window"),
            false => (statistic.value, "when it has settled"),
        };
        let source = format!("{}, {when}", STORE_STATISTIC.source);
        let reading = STORE_STATISTIC.value(value, seconds);
        put(Reading { signal, unit: statistic.unit, source, ..reading });
    }
    if !measured.execution.design.is_empty() {
        let ops_s = outcome.operations as f64 / seconds.max(1e-9);
        all.push(usd_per_gop(measured.platform, &all, ops_s));
    }
    all
}

/// Readings of reads that missed, and waited for a modelled database.
fn of_misses(outcome: &PhaseOutcome) -> Vec<Reading> {
    let Some((_, latency)) = outcome.miss.first() else { return Vec::new() };
    let seconds = |nanos: f64| nanos / 1e9;
    [
        (MISS_COUNT, latency.len() as f64),
        (MISS_LATENCY, seconds(latency.mean())),
        (MISS_P50, seconds(latency.value_at_percentile(50.0) as f64)),
        (MISS_P99, seconds(latency.value_at_percentile(99.0) as f64)),
        (DATABASE_LATENCY, outcome.modelled_s / latency.len() as f64),
    ]
    .into_iter()
    .map(|(signal, value)| signal.value(value, outcome.seconds))
    .collect()
}

/// Readings of queues and connections to servers.
fn of_connections(outcome: &PhaseOutcome) -> Vec<Reading> {
    let mut all = Vec::new();
    let mut put = |signal: Signal, value: f64| all.push(signal.value(value, outcome.seconds));
    if outcome.due > 0 {
        put(CLIENT_QUEUED, outcome.queued as f64);
        put(CLIENT_QUEUE_WAIT, outcome.mean_queued_s);
        put(CLIENT_QUEUE_LONGEST, outcome.most_queued as f64);
        put(CLIENT_DROPPED, outcome.dropped as f64);
    }
    if let Some(wake_up) = outcome.mean_wake_up_s {
        put(CLIENT_WAKE_UP, wake_up);
    }
    put(CLIENT_RECONNECTED, outcome.reconnected as f64);
    if let Some(cluster) = &outcome.cluster {
        all.extend(of_cluster(cluster, outcome.seconds));
    }
    if let Some(ring) = &outcome.ring {
        all.push(RING_LOST_SHARE.value(ring.lost_share, outcome.seconds));
        all.push(RING_FAILED.value(ring.failed as f64, outcome.seconds));
    }
    all.extend(nodes::readings(&outcome.nodes, outcome.seconds));
    all
}

/// Redirects, repeats and losses of a cluster.
fn of_cluster(cluster: &ClusterCounts, seconds: f64) -> Vec<Reading> {
    [
        (CLUSTER_JOINED, cluster.joined as f64),
        (CLUSTER_MOVED, cluster.moved as f64),
        (CLUSTER_ASKED, cluster.asked as f64),
        (CLUSTER_RETRIED, cluster.retried as f64),
        (CLUSTER_SERVED_LATE, cluster.served_late as f64),
        (CLUSTER_UNAVAILABLE, cluster.longest_s),
        (CLUSTER_LOST_SLOTS, cluster.lost_share()),
        (CLUSTER_LOST_KEYS, cluster.lost_keys as f64),
    ]
    .map(|(signal, value)| signal.value(value, seconds))
    .into()
}

fn absent(signal: &str) -> Reading {
    Reading {
        signal: signal.to_owned(),
        answer: ReadingValue::Unavailable {
            reason: format!("{signal} was not read"),
            remedy: None,
        },
        unit: Unit::Count,
        scope: Scope::Process,
        source: String::new(),
        window_s: 0.0,
        origin: Origin::Measured,
    }
}

/// Write amplification including what the store wrote while it settled, such as deferred
/// compactions of a log-structured store.
fn with_settling(window: &Reading, settling: &Reading, outcome: &PhaseOutcome) -> Reading {
    let whole = match (window.value(), settling.value()) {
        (Some(during), Some(after)) => Reading {
            answer: ReadingValue::Value(during + after),
            window_s: window.window_s + settling.window_s,
            ..window.clone()
        },
        (None, _) => window.clone(),
        _ => settling.clone(),
    };
    let ratio = analyse::write_amplification(&whole, outcome.bytes_written);
    Reading {
        signal: WRITE_AMPLIFICATION_SETTLED.name.to_owned(),
        source: WRITE_AMPLIFICATION_SETTLED.source.to_owned(),
        ..ratio
    }
}

/// Effects of CPU quotas on a run.
struct QuotaReadings {
    /// A quota throttled notably: the advice is then to raise it.
    own: bool,
    rules: Option<String>,
    doubts: Vec<String>,
}

impl QuotaReadings {
    fn of(readings: &[Reading]) -> QuotaReadings {
        let mut quota = QuotaReadings { own: false, rules: None, doubts: Vec::new() };
        for throttled in host::throttled(readings) {
            match throttled {
                Throttled::Rules(words) => quota.rules = Some(words),
                Throttled::Doubt(words) => quota.doubts.push(words),
            }
        }
        quota.own = quota.rules.is_some() || !quota.doubts.is_empty();
        quota
    }

    /// The same messages, with the advice to raise the quota where that helps.
    fn advised(&self, words: &[String]) -> Vec<String> {
        let advised = |words: &String| match self.own {
            true => words.replace(drive::QUIETEN, "raise the CPU quota"),
            false => words.clone(),
        };
        words.iter().map(advised).collect()
    }
}

/// A warning where the server's certificate was not verified.
fn unverified(settings: &RunSettings) -> Option<&'static str> {
    let given =
        settings.get(&format!("store.{ANY_CERTIFICATE}")).is_some_and(|given| given == "on");
    given.then_some(
        "the server's certificate was not checked (any_certificate=on): any server could have \
         answered, and received the password if there is one; name the signer's certificate with `ca`",
    )
}

/// A sentence for each pair of meters of which the narrower one read more.
pub(crate) fn contradictions(readings: &[Reading], is_local: bool) -> Vec<String> {
    let context = MeterContext {
        is_local,
        may_be_elsewhere: host::probe::energy::may_be_elsewhere,
        stated_error: host::probe::energy::stated_error,
    };
    meter_breaches(readings, context)
}

/// Warnings that leave the run valid.
fn doubts(phase: Phase, outcome: &PhaseOutcome, readings: &[Reading]) -> Vec<String> {
    let value = |signal: &str| {
        readings.iter().find(|reading| reading.signal == signal).and_then(Reading::value)
    };
    let mut doubts = Vec::new();
    doubts.extend(value("machine.steal").and_then(host::steal_doubt));
    doubts.extend(analyse::other_programs_share(readings).and_then(host::neighbours_doubt));
    doubts.extend(co_runner::doubt(&value));
    if outcome.seconds < SHORT_WINDOW_S && outcome.operations > 0 {
        let more = if phase == Phase::Load { "load more records" } else { "give it more time" };
        doubts.push(format!("the window lasted only {:.2} s; {more}", outcome.seconds));
    }
    if value("cpu.pacer_spin").is_some_and(|spun| spun > 0.2 * outcome.seconds) {
        doubts.push("CPU time includes the pacer's spinning (cpu.pacer_spin)".to_owned());
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchecked_certificates_give_a_warning() {
        let with = |option: &str| {
            let url = format!("redis://h?tls=on{option}").parse::<store::StoreUrl>().unwrap();
            let options = url.remote().unwrap().unwrap().options;
            let named = options.into_iter().map(|(name, value)| (format!("store.{name}"), value));
            unverified(&named.collect()).is_some()
        };
        assert!(with("&any_certificate=on"));
        assert!(!with("") && !with("&any_certificate=off"));
    }

    #[test]
    fn meters_that_contradict_each_other_are_named_with_the_errors_of_their_makers() {
        let energy = |signal: &str, watts: f64, scope: Scope| Reading {
            answer: ReadingValue::Value(watts * 100.0),
            unit: Unit::Joules,
            scope,
            window_s: 100.0,
            ..absent(signal)
        };
        let readings = [
            energy("energy.meter", 50.0, Scope::Wall),
            energy("energy.total", 80.0, Scope::PackageAndMemory),
        ];
        let found = contradictions(&readings, true);
        assert_eq!(found.len(), 1, "{found:?}");
        // 0.5 % of the meter's maker and 1 s of 100 s.
        assert!(found[0].contains("errors are 1.5 % and 6.0 %, of which 5 % are assumed"));
        assert!(contradictions(&readings, false).is_empty());
    }

    #[test]
    fn throttling_names_the_quota() {
        let reading = |share: f64| Reading {
            answer: ReadingValue::Value(share),
            source: "the most throttled one: 0.2 CPUs by /sys/fs/cgroup/cpu.max".to_owned(),
            ..absent(host::THROTTLED)
        };
        let late = [format!("the client was late; {}, or lower --rate", drive::QUIETEN)];
        let throttled = QuotaReadings::of(&[reading(0.95)]);
        assert!(throttled.rules.as_ref().unwrap().contains("0.2 CPUs by /sys/fs/cgroup/cpu.max"));
        assert_eq!(
            throttled.advised(&late),
            ["the client was late; raise the CPU quota, or lower --rate"]
        );
        let little = QuotaReadings::of(&[reading(0.05)]);
        assert!(little.rules.is_none() && little.doubts.len() == 1);
        let free = QuotaReadings::of(&[reading(0.0)]);
        assert!(free.rules.is_none() && free.doubts.is_empty());
        assert_eq!(free.advised(&late), late);
    }
}
