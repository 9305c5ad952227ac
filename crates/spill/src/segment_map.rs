//! The segments of a version, by number.

use std::sync::Arc;

use crate::value_log::Segment;

/// Numbers only grow, and cold data stays in its first segment, so an array indexed by number would
/// grow for ever. This open-addressing table costs a scan less than the standard library's hash
/// map.
#[derive(Clone)]
pub(crate) struct SegmentMap {
    /// In the order of their numbers.
    all: Vec<Arc<Segment>>,
    /// Index in `all` plus one, at the slot of the number's hash or soon after it; 0 is empty. The
    /// length is a power of two, at least twice the number of segments.
    slots: Vec<u32>,
    /// Hash bits dropped to get a slot.
    shift: u32,
}

impl Default for SegmentMap {
    fn default() -> Self {
        SegmentMap { all: Vec::new(), slots: vec![0; 16], shift: u64::BITS - 4 }
    }
}

impl SegmentMap {
    /// The slot where the probe for a number starts.
    #[inline]
    fn home_slot(&self, id: u32) -> usize {
        // Fibonacci hashing spreads consecutive numbers.
        (u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&Arc<Segment>> {
        let mut slot = self.home_slot(id);
        loop {
            // Empty wraps around to an index out of range.
            let segment = self.all.get((*self.slots.get(slot)? as usize).wrapping_sub(1))?;
            if segment.id == id {
                return Some(segment);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Segment>> {
        self.all.iter()
    }

    /// The map with another segment, whose number is the highest.
    pub(crate) fn with(&self, segment: Arc<Segment>) -> SegmentMap {
        let mut segments = self.clone();
        segments.push(segment);
        segments
    }

    /// The map of the segments for which `stays` is true.
    pub(crate) fn filtered(&self, stays: impl Fn(&Segment) -> bool) -> SegmentMap {
        self.iter().filter(|segment| stays(segment)).cloned().collect()
    }

    fn push(&mut self, segment: Arc<Segment>) {
        debug_assert!(self.all.last().is_none_or(|last| last.id < segment.id));
        self.all.push(segment);
        let mut from = self.all.len() - 1;
        if self.slots.len() < 2 * self.all.len() {
            self.slots = vec![0; 2 * self.slots.len()];
            self.shift -= 1;
            from = 0;
        }
        for index in from..self.all.len() {
            let mask = self.slots.len() - 1;
            let mut slot = self.home_slot(self.all[index].id);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = index as u32 + 1;
        }
    }
}

impl FromIterator<Arc<Segment>> for SegmentMap {
    /// From segments in the order of their numbers.
    fn from_iter<I: IntoIterator<Item = Arc<Segment>>>(all: I) -> SegmentMap {
        let mut segments = SegmentMap::default();
        all.into_iter().for_each(|segment| segments.push(segment));
        segments
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::sync::Arc;

    use crate::locks::lock;
    use crate::value_pointer::MAX_SEGMENTS;
    use crate::{Error, Options, Store};

    const VALUE: [u8; 10_000] = [7; 10_000];

    /// Cold data stays in one of the first segments, however many follow.
    #[test]
    fn sparse_segment_numbers_use_little_memory_up_to_the_limit() {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, segment: 64 << 10, ..Options::default() };
        let store = Store::open(home.path(), options.clone()).unwrap();
        let table = store.table("t").unwrap();
        table.put(b"old", b"first").unwrap();
        // As if nearly all numbers had been used.
        *lock(&store.engine().next_segment) = MAX_SEGMENTS - 20;
        let mut number = 0_u32;
        let last = loop {
            match table.put(&number.to_be_bytes(), &VALUE) {
                Ok(()) => number += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(last, Error::TooManySegments { limit: MAX_SEGMENTS }), "{last}");
        let check = |store: &Store| {
            let table = store.table("t").unwrap();
            assert_eq!(table.get(b"old").unwrap().unwrap(), b"first");
            assert_eq!(table.range(..).pairs().count(), 1 + number as usize);
            let version = store.engine().version.load();
            let segments = &version.segments;
            assert_eq!(segments.iter().next().unwrap().id, 1);
            assert!(segments.iter().next_back().unwrap().id >= MAX_SEGMENTS - 1);
            assert!(segments.iter().all(|one| Arc::ptr_eq(segments.get(one.id).unwrap(), one)));
            assert!(
                [0, 1000, MAX_SEGMENTS / 2, u32::MAX].iter().all(|&id| segments.get(id).is_none())
            );
            assert!(segments.slots.len() < 100);
        };
        check(&store);
        drop((table, store));
        let again = Store::open(home.path(), options.clone()).err();
        assert!(matches!(again, Some(Error::TooManySegments { .. })), "{again:?}");
        let alone = Options { read_only: true, ..options };
        check(&Store::open(home.path(), alone).unwrap());
    }
}
