//! One thread's latency recording: plain histograms, delivered once an interval.

use std::sync::mpsc::{Receiver, SyncSender};

use hdrhistogram::Histogram;
use model::{Op, PerOp};

use crate::answer_counts::{AnswerCounts, RunningCounts};
use crate::clock::Ticks;
use crate::outcome::DriveError;

/// Latencies from 1 ns to an hour with 3 significant digits; longer ones count as an hour.
pub(crate) const LONGEST_NS: u64 = 3_600_000_000_000;

/// The histograms of one interval: by service time, by response time in an open loop, and by
/// the arrival of the answer in the kernel where that is known.
#[derive(Debug)]
pub(crate) struct IntervalHistograms {
    /// Number of the interval in the window.
    pub(crate) index: u64,
    pub(crate) warm: bool,
    pub(crate) service: Vec<Histogram<u64>>,
    pub(crate) response: Vec<Histogram<u64>>,
    pub(crate) arrival: Vec<Histogram<u64>>,
    /// Of reads that missed, until the modelled database had answered and the record was written;
    /// one histogram, where there is such a database.
    pub(crate) miss: Vec<Histogram<u64>>,
}

/// Maps kinds of operation to histograms: only those in the mix have one.
#[derive(Debug, Clone)]
pub(crate) struct HistogramSlots {
    slot: PerOp<u8>,
    pub(crate) ops: Vec<Op>,
    pub(crate) open: bool,
    /// The kernel may timestamp the arrival of answers.
    arrivals: bool,
    /// The database behind the cache is modelled.
    misses: bool,
}

impl HistogramSlots {
    pub(crate) fn new(ops: Vec<Op>, open: bool, arrivals: bool) -> Self {
        let slot = PerOp::from_fn(|op| {
            ops.iter().position(|other| *other == op).unwrap_or_default() as u8
        });
        HistogramSlots { slot, ops, open, arrivals, misses: false }
    }

    /// The same with the latency of misses, where `misses`.
    pub(crate) fn with_misses(self, misses: bool) -> Self {
        HistogramSlots { misses, ..self }
    }

    /// An empty histogram.
    pub(crate) fn empty(&self) -> Result<Histogram<u64>, DriveError> {
        Histogram::new_with_max(LONGEST_NS, 3)
            .map_err(|error| DriveError::Internal(error.to_string()))
    }

    pub(crate) fn interval(&self) -> Result<IntervalHistograms, DriveError> {
        let make = |count: usize| (0..count).map(|_| self.empty()).collect::<Result<Vec<_>, _>>();
        Ok(IntervalHistograms {
            index: 0,
            warm: true,
            service: make(self.ops.len())?,
            response: make(if self.open { self.ops.len() } else { 0 })?,
            arrival: make(if self.arrivals { self.ops.len() } else { 0 })?,
            miss: make(usize::from(self.misses))?,
        })
    }
}

impl HistogramSlots {
    /// The histograms by the loop's own clock: response in an open one, service in a closed one.
    pub(crate) fn main<'a>(&self, interval: &'a IntervalHistograms) -> &'a [Histogram<u64>] {
        if self.open { &interval.response } else { &interval.service }
    }
}

impl IntervalHistograms {
    pub(crate) fn clear(&mut self) {
        let all = self.service.iter_mut().chain(&mut self.response).chain(&mut self.arrival);
        all.chain(&mut self.miss).for_each(Histogram::reset);
    }

    fn is_empty(&self) -> bool {
        self.service.iter().chain(&self.miss).all(Histogram::is_empty)
    }
}

pub(crate) struct IntervalDelivery {
    pub(crate) thread: usize,
    pub(crate) interval: IntervalHistograms,
    /// What the thread has counted in the window until now.
    pub(crate) counts: RunningCounts,
}

pub struct Recorder {
    thread: usize,
    slot: PerOp<u8>,
    current: IntervalHistograms,
    /// Tick at which the current interval ends.
    ends: u64,
    origin: u64,
    length: u64,
    out: SyncSender<IntervalDelivery>,
    spare: Receiver<IntervalHistograms>,
}

impl Recorder {
    pub(crate) fn new(
        thread: usize,
        slots: &HistogramSlots,
        (origin, length): (u64, u64),
        out: SyncSender<IntervalDelivery>,
        spare: Receiver<IntervalHistograms>,
    ) -> Result<Self, DriveError> {
        let mut current = slots.interval()?;
        // Touches every page now, so that no measured operation does.
        current.clear();
        let slot = slots.slot;
        Ok(Recorder { thread, slot, current, ends: origin + length, origin, length, out, spare })
    }

    /// The window begins at `origin`: earlier records are delivered as warm-up.
    pub(crate) fn open_window(&mut self, origin: u64) {
        self.hand_over(RunningCounts::default());
        if !self.current.is_empty() {
            self.current.clear();
        }
        self.current.warm = false;
        self.current.index = 0;
        self.origin = origin;
        self.ends = origin + self.length;
    }

    /// Records one operation that ended at `end`. `due` counts only in an open loop; `counts` are
    /// read only where an interval ends.
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    pub(crate) fn record(
        &mut self,
        open: bool,
        clock: &Ticks,
        op: Op,
        due: u64,
        begin: u64,
        end: u64,
        counts: &AnswerCounts,
    ) {
        if end >= self.ends {
            self.next_interval(end, counts);
        }
        let slot = usize::from(self.slot[op]);
        self.current.service[slot].saturating_record(clock.nanos(begin, end));
        if open {
            self.current.response[slot].saturating_record(clock.nanos(due, end));
        }
    }

    /// Records, for the operation recorded last, the nanoseconds until its answer arrived in the
    /// client's kernel.
    #[inline(always)]
    pub(crate) fn record_arrival(&mut self, op: Op, nanos: u64) {
        self.current.arrival[usize::from(self.slot[op])].saturating_record(nanos);
    }

    /// Records a miss that ended at `end`, with the nanoseconds that it took.
    pub(crate) fn record_miss(&mut self, end: u64, nanos: u64, counts: &AnswerCounts) {
        if end >= self.ends {
            self.next_interval(end, counts);
        }
        if let Some(miss) = self.current.miss.first_mut() {
            miss.saturating_record(nanos);
        }
    }

    #[cold]
    fn next_interval(&mut self, now: u64, counts: &AnswerCounts) {
        self.hand_over(counts.running());
        self.current.index = (now - self.origin) / self.length;
        self.ends = self.origin + (self.current.index + 1) * self.length;
    }

    /// Without a spare the collector is behind: the current interval is extended, nothing is lost.
    fn hand_over(&mut self, counts: RunningCounts) {
        if self.current.is_empty() {
            return;
        }
        let Ok(mut spare) = self.spare.try_recv() else { return };
        spare.warm = self.current.warm;
        let full = std::mem::replace(&mut self.current, spare);
        // The collector outlives the threads; if it is gone the phase has failed already.
        let _ = self.out.send(IntervalDelivery { thread: self.thread, interval: full, counts });
    }

    pub(crate) fn finish(self, counts: &AnswerCounts) {
        if !self.current.is_empty() {
            let (thread, interval, counts) = (self.thread, self.current, counts.running());
            let _ = self.out.send(IntervalDelivery { thread, interval, counts });
        }
    }
}
