//! The snoop filter: which private caches hold a line.

use crate::cache::{Cache, Geometry, LineNumber, Replacement, ways_of};

/// Cores that hold a line, one bit each.
pub type Cores = u64;

/// A set-associative table of lines and their holders. A line that is evicted from it is evicted
/// from the private caches, too, as in processors with a non-inclusive last-level cache.
#[derive(Debug, Clone)]
pub struct SnoopFilter {
    table: Cache,
    holders: Vec<Cores>,
    /// Entries in each set, so that most lookups skip the table.
    taken: Vec<u8>,
}

/// An evicted entry: the holders must give up the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Displaced {
    pub line: LineNumber,
    pub holders: Cores,
}

impl SnoopFilter {
    /// Sets as the last-level cache has them, so that one set number serves both.
    pub fn new(geometry: Geometry, seed: u64) -> SnoopFilter {
        let table = Cache::new(geometry, Replacement::Lru, seed);
        let holders = vec![0; table.slots()];
        SnoopFilter { table, holders, taken: vec![0; geometry.all_sets()] }
    }

    #[inline(always)]
    pub fn holders(&self, set: usize, line: LineNumber) -> Cores {
        if self.taken[set] == 0 { 0 } else { self.among(set, line) }
    }

    /// The slow path, for a set with entries. Not inlined, so that callers stay short.
    #[inline(never)]
    fn among(&self, set: usize, line: LineNumber) -> Cores {
        match self.table.find(set, line) {
            Some(way) => self.holders[self.table.slot(set, way)],
            None => 0,
        }
    }

    /// Adds a holder.
    pub fn add(&mut self, set: usize, line: LineNumber, core: usize) -> Option<Displaced> {
        if let Some(way) = self.table.find(set, line) {
            self.holders[self.table.slot(set, way)] |= 1 << core;
            self.table.touch(set, way);
            return None;
        }
        let placed = self.table.insert(set, line, u32::MAX, false);
        let slot = self.table.slot(set, placed.way);
        let holders = std::mem::replace(&mut self.holders[slot], 1 << core);
        match placed.evicted {
            Some(evicted) => Some(Displaced { line: evicted.line, holders }),
            None => {
                self.taken[set] += 1;
                None
            }
        }
    }

    /// Removes a holder, and the entry if it was the last.
    pub fn drop(&mut self, set: usize, line: LineNumber, core: usize) {
        let Some(way) = self.table.find(set, line) else { return };
        let slot = self.table.slot(set, way);
        self.holders[slot] &= !(1 << core);
        if self.holders[slot] == 0 {
            self.table.remove(set, way);
            self.taken[set] -= 1;
        }
    }

    pub fn footprint(&self) -> usize {
        self.table.footprint() + self.holders.len() * size_of::<Cores>() + self.taken.len()
    }
}

/// The cores of a set of holders in rising order.
pub fn cores_of(holders: Cores) -> impl Iterator<Item = usize> {
    let low = ways_of(holders as u32);
    let high = ways_of((holders >> 32) as u32).map(|core| core + 32);
    low.chain(high).map(|core| core as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_come_and_go_and_a_full_set_displaces_one() {
        let geometry = Geometry { slices: 1, sets: 1, ways: 2 };
        let mut directory = SnoopFilter::new(geometry, 0);
        assert_eq!(directory.holders(0, 7), 0);
        assert_eq!(directory.add(0, 7, 0), None);
        assert_eq!(directory.add(0, 7, 40), None);
        assert_eq!(cores_of(directory.holders(0, 7)).collect::<Vec<_>>(), [0, 40]);
        assert_eq!(directory.add(0, 8, 1), None);
        let displaced = directory.add(0, 9, 1).unwrap();
        assert_eq!(displaced, Displaced { line: 7, holders: 1 | 1 << 40 });
        directory.drop(0, 8, 1);
        assert_eq!(directory.holders(0, 8), 0);
        assert_eq!(directory.add(0, 10, 2), None);
    }
}
