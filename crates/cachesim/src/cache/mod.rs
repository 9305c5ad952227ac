//! One cache: tags, dirty bits and the order of replacement, laid out for speed.
//!
//! The state of a set and the tags of its ways are adjacent 32-bit words, so that a set of up to 13
//! ways fits one cache line of the host, and a lookup is one vector comparison. Nothing is
//! allocated after construction; memory is about seven bytes per simulated line.

mod geometry;
mod lanes;
mod order;

pub use geometry::{Geometry, GeometryError, LINE, LineNumber};
pub use order::Replacement;
pub(crate) use order::ways_of;

use lanes::{LANES, equal};
use order::Order;

/// The tag of an empty way.
const EMPTY: LineNumber = LineNumber::MAX;

/// The words of a set: a bit per way for free, dirty and marked (the mark is for the owner of the
/// cache); then the tags.
const FREE: usize = 0;
const DIRTY: usize = 1;
const MARKED: usize = 2;
const TAGS: usize = 3;

/// Words of a cache line of the host.
const ALIGNED: usize = LINE as usize / 4;

#[derive(Debug, Clone)]
pub struct Cache {
    geometry: Geometry,
    /// Words of a set, rounded up to whole vectors.
    row: usize,
    every_way: u32,
    /// From `start` on.
    words: Vec<u32>,
    start: usize,
    order: Order,
}

/// An evicted line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evicted {
    pub line: LineNumber,
    /// It was changed since it came from memory.
    pub dirty: bool,
}

/// The way of an inserted line, and the line that it evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    pub way: u32,
    pub evicted: Option<Evicted>,
}

impl Cache {
    /// An empty cache; the geometry is checked.
    pub fn new(geometry: Geometry, replacement: Replacement, seed: u64) -> Cache {
        let row = (TAGS + geometry.ways as usize).next_multiple_of(LANES);
        let sets = geometry.all_sets();
        let mut words = vec![EMPTY; sets * row + ALIGNED];
        let start = words.as_ptr().align_offset(LINE as usize).min(ALIGNED);
        for set in words[start..].chunks_exact_mut(row).take(sets) {
            (set[FREE], set[DIRTY], set[MARKED]) = (geometry.every_way(), 0, 0);
        }
        let order = Order::new(replacement, sets, geometry.ways, seed);
        Cache { geometry, row, every_way: geometry.every_way(), words, start, order }
    }

    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Bytes of memory that the simulation of this cache takes.
    pub fn footprint(&self) -> usize {
        let order = match &self.order {
            Order::Lru { ages: bytes, .. } | Order::Rrip { intervals: bytes, .. } => bytes.len(),
            Order::TreePlru { bits, .. } => bits.len() * 4,
            Order::Random { .. } => 8,
        };
        self.words.len() * 4 + order
    }

    #[inline(always)]
    pub fn set_of(&self, line: LineNumber) -> usize {
        self.geometry.set_of(line)
    }

    #[inline(always)]
    fn words(&self, set: usize) -> &[u32] {
        &self.words[self.start + set * self.row..][..self.row]
    }

    #[inline(always)]
    fn words_mut(&mut self, set: usize) -> &mut [u32] {
        &mut self.words[self.start + set * self.row..][..self.row]
    }

    #[inline(always)]
    fn tag(&self, set: usize, way: u32) -> LineNumber {
        self.words(set)[TAGS + way as usize]
    }

    /// The ways of a set that hold `tag`: one bit each.
    #[inline(always)]
    pub(crate) fn holding(&self, set: usize, tag: LineNumber) -> u32 {
        (equal(self.words(set), tag) >> TAGS) as u32 & self.every_way
    }

    /// The way in which a line stands; `set` is its set.
    #[inline(always)]
    pub fn find(&self, set: usize, line: LineNumber) -> Option<u32> {
        let hits = self.holding(set, line);
        (hits != 0).then(|| hits.trailing_zeros())
    }

    /// Whether a way holds a line.
    #[inline(always)]
    pub fn holds(&self, set: usize, way: u32, line: LineNumber) -> bool {
        self.tag(set, way) == line
    }

    /// Notes that a line was used.
    #[inline(always)]
    pub fn touch(&mut self, set: usize, way: u32) {
        self.order.touch(set, way, false);
    }

    #[inline(always)]
    pub fn soil(&mut self, set: usize, way: u32) {
        self.words_mut(set)[DIRTY] |= 1 << way;
    }

    /// Rewrites a line that was in a way a moment ago: it becomes dirty and marked. False: it is not
    /// there any more.
    #[inline(always)]
    pub(crate) fn rewrite(&mut self, set: usize, way: u32, line: LineNumber) -> bool {
        let words = self.words_mut(set);
        if words[TAGS + way as usize] != line {
            return false;
        }
        words[DIRTY] |= 1 << way;
        words[MARKED] |= 1 << way;
        self.touch(set, way);
        true
    }

    /// Cleans a line; returns whether it was dirty.
    pub fn wash(&mut self, set: usize, way: u32) -> bool {
        let dirty = self.is_dirty(set, way);
        self.words_mut(set)[DIRTY] &= !(1 << way);
        dirty
    }

    /// Marks a way; new lines are unmarked.
    #[inline(always)]
    pub fn mark(&mut self, set: usize, way: u32) {
        self.words_mut(set)[MARKED] |= 1 << way;
    }

    #[inline(always)]
    pub fn is_marked(&self, set: usize, way: u32) -> bool {
        self.words(set)[MARKED] >> way & 1 == 1
    }

    #[inline(always)]
    pub fn is_dirty(&self, set: usize, way: u32) -> bool {
        self.words(set)[DIRTY] >> way & 1 == 1
    }

    /// Puts a line that is not there into one of the ways of `mask`: a free one if there is one.
    #[inline(always)]
    pub fn insert(&mut self, set: usize, line: LineNumber, mask: u32, dirty: bool) -> Placed {
        debug_assert!(self.find(set, line).is_none(), "line {line} is there already");
        debug_assert!(mask & self.every_way != 0, "no way is allowed");
        let mask = mask & self.every_way;
        let words = &mut self.words[self.start + set * self.row..][..self.row];
        let free = words[FREE] & mask;
        let way = match free {
            0 => self.order.victim(set, mask),
            _ => free.trailing_zeros(),
        };
        let tag = &mut words[TAGS + way as usize];
        let old = std::mem::replace(tag, line);
        let bit = 1 << way;
        let was_dirty = words[DIRTY] & bit != 0;
        words[FREE] &= !bit;
        words[MARKED] &= !bit;
        words[DIRTY] = (words[DIRTY] & !bit) | (u32::from(dirty) << way);
        self.order.touch(set, way, true);
        let evicted = (free == 0).then_some(Evicted { line: old, dirty: was_dirty });
        Placed { way, evicted }
    }

    /// Removes a line; returns whether it was dirty.
    #[inline(always)]
    pub fn remove(&mut self, set: usize, way: u32) -> bool {
        let words = self.words_mut(set);
        let bit = 1 << way;
        let dirty = words[DIRTY] & bit != 0;
        words[TAGS + way as usize] = EMPTY;
        words[FREE] |= bit;
        words[DIRTY] &= !bit;
        words[MARKED] &= !bit;
        dirty
    }

    /// Every line that is there, with the way in which it stands and whether it is dirty.
    pub fn lines(&self) -> impl Iterator<Item = (LineNumber, u32, bool)> {
        let sets = self.words[self.start..].chunks_exact(self.row).take(self.geometry.all_sets());
        sets.flat_map(|words| {
            let tags = words[TAGS..].iter().zip(0..self.geometry.ways);
            tags.filter(|(tag, _)| **tag != EMPTY)
                .map(|(tag, way)| (*tag, way, words[DIRTY] >> way & 1 == 1))
        })
    }

    /// Index of a way in tables parallel to the tags.
    #[inline(always)]
    pub(crate) fn slot(&self, set: usize, way: u32) -> usize {
        set * self.geometry.ways as usize + way as usize
    }

    /// How many positions [`Cache::slot`] has.
    pub(crate) fn slots(&self) -> usize {
        self.geometry.lines() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_until_its_way_is_needed() {
        let geometry = Geometry { slices: 1, sets: 2, ways: 2 };
        let mut cache = Cache::new(geometry, Replacement::Lru, 0);
        assert_eq!(cache.insert(0, 0, 3, true).evicted, None);
        assert_eq!(cache.insert(0, 2, 3, false).evicted, None);
        cache.touch(0, 0);
        let placed = cache.insert(0, 4, 3, false);
        assert_eq!(placed.evicted, Some(Evicted { line: 2, dirty: false }));
        assert_eq!(cache.find(0, 0), Some(0));
        assert!(cache.remove(0, 0));
        assert_eq!(cache.find(0, 0), None);
        assert_eq!(cache.lines().collect::<Vec<_>>(), [(4, 1, false)]);
    }

    #[test]
    fn memory_follows_the_simulated_cache() {
        let footprint = |sets| {
            let geometry = Geometry { slices: 4, sets, ways: 16 };
            Cache::new(geometry, Replacement::Lru, 0).footprint()
        };
        // Except for a line of alignment.
        assert_eq!(footprint(2048) - 64, 2 * (footprint(1024) - 64));
        let lines = 4 * 2048 * 16;
        assert!(footprint(2048) < 8 * lines);
    }
}
