//! The segments of a version, by their numbers.

use std::sync::Arc;

use crate::value_log::Segment;

/// Numbers grow as long as a store lives, and what is never replaced stays where it was written first: a
/// table with a place for each number between would grow with them. (A scan took 4.6 % more instructions
/// with a hash map of the standard library's and a fast hash than with that, and 1.3 with these places.)
#[derive(Clone)]
pub(crate) struct SegmentMap {
    /// In the order of their numbers.
    all: Vec<Arc<Segment>>,
    /// Where a number is in `all`, plus one: at the place of its hash, or soon behind it. 0: nothing is
    /// here. A power of two of them, at least twice as many as there are segments.
    slots: Vec<u32>,
    /// Of a hash, so many bits are left out to have a place.
    shift: u32,
}

impl Default for SegmentMap {
    fn default() -> Self {
        SegmentMap { all: Vec::new(), slots: vec![0; 16], shift: u64::BITS - 4 }
    }
}

impl SegmentMap {
    /// Where the place of a number is looked for first.
    #[inline]
    fn home_slot(&self, id: u32) -> usize {
        // By Fibonacci, so that numbers which follow one another are apart.
        (u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&Arc<Segment>> {
        let mut slot = self.home_slot(id);
        loop {
            // Nothing is what is before the first.
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

    /// The set with another segment, whose number is above all that were.
    pub(crate) fn with(&self, segment: Arc<Segment>) -> SegmentMap {
        let mut segments = self.clone();
        segments.push(segment);
        segments
    }

    /// The set of those for which `stays` is true.
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

    use crate::engine::lock;
    use crate::value_pointer::MAX_SEGMENTS;
    use crate::{Error, Options, Store};

    const VALUE: [u8; 10_000] = [7; 10_000];

    /// What is never replaced stays in one of the first segments, however many there have been since.
    #[test]
    fn sparse_segment_numbers_use_little_memory_up_to_the_limit() {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, segment: 64 << 10, ..Options::default() };
        let store = Store::open(home.path(), options.clone()).unwrap();
        let table = store.table("t").unwrap();
        table.put(b"old", b"first").unwrap();
        // As if so many had been made and collected since.
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
