//! A recorded trace as a source of operations.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::Expiry;
use serde::{Deserialize, Serialize};
use workload::trace::{ArrivalSpread, FeedItem, KeyFit, TraceFeed};
use workload::{Operation, SizedValues, ValueMismatch};

use crate::asks::{Exhausted, OperationSource, SourcedOperation};
use crate::clock::Ticks;
use crate::pace::{OpenLoop, Pacing};
use crate::plan::LoadPlan;
use crate::worker::ThreadStats;

/// How long a thread waits for the first of its requests before it says that it is ready.
const FIRST: Duration = Duration::from_secs(1);
/// How long what was not sent is waited for where it is only to be counted.
const COUNTING: Duration = Duration::from_millis(20);

/// The trace that is replayed instead of a workload's own operations. Each thread has the
/// requests of some of the keys, in the order of the trace.
#[derive(Debug, Clone)]
pub struct Replay {
    /// `-` is standard input, which can be read once.
    pub file: PathBuf,
    /// Where in its second a request lies; of no meaning where the pacing is not the trace's own.
    pub spread: ArrivalSpread,
    /// So many requests from the beginning of the trace, a warm-up included; None: all of them.
    pub most: Option<u64>,
    pub values: Arc<SizedValues>,
    /// What a read missed is set, in the size that the trace gives, unless that is 0.
    pub refill: bool,
}

/// What is known of a replay when it has ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaySummary {
    /// Requests that were taken from the trace, those of a warm-up too.
    pub requests: u64,
    /// Those whose key is not as in the trace: too long for the size that it gives, or too short.
    pub cut: u64,
    pub lengthened: u64,
    /// Requests of the window that were read from the file only after they were due.
    pub read_late: u64,
    /// For each second of the window: the requests that were due in it, and those of them that
    /// were answered within a second. Empty in a closed loop.
    pub seconds: Vec<(u64, u64)>,
    /// The line before the first request, where it named the fields and was skipped.
    #[serde(default)]
    pub header: Option<String>,
    /// What ended the trace before its end, with the file and the line.
    pub error: Option<String>,
    /// Ticks for which a thread waited for the file.
    pub(crate) starved: u64,
    /// This thread's part of the trace was asked to its end, or to what ended it.
    pub(crate) ended: bool,
}

impl ReplaySummary {
    /// Counts a request that was due so many ticks after the opening of the window.
    #[inline]
    pub(crate) fn count(&mut self, due_after: u64, ticks_a_second: u64, in_time: bool) {
        let second = (due_after / ticks_a_second.max(1)) as usize;
        if second >= self.seconds.len() {
            self.seconds.resize(second + 1, (0, 0));
        }
        let (due, answered) = &mut self.seconds[second];
        *due += 1;
        *answered += u64::from(in_time);
    }

    pub(crate) fn add(&mut self, other: ReplaySummary) {
        self.cut += other.cut;
        self.lengthened += other.lengthened;
        self.read_late += other.read_late;
        if self.seconds.len() < other.seconds.len() {
            self.seconds.resize(other.seconds.len(), (0, 0));
        }
        for ((due, answered), (more_due, more_answered)) in
            self.seconds.iter_mut().zip(other.seconds)
        {
            *due += more_due;
            *answered += more_answered;
        }
        self.header = self.header.take().or(other.header);
        self.error = self.error.take().or(other.error);
        self.starved += other.starved;
    }
}

/// When the requests of a trace are due, in ticks after the start of the threads.
enum ReplayTiming {
    /// At once.
    Never,
    Recorded {
        ticks_a_second: f64,
    },
    /// By arrivals of their own. Every thread follows those of all, so that the requests of the
    /// whole trace stay in their order and each thread has the share that its keys have.
    Arrivals {
        all: Box<OpenLoop>,
        index: u64,
    },
}

impl ReplayTiming {
    fn of(plan: &LoadPlan, clock: &Ticks) -> ReplayTiming {
        match plan.pacing {
            Pacing::Closed { .. } => ReplayTiming::Never,
            Pacing::Recorded { speed } => {
                ReplayTiming::Recorded { ticks_a_second: clock.ticks(1e9) as f64 / speed }
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
    /// By how much faster than recorded the trace passes: what is to live for so many seconds of
    /// the trace lives for fewer then.
    speed: f64,
    most: u64,
    /// Of the request that was handed out last.
    key: Vec<u8>,
    dry: Exhausted,
    awaited: bool,
    known: ReplaySummary,
    fingerprint: u64,
}

impl<'a> ReplaySource<'a> {
    /// Waits for the first request for a moment, so that the window does not begin with a wait.
    pub(crate) fn new(replay: &'a Replay, feed: TraceFeed, plan: &LoadPlan, clock: &Ticks) -> Self {
        let mut new = ReplaySource {
            replay,
            feed,
            timing: ReplayTiming::of(plan, clock),
            speed: if let Pacing::Recorded { speed } = plan.pacing { speed } else { 1.0 },
            most: replay.most.unwrap_or(u64::MAX),
            key: Vec::with_capacity(256),
            dry: Exhausted::Block,
            awaited: false,
            known: ReplaySummary::default(),
            fingerprint: 0,
        };
        let limit = Instant::now() + FIRST.min(plan.patience / 2);
        while matches!(new.feed.peek(COUNTING), Ok(FeedItem::NotYet)) && Instant::now() < limit {}
        new
    }
}

impl OperationSource for ReplaySource<'_> {
    const TRACED: bool = true;

    fn seek(&mut self, _block: u64) {}
    fn next_insert(&self) -> u64 {
        0
    }
    fn asks_for_inserted(&self) -> bool {
        false
    }

    fn next(&mut self, _acknowledged: u64) -> Option<SourcedOperation> {
        let request = match self.feed.peek(Duration::ZERO) {
            Ok(FeedItem::Request(request)) if request.index < self.most => request,
            Ok(FeedItem::NotYet) => {
                (self.dry, self.awaited) = (Exhausted::NotYet, true);
                return None;
            }
            Ok(FeedItem::Request(_) | FeedItem::End) => {
                self.dry = Exhausted::End;
                return None;
            }
            Err(error) => {
                self.known.error = Some(error.to_string());
                self.dry = Exhausted::End;
                return None;
            }
        };
        self.key.clear();
        self.key.extend_from_slice(request.key);
        match request.fit {
            KeyFit::AsItIs => {}
            KeyFit::Cut => self.known.cut += 1,
            KeyFit::Lengthened => self.known.lengthened += 1,
        }
        self.fingerprint = self.fingerprint.wrapping_add(request.fingerprint());
        let (op, index) = (request.operation.op(), request.index);
        let expiry = match request.expiry {
            Expiry::After(seconds) => {
                Expiry::After((f64::from(seconds) / self.speed).ceil() as u32)
            }
            other => other,
        };
        let asked = SourcedOperation {
            ask: Operation { op, record: index, salt: index, scan: 0, keys: 1 },
            at: self.timing.at(index, request.at_s),
            length: request.value_size,
            expiry,
            awaited: std::mem::take(&mut self.awaited),
        };
        self.feed.advance();
        Some(asked)
    }

    fn dry(&self) -> Exhausted {
        self.dry
    }

    fn key(&self, _ask: &Operation, _n: u32, out: &mut Vec<u8>) -> bool {
        out.clear();
        out.extend_from_slice(&self.key);
        false
    }
    fn value(&self, asked: &SourcedOperation, key: &[u8], out: &mut Vec<u8>) {
        self.replay.values.write(key, asked.ask.salt, asked.length as usize, out);
    }
    fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), ValueMismatch> {
        self.replay.values.verify(key, value)
    }
    /// A trace begins with what the store has, which may be nothing, and what it writes expires.
    fn may_miss(&self) -> bool {
        true
    }
    fn asks_for_absent(&self) -> bool {
        false
    }
    fn refills(&self, asked: &SourcedOperation) -> bool {
        self.replay.refill && asked.length > 0
    }

    fn due_before(&mut self, ticks: u64) -> u64 {
        let mut left = 0;
        while let Ok(FeedItem::Request(request)) = self.feed.peek(COUNTING) {
            let at = self.timing.at(request.index, request.at_s);
            if request.index >= self.most || at >= ticks {
                break;
            }
            left += 1;
            self.feed.advance();
        }
        left
    }

    fn account(&mut self, seen: &mut ThreadStats) {
        seen.fingerprint = self.fingerprint;
        seen.replayed.add(std::mem::take(&mut self.known));
        seen.replayed.header = self.feed.header().map(ToString::to_string);
        seen.replayed.ended = self.dry == Exhausted::End;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write;

    use workload::trace::TraceReader;

    use super::*;
    use crate::pace::Arrivals;
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

    /// All operations by their number in the trace, as so many threads were given them.
    fn drawn(
        pacing: Pacing,
        threads: usize,
        spread: ArrivalSpread,
    ) -> BTreeMap<u64, SourcedOperation> {
        let folder = tempfile::tempdir().unwrap();
        let values = Arc::new(SizedValues::new(1, 0.0).unwrap());
        let file = trace(&folder);
        let replay = Replay { file, spread, most: None, values, refill: false };
        let plan = LoadPlan { pacing, ..LoadPlan::closed(PhaseKind::Mix, threads) };
        let feeds = TraceReader::open(&replay.file).unwrap().feed(threads, spread).unwrap();
        let clock = Ticks::new();
        let mut all = BTreeMap::new();
        for feed in feeds {
            let mut source = ReplaySource::new(&replay, feed, &plan, &clock);
            let mut before = 0;
            loop {
                match source.next(u64::MAX) {
                    Some(asked) => {
                        assert!(asked.at >= before, "a thread's requests are due in their order");
                        before = asked.at;
                        assert!(all.insert(asked.ask.record, asked).is_none());
                    }
                    None if source.dry() == Exhausted::End => break,
                    None => std::thread::sleep(Duration::from_millis(1)),
                }
            }
            let mut seen = ThreadStats::default();
            source.account(&mut seen);
            assert!(seen.replayed.error.is_none());
        }
        assert_eq!(all.len() as u64, SECONDS.iter().map(|(_, requests)| requests).sum::<u64>());
        assert!(all.keys().copied().eq(0..all.len() as u64));
        all
    }

    #[test]
    fn requests_are_due_when_they_were_recorded() {
        let second = Ticks::new().ticks(1e9) as f64;
        for spread in [ArrivalSpread::Even, ArrivalSpread::Poisson { seed: 3 }] {
            let once = drawn(Pacing::Recorded { speed: 1.0 }, 1, spread);
            for (speed, threads) in [(1.0, 3), (2.0, 1), (2.0, 4), (0.25, 2), (1000.0, 2)] {
                let all = drawn(Pacing::Recorded { speed }, threads, spread);
                // As many in each second of the trace as the file says, in the file's order.
                let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
                let mut before = 0;
                for (index, asked) in &all {
                    assert!(asked.at >= before);
                    before = asked.at;
                    let at_s = asked.at as f64 / second * speed;
                    *counts.entry(100 + at_s as u64).or_default() += 1;
                    // The same instant whatever the speed and the threads, to a tick.
                    let slowly = once[index].at as f64;
                    assert!((asked.at as f64 * speed - slowly).abs() <= speed.max(1.0) + 1.0);
                }
                assert!(counts.into_iter().eq(SECONDS), "{spread:?} at {speed}");
            }
        }
    }

    #[test]
    fn a_rate_gives_the_order_of_the_trace_other_instants() {
        let second = Ticks::new().ticks(1e9) as f64;
        let pacing = |arrivals| Pacing::Open { rate: 1000.0, arrivals };
        for (index, asked) in drawn(pacing(Arrivals::Constant), 3, ArrivalSpread::Even) {
            let expected = index as f64 / 1000.0 * second;
            assert!((asked.at as f64 - expected).abs() <= 2.0, "{index}");
        }
        let alone = drawn(pacing(Arrivals::Poisson), 1, ArrivalSpread::Even);
        let many = drawn(pacing(Arrivals::Poisson), 4, ArrivalSpread::Even);
        assert!(alone.values().map(|asked| asked.at).eq(many.values().map(|asked| asked.at)));
        assert!(alone.values().map(|asked| asked.at).is_sorted());
        let last = alone.values().map(|asked| asked.at).max().unwrap() as f64 / second;
        // 521 gaps of a millisecond have a standard deviation of 4.4 %.
        assert!((last / 0.521 - 1.0).abs() < 0.22, "{last}");
    }
}
