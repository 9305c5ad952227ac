//! Counter-based randomness: the `i`-th number is a function of a key and `i`, nothing else.
//!
//! There is no state to share or to advance, so that any thread can draw any operation. The
//! function is SplitMix64 (Steele, Lea & Flood, "Fast Splittable Pseudorandom Number Generators",
//! OOPSLA 2014), which is a Weyl sequence passed through a bijective finaliser.

/// The odd step of the Weyl sequence: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64 (David Stafford's variant 13). A bijection on 64 bits.
#[inline(always)]
pub const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The number that [`mix`] turns into `x`: its steps backwards, with the inverse factors modulo 2^64.
#[inline(always)]
pub const fn unmix(x: u64) -> u64 {
    let x = (x ^ (x >> 31) ^ (x >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let x = (x ^ (x >> 27) ^ (x >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    x ^ (x >> 30) ^ (x >> 60)
}

/// An endless sequence of random numbers with random access.
#[derive(Debug, Clone, Copy)]
pub struct RandomStream(u64);

impl RandomStream {
    /// The stream of `seed` for `purpose`; purposes never share numbers.
    pub const fn new(seed: u64, purpose: u64) -> RandomStream {
        RandomStream(mix(mix(seed ^ STEP) ^ mix(purpose)))
    }

    /// The `index`-th number. Different for every index.
    #[inline(always)]
    pub const fn at(self, index: u64) -> u64 {
        mix(self.0.wrapping_add(index.wrapping_mul(STEP)))
    }
}

/// A short sequence of random numbers that starts at a number of a [`RandomStream`].
#[derive(Debug, Clone, Copy)]
pub struct Draws(u64);

impl Draws {
    #[inline(always)]
    pub const fn from(start: u64) -> Draws {
        Draws(start)
    }

    #[inline(always)]
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number in the open interval (0, 1).
    #[inline(always)]
    pub fn unit(&mut self) -> f64 {
        unit(self.next())
    }
}

/// 52 random bits as the middle of one of 2^52 equal parts of (0, 1), which `f64` holds exactly.
#[inline(always)]
pub fn unit(random: u64) -> f64 {
    ((random >> 12) as f64 + 0.5) * (1.0 / 4_503_599_627_370_496.0)
}

/// A number in `0..bound` by the high half of the product; off by at most `bound` / 2^64.
#[inline(always)]
pub const fn below(random: u64, bound: u64) -> u64 {
    ((random as u128 * bound as u128) >> 64) as u64
}

/// Both halves of the 128-bit product folded into one word.
#[inline(always)]
pub const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_published_sequence() {
        // The first outputs of SplitMix64 seeded with 1234567.
        let mut draws = Draws::from(1_234_567);
        assert_eq!(draws.next(), 6_457_827_717_110_365_317);
        assert_eq!(draws.next(), 3_203_168_211_198_807_973);
        assert_eq!(draws.next(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn unmixing_undoes_mixing() {
        let mut x = 1u64;
        for _ in 0..10_000 {
            assert_eq!(unmix(mix(x)), x);
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        assert_eq!([0, u64::MAX].map(|x| unmix(mix(x))), [0, u64::MAX]);
    }

    #[test]
    fn units_are_open_and_bounds_hold() {
        assert!(unit(0) > 0.0);
        assert!(unit(u64::MAX) < 1.0);
        assert_eq!(below(u64::MAX, 10), 9);
        assert_eq!(below(0, 10), 0);
    }

    #[test]
    fn streams_differ() {
        assert_ne!(RandomStream::new(1, 1).at(0), RandomStream::new(1, 2).at(0));
        assert_ne!(RandomStream::new(1, 1).at(0), RandomStream::new(2, 1).at(0));
    }
}
