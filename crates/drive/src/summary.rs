//! Merges the threads' statistics into the outcome and judges whether the measurement is valid.

use hdrhistogram::Histogram;
use model::{Op, PerOp, SeriesPoint};

use crate::clock::Ticks;
use crate::outcome::{FailureKind, PhaseOutcome, SteadyReport};
use crate::pace::SPIN;
use crate::plan::CpuBudget;
use crate::recorder::IntervalHistograms;
use crate::replay::ReplaySummary;
use crate::worker::ThreadStats;

/// Minimum share of requests answered in time for which an open loop achieved its rate.
const MIN_ACHIEVED: f64 = 0.99;
/// A client busier than this cannot send on time.
const MAX_BUSY: f64 = 0.95;
/// Shares of the mean response time that are the client's own lateness: from the first on it is
/// reported, from the second on the run is invalid.
const NOTABLE_LATENESS: f64 = 0.1;
const RULING_LATENESS: f64 = 0.5;
/// Lateness below this is the cost of making a request, reading the clock and leaving the spin.
const MIN_LATENESS_S: f64 = 5e-6;
/// Upper bound on a usual wake-up of a thread that slept until a request was due: idle state exit,
/// hypervisor and cold caches (64 us at p99, see [`SPIN`]).
const WAKE_UP_S: f64 = 200e-6;
/// Below this number of requests, single wake-ups dominate the mean.
const FEW: f64 = 10.0;
/// Upper bound on the mean of few wake-ups: one of them may have been slow.
const FEW_WAKE_UPS_S: f64 = 5e-3;
/// Advice where the client is late for an unknown reason; callers that know it replace this text.
pub const QUIETEN: &str = "stop other programs";
/// Share of the threads' time outside the store above which a closed loop measures the harness.
const MAX_HARNESS: f64 = 0.5;

/// The measured window, in ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuredWindow {
    pub(crate) opened_at: u64,
    pub(crate) closes_at: u64,
    /// It ended by a number of operations, not by the clock.
    pub(crate) counted: bool,
    pub(crate) open: bool,
    /// Requests that all threads together can have in flight.
    pub(crate) slots: usize,
    /// Target rate of an open loop, per second; none for a recorded one.
    pub(crate) target: Option<f64>,
    /// A trace was replayed.
    pub(crate) traced: bool,
}

impl MeasuredWindow {
    /// When the last answer came, or the window closed without one.
    pub(crate) fn last_end(&self, stats: &[ThreadStats]) -> u64 {
        let last = stats.iter().map(|stats| stats.ended).max().unwrap_or(0).max(self.opened_at);
        // A window that ends by the clock counts whole, even if no request was due at its end.
        if self.counted || self.closes_at == u64::MAX { last } else { last.max(self.closes_at) }
    }

    /// The length over which operations are counted, in seconds. In a closed loop that ends by the
    /// clock, each thread finishes its last operation and so has its own window: the result is
    /// their mean, weighted so that operations / length is the sum of the threads' rates.
    fn length(&self, clock: &Ticks, stats: &[ThreadStats]) -> f64 {
        let whole = clock.seconds(self.opened_at, self.last_end(stats));
        if self.counted || self.open || self.closes_at == u64::MAX {
            return whole;
        }
        let operations: u64 = stats.iter().map(|stats| stats.operations).sum();
        let rate: f64 = stats
            .iter()
            .map(|stats| {
                // One that paused at the end had the whole window.
                let own = clock.seconds(self.opened_at, stats.ended.max(self.closes_at));
                stats.operations as f64 / own.max(1e-9)
            })
            .sum();
        if rate > 0.0 { operations as f64 / rate } else { whole }
    }
}

pub(crate) struct Parts {
    pub(crate) stats: Vec<ThreadStats>,
    pub(crate) window: MeasuredWindow,
    pub(crate) ops: Vec<Op>,
    pub(crate) totals: IntervalHistograms,
    pub(crate) series: Vec<SeriesPoint>,
    pub(crate) intervals: Vec<Vec<u8>>,
    pub(crate) stopped: bool,
    pub(crate) steady: Option<SteadyReport>,
    pub(crate) stores_values: bool,
    /// The CPU time that the threads could have.
    pub(crate) cpus: Option<CpuBudget>,
}

pub(crate) fn merge(clock: &Ticks, parts: Parts) -> PhaseOutcome {
    let Parts { stats, window, ops, totals, series, intervals, .. } = parts;
    let threads = stats.len();
    let open = window.open;
    let seconds = window.length(clock, &stats);
    let by_clock = !window.counted && window.closes_at != u64::MAX;
    let window_s = match by_clock {
        true => clock.seconds(window.opened_at, window.closes_at),
        false => seconds,
    };
    let thread_s = threads as f64 * clock.seconds(window.opened_at, window.last_end(&stats));
    let mut all = ThreadStats::default();
    let mut own_ticks = 0;
    let ended = stats.iter().all(|one| one.replayed.ended);
    let reader = TraceReaderStats::of(clock, &stats, thread_s / (threads as f64).max(1.0));
    for one in stats {
        own_ticks += one.ended.saturating_sub(one.began);
        all.add(one);
    }
    // Threads that share CPUs had no more time together than those have.
    let shared = parts.cpus.filter(|cpus| cpus.count < threads as f64);
    let had_s = shared.as_ref().map_or(thread_s, |cpus| thread_s * cpus.count / threads as f64);
    let share = |ticks: u64, of_s: f64| (clock.seconds(0, ticks) / of_s.max(1e-9)).min(1.0);
    let active = own_ticks.saturating_sub(all.waited.idle);
    let making = active.saturating_sub(all.in_store);
    // Ticks also count while a thread has no CPU, so the harness's share of the CPUs is at most its
    // share of the ticks that were not idle.
    let of_cpus = share(making, had_s).min(making as f64 / (active as f64).max(1.0));
    let harness_share = share(making, thread_s).max(of_cpus);
    let mut failures = all.answer_counts.failures;
    failures.sort_by_key(|failure| failure.kind.name());
    let mean_lateness_s = clock.seconds(0, all.late) / (all.operations as f64).max(1.0);
    let named = |histograms: Vec<Histogram<u64>>| {
        ops.iter().copied().zip(histograms).filter(|(_, h)| !h.is_empty()).collect::<Vec<_>>()
    };
    let mut outcome = PhaseOutcome {
        threads,
        seconds,
        window_s,
        operations: all.operations,
        verified: all.answer_counts.verified,
        hits: all.answer_counts.hits,
        misses: all.answer_counts.misses,
        missing: all.answer_counts.missing,
        refills: all.refills,
        failures,
        service: named(totals.service),
        response: named(totals.response),
        arrival: named(totals.arrival),
        series,
        intervals,
        counts: all.counts,
        changes: all.changes,
        bytes_written: all.bytes_written,
        bytes_read: all.answer_counts.bytes_read,
        scanned: all.answer_counts.scanned,
        harness_share,
        busy_share: share(active, thread_s).max(share(making, had_s)),
        spun_s: clock.seconds(0, all.waited.spinning),
        mean_lateness_s,
        due: if open { all.operations + all.never_sent } else { 0 },
        answered_in_time: all.answered_in_time,
        never_sent: all.never_sent,
        dropped: all.dropped,
        queued: all.queued,
        mean_queued_s: clock.seconds(0, all.queue_ticks) / (all.queued as f64).max(1.0),
        most_queued: all.most_queued,
        mean_wake_up_s: (all.woken > 0).then(|| all.wake_ns as f64 / 1e9 / all.woken as f64),
        reconnected: all.reconnected,
        fingerprint: all.fingerprint,
        redirected: all.redirected,
        drawn: all.drawn,
        steady: parts.steady,
        replayed: window.traced.then_some(ReplaySummary {
            requests: all.drawn,
            ended,
            ..all.replayed
        }),
        stopped: parts.stopped,
        gave_up: all.gave_up,
        invalid_because: Vec::new(),
        warnings: Vec::new(),
    };
    if let Some(replayed) = &outcome.replayed {
        (outcome.invalid_because, outcome.warnings) = judge_replay(replayed, open, reader);
    }
    // A recorded trace is its own target.
    let recorded = open && window.target.is_none();
    let due_s = outcome.due as f64 / outcome.seconds.max(1e-9);
    let target = if recorded { Some(due_s) } else { window.target };
    let MeasuredWindow { counted, slots, .. } = window;
    judge(
        &mut outcome,
        Criteria { counted, slots, target, recorded, stores_values: parts.stores_values },
    );
    // A quota that takes part of a CPU is reported elsewhere.
    outcome.warnings.extend(shared.filter(|cpus| cpus.count.ceil() < threads as f64).map(|cpus| {
        format!(
            "{threads} threads share {}: they wait for each other, and latency holds that wait; \
             use fewer threads, or give them more CPUs",
            cpus.words
        )
    }));
    outcome
}

impl ThreadStats {
    fn add(&mut self, other: ThreadStats) {
        self.operations += other.operations;
        self.counts = PerOp::from_fn(|op| self.counts[op] + other.counts[op]);
        self.answer_counts.merge(other.answer_counts);
        self.bytes_written += other.bytes_written;
        self.in_store += other.in_store;
        self.waited = self.waited + other.waited;
        self.answered_in_time += other.answered_in_time;
        self.late += other.late;
        self.never_sent += other.never_sent;
        self.dropped += other.dropped;
        self.queued += other.queued;
        self.queue_ticks += other.queue_ticks;
        self.most_queued += other.most_queued;
        self.woken += other.woken;
        self.wake_ns += other.wake_ns;
        self.refills += other.refills;
        self.reconnected += other.reconnected;
        self.gave_up = self.gave_up.take().or(other.gave_up);
        self.fingerprint = self.fingerprint.wrapping_add(other.fingerprint);
        self.redirected += other.redirected;
        self.drawn += other.drawn;
        self.replayed.add(other.replayed);
        self.changes.inserted += other.changes.inserted;
        self.changes.deleted += other.changes.deleted;
        self.changes.refused += other.changes.refused;
    }
}

/// Criteria by which an outcome is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Criteria {
    /// The window ended by a number of operations, not by the clock.
    pub(crate) counted: bool,
    /// Requests that all threads together can have in flight.
    pub(crate) slots: usize,
    /// Rate of an open loop, per second.
    pub(crate) target: Option<f64>,
    /// The rate is that of a trace.
    pub(crate) recorded: bool,
    pub(crate) stores_values: bool,
}

/// Adds the reasons that make the run invalid, and warnings.
pub(crate) fn judge(outcome: &mut PhaseOutcome, criteria: Criteria) {
    let mut invalid = std::mem::take(&mut outcome.invalid_because);
    let mut warnings = std::mem::take(&mut outcome.warnings);
    if let Some(why) = &outcome.gave_up {
        invalid.push(format!("ended early, {why}"));
    }
    if outcome.operations == 0 {
        invalid.push("no operation ended in the window; give it more time".to_owned());
    }
    // A lost server is reported by `gave_up`.
    for failure in outcome.failures.iter().filter(|failure| failure.kind != FailureKind::Lost) {
        invalid.push(format!(
            "{} answers failed ({}); the first: {}",
            failure.count, failure.kind, failure.first
        ));
    }
    if outcome.stopped {
        invalid.push("ended early, on request".to_owned());
    }
    if let Some(steady) = outcome.steady.as_ref().filter(|steady| !steady.reached) {
        let rounds = steady.rounds.len();
        invalid.push(format!("the steady state was not reached in {rounds} rounds"));
    }
    match criteria.target {
        Some(target) => judge_open(outcome, criteria, target, &mut invalid, &mut warnings),
        None if outcome.harness_share > MAX_HARNESS && criteria.stores_values => warnings.push(format!(
            "{:.0} % of the threads' time went to making and checking requests, not to the store",
            outcome.harness_share * 100.0
        )),
        None => {}
    }
    outcome.invalid_because = invalid;
    outcome.warnings = warnings;
}

/// How the trace reader kept up with the client threads.
#[derive(Debug, Clone, Copy, Default)]
struct TraceReaderStats {
    /// Share of requests that a thread got after they were due, and share of the window for which it
    /// waited for the file. Minimum over the threads: a thread that waits may wait for another one
    /// that is behind rather than for the file.
    late: f64,
    starved: f64,
    /// Maximum over the threads of the share waited.
    most_starved: f64,
}

impl TraceReaderStats {
    fn of(clock: &Ticks, stats: &[ThreadStats], window_s: f64) -> TraceReaderStats {
        let active_threads = || stats.iter().filter(|stats| stats.operations > 0);
        let late = |stats: &ThreadStats| stats.replayed.read_late as f64 / stats.operations as f64;
        let starved =
            |stats: &ThreadStats| clock.seconds(0, stats.replayed.starved) / window_s.max(1e-9);
        let least = |shares: &mut dyn Iterator<Item = f64>| shares.reduce(f64::min).unwrap_or(0.0);
        TraceReaderStats {
            late: least(&mut active_threads().map(late)),
            starved: least(&mut active_threads().map(starved)),
            most_starved: active_threads().map(starved).fold(0.0, f64::max),
        }
    }
}

/// Above these shares the trace reader is what was measured.
const MAX_READ_LATE: f64 = 0.01;
const MAX_STARVED: f64 = 0.05;
/// Share of the window waited for another thread from which a warning is given.
const NOTABLE_IMBALANCE: f64 = 0.2;

/// Reasons that make a replay invalid, and warnings.
fn judge_replay(
    replayed: &ReplaySummary,
    open: bool,
    reader: TraceReaderStats,
) -> (Vec<String>, Vec<String>) {
    let (mut invalid, mut warnings) = (Vec::new(), Vec::new());
    if let Some(error) = &replayed.error {
        invalid.push(format!("the replay ended before the trace: {error}"));
    }
    if open && reader.late > MAX_READ_LATE {
        invalid.push(format!(
            "the client read the trace too slowly: {:.1} % of the requests came from the file \
             after they were due; lower `speed`, decompress the file, or give the client more CPUs",
            reader.late * 100.0
        ));
    }
    if !open && reader.starved > MAX_STARVED {
        invalid.push(format!(
            "the threads waited {:.0} % of the time for the trace to be read, so that the reader \
             was measured and not the store; decompress the file, or give the client more CPUs",
            reader.starved * 100.0
        ));
    } else if !open && reader.most_starved > NOTABLE_IMBALANCE {
        warnings.push(format!(
            "a thread waited {:.0} % of the time for another one: the requests of a key all come \
             from one thread, and some keys are popular",
            reader.most_starved * 100.0
        ));
    }
    let total = replayed.requests as f64;
    for (count, what) in [(replayed.cut, "cut"), (replayed.lengthened, "lengthened")] {
        if count > 0 {
            warnings.push(format!(
                "the keys of {:.1} % of the requests were {what} to the size that the trace gives",
                100.0 * count as f64 / total.max(1.0)
            ));
        }
    }
    (invalid, warnings)
}

fn judge_open(
    outcome: &PhaseOutcome,
    criteria: Criteria,
    target: f64,
    invalid: &mut Vec<String>,
    warnings: &mut Vec<String>,
) {
    let sum_and_count = |histograms: &[(Op, Histogram<u64>)]| {
        histograms.iter().fold((0.0, 0u64), |(sum, count), (_, h)| {
            (sum + h.mean() * h.len() as f64 / 1e9, count + h.len())
        })
    };
    let (service_s, count) = sum_and_count(&outcome.service);
    let (response_s, _) = sum_and_count(&outcome.response);
    let count = (count as f64).max(1.0);
    // Flags and keys of studies have the same names.
    let knob = if criteria.recorded { "`speed`" } else { "`rate`" };
    let advice = match outcome.queued {
        0 => format!("lower {knob} or add `threads`"),
        _ => format!("lower {knob}, or add `connections`, `depth` or `threads`"),
    };
    if criteria.counted {
        // A thread may end up to a block after the others, at its share of the rate.
        let tail_s = (workload::BLOCK * outcome.threads as u64) as f64 / target;
        let due_s = outcome.operations as f64 / target;
        if outcome.seconds * MIN_ACHIEVED > due_s + tail_s {
            invalid.push(format!(
                "the rate was not achieved: {:.1} of {target} operations a second; {advice}",
                outcome.operations as f64 / outcome.seconds
            ));
        }
    } else {
        let due = outcome.due as f64;
        // By Little's law so many are in flight at any instant, also at the last one.
        let in_flight = (target * service_s / count).min(criteria.slots as f64) + 1.0;
        if outcome.answered_in_time as f64 + in_flight < due * MIN_ACHIEVED {
            invalid.push(format!(
                "the rate was not achieved: {:.1} % of the requests that were due were answered \
                 in time; {advice}",
                100.0 * outcome.answered_in_time as f64 / due
            ));
        }
    }
    if outcome.dropped > 0 {
        warnings.push(format!(
            "{} requests were due and dropped, for as many were waiting as `queue` lets; their \
             latency is in no figure",
            outcome.dropped
        ));
    }
    if outcome.busy_share > MAX_BUSY {
        invalid.push(format!(
            "the client was {:.1} % busy, too much to send on time; {advice}",
            outcome.busy_share * 100.0
        ));
    }
    let late_share = outcome.mean_lateness_s / (response_s / count).max(1e-12);
    if outcome.mean_lateness_s > MIN_LATENESS_S && late_share > NOTABLE_LATENESS {
        let words = format!(
            "{:.0} % of the mean response time ({:.1} us) is the client's own lateness",
            late_share * 100.0,
            outcome.mean_lateness_s * 1e6
        );
        // Threads sleep before each request, and the store answers faster than they wake.
        let sleeps = outcome.threads as f64 / target > 2.0 * SPIN.as_secs_f64();
        let wake_up_dominates = sleeps
            && service_s / count < WAKE_UP_S
            && outcome.mean_lateness_s < if count < FEW { FEW_WAKE_UPS_S } else { WAKE_UP_S };
        if late_share <= RULING_LATENESS {
            warnings.push(format!("{words}; {QUIETEN}, or lower {knob}"));
        } else if wake_up_dominates {
            warnings.push(format!(
                "{words}: the store answers in {:.1} us, which is less than it takes to wake a \
                 thread that slept until a request was due, so response time measures the wake-up; \
                 read the service time, or raise {knob}",
                service_s / count * 1e6
            ));
        } else {
            invalid.push(format!("{words}; {QUIETEN}, or lower {knob}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An open loop of one thread with this service time and lateness.
    fn late(rate: f64, requests: u64, service_ns: u64, late_ns: u64) -> PhaseOutcome {
        let of = |nanoseconds: u64| {
            let mut histogram = Histogram::new(3).unwrap();
            histogram.record_n(nanoseconds, requests).unwrap();
            vec![(Op::Read, histogram)]
        };
        let mut outcome = PhaseOutcome {
            threads: 1,
            seconds: 2.0,
            operations: requests,
            due: requests,
            answered_in_time: requests,
            service: of(service_ns),
            response: of(service_ns + late_ns),
            mean_lateness_s: late_ns as f64 / 1e9,
            ..PhaseOutcome::default()
        };
        let (counted, slots, recorded) = (false, 1, false);
        judge(
            &mut outcome,
            Criteria { counted, slots, target: Some(rate), recorded, stores_values: true },
        );
        outcome
    }

    #[test]
    fn a_store_faster_than_a_wake_up_does_not_invalidate_the_run() {
        // One request in two seconds, on a machine that takes its time to wake up.
        for late_ns in [40_000, 900_000] {
            let outcome = late(0.5, 1, 100, late_ns);
            assert!(outcome.invalid_because.is_empty(), "{:?}", outcome.invalid_because);
            assert!(outcome.warnings[0].contains("it takes to wake a thread"), "{outcome:?}");
            assert!(outcome.warnings[0].contains("answers in 0.1 us"), "{outcome:?}");
        }
        assert!(late(500.0, 1000, 20_000, 60_000).invalid_because.is_empty());
        // Later than a wake-up explains, of a store that could be seen, and without any sleep.
        for (rate, requests, service_ns, late_ns) in [
            (500.0, 1000, 20_000, 900_000),
            (5.0, 9, 50_000, 3_000_000_000),
            (0.5, 1, 300_000, 900_000),
            (50_000.0, 100_000, 100, 40_000),
        ] {
            let outcome = late(rate, requests, service_ns, late_ns);
            assert!(outcome.invalid_because[0].contains(QUIETEN), "{outcome:?}");
        }
    }
}
