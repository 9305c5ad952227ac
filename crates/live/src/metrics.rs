//! What a Prometheus scrapes: OpenMetrics 1.0, counters over the whole command.

use std::collections::BTreeMap;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use rustix::time::{ClockId, clock_gettime};

use crate::event::{OpLatencies, RunEvent, RunProgress};

/// The latencies' upper bounds in seconds: four to a decade, from 1 µs to 10 s.
pub const BUCKETS_S: [f64; 29] = [
    1e-6, 1.8e-6, 3.2e-6, 5.6e-6, 1e-5, 1.8e-5, 3.2e-5, 5.6e-5, 1e-4, 1.8e-4, 3.2e-4, 5.6e-4, 1e-3,
    1.8e-3, 3.2e-3, 5.6e-3, 1e-2, 1.8e-2, 3.2e-2, 5.6e-2, 0.1, 0.18, 0.32, 0.56, 1.0, 1.8, 3.2,
    5.6, 10.0,
];

pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Labels of what one store did in one phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    store: String,
    phase: String,
}

#[derive(Debug, Clone, Default)]
struct Sums {
    ops: BTreeMap<&'static str, OpLatencies>,
    errors: u64,
    hits: u64,
    misses: u64,
}

/// Everything that has been counted since the command began, and the newest figures.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    /// Of the runs before this one.
    before: BTreeMap<Series, Sums>,
    /// Of this run until now.
    current: Option<(Series, Sums)>,
    label: String,
    workload: String,
    runs: usize,
    finished_valid: u64,
    finished_invalid: u64,
    progress: Option<RunProgress>,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        for (op, latencies) in &other.ops {
            self.ops.entry(op).or_default().add(latencies);
        }
        self.errors += other.errors;
        self.hits += other.hits;
        self.misses += other.misses;
    }

    /// The sums that the saved run has; counters never go back.
    fn settle(&mut self, recorded: &[OpLatencies], errors: u64, hits: u64, misses: u64) {
        for whole in recorded {
            let own = self.ops.entry(whole.op).or_default();
            if whole.count >= own.count {
                own.clone_from(whole);
            }
        }
        self.errors = self.errors.max(errors);
        self.hits = self.hits.max(hits);
        self.misses = self.misses.max(misses);
    }
}

impl Totals {
    pub(crate) fn take(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Live { .. } => {}
            RunEvent::Stage { .. } => self.progress = None,
            RunEvent::Begins { runs, label, phase, settings, .. } => {
                self.keep_current();
                let setting = |key: &str| settings.get(key).cloned().unwrap_or_default();
                let series = Series { store: setting("store"), phase: phase.clone() };
                self.current = Some((series, Sums::default()));
                (self.runs, self.label, self.workload) =
                    (*runs, label.clone(), setting("workload"));
                self.progress = None;
            }
            RunEvent::Progress(progress) => {
                if let Some((_, sums)) = &mut self.current {
                    for part in &progress.recorded {
                        sums.ops.entry(part.op).or_default().add(part);
                    }
                    sums.settle(&[], progress.errors, progress.hits, progress.misses);
                }
                let progress = RunProgress { recorded: Vec::new(), ..RunProgress::clone(progress) };
                self.progress = Some(progress);
            }
            RunEvent::Ended(end) => {
                if let Some((_, sums)) = &mut self.current {
                    sums.settle(&end.recorded, end.errors, end.hits, end.misses);
                }
                self.keep_current();
                self.progress = None;
                match end.valid {
                    true => self.finished_valid += 1,
                    false => self.finished_invalid += 1,
                }
            }
        }
    }

    /// What a run counted stays, also where it is discarded.
    fn keep_current(&mut self) {
        if let Some((series, sums)) = self.current.take() {
            self.before.entry(series).or_default().add(&sums);
        }
    }

    fn sums(&self) -> BTreeMap<Series, Sums> {
        let mut all = self.before.clone();
        if let Some((series, sums)) = &self.current {
            all.entry(series.clone()).or_default().add(sums);
        }
        all
    }
}

/// All metrics as OpenMetrics text.
pub(crate) fn text(totals: &Totals) -> String {
    let mut registry = Registry::with_prefix("kvmeter");
    registry.register_collector(Box::new(totals.clone()));
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, &registry) {
        Ok(()) => text,
        Err(_) => "# EOF\n".to_owned(),
    }
}

type Encoded = Result<(), std::fmt::Error>;

impl Collector for Totals {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Encoded {
        let sums = self.sums();
        counts(&sums, &mut encoder)?;
        latencies(&sums, &mut encoder)?;
        self.runs(&mut encoder)?;
        if let Some(progress) = &self.progress {
            load(progress, &mut encoder)?;
            readings(progress, &mut encoder)?;
        }
        own_cost(&mut encoder)
    }
}

fn counts(sums: &BTreeMap<Series, Sums>, encoder: &mut DescriptorEncoder<'_>) -> Encoded {
    let mut family = encoder.encode_descriptor(
        "operations",
        "Operations that ended in a measured window, failed ones included",
        None,
        MetricType::Counter,
    )?;
    for (Series { store, phase }, sums) in sums {
        for (op, latencies) in &sums.ops {
            let labels = [("store", line(store)), ("phase", line(phase)), ("op", (*op).to_owned())];
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, u64>(&latencies.count, None)?;
        }
    }
    let mut family = encoder.encode_descriptor(
        "errors",
        "Operations of measured windows that failed, wrong answers included",
        None,
        MetricType::Counter,
    )?;
    for (Series { store, phase }, sums) in sums {
        let labels = [("store", line(store)), ("phase", line(phase))];
        family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&sums.errors, None)?;
    }
    let mut family = encoder.encode_descriptor(
        "lookups",
        "Keys that reads of measured windows found (hit) and did not find (miss)",
        None,
        MetricType::Counter,
    )?;
    for (Series { store, phase }, sums) in sums {
        for (result, count) in [("hit", sums.hits), ("miss", sums.misses)] {
            let labels =
                [("store", line(store)), ("phase", line(phase)), ("result", result.to_owned())];
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
    }
    Ok(())
}

fn latencies(sums: &BTreeMap<Series, Sums>, encoder: &mut DescriptorEncoder<'_>) -> Encoded {
    let mut family = encoder.encode_descriptor(
        "request_duration",
        "Latency from the instant at which a request was due (open loop) or sent (closed loop)",
        Some(&Unit::Seconds),
        MetricType::Histogram,
    )?;
    for (Series { store, phase }, sums) in sums {
        for (op, latencies) in &sums.ops {
            let labels = [("store", line(store)), ("phase", line(phase)), ("op", (*op).to_owned())];
            let bounds = BUCKETS_S.iter().copied().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(latencies.buckets.iter().copied()).collect();
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                latencies.sum_s,
                latencies.count,
                &buckets,
                None,
            )?;
        }
    }
    Ok(())
}

impl Totals {
    fn runs(&self, encoder: &mut DescriptorEncoder<'_>) -> Encoded {
        let mut family = encoder.encode_descriptor(
            "runs",
            "Runs that have ended, by whether they are valid",
            None,
            MetricType::Counter,
        )?;
        for (valid, count) in [("true", self.finished_valid), ("false", self.finished_invalid)] {
            family
                .encode_family(&[("valid", valid)])?
                .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        if self.runs > 0 {
            gauge(encoder, "planned_runs", "Runs of the plan", None, self.runs as f64)?;
        }
        if self.current.is_none() {
            return Ok(());
        }
        let store = self.current.as_ref().map_or("", |(series, _)| &series.store);
        let labels = vec![
            ("label", line(&self.label)),
            ("store", line(store)),
            ("workload", line(&self.workload)),
        ];
        encoder
            .encode_descriptor("run", "The run that is measured now", None, MetricType::Info)?
            .encode_info(&labels)
    }
}

fn load(progress: &RunProgress, encoder: &mut DescriptorEncoder<'_>) -> Encoded {
    let help = "1 in the measured window, 0 before it";
    gauge(encoder, "window_open", help, None, f64::from(!progress.warming_up))?;
    if let Some(rate) = progress.offered_ops_s {
        let help = "Operations per second that are due now; none in a closed loop";
        gauge(encoder, "offered_operations_per_second", help, None, rate)?;
    }
    if let Some(done) = progress.done {
        let help = "Share of the stage that is done";
        gauge(encoder, "stage_done", help, Some(&ratio()), done)?;
    }
    if let Some(left) = progress.left_s {
        let help = "Estimated time until all runs have ended";
        gauge(encoder, "remaining", help, Some(&Unit::Seconds), left as f64)?;
    }
    Ok(())
}

/// Power, CPU and counters, as far as they can be read here.
fn readings(progress: &RunProgress, encoder: &mut DescriptorEncoder<'_>) -> Encoded {
    let value = |signal: &str| {
        let found = progress.readings.iter().find(|reading| reading.signal == signal);
        found.and_then(|reading| reading.value)
    };
    let cpus: Vec<_> = [("kvmeter", value("cpu.kvmeter")), ("servers", value("cpu.servers"))]
        .into_iter()
        .filter_map(|(who, value)| Some((who, value?)))
        .collect();
    if !cpus.is_empty() {
        let help = "CPUs that the process used over the last second: CPU seconds per second";
        let mut family = encoder.encode_descriptor("cpus_used", help, None, MetricType::Gauge)?;
        for (who, value) in cpus {
            family.encode_family(&[("process", who)])?.encode_gauge(&value)?;
        }
    }
    if let Some(busy) = value("machine.busy") {
        let help = "Share of the machine's CPU time that was used over the last second";
        gauge(encoder, "machine_busy", help, Some(&ratio()), busy)?;
    }
    if let Some(ipc) = value("ipc") {
        gauge(encoder, "instructions_per_cycle", "Over the last second", None, ipc)?;
    }
    if let Some(mpki) = value("mpki.llc") {
        let help = "Misses of the last-level cache for a thousand instructions";
        gauge(encoder, "llc_misses_per_kiloinstruction", help, None, mpki)?;
    }
    let power: Vec<_> = progress
        .readings
        .iter()
        .filter(|reading| reading.unit == "W")
        .filter_map(|reading| Some((line(&reading.signal), reading.modelled, reading.value?)))
        .collect();
    if !power.is_empty() {
        let help = "Power, by the signal of docs/signals.md; each has a boundary of its own";
        let unit = Unit::Other("watts".to_owned());
        let mut family =
            encoder.encode_descriptor("power", help, Some(&unit), MetricType::Gauge)?;
        for (signal, modelled, value) in power {
            let labels = [("signal", signal), ("modelled", modelled.to_string())];
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
    }
    Ok(())
}

/// What the page itself costs, and the whole process.
fn own_cost(encoder: &mut DescriptorEncoder<'_>) -> Encoded {
    for (name, help, clock) in [
        ("live_cpu", "CPU time of the thread that serves this", ClockId::ThreadCPUTime),
        (
            "process_cpu",
            "CPU time of kvmeter, the load's threads included",
            ClockId::ProcessCPUTime,
        ),
    ] {
        let time = clock_gettime(clock);
        let seconds = time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9;
        encoder
            .encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&seconds, None)?;
    }
    Ok(())
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    value: f64,
) -> Encoded {
    encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?.encode_gauge(&value)
}

/// Prometheus names units in the singular where they are no SI units.
fn ratio() -> Unit {
    Unit::Other("ratio".to_owned())
}

/// Without control characters and secrets.
fn line(text: &str) -> String {
    model::text::line(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RunEnd;

    fn begins(store: &str) -> RunEvent {
        RunEvent::Begins {
            run: 1,
            runs: 2,
            label: format!("{store} \"ycsb-c\"\n"),
            phase: "measure".to_owned(),
            settings: [("store".to_owned(), store.to_owned())].into(),
        }
    }

    fn progress(values_ns: &[u64]) -> RunEvent {
        let values = values_ns.iter().map(|value| (*value, 1));
        RunEvent::Progress(Box::new(RunProgress {
            recorded: vec![OpLatencies::of("read", values)],
            errors: 3,
            hits: 10,
            ..RunProgress::default()
        }))
    }

    fn has(text: &str, line: &str) {
        assert!(text.lines().any(|own| own == line), "{line} is not in\n{text}");
    }

    #[test]
    fn a_histogram_is_cumulative_and_ends_with_all() {
        let mut totals = Totals::default();
        totals.take(&begins("null"));
        totals.take(&progress(&[500, 1500, 1500, 20_000_000_000]));
        let text = text(&totals);
        let of = "store=\"null\",phase=\"measure\",op=\"read\"";
        has(&text, &format!("kvmeter_operations_total{{{of}}} 4"));
        let buckets: Vec<u64> = text
            .lines()
            .filter(|line| line.starts_with("kvmeter_request_duration_seconds_bucket"))
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(buckets.len(), BUCKETS_S.len() + 1);
        assert_eq!((buckets[0], buckets[1]), (1, 3));
        assert_eq!(buckets[BUCKETS_S.len() - 1..], [3, 4]);
        has(&text, &format!("kvmeter_request_duration_seconds_bucket{{le=\"+Inf\",{of}}} 4"));
        has(&text, "kvmeter_errors_total{store=\"null\",phase=\"measure\"} 3");
        assert!(text.ends_with("# EOF\n"));
        assert!(!text.contains("\"ycsb-c\"\n"), "labels are escaped:\n{text}");
    }

    #[test]
    fn counters_settle_on_the_saved_run_and_never_go_back() {
        let mut totals = Totals::default();
        totals.take(&begins("null"));
        totals.take(&progress(&[10, 20]));
        // Discarded: it began anew.
        totals.take(&begins("null"));
        totals.take(&progress(&[10]));
        let whole = vec![OpLatencies::of("read", [(10, 5)].into_iter())];
        let end = RunEnd { recorded: whole, errors: 4, hits: 20, valid: true, ..RunEnd::default() };
        totals.take(&RunEvent::Ended(Box::new(end)));
        let text = text(&totals);
        let of = "store=\"null\",phase=\"measure\"";
        has(&text, &format!("kvmeter_operations_total{{{of},op=\"read\"}} 7"));
        has(&text, &format!("kvmeter_errors_total{{{of}}} 7"));
        has(&text, &format!("kvmeter_lookups_total{{{of},result=\"hit\"}} 30"));
        has(&text, "kvmeter_runs_total{valid=\"true\"} 1");
        assert!(!text.contains("kvmeter_run_info"), "no run is measured now");
    }

    #[test]
    fn what_cannot_be_read_is_absent() {
        let mut totals = Totals::default();
        totals.take(&begins("null"));
        totals.take(&progress(&[10]));
        let text = text(&totals);
        for absent in ["power_watts", "instructions_per_cycle", "offered_operations", "cpus_used"] {
            assert!(!text.contains(absent), "{absent} is in\n{text}");
        }
    }
}
