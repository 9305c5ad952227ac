//! What the threads saw, put together and judged: was the asking itself sound?

use hdrhistogram::Histogram;
use model::{Op, PerOp};

use crate::clock::Ticks;
use crate::outcome::{Outcome, Point, SteadyReport};
use crate::recorder::Interval;
use crate::worker::Seen;

/// Below this share of its requests answered in time, an open loop did not hold its rate.
const LEAST_ACHIEVED: f64 = 0.99;
/// A client busier than this has no head-room to be on time.
const MOST_BUSY: f64 = 0.95;
/// Mean lateness of requests that found their thread idle, as a share of the mean response,
/// from which a reader should know and from which the client is what was measured.
const NOTABLE_LATENESS: f64 = 0.1;
const RULING_LATENESS: f64 = 0.5;
/// Lateness below this is no more than reading the clock and leaving the spin.
const LEAST_LATENESS_S: f64 = 5e-6;
/// A closed loop that spends more than this outside the store measures itself.
const MOST_HARNESS: f64 = 0.5;

pub(crate) struct Parts {
    pub(crate) seen: Vec<Seen>,
    pub(crate) opened_at: u64,
    pub(crate) closes_at: u64,
    pub(crate) seconds: f64,
    pub(crate) ops: Vec<Op>,
    pub(crate) open: bool,
    pub(crate) totals: Interval,
    pub(crate) series: Vec<Point>,
    pub(crate) stopped: bool,
    pub(crate) steady: Option<SteadyReport>,
    pub(crate) keeps: bool,
}

pub(crate) fn merge(clock: &Ticks, parts: Parts) -> Outcome {
    let Parts { seen, opened_at, closes_at, seconds, ops, open, totals, series, .. } = parts;
    let threads = seen.len();
    let mut all = Seen { began: opened_at, ..Seen::default() };
    let mut thread_ticks = 0;
    for one in seen {
        thread_ticks += one.ended.saturating_sub(one.began);
        all.add(one);
    }
    let share = |ticks: u64| ticks as f64 / (thread_ticks as f64).max(1.0);
    let idle = share(all.waited.idle).min(1.0);
    let mut failures = all.verdicts.failures;
    failures.sort_by_key(|failure| failure.kind.name());
    let mean_lateness_s =
        clock.seconds(0, all.waited.late) / (all.waited.idle_requests as f64).max(1.0);
    let named = |histograms: Vec<Histogram<u64>>| {
        ops.iter().copied().zip(histograms).filter(|(_, h)| !h.is_empty()).collect::<Vec<_>>()
    };
    let mut outcome = Outcome {
        threads,
        seconds,
        operations: all.operations,
        verified: all.verdicts.verified,
        misses: all.verdicts.misses,
        failures,
        service: named(totals.service),
        response: named(totals.response),
        series,
        counts: all.counts,
        bytes_written: all.bytes_written,
        bytes_read: all.verdicts.bytes_read,
        scanned: all.verdicts.scanned,
        harness_share: (1.0 - idle - share(all.in_store)).max(0.0),
        busy_share: 1.0 - idle,
        spun_s: clock.seconds(0, all.waited.spinning),
        mean_lateness_s,
        due: if open { all.operations + all.never_sent } else { 0 },
        answered_in_time: all.answered_in_time,
        never_sent: all.never_sent,
        fingerprint: all.fingerprint,
        redirected: all.redirected,
        drawn: all.drawn,
        steady: parts.steady,
        stopped: parts.stopped,
        invalid_because: Vec::new(),
        warnings: Vec::new(),
    };
    let window_end = if closes_at == u64::MAX { all.last_due } else { closes_at };
    let window_s = clock.seconds(opened_at, window_end);
    judge(&mut outcome, open.then_some(window_s), parts.keeps);
    outcome
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.operations += other.operations;
        self.counts = PerOp::from_fn(|op| self.counts[op] + other.counts[op]);
        self.verdicts.merge(other.verdicts);
        self.bytes_written += other.bytes_written;
        self.in_store += other.in_store;
        self.waited = self.waited + other.waited;
        self.answered_in_time += other.answered_in_time;
        self.last_due = self.last_due.max(other.last_due);
        self.never_sent += other.never_sent;
        self.fingerprint = self.fingerprint.wrapping_add(other.fingerprint);
        self.redirected += other.redirected;
        self.drawn += other.drawn;
    }
}

/// Says what makes the run invalid and what a reader should know. `window_s` is the span in
/// which requests were due, for an open loop.
fn judge(outcome: &mut Outcome, window_s: Option<f64>, keeps: bool) {
    let mut invalid = Vec::new();
    let mut warnings = Vec::new();
    if outcome.operations == 0 {
        invalid.push("no operation ended in the window; give it more time".to_owned());
    }
    for failure in &outcome.failures {
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
    match window_s {
        Some(window_s) => judge_open(outcome, window_s, &mut invalid, &mut warnings),
        None if outcome.harness_share > MOST_HARNESS && keeps => warnings.push(format!(
            "{:.0} % of the threads' time went to making and checking requests, not to the store",
            outcome.harness_share * 100.0
        )),
        None => {}
    }
    outcome.invalid_because = invalid;
    outcome.warnings = warnings;
}

fn judge_open(
    outcome: &Outcome,
    window_s: f64,
    invalid: &mut Vec<String>,
    warnings: &mut Vec<String>,
) {
    let due = outcome.due as f64;
    // A request that was due just before the end may be answered just after it.
    let grace = outcome.threads as f64 + 1.0;
    let answered = outcome.answered_in_time as f64 + grace;
    if due > 0.0 && answered < due * LEAST_ACHIEVED {
        invalid.push(format!(
            "the rate was not achieved: {:.1} % of the requests that were due were answered in \
             time; lower --rate or add --threads",
            100.0 * outcome.answered_in_time as f64 / due
        ));
    } else if outcome.seconds * LEAST_ACHIEVED > window_s + 0.01 {
        invalid.push(format!(
            "the rate was not achieved: requests due within {window_s:.2} s took {:.2} s; lower \
             --rate or add --threads",
            outcome.seconds
        ));
    }
    if outcome.busy_share > MOST_BUSY {
        invalid.push(format!(
            "the client was {:.1} % busy, too much to send on time; lower --rate or add --threads",
            outcome.busy_share * 100.0
        ));
    }
    let (sum, count) = outcome.response.iter().fold((0.0, 0u64), |(sum, count), (_, h)| {
        (sum + h.mean() * h.len() as f64 / 1e9, count + h.len())
    });
    let mean_response_s = sum / (count as f64).max(1.0);
    let late_share = outcome.mean_lateness_s / mean_response_s.max(1e-12);
    if outcome.mean_lateness_s > LEAST_LATENESS_S && late_share > NOTABLE_LATENESS {
        let words = format!(
            "the client sent {:.1} us late on average, {:.0} % of the mean response time",
            outcome.mean_lateness_s * 1e6,
            late_share * 100.0
        );
        if late_share > RULING_LATENESS { invalid.push(words) } else { warnings.push(words) }
    }
}
