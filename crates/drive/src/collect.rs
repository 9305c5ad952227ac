//! Puts the threads' intervals together: totals, the time series, and what is shown live.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use hdrhistogram::Histogram;
use model::Op;

use crate::outcome::{DriveError, Point};
use crate::recorder::{Delivery, Interval, Slots};

/// A thread that hands nothing over for so many intervals is not waited for any longer; what
/// it hands over later counts in the interval of that time. This bounds the memory.
const MOST_PENDING: usize = 16;

/// The latest complete interval, for a person who watches.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Live {
    pub operations_s: f64,
    pub p99_ns: u64,
}

pub(crate) struct Collector {
    slots: Slots,
    interval_s: f64,
    /// For each thread, the interval that it is in, and its way to get an empty one back.
    threads: Vec<(u64, SyncSender<Interval>)>,
    pending: BTreeMap<u64, Interval>,
    /// Intervals below this number are in the series.
    finished: u64,
    /// Number after the newest interval of any thread.
    newest: u64,
    pool: Vec<Interval>,
    pub(crate) totals: Interval,
    pub(crate) series: Vec<Point>,
    pub(crate) live: Live,
}

fn failed(error: impl std::fmt::Display) -> DriveError {
    DriveError::Internal(error.to_string())
}

fn add(to: &mut Interval, from: &Interval) -> Result<(), DriveError> {
    for (to, from) in to.service.iter_mut().zip(&from.service) {
        to.add(from).map_err(failed)?;
    }
    for (to, from) in to.response.iter_mut().zip(&from.response) {
        to.add(from).map_err(failed)?;
    }
    Ok(())
}

impl Collector {
    pub(crate) fn new(
        slots: Slots,
        interval_s: f64,
        back: Vec<SyncSender<Interval>>,
    ) -> Result<Self, DriveError> {
        let totals = slots.interval()?;
        Ok(Collector {
            slots,
            interval_s,
            threads: back.into_iter().map(|sender| (0, sender)).collect(),
            pending: BTreeMap::new(),
            finished: 0,
            newest: 0,
            pool: Vec::new(),
            totals,
            series: Vec::new(),
            live: Live::default(),
        })
    }

    pub(crate) fn take(&mut self, delivery: Delivery) -> Result<(), DriveError> {
        let Delivery { thread, mut interval } = delivery;
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
            // The newest one may be the last, which the end of the window cuts.
            let complete = index < slowest && index + 1 < self.newest;
            if !complete && self.pending.len() <= MOST_PENDING {
                break;
            }
            self.finish_first(f64::INFINITY);
        }
        Ok(())
    }

    /// Puts what is pending into the series; the window lasted `seconds`.
    pub(crate) fn close(&mut self, seconds: f64) {
        while !self.pending.is_empty() {
            self.finish_first(seconds);
        }
    }

    fn finish_first(&mut self, window_s: f64) {
        let Some((index, mut interval)) = self.pending.pop_first() else { return };
        for silent in self.finished..index {
            let end = (silent + 1) as f64 * self.interval_s;
            let nothing = |op: &Op| Point {
                at_s: end,
                seconds: self.interval_s,
                op: *op,
                operations: 0,
                p50_ns: 0,
                p99_ns: 0,
                p999_ns: 0,
                max_ns: 0,
            };
            self.series.extend(self.slots.ops.iter().map(nothing));
        }
        self.finished = index + 1;
        let begin = index as f64 * self.interval_s;
        // The last interval is cut by the end of the window.
        let end = (begin + self.interval_s).min(window_s).max(begin);
        let seconds = end - begin;
        let main = if self.slots.open { &interval.response } else { &interval.service };
        let mut all = None::<Histogram<u64>>;
        for (op, histogram) in self.slots.ops.iter().zip(main) {
            if histogram.is_empty() {
                continue;
            }
            self.series.push(point(*op, end, seconds, histogram));
            match &mut all {
                // Of the same range, so it cannot fail.
                Some(all) => drop(all.add(histogram)),
                None => all = Some(histogram.clone()),
            }
        }
        if let Some(all) = all {
            let operations_s = if seconds > 0.0 { all.len() as f64 / seconds } else { 0.0 };
            self.live = Live { operations_s, p99_ns: all.value_at_percentile(99.0) };
        }
        interval.clear();
        self.pool.push(interval);
    }
}

fn point(op: Op, at_s: f64, seconds: f64, histogram: &Histogram<u64>) -> Point {
    Point {
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

    fn delivery(slots: &Slots, thread: usize, index: u64, values: &[u64]) -> Delivery {
        let mut interval = slots.interval().unwrap();
        interval.index = index;
        interval.warm = false;
        for value in values {
            interval.service[0].record(*value).unwrap();
        }
        Delivery { thread, interval }
    }

    fn collector(threads: usize) -> (Slots, Collector) {
        let slots = Slots::new(vec![Op::Read], false);
        let back = (0..threads).map(|_| sync_channel(1).0).collect();
        let collector = Collector::new(slots.clone(), 1.0, back).unwrap();
        (slots, collector)
    }

    #[test]
    fn an_interval_waits_for_every_thread() {
        let (slots, mut collector) = collector(2);
        collector.take(delivery(&slots, 0, 0, &[10, 20])).unwrap();
        collector.take(delivery(&slots, 0, 1, &[30])).unwrap();
        assert_eq!(collector.series, []);
        collector.take(delivery(&slots, 1, 0, &[40])).unwrap();
        assert_eq!(collector.series.len(), 1);
        collector.take(delivery(&slots, 1, 1, &[30])).unwrap();
        assert_eq!(collector.series.len(), 1, "the newest may be cut by the end of the window");
        assert_eq!((collector.series[0].operations, collector.series[0].max_ns), (3, 40));
        collector.close(1.5);
        assert_eq!(collector.series.len(), 2);
        assert_eq!((collector.series[1].at_s, collector.series[1].seconds), (1.5, 0.5));
        assert_eq!(collector.series[1].operations, 2);
        assert_eq!(collector.totals.service[0].len(), 5);
    }

    #[test]
    fn seconds_without_an_answer_are_seen() {
        let (slots, mut collector) = collector(1);
        collector.take(delivery(&slots, 0, 0, &[10])).unwrap();
        collector.take(delivery(&slots, 0, 3, &[10])).unwrap();
        collector.close(4.0);
        let counts: Vec<u64> = collector.series.iter().map(|point| point.operations).collect();
        assert_eq!(counts, [1, 0, 0, 1]);
    }

    #[test]
    fn a_thread_that_hangs_costs_bounded_memory_and_loses_nothing() {
        let (slots, mut collector) = collector(2);
        for index in 0..100 {
            collector.take(delivery(&slots, 0, index, &[index + 1])).unwrap();
        }
        assert!(collector.pending.len() <= MOST_PENDING);
        collector.take(delivery(&slots, 1, 3, &[7])).unwrap();
        collector.close(100.0);
        assert_eq!(collector.totals.service[0].len(), 101);
        assert_eq!(collector.series.iter().map(|point| point.operations).sum::<u64>(), 101);
    }

    #[test]
    fn what_was_recorded_before_the_window_does_not_count() {
        let (slots, mut collector) = collector(1);
        let mut warm = delivery(&slots, 0, 0, &[10]);
        warm.interval.warm = true;
        collector.take(warm).unwrap();
        collector.close(1.0);
        assert_eq!(collector.series, []);
        assert!(collector.totals.service[0].is_empty());
    }
}
