//! One cache: tags, dirty bits and the order of replacement, laid out for speed.
//!
//! The tags of a set stand side by side as 32-bit words, so that one set of up to 16 ways is one
//! line of the machine that simulates, and a look-up is one comparison of vectors. Nothing is
//! allocated after the cache was made; memory is about six bytes a simulated line.

mod geometry;
mod order;

pub use geometry::{Geometry, LINE, LineNumber, Unbuildable};
pub use order::Replacement;
pub(crate) use order::ways_of;

use order::Order;

/// Ways that one comparison of vectors looks at.
const LANES: usize = 8;
/// The number that no line has: an empty way.
const EMPTY: LineNumber = LineNumber::MAX;

#[derive(Debug, Clone)]
pub struct Cache {
    geometry: Geometry,
    /// Ways rounded up to whole vectors.
    row: usize,
    every_way: u32,
    tags: Vec<LineNumber>,
    states: Vec<State>,
    order: Order,
}

/// What is known of the ways of a set, a bit each; together, as they are asked for together.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    free: u32,
    dirty: u32,
    /// A mark that the owner of the cache may use.
    marked: u32,
}

/// What had to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evicted {
    pub line: LineNumber,
    /// It was changed since it came from memory.
    pub dirty: bool,
}

/// Where a line was put, and what had to go for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    pub way: u32,
    pub evicted: Option<Evicted>,
}

impl Cache {
    /// An empty cache; the geometry is checked.
    pub fn new(geometry: Geometry, replacement: Replacement, seed: u64) -> Cache {
        let row = (geometry.ways as usize).next_multiple_of(LANES);
        let sets = geometry.all_sets();
        Cache {
            geometry,
            row,
            every_way: geometry.every_way(),
            tags: vec![EMPTY; sets * row],
            states: vec![State { free: geometry.every_way(), ..State::default() }; sets],
            order: Order::new(replacement, sets, row, geometry.ways, seed),
        }
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
        self.tags.len() * 4 + self.states.len() * size_of::<State>() + order
    }

    #[inline(always)]
    pub fn set_of(&self, line: LineNumber) -> usize {
        self.geometry.set_of(line)
    }

    /// The ways of a set that hold `tag`: one bit each.
    #[inline(always)]
    pub(crate) fn holding(&self, set: usize, tag: LineNumber) -> u32 {
        let row = &self.tags[set * self.row..][..self.row];
        // Lengths that the compiler knows become a few vector instructions without a loop.
        match row.len() {
            8 => equal::<8>(row, tag),
            16 => equal::<16>(row, tag),
            24 => equal::<24>(row, tag),
            _ => equal::<32>(row, tag),
        }
    }

    /// The way in which a line stands; `set` is its set.
    #[inline(always)]
    pub fn find(&self, set: usize, line: LineNumber) -> Option<u32> {
        let found = self.holding(set, line);
        (found != 0).then(|| found.trailing_zeros())
    }

    /// Whether a way holds a line.
    #[inline(always)]
    pub fn holds(&self, set: usize, way: u32, line: LineNumber) -> bool {
        self.tags[set * self.row + way as usize] == line
    }

    /// Brings what is known of a set near the simulating processor, before it is asked for.
    #[inline(always)]
    pub(crate) fn warm(&self, set: usize) {
        std::hint::black_box(self.states[set].free);
    }

    /// Notes that a line was used.
    #[inline(always)]
    pub fn touch(&mut self, set: usize, way: u32) {
        self.order.touch(set, way, false);
    }

    #[inline(always)]
    pub fn soil(&mut self, set: usize, way: u32) {
        self.states[set].dirty |= 1 << way;
    }

    /// Makes a line clean; says whether it was dirty.
    pub fn wash(&mut self, set: usize, way: u32) -> bool {
        let dirty = self.is_dirty(set, way);
        self.states[set].dirty &= !(1 << way);
        dirty
    }

    /// Sets or takes the mark of a way; a line comes in without.
    #[inline(always)]
    pub fn mark(&mut self, set: usize, way: u32, marked: bool) {
        let state = &mut self.states[set];
        state.marked = (state.marked & !(1 << way)) | (u32::from(marked) << way);
    }

    #[inline(always)]
    pub fn is_marked(&self, set: usize, way: u32) -> bool {
        self.states[set].marked >> way & 1 == 1
    }

    #[inline(always)]
    pub fn is_dirty(&self, set: usize, way: u32) -> bool {
        self.states[set].dirty >> way & 1 == 1
    }

    /// Puts a line that is not there into one of the ways of `mask`: a free one if there is one.
    #[inline(always)]
    pub fn insert(&mut self, set: usize, line: LineNumber, mask: u32, dirty: bool) -> Placed {
        debug_assert!(self.find(set, line).is_none(), "line {line} is there already");
        debug_assert!(mask & self.every_way != 0, "no way is allowed");
        let mask = mask & self.every_way;
        let free = self.states[set].free & mask;
        let (way, evicted) = match free {
            0 => {
                let way = self.order.victim(set, mask);
                let line = self.tags[set * self.row + way as usize];
                (way, Some(Evicted { line, dirty: self.is_dirty(set, way) }))
            }
            _ => (free.trailing_zeros(), None),
        };
        self.tags[set * self.row + way as usize] = line;
        let state = &mut self.states[set];
        state.free &= !(1 << way);
        state.marked &= !(1 << way);
        state.dirty = (state.dirty & !(1 << way)) | (u32::from(dirty) << way);
        self.order.touch(set, way, true);
        Placed { way, evicted }
    }

    /// Takes a line out; says whether it was dirty.
    #[inline(always)]
    pub fn remove(&mut self, set: usize, way: u32) -> bool {
        let dirty = self.is_dirty(set, way);
        self.tags[set * self.row + way as usize] = EMPTY;
        let state = &mut self.states[set];
        state.free |= 1 << way;
        state.dirty &= !(1 << way);
        state.marked &= !(1 << way);
        dirty
    }

    /// Every line that is there, with the way in which it stands and whether it is dirty.
    pub fn lines(&self) -> impl Iterator<Item = (LineNumber, u32, bool)> {
        self.tags.chunks(self.row).zip(&self.states).flat_map(|(row, state)| {
            row.iter()
                .enumerate()
                .filter(|(_, tag)| **tag != EMPTY)
                .map(move |(way, tag)| (*tag, way as u32, state.dirty >> way & 1 == 1))
        })
    }

    /// Position of a way in tables that are kept beside the tags.
    #[inline(always)]
    pub(crate) fn slot(&self, set: usize, way: u32) -> usize {
        set * self.row + way as usize
    }

    /// How many positions [`Cache::slot`] has.
    pub(crate) fn slots(&self) -> usize {
        self.tags.len()
    }
}

/// A bit for each of the first `N` tags that is `tag`; none where there are not as many.
#[inline(always)]
fn equal<const N: usize>(tags: &[LineNumber], tag: LineNumber) -> u32 {
    let Some(tags) = tags.first_chunk::<N>() else { return 0 };
    let mut bits = [0_u32; N];
    for (i, bit) in bits.iter_mut().enumerate() {
        *bit = u32::from(tags[i] == tag) << i;
    }
    bits.iter().fold(0, |all, bit| all | bit)
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
        assert_eq!(footprint(2048), 2 * footprint(1024));
        let lines = 4 * 2048 * 16;
        assert!(footprint(2048) < 7 * lines);
    }
}
