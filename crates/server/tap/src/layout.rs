//! The file of shared memory: one [`Header`], then [`LANES`] times a [`Lane`].
//!
//! A lane belongs to one thread of the server at a time, which alone writes
//! it, with plain relaxed stores; everyone may read at any time. All counters
//! only grow.

// Half of it is used by the preloaded library, the other half by the reader.
#![allow(dead_code)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The first eight bytes of the file, written last by its creator.
pub const MAGIC: u64 = u64::from_le_bytes(*b"kvm-tap\n");

/// Changes with every incompatible change of this module.
pub const VERSION: u32 = 1;

/// The most server threads of one file.
pub const LANES: usize = 256;

/// Buckets a power of two is divided into: a bucket is at most 1/128 (0.78 %)
/// of its value wide, its middle at most 0.4 % off. Three digits (1/1024) would
/// spread the latencies of one server over some 40 KiB instead of 5 KiB and
/// push the server's data out of its L1 cache.
pub const SUB_BUCKETS: usize = 1 << SUB_BITS;
const SUB_BITS: u32 = 7;

/// Values up to 2^37 ns (137 s); the last bucket takes what is longer.
pub const BUCKETS: usize = 31 * SUB_BUCKETS;

const COUNTERS: usize = 127;

/// The size of the whole file in bytes. It is sparse: a lane that no thread
/// claimed takes no memory.
pub const FILE_BYTES: usize = size_of::<Header>() + LANES * size_of::<Lane>();

const _: () = assert!(size_of::<Header>() == 4096 && size_of::<Lane>() == 32768);

/// The clock of the preloaded library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ClockKind {
    /// The processor's time stamp counter, where it runs at a constant rate.
    Tsc = 1,
    /// Arm's generic timer.
    Cntvct = 2,
    /// `clock_gettime(CLOCK_MONOTONIC)`.
    Monotonic = 3,
}

impl ClockKind {
    /// The kind of a number in the file, if valid.
    pub fn from_number(number: u32) -> Option<ClockKind> {
        [ClockKind::Tsc, ClockKind::Cntvct, ClockKind::Monotonic]
            .into_iter()
            .find(|kind| *kind as u32 == number)
    }
}

/// The first page of the file.
#[repr(C, align(4096))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// The newest process that attached itself; 0: none did.
    pub pid: AtomicU32,
    /// A [`ClockKind`]; 0 while none attached.
    pub clock: AtomicU32,
    /// Lanes claimed so far: the first so many are worth reading.
    pub lanes_used: AtomicU32,
    /// Ticks of the clock a second, as calibrated at the start.
    pub ticks_per_s: AtomicU64,
    /// Threads without a free lane, which are not watched.
    pub threads_unwatched: AtomicU64,
    /// Connections whose descriptor is too large a number to be watched.
    pub connections_unwatched: AtomicU64,
}

/// The counters of a lane. Counters that one request updates are adjacent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Counter {
    /// Calls that read at least a byte from a connection.
    Reads,
    /// Bytes of these reads.
    BytesIn,
    /// Whole requests that arrived.
    Requests,
    /// Reads that completed at least one request with an answer.
    Batches,
    /// Calls that wrote at least a byte to a connection.
    Writes,
    /// Bytes of these writes.
    BytesOut,
    /// Sum of all recorded intervals, ns.
    SumNs,
    /// Intervals recorded (equals the sum over the buckets).
    Answered,
    /// Returns of `epoll_wait` with events.
    WakeUps,
    /// Events of these returns.
    Events,
    /// Reads and writes without data (`EAGAIN`, end, error).
    EmptyCalls,
    /// Calls whose own cost was sampled.
    Sampled,
    /// The library's own time in the sampled calls, ns.
    SampledOwnNs,
    /// Writes whose duration was sampled.
    SampledWrites,
    /// The duration of the sampled writes themselves, ns.
    SampledWriteNs,
    /// Requests without answers (noreply, quiet): not timed.
    Quiet,
    /// Requests that were answered before their last byte came: not timed.
    Early,
    /// Intervals of connections with an unknown protocol: one a batch, contained in `Answered`.
    Opaque,
    /// Connections with an unknown protocol.
    OpaqueConnections,
    /// Connections from which something was read.
    Connections,
    /// Connections that became a stream of messages (subscriber, replica,
    /// monitor): not timed from then on.
    Streams,
    /// Answers that no request was waiting for.
    Unsolicited,
    /// Batches merged into the one before, because too many were waiting: their intervals are too
    /// long.
    Merged,
    /// Intervals that were negative (clocks of two CPUs apart), taken as 0.
    Backwards,
    /// Intervals beyond the last bucket.
    Beyond,
}

/// One thread's counters and buckets.
#[repr(C, align(4096))]
pub struct Lane {
    /// 1 while a thread owns it.
    pub owned: AtomicU32,
    /// The newest owner's thread number.
    pub thread: AtomicU32,
    counters: [AtomicU64; COUNTERS],
    buckets: [AtomicU64; BUCKETS],
}

impl Lane {
    /// The value of `counter`.
    #[inline]
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).map_or(0, |cell| cell.load(Relaxed))
    }

    /// The count of bucket `index`; 0 for one that does not exist.
    pub fn bucket(&self, index: usize) -> u64 {
        self.buckets.get(index).map_or(0, |cell| cell.load(Relaxed))
    }

    /// Adds `by`; only the lane's owner may.
    #[inline]
    pub fn add(&self, counter: Counter, by: u64) {
        if let Some(cell) = self.counters.get(counter as usize) {
            grow(cell, by);
        }
    }

    /// Records `count` intervals of `ns`; only the lane's owner may.
    #[inline]
    pub fn record(&self, ns: u64, count: u64) {
        let index = bucket_of(ns);
        if let Some(cell) = self.buckets.get(index) {
            grow(cell, count);
        } else {
            self.add(Counter::Beyond, count);
            if let Some(last) = self.buckets.last() {
                grow(last, count);
            }
        }
        self.add(Counter::SumNs, ns.wrapping_mul(count));
        self.add(Counter::Answered, count);
    }

    /// Writes to every page of the lane, so that no request pays for the
    /// first touch; only the lane's owner may.
    pub fn touch(&self) {
        for cell in self.buckets.iter().step_by(256).chain(self.buckets.last()) {
            grow(cell, 0);
        }
    }
}

#[inline]
fn grow(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

/// The bucket that `ns` belongs to; [`BUCKETS`] or more when it is too long.
#[inline]
pub fn bucket_of(ns: u64) -> usize {
    // Below 256 each value has a bucket; above, each power of two has 128.
    let shift = (u64::BITS - SUB_BITS - 1).saturating_sub(ns.leading_zeros());
    shift as usize * SUB_BUCKETS + (ns >> shift) as usize
}

/// The middle of bucket `index`, ns.
pub fn bucket_value(index: usize) -> u64 {
    if index < 2 * SUB_BUCKETS {
        return index as u64;
    }
    let shift = index / SUB_BUCKETS - 1;
    let lowest = ((index % SUB_BUCKETS + SUB_BUCKETS) as u64) << shift;
    lowest + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous() {
        for index in 0..BUCKETS {
            assert_eq!(bucket_of(bucket_value(index)), index);
        }
        assert_eq!(bucket_of((1 << 37) - 1), BUCKETS - 1);
        assert_eq!(bucket_of(1 << 37), BUCKETS);
    }

    #[test]
    fn bucket_middle_is_within_0_4_percent() {
        let mut ns = 1u64;
        while ns < 1 << 37 {
            let off = bucket_value(bucket_of(ns)).abs_diff(ns) as f64 / ns as f64;
            assert!(off <= 1.0 / 256.0, "{ns} ns: {off}");
            ns = ns * 1001 / 1000 + 1;
        }
    }
}
