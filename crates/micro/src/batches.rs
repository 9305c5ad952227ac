//! What one call costs: it is done in batches, and each batch is one sample.

use std::time::{Duration, Instant};

use serde::Serialize;

/// A batch lasts at least so long: the clock's own cost and resolution are then below 0.1 %.
const LEAST_BATCH: Duration = Duration::from_micros(200);
/// Fewer samples have no median to speak of.
pub(crate) const LEAST_BATCHES: usize = 11;
/// No call that is measured here lasts so long that doubling could go on for ever.
const MOST_CALLS: u64 = 1 << 32;

/// Nanoseconds a call over several batches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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

    /// The same for each of `parts` equal parts of a call.
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

    /// The same less a cost that was in every call, not below zero.
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

/// Measures `call`, which makes as many calls as it is told, in batches until `time` has passed
/// and there are [`LEAST_BATCHES`]. `stop` is asked between batches; once it says so, what there
/// is counts. `None`: stopped before the first batch ended.
///
/// # Errors
/// The first one of `call`.
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
    while !stop() && calls < MOST_CALLS && timed(calls)? < LEAST_BATCH {
        calls *= 2;
    }
    let mut samples = Vec::new();
    let begun = Instant::now();
    while !stop() && (begun.elapsed() < time || samples.len() < LEAST_BATCHES) {
        samples.push(timed(calls)?.as_nanos() as f64 / calls as f64);
    }
    Ok(BatchSpread::of(samples, calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_up() {
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
    fn every_call_is_made_and_a_stop_is_obeyed() {
        let mut made = 0;
        let mut batches = 0;
        let measured = measure(Duration::ZERO, &|| false, |calls| {
            made += calls;
            batches += 1;
            std::thread::sleep(LEAST_BATCH);
            Ok::<(), ()>(())
        });
        let spread = measured.unwrap().unwrap();
        assert_eq!(spread.calls, 1);
        assert_eq!((spread.batches, made, batches), (LEAST_BATCHES, 12, 12));
        assert_eq!(measure(Duration::ZERO, &|| true, |_| Ok::<(), ()>(())), Ok(None));
        assert_eq!(measure(Duration::ZERO, &|| false, |_| Err("no")), Err("no"));
    }
}
