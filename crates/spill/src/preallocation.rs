//! Segments preallocated for writers: creating a file sometimes waits for the file system's
//! journal, and no writer should.

use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Result;
use crate::locks::lock;
use crate::schedule::atomic::Ordering;
use crate::stream::Stream;
use crate::value_log::Segment;

impl Engine {
    /// The next segment of a writers' stream, preallocated if possible.
    pub(crate) fn take_segment(&self, stream: Stream) -> Result<Arc<Segment>> {
        let mut slot = lock(self.preallocated.of(stream));
        slot.is_wanted = true;
        self.preallocated.is_wanted.store(true, Ordering::Relaxed);
        match slot.segment.take() {
            Some(segment) => Ok(segment),
            None => self.create_segment(stream, 0),
        }
    }

    /// Preallocates the requested segments. After a failure the writer that needs the segment
    /// creates it and reports the error.
    pub(crate) fn preallocate_segments(&self) {
        for stream in Stream::WRITTEN {
            let mut slot = lock(self.preallocated.of(stream));
            if std::mem::take(&mut slot.is_wanted) && slot.segment.is_none() {
                slot.segment = self.create_segment(stream, 0).ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Store};

    #[test]
    fn segments_of_a_stream_are_taken_in_order() {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, segment: 64 << 10, ..Options::default() };
        let store = Store::open(home.path(), options.clone()).unwrap();
        let engine = store.engine();
        let numbers =
            || engine.version.load().segments.iter().map(|one| one.id).collect::<Vec<_>>();
        engine.preallocate_segments();
        assert!(!engine.preallocated.take_request());
        let before = numbers();
        let first = engine.take_segment(Stream::Main).unwrap().id;
        assert!(engine.preallocated.take_request() && !engine.preallocated.take_request());
        engine.preallocate_segments();
        engine.preallocate_segments();
        assert_eq!(numbers(), [before, vec![first, first + 1]].concat());
        assert_eq!(engine.take_segment(Stream::Hot).unwrap().id, first + 2);
        assert_eq!(engine.take_segment(Stream::Main).unwrap().id, first + 1, "was ready");
        assert_eq!(engine.take_segment(Stream::Main).unwrap().id, first + 3);
    }

    #[test]
    fn unused_preallocated_segments_are_removed_at_reopening() {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, segment: 64 << 10, ..Options::default() };
        let store = Store::open(home.path(), options.clone()).unwrap();
        let table = store.table("t").unwrap();
        for number in 0..100_u32 {
            table.put(&number.to_be_bytes(), &[7; 1000]).unwrap();
        }
        let slot = lock(store.engine().preallocated.of(Stream::Main)).segment.clone().unwrap();
        let path = slot.path().to_owned();
        assert!(path.exists());
        drop((slot, table, store));
        let store = Store::open(home.path(), options).unwrap();
        assert!(!path.exists());
        let table = store.table("t").unwrap();
        assert!((0..100_u32).all(|number| table.get(&number.to_be_bytes()).unwrap().is_some()));
    }
}
