//! The cost of one call, measured in batches; each batch is one sample.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Shortest batch: the clock's own cost and resolution are then below 0.1 %.
const MIN_BATCH_TIME: Duration = Duration::from_micros(200);
/// Fewer samples give no useful median.
pub(crate) const MIN_BATCHES: usize = 11;
/// Bounds the doubling of calls in a batch.
const MAX_CALLS: u64 = 1 << 32;

/// Nanoseconds a call over several batches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BatchSpread {
    pub min_ns: f64,
    pub median_ns: f64,
    pub mean_ns: f64,
    pub max_ns: f64,
    pub batches: usize,
    /// Calls in one batch.
    pub calls: u64,
}

impl BatchSpread {
    /// Over nanoseconds a call, one a batch; `None` of nothing.
    pub(crate) fn of(mut samples: Vec<f64>, calls: u64) -> Option<BatchSpread> {
        samples.sort_by(f64::total_cmp);
        let (first, last) = (*samples.first()?, *samples.last()?);
        let middle = samples.len() / 2;
        let median = match samples.len() % 2 {
            1 => samples[middle],
            _ => (samples[middle - 1] + samples[middle]) / 2.0,
        };
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        Some(BatchSpread {
            min_ns: first,
            median_ns: median,
            mean_ns: mean,
            max_ns: last,
            batches: samples.len(),
            calls,
        })
    }

    /// The cost of each of `parts` equal parts of a call.
    pub(crate) fn per(self, parts: u64) -> BatchSpread {
        let of = |value: f64| value / parts as f64;
        BatchSpread {
            min_ns: of(self.min_ns),
            median_ns: of(self.median_ns),
            mean_ns: of(self.mean_ns),
            max_ns: of(self.max_ns),
            batches: self.batches,
            calls: self.calls * parts,
        }
    }

    /// The cost less one that every call contains, not below zero.
    pub(crate) fn less(self, cost_ns: f64) -> BatchSpread {
        let less = |value: f64| (value - cost_ns).max(0.0);
        BatchSpread {
            min_ns: less(self.min_ns),
            median_ns: less(self.median_ns),
            mean_ns: less(self.mean_ns),
            max_ns: less(self.max_ns),
            ..self
        }
    }
}

/// Measures `call`, which makes the number of calls it is given, in batches until `time` has
/// passed and there are [`MIN_BATCHES`]. `stop` is checked between batches; the batches until
/// then count. `None`: stopped before the first batch ended.
///
/// # Errors
/// The first error of `call`.
pub(crate) fn measure<E>(
    time: Duration,
    stop: &dyn Fn() -> bool,
    mut call: impl FnMut(u64) -> Result<(), E>,
) -> Result<Option<BatchSpread>, E> {
    let mut timed = |calls: u64| {
        let before = Instant::now();
        call(calls)?;
        Ok(before.elapsed())
    };
    let mut calls = 1;
    while !stop() && calls < MAX_CALLS && timed(calls)? < MIN_BATCH_TIME {
        calls *= 2;
    }
    let mut samples = Vec::new();
    let begun = Instant::now();
    while !stop() && (begun.elapsed() < time || samples.len() < MIN_BATCHES) {
        samples.push(timed(calls)?.as_nanos() as f64 / calls as f64);
    }
    Ok(BatchSpread::of(samples, calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summarised() {
        let spread = BatchSpread::of(vec![4.0, 1.0, 3.0, 2.0], 8).unwrap();
        assert_eq!((spread.min_ns, spread.max_ns), (1.0, 4.0));
        assert_eq!((spread.median_ns, spread.mean_ns), (2.5, 2.5));
        assert_eq!((spread.batches, spread.calls), (4, 8));
        assert_eq!(BatchSpread::of(vec![9.0, 1.0, 2.0], 1).unwrap().median_ns, 2.0);
        assert_eq!(BatchSpread::of(Vec::new(), 1), None);
        assert_eq!((spread.per(4).median_ns, spread.per(4).calls), (0.625, 32));
        assert_eq!(spread.less(2.0).min_ns, 0.0);
        assert_eq!(spread.less(2.0).median_ns, 0.5);
    }

    #[test]
    fn makes_every_call_and_obeys_a_stop() {
        let mut total = 0;
        let mut batches = 0;
        let measured = measure(Duration::ZERO, &|| false, |calls| {
            total += calls;
            batches += 1;
            std::thread::sleep(MIN_BATCH_TIME);
            Ok::<(), ()>(())
        });
        let spread = measured.unwrap().unwrap();
        assert_eq!(spread.calls, 1);
        assert_eq!((spread.batches, total, batches), (MIN_BATCHES, 12, 12));
        assert_eq!(measure(Duration::ZERO, &|| true, |_| Ok::<(), ()>(())), Ok(None));
        assert_eq!(measure(Duration::ZERO, &|| false, |_| Err("no")), Err("no"));
    }
}
