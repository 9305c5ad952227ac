//! Merges the threads' statistics into the outcome of the window.

use hdrhistogram::Histogram;
use model::{Op, SeriesPoint};

use crate::clock::Ticks;
use crate::outcome::{PhaseOutcome, SteadyReport};
use crate::plan::CpuBudget;
use crate::recorder::IntervalHistograms;
use crate::replay::ReplaySummary;
use crate::thread_stats::ThreadStats;
use crate::validity::{Criteria, TraceReaderStats, judge, judge_replay};

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
    pub(crate) interval_s: f64,
    pub(crate) stopped: bool,
    pub(crate) steady: Option<SteadyReport>,
    pub(crate) stores_values: bool,
    /// The CPU time that the threads could have.
    pub(crate) cpus: Option<CpuBudget>,
}

/// The judged outcome of the window.
pub(crate) fn merge(clock: &Ticks, parts: Parts) -> PhaseOutcome {
    let (window, stores_values) = (parts.window, parts.stores_values);
    let shared_cpus = parts.cpus.clone().filter(|cpus| cpus.count < parts.stats.len() as f64);
    let thread_s =
        parts.stats.len() as f64 * clock.seconds(window.opened_at, window.last_end(&parts.stats));
    let mean_s = thread_s / (parts.stats.len() as f64).max(1.0);
    let reader = TraceReaderStats::of(clock, &parts.stats, mean_s);
    let shares = TimeShares::of(clock, &parts.stats, thread_s, shared_cpus.as_ref());
    let mut outcome = unjudged(clock, parts, shares);
    if let Some(replayed) = &outcome.replayed {
        (outcome.invalid_because, outcome.warnings) = judge_replay(replayed, window.open, reader);
    }
    // A recorded trace is its own target.
    let recorded = window.open && window.target.is_none();
    let due_s = outcome.due as f64 / outcome.seconds.max(1e-9);
    let target = if recorded { Some(due_s) } else { window.target };
    let MeasuredWindow { counted, slots, .. } = window;
    judge(&mut outcome, Criteria { counted, slots, target, recorded, stores_values });
    // A quota that takes part of a CPU is reported elsewhere.
    let threads = outcome.threads;
    let crowded = shared_cpus.filter(|cpus| cpus.count.ceil() < threads as f64);
    outcome.warnings.extend(crowded.map(|cpus| {
        format!(
            "{threads} threads share {}: they wait for each other, and latency includes that wait; \
             use fewer threads, or give them more CPUs",
            cpus.words
        )
    }));
    outcome
}

/// Shares of the threads' time; see [`PhaseOutcome::harness_share`] and
/// [`PhaseOutcome::busy_share`].
struct TimeShares {
    harness: f64,
    busy: f64,
}

impl TimeShares {
    /// `thread_s` is the time of all threads together. Threads that share CPUs had no more time
    /// together than those have.
    fn of(
        clock: &Ticks,
        stats: &[ThreadStats],
        thread_s: f64,
        shared_cpus: Option<&CpuBudget>,
    ) -> TimeShares {
        let sum = |ticks: fn(&ThreadStats) -> u64| stats.iter().map(ticks).sum::<u64>();
        let had_s = shared_cpus.map_or(thread_s, |cpus| thread_s * cpus.count / stats.len() as f64);
        let share = |ticks: u64, of_s: f64| (clock.seconds(0, ticks) / of_s.max(1e-9)).min(1.0);
        let own = sum(|one| one.ended.saturating_sub(one.began));
        let active = own.saturating_sub(sum(|one| one.waited.idle));
        let making = active.saturating_sub(sum(|one| one.in_store));
        // Ticks also count while a thread has no CPU, so the harness's share of the CPUs is at most
        // its share of the ticks that were not idle.
        let of_cpus = share(making, had_s).min(making as f64 / (active as f64).max(1.0));
        TimeShares {
            harness: share(making, thread_s).max(of_cpus),
            busy: share(active, thread_s).max(share(making, had_s)),
        }
    }
}

fn unjudged(clock: &Ticks, parts: Parts, shares: TimeShares) -> PhaseOutcome {
    let Parts { stats, window, ops, totals, .. } = parts;
    let threads = stats.len();
    let seconds = window.length(clock, &stats);
    let by_clock = !window.counted && window.closes_at != u64::MAX;
    let window_s = match by_clock {
        true => clock.seconds(window.opened_at, window.closes_at),
        false => seconds,
    };
    let ended = stats.iter().all(|one| one.replayed.ended);
    let mut all = ThreadStats::default();
    stats.into_iter().for_each(|one| all.add(one));
    let mut failures = all.answer_counts.failures;
    failures.sort_by_key(|failure| failure.kind.name());
    let named = |histograms: Vec<Histogram<u64>>| {
        ops.iter().copied().zip(histograms).filter(|(_, h)| !h.is_empty()).collect::<Vec<_>>()
    };
    PhaseOutcome {
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
        miss: [Op::Read].into_iter().zip(totals.miss).filter(|(_, h)| !h.is_empty()).collect(),
        modelled_s: all.modelled_ns as f64 / 1e9,
        series: parts.series,
        intervals: parts.intervals,
        counts: all.counts,
        changes: all.changes,
        bytes_written: all.bytes_written,
        bytes_read: all.answer_counts.bytes_read,
        scanned: all.answer_counts.scanned,
        harness_share: shares.harness,
        busy_share: shares.busy,
        spun_s: clock.seconds(0, all.waited.spinning),
        mean_lateness_s: clock.seconds(0, all.late) / (all.operations as f64).max(1.0),
        due: if window.open { all.operations + all.never_sent } else { 0 },
        answered_in_time: all.answered_in_time,
        never_sent: all.never_sent,
        dropped: all.dropped,
        queued: all.queued,
        mean_queued_s: clock.seconds(0, all.queue_ticks) / (all.queued as f64).max(1.0),
        most_queued: all.most_queued,
        mean_wake_up_s: (all.woken > 0).then(|| all.wake_ns as f64 / 1e9 / all.woken as f64),
        reconnected: all.reconnected,
        cluster: (all.cluster.nodes > 0).then_some(all.cluster),
        ring: (all.ring.servers > 0).then_some(all.ring),
        nodes: all.nodes,
        interval_s: parts.interval_s,
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
    }
}
