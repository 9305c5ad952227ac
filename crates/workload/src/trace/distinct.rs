//! The number of distinct keys, without storing them.

/// Bits of a hash that choose a register.
const BITS: u32 = 14;

/// HyperLogLog (Flajolet et al., AofA 2007) over hashes of 64 bits, which need no correction for
/// large counts; small ones follow from the empty registers. The standard error is 0.8 % in 16 KiB.
#[derive(Debug, Clone)]
pub(crate) struct DistinctCounter {
    registers: Box<[u8]>,
}

impl DistinctCounter {
    pub fn new() -> DistinctCounter {
        DistinctCounter { registers: vec![0; 1 << BITS].into() }
    }

    /// `hash` must be well mixed in all of its bits.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        let register = &mut self.registers[(hash >> (64 - BITS)) as usize];
        let zeros = (hash << BITS | 1 << (BITS - 1)).leading_zeros() as u8 + 1;
        *register = zeros.max(*register);
    }

    /// Counts the keys of the other one too.
    pub fn merge(&mut self, other: &DistinctCounter) {
        for (register, other) in self.registers.iter_mut().zip(&other.registers) {
            *register = (*register).max(*other);
        }
    }

    pub fn estimate(&self) -> f64 {
        let count = self.registers.len() as f64;
        let sum: f64 = self.registers.iter().map(|zeros| 0.5f64.powi(i32::from(*zeros))).sum();
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let empty = self.registers.iter().filter(|zeros| **zeros == 0).count() as f64;
        if raw <= 2.5 * count && empty > 0.0 { count * (count / empty).ln() } else { raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::random::mix;

    #[test]
    fn counts_within_five_standard_errors() {
        for count in [0, 1, 10, 1000, 20_000, 60_000, 1_000_000] {
            let mut distinct = DistinctCounter::new();
            for _ in 0..2 {
                (0..count).for_each(|key| distinct.add(mix(key)));
            }
            let error = (distinct.estimate() - count as f64).abs();
            assert!(error <= 0.04 * count as f64, "{count}: {}", distinct.estimate());
        }
    }
}
