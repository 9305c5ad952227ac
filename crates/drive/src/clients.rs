//! Joins the outcomes of several clients that ran together into one.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use model::{Op, PerOp, SeriesPoint, histogram};

use crate::cluster_counts::ClusterCounts;
use crate::collect::point;
use crate::node_counts::{NodeCounts, add_all};
use crate::outcome::{AnswerFailure, DriveError, PhaseOutcome};
use crate::plan::{LoadPlan, PhaseKind};
use crate::ring_counts::RingCounts;
use crate::validity::{Criteria, judge};

type Named = Vec<(Op, Histogram<u64>)>;

/// Joins the outcomes of clients that began together, each with its name: histograms are added,
/// counts summed, means weighted by their counts. `plan` is that of all clients together. What
/// made a client's part invalid makes the whole invalid, under its name; then the whole is judged
/// like a single client. `slots` are the requests that all of them can have in flight;
/// `stores_values` is the store's capability.
///
/// # Errors
/// A histogram that cannot be decoded or added.
pub fn join(
    parts: &[(String, PhaseOutcome)],
    plan: &LoadPlan,
    slots: usize,
    stores_values: bool,
) -> Result<PhaseOutcome, DriveError> {
    let all = || parts.iter().map(|(_, part)| part);
    let sum = |count: fn(&PhaseOutcome) -> u64| all().map(count).sum::<u64>();
    let until = plan.shape.until.of(plan.shape.pacing);
    let counted = plan.phase == PhaseKind::Load || until.operations.is_some();
    let target = plan.mean_rate(until.time);
    // Shares of the threads' time, and means over requests and answers.
    let thread_s = |part: &PhaseOutcome| part.threads as f64 * part.seconds;
    let operations = |part: &PhaseOutcome| part.operations as f64;
    let queued = |part: &PhaseOutcome| part.queued as f64;
    let arrived =
        |part: &PhaseOutcome| part.arrival.iter().map(|(_, h)| h.len() as f64).sum::<f64>();
    let mean = |value: fn(&PhaseOutcome) -> f64, weight: &dyn Fn(&PhaseOutcome) -> f64| {
        let weights: f64 = all().map(weight).sum();
        let weighted: f64 = all().map(|part| value(part) * weight(part)).sum();
        if weights > 0.0 { weighted / weights } else { 0.0 }
    };
    let has_wake_up = all().any(|part| part.mean_wake_up_s.is_some());
    let wake_up_s = mean(|part| part.mean_wake_up_s.unwrap_or_default(), &arrived);
    let (series, intervals) = series_of(all())?;
    let mut whole = PhaseOutcome {
        threads: all().map(|part| part.threads).sum(),
        seconds: seconds_of(all(), counted || target.is_some()),
        window_s: all().map(|part| part.window_s).fold(0.0, f64::max),
        operations: sum(|part| part.operations),
        verified: sum(|part| part.verified),
        hits: sum(|part| part.hits),
        misses: sum(|part| part.misses),
        missing: sum(|part| part.missing),
        refills: sum(|part| part.refills),
        failures: failures_of(parts),
        service: added(all().map(|part| &part.service))?,
        response: added(all().map(|part| &part.response))?,
        arrival: added(all().map(|part| &part.arrival))?,
        miss: added(all().map(|part| &part.miss))?,
        modelled_s: all().map(|part| part.modelled_s).sum(),
        series,
        intervals,
        counts: PerOp::from_fn(|op| all().map(|part| part.counts[op]).sum()),
        bytes_written: sum(|part| part.bytes_written),
        bytes_read: sum(|part| part.bytes_read),
        scanned: sum(|part| part.scanned),
        harness_share: mean(|part| part.harness_share, &thread_s),
        busy_share: mean(|part| part.busy_share, &thread_s),
        spun_s: all().map(|part| part.spun_s).sum(),
        mean_lateness_s: mean(|part| part.mean_lateness_s, &operations),
        due: sum(|part| part.due),
        answered_in_time: sum(|part| part.answered_in_time),
        never_sent: sum(|part| part.never_sent),
        dropped: sum(|part| part.dropped),
        queued: sum(|part| part.queued),
        mean_queued_s: mean(|part| part.mean_queued_s, &queued),
        most_queued: sum(|part| part.most_queued),
        mean_wake_up_s: has_wake_up.then_some(wake_up_s),
        reconnected: sum(|part| part.reconnected),
        cluster: cluster_of(parts),
        ring: ring_of(parts),
        nodes: nodes_of(parts),
        interval_s: all().map(|part| part.interval_s).fold(0.0, f64::max),
        fingerprint: all().fold(0, |sum: u64, part| sum.wrapping_add(part.fingerprint)),
        redirected: sum(|part| part.redirected),
        drawn: sum(|part| part.drawn),
        stopped: all().any(|part| part.stopped),
        gave_up: parts.iter().find_map(|(name, part)| {
            part.gave_up.as_ref().map(|why| format!("agent {name}: {why}"))
        }),
        ..PhaseOutcome::default()
    };
    whole.changes.inserted = sum(|part| part.changes.inserted);
    whole.changes.deleted = sum(|part| part.changes.deleted);
    whole.changes.refused = sum(|part| part.changes.refused);
    judge_whole(
        &mut whole,
        parts,
        Criteria { counted, slots, target, recorded: false, stores_values },
    );
    Ok(whole)
}

/// The length of the common window. In a closed loop that ends by the clock, a weighted mean of the
/// clients' lengths, so that the total rate is the sum of their rates; otherwise the longest.
fn seconds_of<'a>(parts: impl Iterator<Item = &'a PhaseOutcome> + Clone, common: bool) -> f64 {
    let longest = parts.clone().map(|part| part.seconds).fold(0.0, f64::max);
    let rate: f64 = parts.clone().map(|part| part.operations as f64 / part.seconds.max(1e-9)).sum();
    let operations: u64 = parts.map(|part| part.operations).sum();
    if common || rate <= 0.0 { longest } else { operations as f64 / rate }
}

/// Adds the histograms of each kind of operation.
fn added<'a>(parts: impl Iterator<Item = &'a Named>) -> Result<Named, DriveError> {
    let mut sums: BTreeMap<Op, Histogram<u64>> = BTreeMap::new();
    for (op, histogram) in parts.flatten() {
        add(&mut sums, *op, histogram)?;
    }
    Ok(sums.into_iter().collect())
}

fn add(
    sums: &mut BTreeMap<Op, Histogram<u64>>,
    op: Op,
    histogram: &Histogram<u64>,
) -> Result<(), DriveError> {
    if let Some(sum) = sums.get_mut(&op) {
        return sum.add(histogram).map_err(unaddable);
    }
    let mut first = histogram.clone();
    first.auto(true);
    sums.insert(op, first);
    Ok(())
}

fn unaddable(error: hdrhistogram::AdditionError) -> DriveError {
    DriveError::Internal(format!("histograms cannot be added: {error}"))
}

/// Interval by interval, with the percentiles of the histograms' sums.
fn series_of<'a>(
    parts: impl Iterator<Item = &'a PhaseOutcome>,
) -> Result<(Vec<SeriesPoint>, Vec<Vec<u8>>), DriveError> {
    let mut intervals: BTreeMap<(u64, Op), ClientInterval> = BTreeMap::new();
    for part in parts {
        if part.intervals.len() != part.series.len() {
            let words = "a client's intervals have no histograms".to_owned();
            return Err(DriveError::Internal(words));
        }
        for (point, bytes) in part.series.iter().zip(&part.intervals) {
            // All intervals but the last are whole, so the start identifies one.
            let start_ms = ((point.at_s - point.seconds) * 1e3).round() as u64;
            let key = (start_ms, point.op);
            let interval = intervals.entry(key).or_default();
            interval.at_s = interval.at_s.max(point.at_s);
            interval.seconds = interval.seconds.max(point.seconds);
            interval.parts.push(bytes);
        }
    }
    // One after the other: a histogram takes far more memory than its bytes.
    let whole = intervals.into_iter().map(|((_, op), interval)| {
        let ClientInterval { at_s, seconds, parts } = interval;
        let mut sum: Option<Histogram<u64>> = None;
        for bytes in parts {
            let part = histogram::decode(bytes).map_err(|why| {
                DriveError::Internal(format!("a client's interval cannot be decoded: {why}"))
            })?;
            match &mut sum {
                None => sum = Some(part),
                Some(sum) => sum.add(&part).map_err(unaddable)?,
            }
        }
        let no_part = || DriveError::Internal("an interval of no client".to_owned());
        let sum = sum.ok_or_else(no_part)?;
        let (p50_ns, p99_ns, p999_ns, max_ns) = (0, 0, 0, 0);
        let point = match sum.is_empty() {
            true => {
                SeriesPoint { at_s, seconds, op, operations: 0, p50_ns, p99_ns, p999_ns, max_ns }
            }
            false => point(op, at_s, seconds, &sum),
        };
        Ok((point, histogram::encode(&sum).map_err(DriveError::Internal)?))
    });
    whole.collect::<Result<Vec<_>, DriveError>>().map(|all| all.into_iter().unzip())
}

/// What the clients recorded in one interval.
#[derive(Default)]
struct ClientInterval<'a> {
    at_s: f64,
    seconds: f64,
    parts: Vec<&'a Vec<u8>>,
}

fn cluster_of(parts: &[(String, PhaseOutcome)]) -> Option<ClusterCounts> {
    let mut all = parts.iter().filter_map(|(_, part)| part.cluster.clone());
    let mut sum = all.next()?;
    all.for_each(|counts| sum.add(counts));
    Some(sum)
}

fn ring_of(parts: &[(String, PhaseOutcome)]) -> Option<RingCounts> {
    let mut all = parts.iter().filter_map(|(_, part)| part.ring.clone());
    let mut sum = all.next()?;
    all.for_each(|counts| sum.add(counts));
    Some(sum)
}

fn nodes_of(parts: &[(String, PhaseOutcome)]) -> BTreeMap<String, NodeCounts> {
    let mut sum = BTreeMap::new();
    parts.iter().for_each(|(_, part)| add_all(&mut sum, &part.nodes));
    sum
}

/// Counts by kind; the first of each names its client.
fn failures_of(parts: &[(String, PhaseOutcome)]) -> Vec<AnswerFailure> {
    let mut failures: Vec<AnswerFailure> = Vec::new();
    for (name, failure) in
        parts.iter().flat_map(|(name, part)| part.failures.iter().map(move |one| (name, one)))
    {
        match failures.iter_mut().find(|other| other.kind == failure.kind) {
            Some(other) => other.count += failure.count,
            None => failures.push(AnswerFailure {
                first: format!("agent {name}: {}", failure.first),
                ..failure.clone()
            }),
        }
    }
    failures.sort_by_key(|failure| failure.kind.name());
    failures
}

/// Collects the clients' own verdicts, then judges the whole.
fn judge_whole(whole: &mut PhaseOutcome, parts: &[(String, PhaseOutcome)], criteria: Criteria) {
    // The clients have reported these themselves.
    let (failures, stopped) = (std::mem::take(&mut whole.failures), whole.stopped);
    let gave_up = whole.gave_up.take();
    whole.stopped = false;
    judge(whole, criteria);
    (whole.failures, whole.stopped, whole.gave_up) = (failures, stopped, gave_up);
    let named = |reasons: fn(&PhaseOutcome) -> &Vec<String>| {
        parts.iter().flat_map(move |(name, part)| {
            reasons(part).iter().map(move |reason| format!("agent {name}: {reason}"))
        })
    };
    let of_all = |reason: &String| format!("all agents together: {reason}");
    let invalid = named(|part| &part.invalid_because);
    let warnings = named(|part| &part.warnings);
    whole.invalid_because = invalid.chain(whole.invalid_because.iter().map(of_all)).collect();
    whole.warnings = warnings.chain(whole.warnings.iter().map(of_all)).collect();
    if whole.redirected > 0 && parts.len() > 1 {
        whole.warnings.push(
            "agents do not know each other's inserts: reads of the newest records read the newest \
             loaded ones"
                .to_owned(),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use model::Count;
    use workload::{Workload, WorkloadSpec};

    use super::*;
    use crate::{NoObserver, Ticks, drive, open};
    use model::{Arrivals, LoadShape, Pacing, RateProfile, StopCondition};

    fn run(plan: &LoadPlan, preset: &str) -> PhaseOutcome {
        let spec = WorkloadSpec { records: Count(1000), ..WorkloadSpec::preset(preset).unwrap() };
        let workload = Arc::new(Workload::new(&spec).unwrap());
        let store = open(&"null".parse().unwrap()).unwrap();
        drive(&Ticks::new(), store, &workload, plan, &mut NoObserver).unwrap()
    }

    fn parts(plan: &LoadPlan, preset: &str, clients: usize) -> Vec<(String, PhaseOutcome)> {
        let one = |client| (format!("c{client}"), run(&plan.part(client, clients), preset));
        (0..clients).map(one).collect()
    }

    fn ending(until: StopCondition) -> LoadShape {
        LoadShape { until, ..LoadShape::default() }
    }

    fn closed(threads: usize, operations: u64) -> LoadPlan {
        let until = StopCondition { operations: Some(operations), time: None };
        LoadPlan {
            shape: ending(until),
            interval: Duration::from_millis(10),
            ..LoadPlan::closed(PhaseKind::Mix, threads)
        }
    }

    #[test]
    fn clients_together_issue_the_operations_of_one_client() {
        for preset in ["ycsb-a", "ycsb-d", "ycsb-load"] {
            let plan = closed(5, 100_007);
            let alone = run(&plan, preset);
            for clients in [2, 3, 5] {
                let parts = parts(&plan, preset, clients);
                let whole = join(&parts, &plan, 5, false).unwrap();
                let summary = |outcome: &PhaseOutcome| {
                    let PhaseOutcome { operations, fingerprint, counts, drawn, changes, .. } =
                        *outcome;
                    (operations, fingerprint, counts, drawn, changes, outcome.threads)
                };
                assert_eq!(summary(&whole), summary(&alone), "{preset} by {clients}");
                assert!(whole.invalid_because.is_empty(), "{:?}", whole.invalid_because);
            }
        }
    }

    #[test]
    fn clients_together_load_every_record_once() {
        let plan = LoadPlan { shape: LoadShape::default(), ..closed(4, 0) };
        let plan = LoadPlan { phase: PhaseKind::Load, ..plan };
        let whole = join(&parts(&plan, "ycsb-load", 3), &plan, 5, false).unwrap();
        assert_eq!((whole.operations, whole.changes.inserted), (1000, 1000));
    }

    #[test]
    fn joined_histograms_are_the_sum() {
        let plan = closed(3, 50_000);
        let parts = parts(&plan, "ycsb-a", 3);
        let whole = join(&parts, &plan, 5, false).unwrap();
        for (op, sum) in &whole.service {
            let of = |part: &PhaseOutcome| {
                part.service.iter().find(|(other, _)| other == op).map(|(_, h)| h.clone()).unwrap()
            };
            assert_eq!(sum.len(), parts.iter().map(|(_, part)| of(part).len()).sum::<u64>());
            for value in sum.iter_recorded().map(|step| step.value_iterated_to()) {
                let counts = parts.iter().map(|(_, part)| of(part).count_at(value)).sum::<u64>();
                assert_eq!(sum.count_at(value), counts, "{op} at {value}");
            }
        }
        let of_points: u64 = whole.series.iter().map(|point| point.operations).sum();
        assert_eq!(of_points, whole.operations);
        let counted: u64 = whole.service.iter().map(|(_, histogram)| histogram.len()).sum();
        assert_eq!(counted, whole.operations);
    }

    /// A client with one interval of these latencies.
    fn client(seconds: f64, latencies: &[u64]) -> PhaseOutcome {
        let mut histogram = Histogram::new(3).unwrap();
        latencies.iter().for_each(|value| histogram.record(*value).unwrap());
        PhaseOutcome {
            threads: 1,
            seconds,
            operations: latencies.len() as u64,
            series: vec![point(Op::Read, 1.0, 1.0, &histogram)],
            intervals: vec![histogram::encode(&histogram).unwrap()],
            service: vec![(Op::Read, histogram)],
            ..PhaseOutcome::default()
        }
    }

    #[test]
    fn interval_percentiles_are_of_the_summed_histogram() {
        let slow = client(1.0, &[1_000_000; 10]);
        let fast = client(1.0, &[1000; 990]);
        let parts = [("a".to_owned(), slow), ("b".to_owned(), fast)];
        let whole = join(&parts, &LoadPlan::closed(PhaseKind::Mix, 2), 2, true).unwrap();
        assert_eq!(whole.series.len(), 1);
        // Of a thousand requests ten were slow: the 99th percentile is the last fast one.
        assert_eq!(whole.series[0].p99_ns, 1000);
        assert!(whole.series[0].p999_ns >= 1_000_000);
        assert_eq!(whole.service[0].1.value_at_percentile(99.0), 1000);
    }

    #[test]
    fn closed_loop_rates_add_up_and_counted_windows_last_as_the_longest() {
        let parts =
            [("a".to_owned(), client(1.0, &[10; 100])), ("b".to_owned(), client(1.1, &[10; 330]))];
        let by_time = StopCondition { operations: None, time: Some(Duration::from_secs(1)) };
        let plan = LoadPlan { shape: ending(by_time), ..LoadPlan::closed(PhaseKind::Mix, 2) };
        let whole = join(&parts, &plan, 5, true).unwrap();
        assert!((whole.operations as f64 / whole.seconds - 400.0).abs() < 1e-9);
        let by_count = StopCondition { operations: Some(430), time: None };
        let plan = LoadPlan { shape: ending(by_count), ..plan };
        assert_eq!(join(&parts, &plan, 5, true).unwrap().seconds, 1.1);
    }

    #[test]
    fn client_verdicts_keep_their_name_and_the_total_rate_is_judged() {
        let mut a = client(1.0, &[10; 100]);
        let mut b = client(1.0, &[10; 100]);
        (a.due, a.answered_in_time, b.due, b.answered_in_time) = (100, 100, 200, 100);
        a.response = a.service.clone();
        b.response = b.service.clone();
        b.invalid_because = vec!["it was late".to_owned()];
        a.warnings = vec!["a doubt".to_owned()];
        let pacing = Pacing::Open { rate: 300.0, arrivals: Arrivals::Constant };
        let until = StopCondition { operations: None, time: Some(Duration::from_secs(1)) };
        let plan = LoadPlan {
            shape: LoadShape { pacing, ..ending(until) },
            ..LoadPlan::closed(PhaseKind::Mix, 2)
        };
        let whole = join(&[("h1".to_owned(), a), ("h2".to_owned(), b)], &plan, 5, true).unwrap();
        assert_eq!(whole.invalid_because[0], "agent h2: it was late");
        assert!(whole.invalid_because[1].starts_with("all agents together: the rate was not"));
        assert_eq!(whole.warnings, ["agent h1: a doubt"]);
        assert_eq!((whole.due, whole.answered_in_time), (300, 200));
    }

    #[test]
    fn arrivals_of_clients_interleave_like_those_of_one() {
        let clock = Ticks::new();
        let due = |plan: &LoadPlan, thread| {
            let gate = crate::frontier::PhaseGate::new();
            let mut open = crate::pace::OpenLoop::of(plan, thread, &clock, 0);
            let mut next = || {
                let due = open.next_due(&gate);
                open.take();
                due.unwrap()
            };
            (0..100).map(|_| next()).collect::<Vec<u64>>()
        };
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let pacing = Pacing::Open { rate: 1e6, arrivals };
            let steps = RateProfile::parse("steps:0.5x@1ms,2x@1ms").ok();
            for profile in [None, steps] {
                let plan = LoadPlan {
                    shape: LoadShape { pacing, profile, ..LoadShape::default() },
                    ..LoadPlan::closed(PhaseKind::Mix, 5)
                };
                let alone: Vec<_> = (0..5).map(|thread| due(&plan, thread)).collect();
                let mut together = Vec::new();
                for client in 0..2 {
                    let part = plan.part(client, 2);
                    together.extend((0..part.threads).map(|thread| due(&part, thread)));
                }
                for (one, other) in alone.iter().flatten().zip(together.iter().flatten()) {
                    assert!(one.abs_diff(*other) <= 1, "{arrivals}: {one} {other}");
                }
            }
        }
    }
}
