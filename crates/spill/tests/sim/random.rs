//! Pseudo-random numbers from a seed (SplitMix64).

#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Independent of every other `part` of the same seed.
    pub fn of(seed: u64, part: u64) -> Random {
        let mut mixed = Random(seed ^ part.wrapping_mul(0xd134_2543_de82_ef95));
        Random(mixed.next())
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In `0..n`; 0 for n = 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.next() % n as u64) as usize }
    }

    /// True `times` times in `of`.
    pub fn chance(&mut self, times: usize, of: usize) -> bool {
        self.below(of) < times
    }

    pub fn fill(&mut self, into: &mut [u8]) {
        for part in into.chunks_mut(8) {
            part.copy_from_slice(&self.next().to_le_bytes()[..part.len()]);
        }
    }
}
