//! What a Prometheus scrapes: OpenMetrics 1.0, counters over the whole command.

use std::collections::BTreeMap;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use rustix::time::{ClockId, clock_gettime};

use crate::event::{OpLatencies, PresentReading, RunEvent, RunProgress};

/// The latencies' upper bounds in seconds: four to a decade, from 1 µs to 10 s.
pub const BUCKETS_S: [f64; 29] = [
    1e-6, 1.8e-6, 3.2e-6, 5.6e-6, 1e-5, 1.8e-5, 3.2e-5, 5.6e-5, 1e-4, 1.8e-4, 3.2e-4, 5.6e-4, 1e-3,
    1.8e-3, 3.2e-3, 5.6e-3, 1e-2, 1.8e-2, 3.2e-2, 5.6e-2, 0.1, 0.18, 0.32, 0.56, 1.0, 1.8, 3.2,
    5.6, 10.0,
];

/// Stores and phases of a host; more are not counted.
const MAX_SERIES: usize = 1000;

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
        let Some((series, sums)) = self.current.take() else { return };
        if self.before.len() < MAX_SERIES || self.before.contains_key(&series) {
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

/// The totals of each host; the empty name is this machine, and has no label.
pub(crate) type HostTotals = BTreeMap<Arc<str>, Totals>;

/// All metrics as OpenMetrics text.
pub(crate) fn text(hosts: &HostTotals) -> String {
    let mut registry = Registry::with_prefix("kvmeter");
    registry.register_collector(Box::new(Hosts(hosts.clone())));
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, &registry) {
        Ok(()) => text,
        Err(_) => "# EOF\n".to_owned(),
    }
}

type Encoded = Result<(), std::fmt::Error>;
type Labels = Vec<(&'static str, String)>;

#[derive(Debug)]
struct Hosts(HostTotals);

/// What a host counted in one phase of one store.
struct HostSums {
    host: Arc<str>,
    series: Series,
    sums: Sums,
}

impl HostSums {
    fn labels(&self, more: &[(&'static str, &str)]) -> Labels {
        let Series { store, phase } = &self.series;
        labels(
            &self.host,
            &[&[("store", store.as_str()), ("phase", phase.as_str())], more].concat(),
        )
    }
}

/// Labels, that of the host before them where it has a name.
fn labels(host: &str, more: &[(&'static str, &str)]) -> Labels {
    let named = (!host.is_empty()).then_some(("host", host));
    named.iter().chain(more).map(|(key, value)| (*key, line(value))).collect()
}

impl Collector for Hosts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Encoded {
        let sums = self.sums();
        counts(&sums, &mut encoder)?;
        latencies(&sums, &mut encoder)?;
        self.runs(&mut encoder)?;
        self.load(&mut encoder)?;
        self.readings(&mut encoder)?;
        own_cost(&mut encoder)
    }
}

fn counts(all: &[HostSums], encoder: &mut DescriptorEncoder<'_>) -> Encoded {
    let mut family = encoder.encode_descriptor(
        "operations",
        "Operations that ended in a measured window, failed ones included",
        None,
        MetricType::Counter,
    )?;
    for own in all {
        for (op, latencies) in &own.sums.ops {
            family
                .encode_family(&own.labels(&[("op", op)]))?
                .encode_counter::<NoLabelSet, _, u64>(&latencies.count, None)?;
        }
    }
    let mut family = encoder.encode_descriptor(
        "errors",
        "Operations of measured windows that failed, wrong answers included",
        None,
        MetricType::Counter,
    )?;
    for own in all {
        let errors = &own.sums.errors;
        family
            .encode_family(&own.labels(&[]))?
            .encode_counter::<NoLabelSet, _, u64>(errors, None)?;
    }
    let mut family = encoder.encode_descriptor(
        "lookups",
        "Keys that reads of measured windows found (hit) and did not find (miss)",
        None,
        MetricType::Counter,
    )?;
    for own in all {
        for (result, count) in [("hit", own.sums.hits), ("miss", own.sums.misses)] {
            family
                .encode_family(&own.labels(&[("result", result)]))?
                .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
    }
    Ok(())
}

fn latencies(all: &[HostSums], encoder: &mut DescriptorEncoder<'_>) -> Encoded {
    let mut family = encoder.encode_descriptor(
        "request_duration",
        "Latency from the instant at which a request was due (open loop) or sent (closed loop)",
        Some(&Unit::Seconds),
        MetricType::Histogram,
    )?;
    for own in all {
        for (op, latencies) in &own.sums.ops {
            let bounds = BUCKETS_S.iter().copied().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(latencies.buckets.iter().copied()).collect();
            family.encode_family(&own.labels(&[("op", op)]))?.encode_histogram::<NoLabelSet>(
                latencies.sum_s,
                latencies.count,
                &buckets,
                None,
            )?;
        }
    }
    Ok(())
}

impl Hosts {
    fn sums(&self) -> Vec<HostSums> {
        let of = |(host, totals): (&Arc<str>, &Totals)| {
            let host = Arc::clone(host);
            let own = move |(series, sums)| HostSums { host: Arc::clone(&host), series, sums };
            totals.sums().into_iter().map(own).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of).collect()
    }

    fn runs(&self, encoder: &mut DescriptorEncoder<'_>) -> Encoded {
        let mut family = encoder.encode_descriptor(
            "runs",
            "Runs that have ended, by whether they are valid",
            None,
            MetricType::Counter,
        )?;
        for (host, own) in &self.0 {
            for (valid, count) in [("true", own.finished_valid), ("false", own.finished_invalid)] {
                family
                    .encode_family(&labels(host, &[("valid", valid)]))?
                    .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
            }
        }
        let planned = |own: &Totals| (own.runs > 0).then_some(own.runs as f64);
        self.gauge(encoder, ("planned_runs", "Runs of the plan"), None, planned)?;
        let measured = |own: &Totals| {
            let (series, _) = own.current.as_ref()?;
            Some([own.label.clone(), series.store.clone(), own.workload.clone()])
        };
        let infos: Vec<_> =
            self.0.iter().filter_map(|(host, own)| Some((host, measured(own)?))).collect();
        if infos.is_empty() {
            return Ok(());
        }
        let help = "The run that is measured now";
        let mut family = encoder.encode_descriptor("run", help, None, MetricType::Info)?;
        for (host, [label, store, workload]) in infos {
            let of_run = [("label", &*label), ("store", &*store), ("workload", &*workload)];
            family.encode_info(&labels(host, &of_run))?;
        }
        Ok(())
    }

    fn load(&self, encoder: &mut DescriptorEncoder<'_>) -> Encoded {
        let now = |read: fn(&RunProgress) -> Option<f64>| {
            move |own: &Totals| own.progress.as_ref().and_then(read)
        };
        let open = now(|progress| Some(f64::from(!progress.warming_up)));
        let help = "1 in the measured window, 0 before it";
        self.gauge(encoder, ("window_open", help), None, open)?;
        let offered = now(|progress| progress.offered_ops_s);
        let help = "Operations per second that are due now; none in a closed loop";
        self.gauge(encoder, ("offered_operations_per_second", help), None, offered)?;
        let done = now(|progress| progress.done);
        let help = "Share of the stage that is done";
        self.gauge(encoder, ("stage_done", help), Some(&ratio()), done)?;
        let left = now(|progress| progress.left_s.map(|left| left as f64));
        let help = "Estimated time until all runs have ended";
        self.gauge(encoder, ("remaining", help), Some(&Unit::Seconds), left)
    }

    /// Power, CPU and counters, as far as they can be read here.
    fn readings(&self, encoder: &mut DescriptorEncoder<'_>) -> Encoded {
        let cpus: Vec<(Labels, f64)> = self
            .present()
            .filter_map(|(host, reading, value)| {
                let process = reading.signal.strip_prefix("cpu.")?;
                let known = ["kvmeter", "servers"].contains(&process);
                known.then(|| (labels(host, &[("process", process)]), value))
            })
            .collect();
        let help = "CPUs that the process used over the last second: CPU seconds per second";
        gauges(encoder, ("cpus_used", help), None, cpus)?;
        for (signal, name, help, unit) in [
            (
                "machine.busy",
                "machine_busy",
                "Share of the machine's CPU time that was used over the last second",
                Some(ratio()),
            ),
            ("ipc", "instructions_per_cycle", "Over the last second", None),
            (
                "mpki.llc",
                "llc_misses_per_kiloinstruction",
                "Misses of the last-level cache for a thousand instructions",
                None,
            ),
        ] {
            let of = self.present().filter(|(_, reading, _)| reading.signal == signal);
            let values = of.map(|(host, _, value)| (labels(host, &[]), value)).collect();
            gauges(encoder, (name, help), unit.as_ref(), values)?;
        }
        let power = self.present().filter(|(_, reading, _)| reading.unit == "W");
        let power = power.map(|(host, reading, value)| {
            let modelled = if reading.modelled { "true" } else { "false" };
            (labels(host, &[("signal", &reading.signal), ("modelled", modelled)]), value)
        });
        let help = "Power, by the signal of docs/signals.md; each has a boundary of its own";
        let unit = Unit::Other("watts".to_owned());
        gauges(encoder, ("power", help), Some(&unit), power.collect())
    }

    /// The readings that have a value.
    fn present(&self) -> impl Iterator<Item = (&str, &PresentReading, f64)> {
        self.0.iter().flat_map(|(host, own)| {
            let readings = own.progress.iter().flat_map(|progress| &progress.readings);
            readings.filter_map(move |reading| Some((&**host, reading, reading.value?)))
        })
    }

    /// A number of each host that has it.
    fn gauge(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        about: (&str, &str),
        unit: Option<&Unit>,
        value: impl Fn(&Totals) -> Option<f64>,
    ) -> Encoded {
        let of = |(host, own): (&Arc<str>, &Totals)| Some((labels(host, &[]), value(own)?));
        gauges(encoder, about, unit, self.0.iter().filter_map(of).collect())
    }
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

/// A gauge by its name and help; nothing where it has no value.
fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    unit: Option<&Unit>,
    values: Vec<(Labels, f64)>,
) -> Encoded {
    if values.is_empty() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (labels, value) in values {
        match labels.is_empty() {
            true => family.encode_gauge(&value)?,
            false => family.encode_family(&labels)?.encode_gauge(&value)?,
        }
    }
    Ok(())
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

    fn here(totals: Totals) -> String {
        text(&[(Arc::from(""), totals)].into())
    }

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
        let text = here(totals);
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
        let text = here(totals);
        let of = "store=\"null\",phase=\"measure\"";
        has(&text, &format!("kvmeter_operations_total{{{of},op=\"read\"}} 7"));
        has(&text, &format!("kvmeter_errors_total{{{of}}} 7"));
        has(&text, &format!("kvmeter_lookups_total{{{of},result=\"hit\"}} 30"));
        has(&text, "kvmeter_runs_total{valid=\"true\"} 1");
        assert!(!text.contains("kvmeter_run_info"), "no run is measured now");
    }

    #[test]
    fn each_host_has_its_label() {
        let mut totals = Totals::default();
        totals.take(&begins("null"));
        totals.take(&progress(&[10]));
        let text = text(
            &[("m1", totals.clone()), ("m2", totals)]
                .map(|(host, own)| (Arc::from(host), own))
                .into(),
        );
        for host in ["m1", "m2"] {
            let of = format!("host=\"{host}\",store=\"null\",phase=\"measure\"");
            has(&text, &format!("kvmeter_operations_total{{{of},op=\"read\"}} 1"));
            has(&text, &format!("kvmeter_window_open{{host=\"{host}\"}} 1.0"));
        }
        let types = text.lines().filter(|line| *line == "# TYPE kvmeter_window_open gauge");
        assert_eq!(types.count(), 1, "{text}");
    }

    #[test]
    fn what_cannot_be_read_is_absent() {
        let mut totals = Totals::default();
        totals.take(&begins("null"));
        totals.take(&progress(&[10]));
        let text = here(totals);
        for absent in ["power_watts", "instructions_per_cycle", "offered_operations", "cpus_used"] {
            assert!(!text.contains(absent), "{absent} is in\n{text}");
        }
    }
}
