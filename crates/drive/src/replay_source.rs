//! A recorded trace as a source of operations.

use std::time::{Duration, Instant};

use model::{Expiry, Op, Pacing};
use workload::trace::{FeedItem, KeyFit, TraceFeed};
use workload::{Operation, ValueMismatch};

use crate::clock::Ticks;
use crate::pace::OpenLoop;
use crate::plan::LoadPlan;
use crate::replay::{Replay, ReplaySummary};
use crate::source::{Exhausted, OperationSource, SourcedOperation};
use crate::thread_stats::ThreadStats;

/// How long a thread waits for its first request before it is ready.
const FIRST_REQUEST_WAIT: Duration = Duration::from_secs(1);
/// How long to wait for the reader while unsent requests are counted.
const COUNT_WAIT: Duration = Duration::from_millis(20);

/// When the requests of a trace are due, in ticks after the start of the threads.
enum ReplayTiming {
    /// At once.
    Never,
    Recorded {
        ticks_a_second: f64,
    },
    /// By own arrivals. Every thread generates those of all threads, so that the requests of the
    /// whole trace stay in order and each thread has the share of its keys.
    Arrivals {
        all: Box<OpenLoop>,
        index: u64,
    },
}

impl ReplayTiming {
    fn of(plan: &LoadPlan, clock: &Ticks) -> ReplayTiming {
        match plan.shape.pacing {
            Pacing::Closed { .. } => ReplayTiming::Never,
            Pacing::Recorded { speed } => {
                ReplayTiming::Recorded { ticks_a_second: clock.per_second() / speed }
            }
            Pacing::Open { rate, arrivals } => {
                let all = OpenLoop::new(clock, 0, (rate, arrivals), (0, 1), plan.seed);
                ReplayTiming::Arrivals { all: Box::new(all), index: 0 }
            }
        }
    }

    #[inline]
    fn at(&mut self, request: u64, recorded_s: f64) -> u64 {
        match self {
            ReplayTiming::Never => 0,
            ReplayTiming::Recorded { ticks_a_second } => (recorded_s * *ticks_a_second) as u64,
            ReplayTiming::Arrivals { all, index } => {
                while *index < request {
                    all.take();
                    *index += 1;
                }
                all.due_after_origin()
            }
        }
    }
}

/// One thread's part of a trace.
pub(crate) struct ReplaySource<'a> {
    replay: &'a Replay,
    feed: TraceFeed,
    timing: ReplayTiming,
    /// Speed relative to the recording; expiry times are divided by it.
    speed: f64,
    most: u64,
    /// Key of the request that was returned last.
    key: Vec<u8>,
    exhausted: Exhausted,
    awaited: bool,
    summary: ReplaySummary,
    fingerprint: u64,
}

impl<'a> ReplaySource<'a> {
    /// Waits briefly for the first request, so that the window does not begin with a wait.
    pub(crate) fn new(replay: &'a Replay, feed: TraceFeed, plan: &LoadPlan, clock: &Ticks) -> Self {
        let mut new = ReplaySource {
            replay,
            feed,
            timing: ReplayTiming::of(plan, clock),
            speed: if let Pacing::Recorded { speed } = plan.shape.pacing { speed } else { 1.0 },
            most: replay.most.unwrap_or(u64::MAX),
            key: Vec::with_capacity(256),
            exhausted: Exhausted::Block,
            awaited: false,
            summary: ReplaySummary::default(),
            fingerprint: 0,
        };
        let limit = Instant::now() + FIRST_REQUEST_WAIT.min(plan.stall_timeout / 2);
        while matches!(new.feed.peek(COUNT_WAIT), Ok(FeedItem::NotYet)) && Instant::now() < limit {}
        new
    }
}

impl OperationSource for ReplaySource<'_> {
    const TRACED: bool = true;

    fn seek(&mut self, _block: u64) {}
    fn next_insert(&self) -> u64 {
        0
    }
    fn reads_inserted(&self) -> bool {
        false
    }

    fn next(&mut self, _acknowledged: u64) -> Option<SourcedOperation> {
        let request = match self.feed.peek(Duration::ZERO) {
            Ok(FeedItem::Request(request)) if request.index < self.most => request,
            Ok(FeedItem::NotYet) => {
                (self.exhausted, self.awaited) = (Exhausted::NotYet, true);
                return None;
            }
            Ok(FeedItem::Request(_) | FeedItem::End) => {
                self.exhausted = Exhausted::End;
                return None;
            }
            Err(error) => {
                self.summary.error = Some(error.to_string());
                self.exhausted = Exhausted::End;
                return None;
            }
        };
        self.key.clear();
        self.key.extend_from_slice(request.key);
        match request.fit {
            KeyFit::AsItIs => {}
            KeyFit::Hashed => self.summary.hashed += 1,
            KeyFit::Cut => self.summary.cut += 1,
            KeyFit::Lengthened => self.summary.lengthened += 1,
        }
        self.fingerprint = self.fingerprint.wrapping_add(request.fingerprint());
        let (op, index) = (request.operation.op(), request.index);
        let expiry = match request.expiry {
            Expiry::After(seconds) => {
                Expiry::After((f64::from(seconds) / self.speed).ceil() as u32)
            }
            other => other,
        };
        let sourced = SourcedOperation {
            // How far a scan goes on from its first key is not in a trace.
            operation: Operation { op, record: index, salt: index, scan: scan(op), keys: 1 },
            at: self.timing.at(index, request.at_s),
            length: request.value_size,
            expiry,
            awaited: std::mem::take(&mut self.awaited),
        };
        self.feed.advance();
        Some(sourced)
    }

    fn exhausted(&self) -> Exhausted {
        self.exhausted
    }

    fn key(&self, _ask: &Operation, _n: u32, out: &mut Vec<u8>) -> bool {
        out.clear();
        out.extend_from_slice(&self.key);
        false
    }
    fn value(&self, sourced: &SourcedOperation, key: &[u8], out: &mut Vec<u8>) {
        self.replay.values.write(key, sourced.operation.salt, sourced.length as usize, out);
    }
    fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), ValueMismatch> {
        self.replay.values.verify(key, value)
    }
    /// A trace may begin with an empty store, and its values expire.
    fn may_miss(&self) -> bool {
        true
    }
    fn reads_absent(&self) -> bool {
        false
    }
    fn refills(&self, sourced: &SourcedOperation) -> bool {
        self.replay.refill && sourced.length > 0
    }

    fn due_before(&mut self, ticks: u64) -> u64 {
        let mut left = 0;
        while let Ok(FeedItem::Request(request)) = self.feed.peek(COUNT_WAIT) {
            let at = self.timing.at(request.index, request.at_s);
            if request.index >= self.most || at >= ticks {
                break;
            }
            left += 1;
            self.feed.advance();
        }
        left
    }

    fn account(&mut self, stats: &mut ThreadStats) {
        stats.fingerprint = self.fingerprint;
        stats.replayed.add(std::mem::take(&mut self.summary));
        stats.replayed.header = self.feed.header().map(ToString::to_string);
        stats.replayed.ended = self.exhausted == Exhausted::End;
    }
}

/// Records of a request's scan.
fn scan(op: Op) -> u32 {
    u32::from(op == Op::Scan)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write;
    use std::path::PathBuf;
    use std::sync::Arc;

    use model::{Arrivals, LoadShape};
    use workload::SizedValues;
    use workload::trace::{ArrivalSpread, TraceOptions};

    use super::*;
    use crate::plan::PhaseKind;

    /// Seconds of a trace and their requests: with a burst and with a pause.
    const SECONDS: [(u64, u64); 5] = [(100, 40), (101, 400), (102, 40), (109, 1), (110, 40)];

    fn trace(folder: &tempfile::TempDir) -> PathBuf {
        let mut text = String::new();
        for (second, requests) in SECONDS {
            for request in 0..requests {
                writeln!(text, "{second},key:{:04},8,10,1,get,0", request * 7 % 100).unwrap();
            }
        }
        let path = folder.path().join("trace");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// All operations by their number in the trace, as drawn by so many threads.
    fn drawn(
        pacing: Pacing,
        threads: usize,
        spread: ArrivalSpread,
    ) -> BTreeMap<u64, SourcedOperation> {
        let folder = tempfile::tempdir().unwrap();
        let values = Arc::new(SizedValues::new(1, 0.0).unwrap());
        let file = trace(&folder);
        let options = TraceOptions::default();
        let replay = Replay { file, options, spread, most: None, values, refill: false };
        let plan = LoadPlan {
            shape: LoadShape { pacing, ..LoadShape::default() },
            ..LoadPlan::closed(PhaseKind::Mix, threads)
        };
        let feeds = replay.open().unwrap().feed(threads, spread).unwrap();
        let clock = Ticks::new();
        let mut all = BTreeMap::new();
        for feed in feeds {
            let mut source = ReplaySource::new(&replay, feed, &plan, &clock);
            let mut before = 0;
            loop {
                match source.next(u64::MAX) {
                    Some(sourced) => {
                        assert!(sourced.at >= before, "a thread's requests are due in their order");
                        before = sourced.at;
                        assert!(all.insert(sourced.operation.record, sourced).is_none());
                    }
                    None if source.exhausted() == Exhausted::End => break,
                    None => std::thread::sleep(Duration::from_millis(1)),
                }
            }
            let mut stats = ThreadStats::default();
            source.account(&mut stats);
            assert!(stats.replayed.error.is_none());
        }
        assert_eq!(all.len() as u64, SECONDS.iter().map(|(_, requests)| requests).sum::<u64>());
        assert!(all.keys().copied().eq(0..all.len() as u64));
        all
    }

    #[test]
    fn requests_are_due_when_they_were_recorded() {
        let second = Ticks::new().per_second();
        for spread in [ArrivalSpread::Even, ArrivalSpread::Poisson { seed: 3 }] {
            let once = drawn(Pacing::Recorded { speed: 1.0 }, 1, spread);
            for (speed, threads) in [(1.0, 3), (2.0, 1), (2.0, 4), (0.25, 2), (1000.0, 2)] {
                let all = drawn(Pacing::Recorded { speed }, threads, spread);
                // As many in each second of the trace as the file says, in the file's order.
                let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
                let mut before = 0;
                for (index, sourced) in &all {
                    assert!(sourced.at >= before);
                    before = sourced.at;
                    let at_s = sourced.at as f64 / second * speed;
                    *counts.entry(100 + at_s as u64).or_default() += 1;
                    // The same instant whatever the speed and the threads, to a tick.
                    let slowly = once[index].at as f64;
                    assert!((sourced.at as f64 * speed - slowly).abs() <= speed.max(1.0) + 1.0);
                }
                assert!(counts.into_iter().eq(SECONDS), "{spread:?} at {speed}");
            }
        }
    }

    #[test]
    fn a_rate_replaces_the_recorded_instants_and_keeps_the_order() {
        let second = Ticks::new().per_second();
        let pacing = |arrivals| Pacing::Open { rate: 1000.0, arrivals };
        for (index, sourced) in drawn(pacing(Arrivals::Constant), 3, ArrivalSpread::Even) {
            let expected = index as f64 / 1000.0 * second;
            assert!((sourced.at as f64 - expected).abs() <= 2.0, "{index}");
        }
        let alone = drawn(pacing(Arrivals::Poisson), 1, ArrivalSpread::Even);
        let many = drawn(pacing(Arrivals::Poisson), 4, ArrivalSpread::Even);
        assert!(
            alone.values().map(|sourced| sourced.at).eq(many.values().map(|sourced| sourced.at))
        );
        assert!(alone.values().map(|sourced| sourced.at).is_sorted());
        let last = alone.values().map(|sourced| sourced.at).max().unwrap() as f64 / second;
        // 521 gaps of a millisecond have a standard deviation of 4.4 %.
        assert!((last / 0.521 - 1.0).abs() < 0.22, "{last}");
    }
}
