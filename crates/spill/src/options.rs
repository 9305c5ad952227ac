use std::time::Duration;

use crate::error::{Error, Result};
use crate::value_pointer::MAX_SEGMENT_LEN;

/// The longest key, in bytes.
pub const MAX_KEY_LEN: usize = 1024;

/// The smallest segment holds a few records with the longest key.
pub(crate) const MIN_SEGMENT_LEN: usize = 64 << 10;

/// One memtable block.
const MIN_MEMORY: usize = 16 << 10;
/// More than machines have, so probably a wrong unit.
const MAX_MEMORY: usize = 1 << 40;

/// At such a ratio nothing is collected for long, and sums of it stay finite.
const MAX_SPACE_AMPLIFICATION: f64 = 1e6;

/// A long write is delayed up to 32 times, which must not take more than a few seconds.
const MAX_THROTTLE: Duration = Duration::from_millis(100);

/// More bits hardly lower the false-positive rate, since each key sets eight.
const MAX_BLOOM_BITS: u32 = 32;

/// Options of a store. They do not affect the files, so they may differ at each opening.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Create the directory and a store in it if there is none. Default: true.
    pub create: bool,
    /// Leave the disk unchanged: recovery happens in memory, and writes return
    /// [`Error::ReadOnly`](crate::Error::ReadOnly). Works on read-only and full devices. Several
    /// processes may read at once while none writes. `create`, `segment`, `background` and
    /// `durability` are ignored. Default: false.
    pub read_only: bool,
    /// Bytes of the memtables (L0) of all tables together at which they are frozen, to be compacted
    /// into the levels. Up to [`Options::frozen`] frozen sets wait beside the active one. 16 KiB to
    /// 1 TiB; default: 32 MiB.
    pub memory: usize,
    /// Frozen memtables that may wait for compaction before writers are delayed. At least 1;
    /// default: 2.
    pub frozen: usize,
    /// Size of a log segment in bytes. It limits a value to 1,194 bytes less, and the records of a
    /// batch to 152 bytes less. A multiple of 4,096 from 64 KiB to 512 MiB; default: 16 MiB.
    pub segment: usize,
    /// What an acknowledged write survives. Default: [`Durability::None`].
    pub durability: Durability,
    /// How records are read that are not in the page cache. Default: [`ColdReads::Auto`].
    pub cold_reads: ColdReads,
    /// Whether writes to the log stay in the page cache. Default: [`CachedWrites::Auto`].
    pub cached_writes: CachedWrites,
    /// Verify the checksum of each record that is read. Index pages are always verified on first
    /// read, and [`Store::scrub`](crate::Store::scrub) verifies everything. Default: true.
    pub verify: bool,
    /// Garbage collection keeps the log below this multiple of its live bytes. 1.1 to 1,000,000;
    /// default: 1.5.
    pub space_amplification: f64,
    /// Size ratio of adjacent levels. At least 2; default: 8.
    pub growth: u64,
    /// Bloom filter bits per key in all levels but the last. Filters save most look-ups in levels
    /// that lack the key. 0: no filters; existing ones go with the next compaction. At most 32;
    /// default: 0.
    pub bloom_bits: u32,
    /// Compact and collect in background threads. False: in the write that makes it due. Default:
    /// true.
    pub background: bool,
    /// The longest delay of a write of up to 4 KiB when compaction or garbage collection lags. A
    /// longer write is delayed once for each 4 KiB, at most 32 times, a batch once for each write,
    /// and none longer than a second at once. A thread may accumulate up to 0.3 ms before a later
    /// write sleeps it, or a read if the thread mostly reads. Up to 0.02 ms of spinning are left to
    /// the thread's next read. At most 100 ms; 0 disables these delays. Default: 1 ms.
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

/// What an acknowledged write survives. Every mode survives a process kill, and always recovers a
/// state that the store once had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A power failure may lose whatever was not synced by `sync`, `flush`, a compaction, a garbage
    /// collection or closing.
    None,
    /// A power failure loses at most this much time of writes plus the duration of one sync. Must
    /// be positive. Without [`Options::background`] the first write after the interval syncs;
    /// nothing syncs before it.
    Interval(Duration),
    /// Nothing acknowledged is lost: a write returns when it is durable. Waiting writers share a
    /// sync.
    Sync,
}

/// How records are read that are not in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColdReads {
    /// `Around` if the log fits half of the available memory, else `Page`; decided at opening and
    /// at each compaction.
    Auto,
    /// Reads 64 KiB around a record: a working set that fits in memory is soon warm, with few large
    /// reads.
    Around,
    /// Reads only the pages of the record: for data much larger than memory.
    Page,
}

/// Whether writes to the log stay in the page cache. They always do where the file system lacks
/// direct I/O, and for a record written to its segment directly. That is one of more than 64 KiB or
/// an eighth of a segment, and every record with [`Durability::Sync`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachedWrites {
    /// While records are being read: recent writes stay in memory, and a bulk load takes none.
    Auto,
    /// Always.
    Always,
    /// Never: the log is written with direct I/O.
    Never,
}

impl Options {
    /// Checks the options, as opening a store does.
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
            return invalid("frozen", "0 leaves no memtable to compact".to_owned());
        }
        if self.growth < 2 {
            return invalid("growth", format!("{} is less than 2", self.growth));
        }
        if self.bloom_bits > MAX_BLOOM_BITS {
            let what = format!("{} bits per key exceed {MAX_BLOOM_BITS}", self.bloom_bits);
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
            return invalid("durability", "the interval is 0; use Sync".to_owned());
        }
        Ok(())
    }
}
