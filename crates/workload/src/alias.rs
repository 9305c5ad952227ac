//! Draws from a short list of weights in constant time.

/// Walker's alias method (Vose, "A Linear Algorithm for Generating Random Numbers with a Given
/// Distribution", IEEE TSE 17(9), 1991): every slot holds at most two outcomes and the height at
/// which one gives way to the other.
#[derive(Debug, Clone)]
pub struct Alias {
    /// How many leading random bits choose the slot.
    bits: u32,
    slots: Box<[AliasSlot]>,
}

#[derive(Debug, Clone, Copy)]
struct AliasSlot {
    /// The slot's own outcome is drawn below this height, in units of 2^-64.
    height: u64,
    own: u32,
    other: u32,
}

impl Alias {
    /// `weights`: at least one, none negative, not all zero.
    pub fn new(weights: &[f64]) -> Alias {
        let bits = weights.len().next_power_of_two().trailing_zeros().max(1);
        let count = 1usize << bits;
        let total: f64 = weights.iter().sum();
        let heaviest = weights.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        let heaviest = heaviest.map_or(0, |(index, _)| index as u32);
        let mut height: Vec<f64> = weights.iter().map(|w| w / total * count as f64).collect();
        height.resize(count, 0.0);
        // Where rounding leaves a slot without a partner, the heaviest outcome stands in.
        let mut other = vec![heaviest; count];
        let (mut low, mut high): (Vec<usize>, Vec<usize>) =
            (0..count).partition(|&slot| height[slot] < 1.0);
        while let (Some(&poor), Some(&rich)) = (low.last(), high.last()) {
            low.pop();
            other[poor] = rich as u32;
            height[rich] -= 1.0 - height[poor];
            if height[rich] < 1.0 {
                high.pop();
                low.push(rich);
            }
        }
        for slot in high {
            other[slot] = slot as u32;
        }
        let slot = |index: usize| AliasSlot {
            height: (height[index] * 18_446_744_073_709_551_616.0) as u64,
            own: index as u32,
            other: other[index],
        };
        Alias { bits, slots: (0..count).map(slot).collect() }
    }

    /// The index of the weight that 64 random bits choose.
    #[inline(always)]
    pub fn pick(&self, random: u64) -> u32 {
        let slot = &self.slots[(random >> (64 - self.bits)) as usize];
        if (random << self.bits) < slot.height { slot.own } else { slot.other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::random::RandomStream;

    #[test]
    fn frequencies_are_the_weights() {
        let weights = [0.5, 0.0, 3.0, 1.5, 0.0];
        let alias = Alias::new(&weights);
        let mut observed = [0u64; 5];
        let random = RandomStream::new(7, 7);
        let draws = 200_000;
        for i in 0..draws {
            observed[alias.pick(random.at(i)) as usize] += 1;
        }
        for (weight, observed) in weights.iter().zip(observed) {
            let p = weight / 5.0;
            let sigma = (draws as f64 * p * (1.0 - p)).sqrt();
            assert!(
                (observed as f64 - draws as f64 * p).abs() <= 5.0 * sigma,
                "{weight}: {observed}"
            );
        }
    }

    #[test]
    fn single_weight_is_certain() {
        for at in [0, 2, 6] {
            let mut weights = [0.0; 7];
            weights[at] = 0.3;
            let alias = Alias::new(&weights);
            for random in [0, 1, u64::MAX, 1 << 61, (1 << 63) - 1] {
                assert_eq!(alias.pick(random), at as u32);
            }
        }
    }
}
