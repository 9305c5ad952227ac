//! How requests gather: the index of dispersion by scale.

use serde::Serialize;

const SECOND: u64 = 1_000_000_000;

/// Whole intervals below which a scale is left out.
const FEWEST: u64 = 30;

/// The variance of the requests of an interval divided by their mean: 1 for Poisson arrivals, 0
/// for constant ones. Exact.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Dispersion {
    pub interval_s: f64,
    pub intervals: u64,
    pub index: f64,
}

#[derive(Debug)]
struct Scale {
    length: u64,
    current: u64,
    count: u64,
    /// Of the intervals that have ended.
    requests: f64,
    squares: f64,
}

/// Counts requests in intervals of a millisecond (a second where times are whole ones) up to a
/// thousand seconds.
#[derive(Debug)]
pub(super) struct Burstiness(Vec<Scale>);

impl Burstiness {
    pub fn new(whole_seconds: bool) -> Burstiness {
        let finest = if whole_seconds { 0 } else { -3 };
        let scale = |power: i32| {
            let length = (SECOND as f64 * 10f64.powi(power)).round() as u64;
            Scale { length, current: 0, count: 0, requests: 0.0, squares: 0.0 }
        };
        Burstiness((finest..=3).map(scale).collect())
    }

    #[inline]
    pub fn add(&mut self, at_ns: u64) {
        for scale in &mut self.0 {
            let now = at_ns / scale.length;
            if now != scale.current {
                scale.close();
                scale.current = now;
            }
            scale.count += 1;
        }
    }

    /// `end`: of the last whole interval.
    pub fn indices(mut self, end_ns: u64) -> Vec<Dispersion> {
        let indices = self.0.iter_mut().filter_map(|scale| {
            let intervals = end_ns / scale.length;
            if scale.current < intervals {
                scale.close();
            }
            let number = intervals as f64;
            let mean = scale.requests / number;
            let variance = (scale.squares - scale.requests * mean) / (number - 1.0);
            (intervals >= FEWEST && mean > 0.0).then(|| Dispersion {
                interval_s: scale.length as f64 / SECOND as f64,
                intervals,
                index: variance / mean,
            })
        });
        indices.collect()
    }
}

impl Scale {
    fn close(&mut self) {
        let count = self.count as f64;
        self.requests += count;
        self.squares += count * count;
        self.count = 0;
    }
}
