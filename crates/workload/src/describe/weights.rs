//! A histogram of distances with weights.

/// Each power of two has so many buckets: a bucket is at most 0.1 % wide.
const SUB_BITS: u32 = 10;
const SUB: u64 = 1 << SUB_BITS;

/// Weights by value, exact below 2,048 and within 0.1 % above.
#[derive(Debug, Default)]
pub(crate) struct Weights {
    buckets: Vec<f64>,
}

fn bucket(value: u64) -> usize {
    if value < 2 * SUB {
        return value as usize;
    }
    let shift = value.ilog2() - SUB_BITS;
    (u64::from(shift) * SUB + (value >> shift)) as usize
}

impl Weights {
    pub fn add(&mut self, value: u64, weight: f64) {
        let at = bucket(value);
        if at >= self.buckets.len() {
            self.buckets.resize(at + 1, 0.0);
        }
        self.buckets[at] += weight;
    }

    /// The weight up to and with each of these values, which rise.
    pub fn up_to(&self, values: &[u64]) -> Vec<f64> {
        let (mut sum, mut next) = (0.0, 0);
        let cumulative = values.iter().map(|value| {
            let end = (bucket(*value) + 1).min(self.buckets.len());
            while next < end {
                sum += self.buckets[next];
                next += 1;
            }
            sum
        });
        cumulative.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut weights = Weights::default();
        for value in [1, 5, 2047, 2048, 5_000, 1 << 40, u64::MAX] {
            weights.add(value, 1.0);
        }
        let sums = weights.up_to(&[0, 1, 4, 5, 2047, 2048, 4_990, 5_010, u64::MAX]);
        assert_eq!(sums, [0.0, 1.0, 1.0, 2.0, 3.0, 4.0, 4.0, 5.0, 7.0]);
    }
}
