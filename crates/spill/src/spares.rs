//! Segments for writers, made ahead: to make a file waits for the file system's journal now and then,
//! and no writer should.

use std::sync::Arc;

use crate::error::Result;
use crate::inner::{Inner, lock};
use crate::log::Segment;
use crate::schedule::Mutex;
use crate::schedule::atomic::{AtomicBool, Ordering};
use crate::stream::Stream;

/// One for each stream that has asked for a segment before.
#[derive(Default)]
pub(crate) struct Spares {
    main: Mutex<Spare>,
    hot: Mutex<Spare>,
    is_wanted: AtomicBool,
}

/// Locked while one is made, so that those of a stream are taken in the order of their numbers.
#[derive(Default)]
struct Spare {
    segment: Option<Arc<Segment>>,
    is_wanted: bool,
}

impl Spares {
    fn of(&self, stream: Stream) -> &Mutex<Spare> {
        debug_assert_ne!(stream, Stream::Copies);
        if stream == Stream::Hot { &self.hot } else { &self.main }
    }

    /// Whether [`Inner::make_spares`] is to be called, which is said once.
    #[inline]
    pub(crate) fn asks(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed) && self.is_wanted.swap(false, Ordering::Relaxed)
    }
}

impl Inner {
    /// The next segment of a stream that writers write: the one that was made ahead, if there is one.
    pub(crate) fn take_segment(&self, stream: Stream) -> Result<Arc<Segment>> {
        let mut spare = lock(self.spares.of(stream));
        spare.is_wanted = true;
        self.spares.is_wanted.store(true, Ordering::Relaxed);
        match spare.segment.take() {
            Some(segment) => Ok(segment),
            None => self.make_segment(stream, 0),
        }
    }

    /// Makes those that are wanted. One that cannot be made is made by the writer that needs it, who
    /// says what is wrong.
    pub(crate) fn make_spares(&self) {
        for stream in Stream::WRITTEN {
            let mut spare = lock(self.spares.of(stream));
            if std::mem::take(&mut spare.is_wanted) && spare.segment.is_none() {
                spare.segment = self.make_segment(stream, 0).ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Store};

    #[test]
    fn segments_of_a_stream_are_taken_in_order_whether_or_not_they_were_ready() {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, segment: 64 << 10, ..Options::default() };
        let store = Store::open(home.path(), options.clone()).unwrap();
        let inner = store.inner();
        let numbers = || inner.version.load().segments.iter().map(|one| one.id).collect::<Vec<_>>();
        inner.make_spares();
        assert!(!inner.spares.asks());
        let before = numbers();
        let first = inner.take_segment(Stream::Main).unwrap().id;
        assert!(inner.spares.asks() && !inner.spares.asks());
        inner.make_spares();
        inner.make_spares();
        assert_eq!(numbers(), [before, vec![first, first + 1]].concat());
        assert_eq!(inner.take_segment(Stream::Hot).unwrap().id, first + 2);
        assert_eq!(inner.take_segment(Stream::Main).unwrap().id, first + 1, "was ready");
        assert_eq!(inner.take_segment(Stream::Main).unwrap().id, first + 3);
    }

    #[test]
    fn what_was_ready_and_not_needed_goes_with_the_next_opening() {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, segment: 64 << 10, ..Options::default() };
        let store = Store::open(home.path(), options.clone()).unwrap();
        let table = store.table("t").unwrap();
        for number in 0..100_u32 {
            table.put(&number.to_be_bytes(), &[7; 1000]).unwrap();
        }
        let spare = lock(&store.inner().spares.main).segment.clone().unwrap();
        let path = spare.path().to_owned();
        assert!(path.exists());
        drop((spare, table, store));
        let store = Store::open(home.path(), options).unwrap();
        assert!(!path.exists());
        let table = store.table("t").unwrap();
        assert!((0..100_u32).all(|number| table.get(&number.to_be_bytes()).unwrap().is_some()));
    }
}
