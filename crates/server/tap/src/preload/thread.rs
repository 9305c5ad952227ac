//! The lane of the current thread.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::attached::Attached;
use crate::descriptors::preserve_errno;
use crate::layout::Lane;
use crate::sys;

/// One call in so many has its own cost measured. A prime, so that alternating calls are all
/// sampled.
const SAMPLE_EVERY: u32 = 61;

#[derive(Clone, Copy)]
enum LaneState {
    Unclaimed,
    Lane(&'static Lane),
    /// None was free, or the thread is ending.
    Unavailable,
}

thread_local! {
    static LANE: Cell<LaneState> = const { Cell::new(LaneState::Unclaimed) };
    static UNTIL_SAMPLE: Cell<u32> = const { Cell::new(SAMPLE_EVERY) };
    /// Its drop marks the end of the thread.
    static END: LaneRelease = const { LaneRelease };
}

/// This thread's lane, claimed when it has none.
#[inline]
pub fn lane(attached: Attached) -> Option<&'static Lane> {
    match LANE.get() {
        LaneState::Lane(lane) => Some(lane),
        LaneState::Unclaimed => claim(attached),
        LaneState::Unavailable => None,
    }
}

/// This thread's lane, if it has read or written a connection before.
#[inline]
pub fn claimed_lane() -> Option<&'static Lane> {
    if let LaneState::Lane(lane) = LANE.get() { Some(lane) } else { None }
}

/// Whether the cost of this call is to be measured.
#[inline]
pub fn sample_is_due() -> bool {
    let remaining = UNTIL_SAMPLE.get();
    UNTIL_SAMPLE.set(if remaining == 0 { SAMPLE_EVERY - 1 } else { remaining - 1 });
    remaining == 0
}

#[cold]
fn claim(attached: Attached) -> Option<&'static Lane> {
    preserve_errno(|| {
        for (number, lane) in (1u32..).zip(attached.lanes()) {
            if lane.owned.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
                continue;
            }
            // SAFETY: takes nothing and always succeeds.
            lane.thread.store(unsafe { sys::gettid() } as u32, Relaxed);
            lane.touch();
            attached.header.lanes_used.fetch_max(number, Release);
            LANE.set(LaneState::Lane(lane));
            // Where the thread is already ending the lane stays its own.
            let _ = END.try_with(|_| ());
            return Some(lane);
        }
        attached.header.threads_unwatched.fetch_add(1, Relaxed);
        LANE.set(LaneState::Unavailable);
        None
    })
}

struct LaneRelease;

impl Drop for LaneRelease {
    fn drop(&mut self) {
        if let LaneState::Lane(lane) = LANE.replace(LaneState::Unavailable)
            && Attached::here().is_some()
        {
            lane.owned.store(0, Release);
        }
    }
}
