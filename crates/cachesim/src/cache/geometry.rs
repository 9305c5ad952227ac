//! The geometry of a cache, and the mapping of lines to sets.

use model::random::mix;

/// Bytes in a line: the unit of every cache that is simulated.
pub const LINE: u64 = 64;

/// The number of a line: its address divided by [`LINE`]. 2^32 lines are 256 GiB.
pub type LineNumber = u32;

/// Consecutive stretches, each as many lines as there are sets, that have the same order of sets.
const ALIKE: u32 = 2;

/// Slices, sets and ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Parts of the cache, each with its own sets; a line's slice is a hash of its address.
    pub slices: u32,
    /// Sets in a slice: a power of two, as the set is the low bits of the line's number.
    pub sets: u32,
    /// Lines in a set, at most 32.
    pub ways: u32,
}

/// An invalid key of a geometry, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeometryError {
    pub key: &'static str,
    pub why: &'static str,
}

impl Geometry {
    pub fn checked(self) -> Result<Geometry, GeometryError> {
        if self.slices == 0 || self.slices > 256 {
            return Err(GeometryError { key: "slices", why: "must be 1 to 256" });
        }
        if !self.sets.is_power_of_two() || self.sets > 1 << 20 {
            let why = "must be a power of two up to 1048576: the set is the low bits of an address";
            return Err(GeometryError { key: "sets", why });
        }
        if self.ways == 0 || self.ways > 32 {
            return Err(GeometryError { key: "ways", why: "must be 1 to 32" });
        }
        Ok(self)
    }

    /// Sets in all slices.
    pub fn all_sets(self) -> usize {
        self.slices as usize * self.sets as usize
    }

    pub fn lines(self) -> u64 {
        self.all_sets() as u64 * u64::from(self.ways)
    }

    pub fn bytes(self) -> u64 {
        self.lines() * LINE
    }

    /// The mask of all ways.
    pub fn every_way(self) -> u32 {
        u32::MAX >> (32 - self.ways)
    }

    /// The set of a line among those of all slices.
    ///
    /// Each stretch of as many lines as there are sets fills every set once, in a pseudorandom order.
    /// Real hashes are as even: within a block each slice gets the same number of lines (J. D.
    /// McCalpin, "Mapping addresses to L3/CHA slices in Intel processors", ACELab TR-2021-03). With
    /// random slices, one line in five of a ring that takes half of two ways would share its set with
    /// two others, and be evicted. For the same reason two stretches have one order: lines that are
    /// a whole stretch apart share a set.
    #[inline(always)]
    pub fn set_of(self, line: LineNumber) -> usize {
        let mut set = 0;
        self.sets_from(line, [&mut set].into_iter());
        set as usize
    }

    /// The sets of a line and of those behind it.
    #[inline(always)]
    pub(crate) fn sets_from<'a>(
        self,
        line: LineNumber,
        results: impl Iterator<Item = &'a mut u32>,
    ) {
        let Geometry { slices, sets, .. } = self;
        let mut set = line & (sets - 1);
        if slices == 1 {
            for results in results {
                *results = set;
                set = (set + 1) & (sets - 1);
            }
            return;
        }
        let row = line >> sets.trailing_zeros();
        let mut stretch = row / slices;
        let mut slice = row - stretch * slices;
        for results in results {
            let drawn = mix(u64::from(stretch / ALIKE) << 32 | u64::from(set)) >> 32;
            let turned = (drawn * u64::from(slices)) >> 32;
            let own = slice + turned as u32;
            let own = if own < slices { own } else { own - slices };
            *results = (own << sets.trailing_zeros()) + set;
            set += 1;
            if set == sets {
                set = 0;
                slice += 1;
                if slice == slices {
                    slice = 0;
                    stretch += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_geometries_that_cannot_be_indexed() {
        let good = Geometry { slices: 18, sets: 2048, ways: 11 };
        assert_eq!(good.checked(), Ok(good));
        assert_eq!(good.bytes(), 25_952_256, "24.75 MiB");
        let key = |geometry: Geometry| geometry.checked().unwrap_err().key;
        assert_eq!(key(Geometry { slices: 0, ..good }), "slices");
        assert_eq!(key(Geometry { sets: 2047, ..good }), "sets");
        assert_eq!(key(Geometry { ways: 33, ..good }), "ways");
    }

    #[test]
    fn a_stretch_of_memory_fills_all_sets_evenly() {
        let geometry = Geometry { slices: 18, sets: 64, ways: 1 };
        let mut counts = vec![0_u32; geometry.all_sets()];
        let first = 5 * geometry.lines() as u32;
        for line in first..first + 3 * geometry.lines() as u32 {
            counts[geometry.set_of(line)] += 1;
        }
        assert!(counts.iter().all(|&n| n == 3), "{counts:?}");
    }

    #[test]
    fn sets_of_consecutive_lines_agree_with_set_of() {
        for slices in [1, 18] {
            let geometry = Geometry { slices, sets: 64, ways: 1 };
            let first = 64 * 17 - 3;
            let mut sets = [0; 300];
            geometry.sets_from(first, sets.iter_mut());
            for (line, set) in (first..).zip(sets) {
                assert_eq!(set as usize, geometry.set_of(line));
            }
        }
    }

    #[test]
    fn strided_lines_spread_over_slices_randomly() {
        let geometry = Geometry { slices: 18, sets: 64, ways: 1 };
        let mut counts = vec![0_u32; 18];
        let lines = 180_000_u32;
        for line in 0..lines {
            counts[geometry.set_of(line * 37) / 64] += 1;
        }
        let mean = f64::from(lines) / 18.0;
        let chi: f64 = counts.iter().map(|&n| (f64::from(n) - mean).powi(2) / mean).sum();
        // 17 degrees of freedom: above 45 once in 5,000.
        assert!(chi < 45.0, "{chi}: {counts:?}");
    }
}
