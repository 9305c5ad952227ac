use hdrhistogram::Histogram;

use crate::interval::{Interval, IntervalMethod, NoInterval, TAIL};
use crate::quantile::binomial;

/// The 95 % interval of one percentile of a histogram, in the histogram's unit.
///
/// The order statistics of ranks `l = B(0.025)` and `u = B(0.975) + 1`, where `B(q)` is the
/// quantile of Binomial(n, percentile / 100): no distribution is assumed (Hahn and Meeker,
/// "Statistical Intervals", 1991, ch. 5.2). The ends are those of the histogram's buckets, so
/// what it rounded is covered. The samples are taken as independent; requests that wait behind
/// each other are not, so this is how well the samples fix the percentile, not how much it
/// would move in another run.
///
/// `percentile` is between 0 and 100, both excluded.
/// Errors: too few samples: with n of them either end would lie outside the data when
/// `(percentile / 100)^n` or `(1 - percentile / 100)^n` exceeds 0.025 (p99 needs 368, p99.9
/// 3,688, p99.99 36,887).
pub fn percentile_interval(
    histogram: &Histogram<u64>,
    percentile: f64,
) -> Result<Interval, NoInterval> {
    let needed = samples_needed(percentile)?;
    let n = histogram.len();
    if n < needed {
        return Err(NoInterval::TooFewSamples { percentile, got: n, needed });
    }
    let share = percentile / 100.0;
    // A rank outside the data is excluded by `needed`, up to the rounding of its logarithms.
    let low_rank = binomial(TAIL, n, share).max(1);
    let high_rank = (binomial(1.0 - TAIL, n, share) + 1).min(n);
    Ok(Interval {
        low: histogram.lowest_equivalent(value_at_rank(histogram, low_rank)) as f64,
        high: histogram.highest_equivalent(value_at_rank(histogram, high_rank)) as f64,
        method: IntervalMethod::OrderStatistics { low_rank, high_rank },
    })
}

/// The fewest samples with which a percentile has an interval.
///
/// `ceil(ln 0.025 / ln q)` with q the larger of `percentile / 100` and its complement.
/// Errors: a percentile that is not between 0 and 100.
pub fn samples_needed(percentile: f64) -> Result<u64, NoInterval> {
    let share = percentile / 100.0;
    if !(share > 0.0 && share < 1.0) {
        return Err(NoInterval::Percentile(percentile));
    }
    Ok((TAIL.ln() / share.max(1.0 - share).ln()).ceil() as u64)
}

/// The value of the sample of this rank, counted from 1 in rising order. Walks the buckets:
/// a quantile as a share would round at 10^9 samples.
fn value_at_rank(histogram: &Histogram<u64>, rank: u64) -> u64 {
    let mut seen = 0;
    for bucket in histogram.iter_recorded() {
        seen = u64::saturating_add(seen, bucket.count_since_last_iteration());
        if seen >= rank {
            return bucket.value_iterated_to();
        }
    }
    histogram.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut h = Histogram::new(3).unwrap();
        values.into_iter().for_each(|v| h.record(v).unwrap());
        h
    }

    #[test]
    fn ranks_are_those_of_the_binomial() {
        // By hand, for the upper quartile of 16: Binomial(16, 3/4)
        // has P(<= 7) = 0.0075, P(<= 8) = 0.0271 and P(<= 14) = 0.9365, P(<= 15) = 0.98998.
        let interval = percentile_interval(&histogram(1..=16), 75.0).unwrap();
        assert_eq!((interval.low, interval.high), (8.0, 16.0));
        assert_eq!(interval.method, IntervalMethod::OrderStatistics { low_rank: 8, high_rank: 16 });
    }

    #[test]
    fn too_few_samples_have_no_interval() {
        for (percentile, needed) in [(50.0, 6), (90.0, 36), (99.0, 368), (99.9, 3688)] {
            assert_eq!(samples_needed(percentile), Ok(needed));
            assert!(percentile_interval(&histogram(1..=needed), percentile).is_ok());
            assert_eq!(
                percentile_interval(&histogram(1..needed), percentile),
                Err(NoInterval::TooFewSamples { percentile, got: needed - 1, needed })
            );
        }
        assert_eq!(samples_needed(99.99), Ok(36_887));
        for wrong in [0.0, 100.0, -1.0, f64::NAN] {
            assert!(matches!(samples_needed(wrong), Err(NoInterval::Percentile(_))));
        }
    }

    #[test]
    fn a_large_histogram_is_fixed_to_a_thousandth() {
        let mut h = Histogram::new(3).unwrap();
        for value in 1..=1000_u64 {
            h.record_n(value, 1_000_000).unwrap();
        }
        // 10^9 samples: ranks 0.99 * 10^9 +- 1.96 sqrt(10^9 * 0.99 * 0.01), within 990 and 991.
        let interval = percentile_interval(&h, 99.0).unwrap();
        assert_eq!((interval.low, interval.high), (990.0, 991.0));
        let IntervalMethod::OrderStatistics { low_rank, high_rank } = interval.method else {
            panic!()
        };
        let half = 1.959_964 * (1e9_f64 * 0.99 * 0.01).sqrt();
        assert!(((high_rank - low_rank) as f64 - 2.0 * half).abs() < 3.0);
    }
}
