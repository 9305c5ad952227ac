//! Merges the threads' intervals into totals, the time series and the live figures.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use hdrhistogram::Histogram;
use model::{Op, SeriesPoint, histogram};

use crate::answer_counts::RunningCounts;
use crate::outcome::DriveError;
use crate::recorder::{HistogramSlots, IntervalDelivery, IntervalHistograms};

/// Intervals that wait for a slow thread, at most: this bounds memory. What the thread delivers
/// later counts in the oldest interval that is still open.
const MAX_PENDING: usize = 16;

/// A last interval shorter than this share of a whole is merged into the one before.
const MIN_REST: f64 = 0.1;

/// The latest complete interval, for progress display.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LiveInterval {
    pub operations_s: f64,
    pub p99_ns: u64,
}

/// An interval of which every thread has delivered its part.
#[derive(Debug)]
pub struct CompleteInterval<'a> {
    /// Its number in the window, from 0.
    pub index: u64,
    pub seconds: f64,
    pub ops: &'a [Op],
    /// Latencies of each of `ops` in nanoseconds, by the loop's own clock: response in an open
    /// one, service in a closed one.
    pub latencies: &'a [Histogram<u64>],
    /// Of the whole window until now.
    pub counts: RunningCounts,
}

pub(crate) struct IntervalCollector {
    slots: HistogramSlots,
    pub(crate) interval_s: f64,
    /// For each thread its current interval and the channel that returns an empty one.
    threads: Vec<(u64, SyncSender<IntervalHistograms>)>,
    pending: BTreeMap<u64, IntervalHistograms>,
    /// Intervals below this number are in the series.
    finished: u64,
    /// Number after the newest interval of any thread.
    newest: u64,
    pool: Vec<IntervalHistograms>,
    pub(crate) totals: IntervalHistograms,
    pub(crate) series: Vec<SeriesPoint>,
    /// The histogram of each point of the series, encoded; empty unless kept.
    pub(crate) histograms: Vec<Vec<u8>>,
    keep_histograms: bool,
    pub(crate) live: LiveInterval,
    /// Of each thread, as it last delivered them.
    counts: Vec<RunningCounts>,
    /// Intervals below this number were shown to the observer.
    shown: u64,
}

fn failed(error: impl std::fmt::Display) -> DriveError {
    DriveError::Internal(error.to_string())
}

fn add(to: &mut IntervalHistograms, from: &IntervalHistograms) -> Result<(), DriveError> {
    for (to, from) in to.service.iter_mut().zip(&from.service) {
        to.add(from).map_err(failed)?;
    }
    for (to, from) in to.response.iter_mut().zip(&from.response) {
        to.add(from).map_err(failed)?;
    }
    for (to, from) in to.arrival.iter_mut().zip(&from.arrival) {
        to.add(from).map_err(failed)?;
    }
    for (to, from) in to.miss.iter_mut().zip(&from.miss) {
        to.add(from).map_err(failed)?;
    }
    Ok(())
}

impl IntervalCollector {
    pub(crate) fn new(
        slots: HistogramSlots,
        interval_s: f64,
        keep_histograms: bool,
        back: Vec<SyncSender<IntervalHistograms>>,
    ) -> Result<Self, DriveError> {
        let totals = slots.interval()?;
        let counts = vec![RunningCounts::default(); back.len()];
        Ok(IntervalCollector {
            slots,
            interval_s,
            counts,
            shown: 0,
            threads: back.into_iter().map(|sender| (0, sender)).collect(),
            pending: BTreeMap::new(),
            finished: 0,
            newest: 0,
            pool: Vec::new(),
            totals,
            series: Vec::new(),
            histograms: Vec::new(),
            keep_histograms,
            live: LiveInterval::default(),
        })
    }

    pub(crate) fn take(&mut self, delivery: IntervalDelivery) -> Result<(), DriveError> {
        let IntervalDelivery { thread, mut interval, counts } = delivery;
        self.counts[thread] = counts;
        let mut index_after = 0;
        if !interval.warm {
            index_after = interval.index + 1;
            self.threads[thread].0 = index_after;
            add(&mut self.totals, &interval)?;
            let index = interval.index.max(self.finished);
            match self.pending.get_mut(&index) {
                Some(pending) => add(pending, &interval)?,
                None => {
                    let mut fresh = match self.pool.pop() {
                        Some(pooled) => pooled,
                        None => self.slots.interval()?,
                    };
                    add(&mut fresh, &interval)?;
                    self.pending.insert(index, fresh);
                }
            }
        }
        interval.clear();
        // A thread that has ended needs none back.
        let _ = self.threads[thread].1.try_send(interval);
        self.newest = self.newest.max(index_after);
        let slowest = self.threads.iter().map(|(index, _)| *index).min().unwrap_or(0);
        while let Some((&index, _)) = self.pending.first_key_value() {
            // The newest may be the last of the window, which may be cut short and merged into
            // the one before.
            let complete = index < slowest && index + 2 < self.newest;
            if !complete && self.pending.len() <= MAX_PENDING {
                break;
            }
            self.finish_first(self.end_of(index))?;
        }
        if let Some((_, newest)) = self.pending.range(..slowest).next_back() {
            self.live = live(self.slots.main(newest), self.interval_s);
        }
        Ok(())
    }

    /// Shows the intervals that every thread has delivered, each once and in order. One that a
    /// hung thread has kept open for too long is not among them.
    pub(crate) fn show_complete(&mut self, show: &mut dyn FnMut(&CompleteInterval<'_>)) {
        let slowest = self.threads.iter().map(|(index, _)| *index).min().unwrap_or(0);
        self.show_until(slowest, show);
    }

    /// Shows those that are left, when no thread delivers any more; the last may be cut short.
    pub(crate) fn show_rest(&mut self, show: &mut dyn FnMut(&CompleteInterval<'_>)) {
        self.show_until(u64::MAX, show);
    }

    fn show_until(&mut self, end: u64, show: &mut dyn FnMut(&CompleteInterval<'_>)) {
        if self.shown >= end {
            return;
        }
        let counts = self.counts.iter().fold(RunningCounts::default(), |sum, one| sum.plus(*one));
        for (index, interval) in self.pending.range(self.shown..end) {
            show(&CompleteInterval {
                index: *index,
                seconds: self.interval_s,
                ops: &self.slots.ops,
                latencies: self.slots.main(interval),
                counts,
            });
        }
        self.shown = end;
    }

    /// Moves pending intervals into the series; the window lasted `seconds`.
    pub(crate) fn close(&mut self, seconds: f64) -> Result<(), DriveError> {
        self.merge_short_last(seconds)?;
        while let Some((&index, _)) = self.pending.first_key_value() {
            let whole = self.end_of(index);
            // The last one ends with the window: shorter, or a little longer after a merge.
            let with_it = seconds < whole + MIN_REST * self.interval_s;
            let last = self.pending.len() == 1 && with_it;
            self.finish_first(if last { seconds } else { whole })?;
        }
        // Whole intervals at the end in which nothing was answered.
        while self.end_of(self.finished) <= seconds {
            self.push_empty_interval()?;
        }
        Ok(())
    }

    /// Merges a last interval that is too short for a rate into the one before it.
    fn merge_short_last(&mut self, seconds: f64) -> Result<(), DriveError> {
        let Some((&last, _)) = self.pending.last_key_value() else { return Ok(()) };
        let rest = seconds - last as f64 * self.interval_s;
        let before = last.checked_sub(1).filter(|before| self.pending.contains_key(before));
        if let Some(before) = before.filter(|_| rest < MIN_REST * self.interval_s)
            && let Some(interval) = self.pending.remove(&last)
            && let Some(to) = self.pending.get_mut(&before)
        {
            add(to, &interval)?;
        }
        Ok(())
    }

    fn end_of(&self, index: u64) -> f64 {
        (index + 1) as f64 * self.interval_s
    }

    /// The next interval passed without an answer.
    fn push_empty_interval(&mut self) -> Result<(), DriveError> {
        let (at_s, seconds) = (self.end_of(self.finished), self.interval_s);
        let (p50_ns, p99_ns, p999_ns, max_ns) = (0, 0, 0, 0);
        let nothing = |op: &Op| SeriesPoint {
            at_s,
            seconds,
            op: *op,
            operations: 0,
            p50_ns,
            p99_ns,
            p999_ns,
            max_ns,
        };
        self.series.extend(self.slots.ops.iter().map(nothing));
        if self.keep_histograms {
            let empty = self.slots.empty()?;
            let bytes = histogram::encode(&empty).map_err(failed)?;
            self.histograms.extend(self.slots.ops.iter().map(|_| bytes.clone()));
        }
        self.finished += 1;
        Ok(())
    }

    fn finish_first(&mut self, end: f64) -> Result<(), DriveError> {
        let Some((index, mut interval)) = self.pending.pop_first() else { return Ok(()) };
        while self.finished < index {
            self.push_empty_interval()?;
        }
        self.finished = index + 1;
        let seconds = (end - index as f64 * self.interval_s).max(0.0);
        for (op, histogram) in self.slots.ops.iter().zip(self.slots.main(&interval)) {
            if !histogram.is_empty() {
                self.series.push(point(*op, end, seconds, histogram));
                if self.keep_histograms {
                    self.histograms.push(histogram::encode(histogram).map_err(failed)?);
                }
            }
        }
        interval.clear();
        self.pool.push(interval);
        Ok(())
    }
}

/// All kinds of operation of one interval together.
fn live(histograms: &[Histogram<u64>], seconds: f64) -> LiveInterval {
    let mut all: Option<Histogram<u64>> = None;
    for histogram in histograms {
        match &mut all {
            // Of the same range, so it cannot fail.
            Some(all) => drop(all.add(histogram)),
            None => all = Some(histogram.clone()),
        }
    }
    all.map_or(LiveInterval::default(), |all| LiveInterval {
        operations_s: all.len() as f64 / seconds,
        p99_ns: all.value_at_percentile(99.0),
    })
}

pub(crate) fn point(op: Op, at_s: f64, seconds: f64, histogram: &Histogram<u64>) -> SeriesPoint {
    SeriesPoint {
        at_s,
        seconds,
        op,
        operations: histogram.len(),
        p50_ns: histogram.value_at_percentile(50.0),
        p99_ns: histogram.value_at_percentile(99.0),
        p999_ns: histogram.value_at_percentile(99.9),
        max_ns: histogram.max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    fn delivery(
        slots: &HistogramSlots,
        thread: usize,
        index: u64,
        values: &[u64],
    ) -> IntervalDelivery {
        let mut interval = slots.interval().unwrap();
        interval.index = index;
        interval.warm = false;
        for value in values {
            interval.service[0].record(*value).unwrap();
        }
        IntervalDelivery { thread, interval, counts: RunningCounts::default() }
    }

    fn collector(threads: usize) -> (HistogramSlots, IntervalCollector) {
        let slots = HistogramSlots::new(vec![Op::Read], false, false);
        let back = (0..threads).map(|_| sync_channel(1).0).collect();
        let collector = IntervalCollector::new(slots.clone(), 1.0, false, back).unwrap();
        (slots, collector)
    }

    #[test]
    fn an_interval_is_complete_when_every_thread_delivered_it() {
        let (slots, mut collector) = collector(2);
        collector.take(delivery(&slots, 0, 0, &[10, 20])).unwrap();
        collector.take(delivery(&slots, 0, 1, &[30])).unwrap();
        assert_eq!(collector.live, LiveInterval::default());
        collector.take(delivery(&slots, 1, 0, &[40])).unwrap();
        assert_eq!(collector.live, LiveInterval { operations_s: 3.0, p99_ns: 40 });
        collector.take(delivery(&slots, 1, 1, &[30])).unwrap();
        assert_eq!(collector.series, [], "the window's end may cut the newest");
        collector.close(1.5).unwrap();
        assert_eq!(collector.series.len(), 2);
        assert_eq!((collector.series[0].operations, collector.series[0].max_ns), (3, 40));
        assert_eq!((collector.series[1].at_s, collector.series[1].seconds), (1.5, 0.5));
        assert_eq!(collector.series[1].operations, 2);
        assert_eq!(collector.totals.service[0].len(), 5);
    }

    #[test]
    fn a_complete_interval_is_shown_once_with_what_was_counted() {
        let (slots, mut collector) = collector(2);
        let seen = |collector: &mut IntervalCollector| {
            let mut seen = Vec::new();
            collector.show_complete(&mut |interval: &CompleteInterval<'_>| {
                seen.push((interval.index, interval.latencies[0].len(), interval.counts));
            });
            seen
        };
        let mut counted = delivery(&slots, 0, 0, &[10, 20]);
        counted.counts = RunningCounts { failures: 1, hits: 5, misses: 2 };
        collector.take(counted).unwrap();
        assert_eq!(seen(&mut collector), [], "one thread has not delivered");
        let mut counted = delivery(&slots, 1, 0, &[30]);
        counted.counts = RunningCounts { failures: 0, hits: 4, misses: 1 };
        collector.take(counted).unwrap();
        let sum = RunningCounts { failures: 1, hits: 9, misses: 3 };
        assert_eq!(seen(&mut collector), [(0, 3, sum)]);
        assert_eq!(seen(&mut collector), [], "each is shown once");
        collector.take(delivery(&slots, 0, 1, &[40])).unwrap();
        let mut rest = Vec::new();
        collector.show_rest(&mut |interval: &CompleteInterval<'_>| rest.push(interval.index));
        assert_eq!(rest, [1], "no thread delivers any more");
    }

    #[test]
    fn intervals_without_an_answer_are_in_the_series() {
        let (slots, mut collector) = collector(1);
        collector.take(delivery(&slots, 0, 0, &[10])).unwrap();
        collector.take(delivery(&slots, 0, 3, &[10])).unwrap();
        collector.close(5.02).unwrap();
        let counts: Vec<u64> = collector.series.iter().map(|point| point.operations).collect();
        assert_eq!(counts, [1, 0, 0, 1, 0]);
    }

    #[test]
    fn a_short_last_interval_is_merged_into_the_one_before() {
        let (slots, mut collector) = collector(1);
        for index in 0..3 {
            collector.take(delivery(&slots, 0, index, &[10, 20])).unwrap();
        }
        collector.close(2.01).unwrap();
        let series: Vec<(f64, f64, u64)> = collector
            .series
            .iter()
            .map(|point| (point.at_s, point.seconds, point.operations))
            .collect();
        assert_eq!(series.len(), 2);
        assert_eq!(series[0], (1.0, 1.0, 2));
        assert_eq!((series[1].0, series[1].2), (2.01, 4));
        assert!((series[1].1 - 1.01).abs() < 1e-9);
    }

    #[test]
    fn a_hung_thread_bounds_memory_and_loses_nothing() {
        let (slots, mut collector) = collector(2);
        for index in 0..100 {
            collector.take(delivery(&slots, 0, index, &[index + 1])).unwrap();
        }
        assert!(collector.pending.len() <= MAX_PENDING);
        collector.take(delivery(&slots, 1, 3, &[7])).unwrap();
        collector.close(100.0).unwrap();
        assert_eq!(collector.totals.service[0].len(), 101);
        assert_eq!(collector.series.iter().map(|point| point.operations).sum::<u64>(), 101);
    }

    #[test]
    fn records_before_the_window_do_not_count() {
        let (slots, mut collector) = collector(1);
        let mut warm = delivery(&slots, 0, 0, &[10]);
        warm.interval.warm = true;
        collector.take(warm).unwrap();
        collector.close(0.9).unwrap();
        assert_eq!(collector.series, []);
        assert!(collector.totals.service[0].is_empty());
    }
}
