//! The segments that are preallocated, and the requests for them.

use std::sync::Arc;

use crate::schedule::Mutex;
use crate::schedule::atomic::{AtomicBool, Ordering};
use crate::stream::Stream;
use crate::value_log::Segment;

/// One for each stream that has asked for a segment.
#[derive(Default)]
pub(crate) struct PreallocatedSegments {
    main: Mutex<PreallocatedSegment>,
    hot: Mutex<PreallocatedSegment>,
    pub(crate) is_wanted: AtomicBool,
}

/// Locked while one is created, so that a stream takes segments in the order of their numbers.
#[derive(Default)]
pub(crate) struct PreallocatedSegment {
    pub(crate) segment: Option<Arc<Segment>>,
    pub(crate) is_wanted: bool,
}

impl PreallocatedSegments {
    pub(crate) fn of(&self, stream: Stream) -> &Mutex<PreallocatedSegment> {
        debug_assert_ne!(stream, Stream::Copies);
        if stream == Stream::Hot { &self.hot } else { &self.main }
    }

    /// Whether `Engine::preallocate_segments` should be called; true once per request.
    #[inline]
    pub(crate) fn take_request(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed) && self.is_wanted.swap(false, Ordering::Relaxed)
    }
}
