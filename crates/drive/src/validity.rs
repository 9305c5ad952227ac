//! Judges whether a measurement is valid.

use hdrhistogram::Histogram;
use model::Op;

use crate::clock::Ticks;
use crate::outcome::{FailureKind, PhaseOutcome};
use crate::pace::SPIN;
use crate::replay::ReplaySummary;
use crate::thread_stats::ThreadStats;

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
    let failed = outcome.failures.iter().map(|failure| failure.count).sum();
    warnings.extend(outcome.cluster.as_ref().and_then(|cluster| cluster.words(failed)));
    warnings.extend(outcome.ring.as_ref().and_then(|ring| ring.words()));
    if outcome.stopped {
        invalid.push("ended early, on request".to_owned());
    }
    if let Some(steady) = outcome.steady.as_ref().filter(|steady| !steady.reached) {
        let rounds = steady.rounds.len();
        invalid.push(format!("the steady state was not reached in {rounds} rounds"));
    }
    match criteria.target {
        Some(target) => {
            OpenLoopRun::new(outcome, criteria, target).judge(&mut invalid, &mut warnings);
        }
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
pub(crate) struct TraceReaderStats {
    /// Share of requests that a thread got after they were due, and share of the window for which it
    /// waited for the file. Minimum over the threads: a thread that waits may wait for another one
    /// that is behind rather than for the file.
    late: f64,
    starved: f64,
    /// Maximum over the threads of the share waited.
    most_starved: f64,
}

impl TraceReaderStats {
    pub(crate) fn of(clock: &Ticks, stats: &[ThreadStats], window_s: f64) -> TraceReaderStats {
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
pub(crate) fn judge_replay(
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
            "the client read the trace too slowly: {:.1} % of the requests were read after they \
             were due; lower `speed`, decompress the file, or give the client more CPUs",
            reader.late * 100.0
        ));
    }
    if !open && reader.starved > MAX_STARVED {
        invalid.push(format!(
            "the threads waited {:.0} % of the time for the trace: the run measured its reader, \
             not the store; decompress the file, or give the client more CPUs",
            reader.starved * 100.0
        ));
    } else if !open && reader.most_starved > NOTABLE_IMBALANCE {
        warnings.push(format!(
            "a thread waited {:.0} % of the time for another one: one thread issues all requests \
             of a key, and some keys are popular",
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

/// An open loop and the mean latencies of its requests.
struct OpenLoopRun<'a> {
    outcome: &'a PhaseOutcome,
    criteria: Criteria,
    target: f64,
    /// Requests with a latency, at least 1.
    requests: f64,
    mean_service_s: f64,
    mean_response_s: f64,
}

impl<'a> OpenLoopRun<'a> {
    fn new(outcome: &'a PhaseOutcome, criteria: Criteria, target: f64) -> OpenLoopRun<'a> {
        let sum_and_count = |histograms: &[(Op, Histogram<u64>)]| {
            histograms.iter().fold((0.0, 0u64), |(sum, count), (_, h)| {
                (sum + h.mean() * h.len() as f64 / 1e9, count + h.len())
            })
        };
        let (service_s, count) = sum_and_count(&outcome.service);
        let (response_s, _) = sum_and_count(&outcome.response);
        let requests = (count as f64).max(1.0);
        let (mean_service_s, mean_response_s) = (service_s / requests, response_s / requests);
        OpenLoopRun { outcome, criteria, target, requests, mean_service_s, mean_response_s }
    }

    fn judge(&self, invalid: &mut Vec<String>, warnings: &mut Vec<String>) {
        let outcome = self.outcome;
        let advice = match outcome.queued {
            0 => format!("lower {} or add `threads`", self.rate_key()),
            _ => format!("lower {}, or add `connections`, `depth` or `threads`", self.rate_key()),
        };
        if let Some(achieved) = self.rate_shortfall() {
            invalid.push(format!("the rate was not achieved: {achieved}; {advice}"));
        }
        if outcome.dropped > 0 {
            warnings.push(format!(
                "{} due requests were dropped, because as many were waiting as `queue` allows; no \
                 figure includes their latency",
                outcome.dropped
            ));
        }
        if outcome.busy_share > MAX_BUSY {
            invalid.push(format!(
                "the client was {:.1} % busy, too much to send on time; {advice}",
                outcome.busy_share * 100.0
            ));
        }
        let late_share = outcome.mean_lateness_s / self.mean_response_s.max(1e-12);
        if outcome.mean_lateness_s > MIN_LATENESS_S && late_share > NOTABLE_LATENESS {
            self.judge_lateness(late_share, invalid, warnings);
        }
    }

    /// What sets the rate; flags and keys of studies have the same names.
    fn rate_key(&self) -> &'static str {
        if self.criteria.recorded { "`speed`" } else { "`rate`" }
    }

    /// What was achieved instead of the rate; None if it was achieved.
    fn rate_shortfall(&self) -> Option<String> {
        let OpenLoopRun { outcome, criteria, target, .. } = self;
        if criteria.counted {
            // A thread may end up to a block after the others, at its share of the rate.
            let tail_s = (workload::BLOCK * outcome.threads as u64) as f64 / target;
            let due_s = outcome.operations as f64 / target;
            let rate = outcome.operations as f64 / outcome.seconds;
            return (outcome.seconds * MIN_ACHIEVED > due_s + tail_s)
                .then(|| format!("{rate:.1} of {target} operations a second"));
        }
        let due = outcome.due as f64;
        // By Little's law so many are in flight at any instant, also at the last one.
        let in_flight = (target * self.mean_service_s).min(criteria.slots as f64) + 1.0;
        (outcome.answered_in_time as f64 + in_flight < due * MIN_ACHIEVED).then(|| {
            format!(
                "{:.1} % of the requests that were due were answered in time",
                100.0 * outcome.answered_in_time as f64 / due
            )
        })
    }

    /// Says that this share of the mean response time is the client's own lateness.
    fn judge_lateness(&self, share: f64, invalid: &mut Vec<String>, warnings: &mut Vec<String>) {
        let words = format!(
            "{:.0} % of the mean response time ({:.1} µs) is the client's own lateness",
            share * 100.0,
            self.outcome.mean_lateness_s * 1e6
        );
        let key = self.rate_key();
        if share <= RULING_LATENESS {
            warnings.push(format!("{words}; {QUIETEN}, or lower {key}"));
        } else if self.wake_up_dominates() {
            warnings.push(format!(
                "{words}: the store answers in {:.1} µs, faster than a sleeping thread wakes up, \
                 so response time measures the wake-up; use the service time, or raise {key}",
                self.mean_service_s * 1e6
            ));
        } else {
            invalid.push(format!("{words}; {QUIETEN}, or lower {key}"));
        }
    }

    /// Threads sleep before each request, and the store answers faster than they wake.
    fn wake_up_dominates(&self) -> bool {
        let most_s = if self.requests < FEW { FEW_WAKE_UPS_S } else { WAKE_UP_S };
        self.outcome.threads as f64 / self.target > 2.0 * SPIN.as_secs_f64()
            && self.mean_service_s < WAKE_UP_S
            && self.outcome.mean_lateness_s < most_s
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
            assert!(outcome.warnings[0].contains("faster than a sleeping thread"), "{outcome:?}");
            assert!(outcome.warnings[0].contains("answers in 0.1 µs"), "{outcome:?}");
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

    #[test]
    fn requests_in_flight_at_the_end_are_no_shortfall() {
        // 1000 due in half a second: 30 ms of service leave 60 of them in flight, and 1 % may lack.
        for (service_ms, slots, answered, shortfall) in
            [(30, 150, 930, false), (30, 150, 928, true), (30, 20, 930, true), (1, 150, 930, true)]
        {
            let outcome =
                PhaseOutcome { due: 1000, answered_in_time: answered, ..PhaseOutcome::default() };
            let run = OpenLoopRun {
                outcome: &outcome,
                criteria: Criteria {
                    counted: false,
                    slots,
                    target: Some(2000.0),
                    recorded: false,
                    stores_values: true,
                },
                target: 2000.0,
                requests: 1000.0,
                mean_service_s: f64::from(service_ms) / 1e3,
                mean_response_s: f64::from(service_ms) / 1e3,
            };
            assert_eq!(run.rate_shortfall().is_some(), shortfall, "{service_ms} ms, {slots} slots");
        }
    }
}
