use std::time::Duration;

use crate::error::{Error, Result};
use crate::value_pointer::MAX_SEGMENT_LEN;

/// The longest key, in bytes.
pub const MAX_KEY_LEN: usize = 1024;

/// The smallest segment: a few records of the longest key.
pub(crate) const MIN_SEGMENT_LEN: usize = 64 << 10;

/// An L0 has one block at least.
const MIN_MEMORY: usize = 16 << 10;
/// More than machines have: a number that was meant for something else.
const MAX_MEMORY: usize = 1 << 40;

/// By then nothing is collected for a long time, and sums of it stay finite.
const MAX_SPACE_AMPLIFICATION: f64 = 1e6;

/// Long writes wait up to 32 times that; none should take longer than a few seconds.
const MAX_THROTTLE: Duration = Duration::from_millis(100);

/// With more hardly a key less would be taken for another: each sets eight bits, however many there are.
const MAX_BLOOM_BITS: u32 = 32;

/// How a store behaves. What is on the disk does not depend on them: they may be others at each
/// opening.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Make the directory, and a store in it, if there is none. Default: true.
    pub create: bool,
    /// Nothing on the disk changes: what was not recovered yet is recovered in memory, and writes
    /// answer [`Error::ReadOnly`](crate::Error::ReadOnly). Works where nothing can be written, on a
    /// full device too; several processes may read at once while none writes. `create`, `segment`,
    /// `background` and `durability` do not matter then. Default: false.
    pub read_only: bool,
    /// Bytes of the in-memory index (L0) at which it is frozen and merged into the levels. Up to
    /// [`Options::frozen`] frozen ones wait beside the one that is filled. The L0s of all tables
    /// count together. From 16 KiB to 1 TiB; default: 32 MiB.
    pub memory: usize,
    /// How many frozen L0s may wait for their merge before writers are slowed down. At least 1;
    /// default: 2.
    pub frozen: usize,
    /// Bytes of a segment of the log; also the limit of a value, which has at most 1,194 less, and
    /// of a batch, whose records have at most 152 less. A multiple of 4,096 from 64 KiB to 512 MiB;
    /// default: 16 MiB.
    pub segment: usize,
    /// What an acknowledged write survives. Default: [`Durability::None`].
    pub durability: Durability,
    /// How records are read that are not in the page cache. Default: [`ColdReads::Auto`].
    pub cold_reads: ColdReads,
    /// Whether what is written to the log stays in the page cache. Default: [`CachedWrites::Auto`].
    pub cached_writes: CachedWrites,
    /// Check each record that is read against its checksum. Index pages that are first read, and
    /// all that [`Store::scrub`](crate::Store::scrub) reads, are checked in any case. Default:
    /// true.
    pub verify: bool,
    /// Segments are collected so that the log stays below this many times its live bytes. From 1.1
    /// to 1,000,000; default: 1.5.
    pub space_amplification: f64,
    /// How many times larger each level may be than the one above it. At least 2; default: 8.
    pub growth: u64,
    /// Bits for each key of the filters of all levels but the last, which save most reads the way
    /// through levels that do not have their key. 0: none are made, and those that levels have go
    /// with the next merge. At most 32; default: 0.
    pub bloom_bits: u32,
    /// Merge and collect in threads of its own. False: in the write that makes it due. Default:
    /// true.
    pub background: bool,
    /// The most that a write of up to 4 KiB is slowed down when merging or collecting falls behind; a
    /// longer one for each 4 KiB, 32 times at most, a batch for each of its writes, and none longer than
    /// a second at once. Waits of a thread may be added up to 0.3 ms, which
    /// a later write of it waits, or a read where it mostly reads. Up to 0.02 ms of spun waits are left
    /// to the next read of any thread that wrote. At most 100 ms; 0: no write is slowed down so.
    /// Default: 1 ms.
    pub throttle: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            create: true,
            read_only: false,
            memory: 32 << 20,
            frozen: 2,
            segment: 16 << 20,
            durability: Durability::None,
            cold_reads: ColdReads::Auto,
            cached_writes: CachedWrites::Auto,
            verify: true,
            space_amplification: 1.5,
            growth: 8,
            bloom_bits: 0,
            background: true,
            throttle: Duration::from_millis(1),
        }
    }
}

/// What an acknowledged write survives. Every mode survives a kill of the process, and recovers
/// to a state that the store once had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A loss of power may take what was not yet synced by `sync`, `flush`, a merge, a collection
    /// or closing.
    None,
    /// A loss of power takes at most so much time of writes, and the duration of one sync. Longer
    /// than 0. Without [`Options::background`] the first write after that time syncs, and nothing
    /// before there is one.
    Interval(Duration),
    /// Nothing acknowledged is lost: a write returns when it is on the device. Writers that wait
    /// share a sync.
    Sync,
}

/// How records are read that are not in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColdReads {
    /// `Around` if the log fits into half of the memory that is available, else `Page`; looked at
    /// when the store is opened and at each merge.
    Auto,
    /// 64 KiB around the record are brought into memory at its first read: a working set that
    /// fits is warm soon, with few and large reads.
    Around,
    /// Only the pages of the record are read: for data much larger than memory.
    Page,
}

/// Whether what is written to the log stays in the page cache. Where the file system can only
/// write through it, it does; and so does a record that goes to its segment by itself: one of more
/// than 64 KiB or an eighth of a segment, and each with [`Durability::Sync`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachedWrites {
    /// While records are read: so what was just written is in memory, and a load takes none of it.
    Auto,
    /// Whether records are read or not.
    Always,
    /// It goes past it (direct I/O), whether records are read or not.
    Never,
}

impl Options {
    /// Whether the options make sense; opening a store asks this too.
    ///
    /// # Errors
    /// [`Error::Option`] names a field that is out of its range.
    pub fn check(&self) -> Result<()> {
        let invalid = |name, what: String| Err(Error::Option { name, what });
        if !(MIN_SEGMENT_LEN..=MAX_SEGMENT_LEN).contains(&self.segment)
            || !self.segment.is_multiple_of(4096)
        {
            let what = format!(
                "{} is not a multiple of 4096 from {MIN_SEGMENT_LEN} to {MAX_SEGMENT_LEN}",
                self.segment
            );
            return invalid("segment", what);
        }
        if !(MIN_MEMORY..=MAX_MEMORY).contains(&self.memory) {
            return invalid("memory", format!("{} is not from 16 KiB to 1 TiB", self.memory));
        }
        if self.frozen == 0 {
            return invalid("frozen", "0 leaves no room for one that is merged".to_owned());
        }
        if self.growth < 2 {
            return invalid("growth", format!("{} is less than 2", self.growth));
        }
        if self.bloom_bits > MAX_BLOOM_BITS {
            let what =
                format!("{} bits for each key are more than {MAX_BLOOM_BITS}", self.bloom_bits);
            return invalid("bloom_bits", what);
        }
        if !(1.1..=MAX_SPACE_AMPLIFICATION).contains(&self.space_amplification) {
            let what = format!(
                "{} is not from 1.1 to {MAX_SPACE_AMPLIFICATION}",
                self.space_amplification
            );
            return invalid("space_amplification", what);
        }
        if self.throttle > MAX_THROTTLE {
            let what = format!("{:?} is more than {MAX_THROTTLE:?}", self.throttle);
            return invalid("throttle", what);
        }
        if self.durability == Durability::Interval(Duration::ZERO) {
            return invalid("durability", "an interval of 0; take Sync".to_owned());
        }
        Ok(())
    }
}
