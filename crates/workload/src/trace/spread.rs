//! The instants of requests within a second.

use model::random::{Draws, RandomStream};

use super::chunk::RequestChunk;

/// How the requests of one second are spread over it, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalSpread {
    /// At equal distances: request `i` of `n` at `(i + 1/2) / n`.
    Even,
    /// As sorted uniform numbers, which is how Poisson arrivals lie when their number is known.
    Poisson { seed: u64 },
}

/// The purpose of the random stream; those of a [`WorkloadSpec`](crate::WorkloadSpec) are below.
const INSTANTS: u64 = 65;

impl ArrivalSpread {
    /// Gives every request of the chunk its instant in the second that begins at `second` after the
    /// beginning of the trace.
    pub(super) fn assign(self, second: u64, chunk: &mut RequestChunk) {
        let instants = chunk.instants();
        let (begin, count) = (second as f64, instants.len() as f64);
        match self {
            ArrivalSpread::Even => {
                for (i, at) in instants.enumerate() {
                    *at = begin + (i as f64 + 0.5) / count;
                }
            }
            // Sorted uniforms without sorting: the partial sums of n + 1 exponential gaps, divided
            // by their total (Devroye, "Non-Uniform Random Variate Generation", Springer 1986,
            // chapter V.3). The gaps are drawn twice, so that none need be kept.
            ArrivalSpread::Poisson { seed } => {
                let start = RandomStream::new(seed, INSTANTS).at(second);
                let gap = |draws: &mut Draws| -(draws.unit().ln());
                let mut draws = Draws::from(start);
                let total: f64 = (0..=instants.len()).map(|_| gap(&mut draws)).sum();
                let mut draws = Draws::from(start);
                let mut sum = 0.0;
                for at in instants {
                    sum += gap(&mut draws);
                    // Rounding must not move it into the next second.
                    *at = begin + (sum / total).min(1.0 - 1e-9);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TraceOp;
    use super::super::record::{TraceKey, TraceRecord};
    use super::*;

    fn instants(spread: ArrivalSpread, second: u64, count: u64) -> Vec<f64> {
        let mut chunk = RequestChunk::new();
        let record = TraceRecord {
            at_ns: 0,
            operation: TraceOp::Get,
            key: TraceKey::Bytes(b"key"),
            key_size: None,
            value_size: None,
            expiry: None,
        };
        (0..count).for_each(|_| chunk.push(&record, 0, true));
        spread.assign(second, &mut chunk);
        chunk.iter().map(|request| request.at_s).collect()
    }

    #[test]
    fn even_instants_have_equal_distances() {
        assert_eq!(instants(ArrivalSpread::Even, 7, 4), [7.125, 7.375, 7.625, 7.875]);
    }

    /// Kolmogorov-Smirnov against the uniform law for the instants, and against the exponential
    /// one for the gaps between them: each exceeds 1.95 once in a thousand.
    #[test]
    fn poisson_instants_are_sorted_uniforms() {
        let spread = ArrivalSpread::Poisson { seed: 5 };
        for second in [0, 3, 4_000_000] {
            let count = 50_000;
            let instants: Vec<f64> =
                instants(spread, second, count).iter().map(|at| at - second as f64).collect();
            assert!(instants.is_sorted());
            assert!(instants.iter().all(|at| (0.0..1.0).contains(at)));
            let n = count as f64;
            let distance = |sorted: &[f64], cdf: &dyn Fn(f64) -> f64| {
                let far = |(i, x): (usize, &f64)| ((i as f64 + 0.5) / n - cdf(*x)).abs();
                sorted.iter().enumerate().map(far).fold(0.0, f64::max) * n.sqrt()
            };
            assert!(distance(&instants, &|x| x) < 1.95);
            let mut gaps: Vec<f64> = instants.windows(2).map(|pair| pair[1] - pair[0]).collect();
            gaps.sort_by(f64::total_cmp);
            assert!(distance(&gaps, &|x| 1.0 - (-x * n).exp()) < 1.95);
        }
        assert_eq!(instants(spread, 3, 10), instants(spread, 3, 10));
        assert_ne!(instants(spread, 3, 10), instants(ArrivalSpread::Poisson { seed: 6 }, 3, 10));
    }
}
