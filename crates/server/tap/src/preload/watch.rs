//! The work around each call: times are taken as close to the server's code as possible, so that
//! this library's work is outside of the intervals.

#![allow(unsafe_code)]

use crate::attached::Attached;
use crate::connection::{Connection, IntervalRecorder};
use crate::layout::{Counter, Lane};
use crate::sys::{Iovec, Message, c_int};
use crate::{descriptors, thread};

/// The first `bytes` of a list of segments.
pub struct Pieces {
    next: *const Iovec,
    segments: usize,
    bytes: usize,
}

impl Pieces {
    /// # Safety
    /// `list` must be valid for `segments` segments and their first `bytes`
    /// bytes for reading, as long as the pieces are used.
    unsafe fn new(list: *const Iovec, segments: usize, bytes: usize) -> Pieces {
        Pieces { next: list, segments, bytes }
    }
}

impl Iterator for Pieces {
    type Item = &'static [u8];

    #[inline]
    fn next(&mut self) -> Option<&'static [u8]> {
        if self.segments == 0 || self.bytes == 0 {
            return None;
        }
        // SAFETY: what `new` was promised. The lifetime is the call's: the
        // pieces are used up within it.
        unsafe {
            let segment = *self.next;
            self.next = self.next.add(1);
            self.segments -= 1;
            let length = segment.bytes.min(self.bytes);
            self.bytes -= length;
            if length == 0 {
                return Some(&[]);
            }
            Some(std::slice::from_raw_parts(segment.base.cast(), length))
        }
    }
}

/// The segments of a message.
///
/// # Safety
/// `message` must be null or valid.
pub unsafe fn segments_of(message: *const Message) -> (*const Iovec, usize) {
    if message.is_null() {
        return (std::ptr::null(), 0);
    }
    // SAFETY: the caller's promise.
    unsafe { ((*message).segments, (*message).segment_count) }
}

/// The time, if the cost of this call is to be measured.
#[inline]
fn sample(attached: Attached) -> Option<u64> {
    thread::sample_is_due().then(|| attached.clock.now())
}

/// A read of `fd` returned `moved`.
///
/// # Safety
/// If `moved` is positive, `list` must be valid for `segments` segments that
/// hold so many bytes.
#[inline]
pub unsafe fn read_returned(fd: c_int, moved: isize, list: *const Iovec, segments: usize) {
    let Some(attached) = Attached::here() else { return };
    let entered = sample(attached);
    let Some(connection) = descriptors::connection(attached, fd) else { return };
    let Some(lane) = thread::lane(attached) else { return };
    let Some(bytes) = usize::try_from(moved).ok().filter(|bytes| *bytes > 0) else {
        return lane.add(Counter::EmptyCalls, 1);
    };
    lane.add(Counter::Reads, 1);
    lane.add(Counter::BytesIn, bytes as u64);
    // SAFETY: the caller's promise; used up in this call.
    let pieces = unsafe { Pieces::new(list, segments, bytes) };
    let ended = connection.received(lane, pieces, || attached.clock.now());
    if let Some(entered) = entered {
        lane.add(Counter::Sampled, 1);
        lane.add(Counter::SampledOwnNs, attached.clock.ns(ended.saturating_sub(entered)));
    }
}

/// A write to a watched connection, from just before the call.
pub struct Writing {
    attached: Attached,
    connection: &'static Connection,
    lane: &'static Lane,
    /// When our own work began, if its cost is measured.
    sampled: Option<u64>,
    began: u64,
}

/// A write to `fd` is about to be made.
#[inline]
pub fn write_begins(fd: c_int) -> Option<Writing> {
    let attached = Attached::here()?;
    let sampled = sample(attached);
    let connection = descriptors::connection(attached, fd)?;
    let lane = thread::lane(attached)?;
    Some(Writing { attached, connection, lane, sampled, began: attached.clock.now() })
}

impl Writing {
    /// The write returned `moved`.
    ///
    /// # Safety
    /// As for [`read_returned`].
    #[inline]
    pub unsafe fn returned(self, moved: isize, list: *const Iovec, segments: usize) {
        let Writing { attached, connection, lane, sampled, began } = self;
        let returned = sampled.map(|_| attached.clock.now());
        if let Some(bytes) = usize::try_from(moved).ok().filter(|bytes| *bytes > 0) {
            lane.add(Counter::Writes, 1);
            lane.add(Counter::BytesOut, bytes as u64);
            // SAFETY: the caller's promise; used up in this call.
            let pieces = unsafe { Pieces::new(list, segments, bytes) };
            let counting = IntervalRecorder { lane, ns: |ticks| attached.clock.ns(ticks) };
            connection.sent(&counting, pieces, began);
        } else {
            lane.add(Counter::EmptyCalls, 1);
        }
        if let (Some(entered), Some(returned)) = (sampled, returned) {
            let own = began.saturating_sub(entered) + attached.clock.now().saturating_sub(returned);
            lane.add(Counter::Sampled, 1);
            lane.add(Counter::SampledOwnNs, attached.clock.ns(own));
            lane.add(Counter::SampledWrites, 1);
            let call = returned.saturating_sub(began);
            lane.add(Counter::SampledWriteNs, attached.clock.ns(call));
        }
    }
}

/// A wait for events returned so many.
#[inline]
pub fn woke_up(events: c_int) {
    if events > 0
        && Attached::here().is_some()
        && let Some(lane) = thread::claimed_lane()
    {
        lane.add(Counter::WakeUps, 1);
        lane.add(Counter::Events, events as u64);
    }
}
