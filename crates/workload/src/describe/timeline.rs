//! Requests, bytes and keys over time, in a bounded number of intervals.

use serde::Serialize;

use crate::trace::DistinctCounter;

/// Intervals before two become one.
const MOST: usize = 128;

#[derive(Debug)]
struct Interval {
    requests: u64,
    bytes: u64,
    keys: DistinctCounter,
    /// Distinct keys until its end: the working set.
    working_set: f64,
}

/// An interval of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TimelinePoint {
    /// Its begin and its length after the first request: seconds, or requests where the trace has
    /// no times.
    pub begin: f64,
    pub length: f64,
    /// Exact.
    pub requests: u64,
    pub bytes: u64,
    /// Distinct keys in it: estimated, standard error 0.8 %.
    pub keys: f64,
    /// Distinct keys until its end, as exact as those of the whole trace.
    pub working_set: f64,
}

/// Intervals that double when there are too many.
#[derive(Debug)]
pub(super) struct Timeline {
    length: u64,
    intervals: Vec<Interval>,
}

impl Timeline {
    /// `length`: of an interval, to begin with.
    pub fn new(length: u64) -> Timeline {
        Timeline { length, intervals: Vec::new() }
    }

    /// `at`: after the first request; never falls.
    #[inline]
    pub fn add(&mut self, at: u64, bytes: u64, hash: u64, working_set: f64) {
        let mut index = at / self.length;
        while index as usize >= MOST {
            self.double();
            index = at / self.length;
        }
        let index = index as usize;
        while index >= self.intervals.len() {
            // An interval without requests leaves the working set as it was.
            let working_set = self.intervals.last().map_or(0.0, |last| last.working_set);
            let keys = DistinctCounter::new();
            self.intervals.push(Interval { requests: 0, bytes: 0, keys, working_set });
        }
        let interval = &mut self.intervals[index];
        interval.requests += 1;
        interval.bytes += bytes;
        interval.keys.add(hash);
        interval.working_set = working_set;
    }

    fn double(&mut self) {
        self.length *= 2;
        let mut old = std::mem::take(&mut self.intervals).into_iter();
        while let Some(mut first) = old.next() {
            if let Some(second) = old.next() {
                first.requests += second.requests;
                first.bytes += second.bytes;
                first.keys.merge(&second.keys);
                first.working_set = second.working_set;
            }
            self.intervals.push(first);
        }
    }

    /// `unit`: of times in what is shown; `end`: the last request.
    pub fn points(self, unit: f64, end: u64) -> Vec<TimelinePoint> {
        let length = self.length;
        let points = self.intervals.iter().enumerate().map(|(index, interval)| {
            let begin = index as u64 * length;
            TimelinePoint {
                begin: begin as f64 / unit,
                length: length.min((end - begin.min(end)).max(1)) as f64 / unit,
                requests: interval.requests,
                bytes: interval.bytes,
                keys: interval.keys.estimate(),
                working_set: interval.working_set,
            }
        });
        points.collect()
    }
}
