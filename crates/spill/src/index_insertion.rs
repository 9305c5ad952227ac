//! Entering copies into L0: who writes enters some of them too.
//!
//! That is done under the writer's lock. The collector, nicer than any caller, would often lose its
//! processor to one of them in the middle of it, and then they would wait for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::engine::{Engine, lock};
use crate::liveness::INTERLEAVED;
use crate::memtable::{Search, run_interleaved};
use crate::record::{HEADER_LEN, Hashes, Record};
use crate::schedule::thread;
use crate::time_slice;
use crate::value_log::{LogWriter, Segment};
use crate::value_pointer::{Tag, ValuePointer};
use crate::version::Version;

/// Copies that are entered under one lock: more than the one or two that a write makes necessary.
const INSERTIONS_PER_LOCK: usize = 4;
/// How long to wait between two looks at what writers have entered.
const POLL_INTERVAL: Duration = Duration::from_micros(100);
/// After so many looks nobody writes, or writers are slow, which may be because they are slowed down
/// for the collector: it does not wait for them then.
const MAX_POLLS: u32 = 10;

/// Live records on their way, in the form in which they will lie in the log.
pub(crate) struct CopyBatch {
    pub(crate) segment: Arc<Segment>,
    /// Where it begins there.
    pub(crate) begin: u32,
    bytes: Vec<u8>,
    copies: Vec<CopiedRecord>,
    /// So many of the copies were entered, or found to be dead.
    inserted: usize,
    /// The first of the sequences that were set aside for it.
    sequence: u64,
    /// How often L0 had been frozen then.
    freezes: u64,
}

struct CopiedRecord {
    /// Where it is in the bytes, and its length.
    offset: usize,
    len: usize,
    key_len: usize,
    table: u32,
    key_hash: u64,
    /// Where it was.
    old: ValuePointer,
}

impl CopyBatch {
    /// An empty one that will begin at the end of a segment. `sequence` is the first of those that
    /// were set aside for it when L0 had been frozen `freezes` times.
    pub(crate) fn new(
        segment: Arc<Segment>,
        capacity: usize,
        sequence: u64,
        freezes: u64,
    ) -> CopyBatch {
        let begin = segment.written();
        let bytes = Vec::with_capacity(capacity);
        CopyBatch { segment, begin, bytes, copies: Vec::new(), inserted: 0, sequence, freezes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many records it has.
    pub(crate) fn len(&self) -> usize {
        self.copies.len()
    }

    /// Where it ends in its segment.
    pub(crate) fn end(&self) -> u32 {
        self.begin + self.bytes.len() as u32
    }

    fn key(&self, copy: &CopiedRecord) -> &[u8] {
        &self.bytes[copy.offset + HEADER_LEN..][..copy.key_len]
    }

    /// Adds a record that lies at `old` so far.
    pub(crate) fn add(&mut self, record: &Record<'_>, hashes: Hashes, old: ValuePointer) {
        let mut header = record.header;
        header.in_batch = false;
        header.sequence = self.sequence + self.copies.len() as u64;
        let (offset, len) = (self.bytes.len(), header.record_len());
        self.bytes.resize(offset + len, 0);
        let location = (self.segment.id, self.begin + offset as u32);
        header.write(location, hashes, record.key, record.value, &mut self.bytes[offset..]);
        self.copies.push(CopiedRecord {
            offset,
            len,
            key_len: record.key.len(),
            table: header.table,
            key_hash: hashes.key,
            old,
        });
    }
}

impl Engine {
    /// Has the copies of a batch entered that are still what their keys say: begins with it when
    /// the one before is done. Answers as [`Engine::finish_insertion`] does.
    #[must_use]
    pub(crate) fn insert_copies(&self, batch: CopyBatch) -> Option<ValuePointer> {
        self.prefetch_paths(&batch);
        let retry_from = self.finish_insertion();
        self.pending_insertions.store(batch.len(), Ordering::Relaxed);
        lock(&self.writer).pending_copies = Some(batch);
        if retry_from.is_some() {
            // What this one lacks lies behind.
            let _ = self.finish_insertion();
        }
        retry_from
    }

    /// Returns when nothing is to be entered any more; writers do it as long as there are some. If
    /// a freeze came before a copy, where it was copied from: that and all that follows has to be
    /// looked up again.
    #[must_use]
    pub(crate) fn finish_insertion(&self) -> Option<ValuePointer> {
        if self.options.background {
            self.wait_for_writers();
        }
        loop {
            time_slice::yield_if_expired();
            let mut writer = lock(&self.writer);
            let version = self.version.load();
            if self.insert_pending(&mut writer, &version) {
                continue;
            }
            let batch = writer.pending_copies.take()?;
            let next = batch.copies.get(batch.inserted)?;
            let dead: usize = batch.copies[batch.inserted..].iter().map(|copy| copy.len).sum();
            batch.segment.add_dead(dead as u64);
            return Some(next.old);
        }
    }

    /// Has the ways to all keys of a batch in the processor's cache, for what is done under the
    /// writer's lock to be short.
    fn prefetch_paths(&self, batch: &CopyBatch) {
        let version = self.version.load();
        for copies in batch.copies.chunks(INTERLEAVED) {
            time_slice::yield_if_expired();
            let search = |copy: &CopiedRecord| {
                Search::new(version.active.memtable(copy.table).map(Arc::as_ref), batch.key(copy))
            };
            run_interleaved(&mut copies.iter().map(search).collect::<Vec<_>>());
        }
    }

    /// Waits a little for writers to enter what is to be entered.
    fn wait_for_writers(&self) {
        for _ in 0..MAX_POLLS {
            if self.pending_insertions.load(Ordering::Acquire) == 0 {
                return;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Enters some of the copies that are to be entered, if there are any; whether more are.
    #[inline]
    pub(crate) fn insert_pending(&self, writer: &mut LogWriter, version: &Version) -> bool {
        let LogWriter { pending_copies: Some(batch), memory, .. } = writer else { return false };
        // Below what a frozen generation covers recovery would not look at their sequences: what
        // is left then is dead.
        let is_over = self.freezes.load(Ordering::Acquire) != batch.freezes;
        let end = if is_over {
            batch.inserted
        } else {
            batch.len().min(batch.inserted + INSERTIONS_PER_LOCK)
        };
        for offset in batch.inserted..end {
            let copy = &batch.copies[offset];
            if !insert_copy(memory, version, batch, copy, batch.sequence + offset as u64) {
                batch.segment.add_dead(copy.len as u64);
            }
        }
        batch.inserted = end;
        let left = if is_over { 0 } else { batch.len() - end };
        self.pending_insertions.store(left, Ordering::Release);
        left > 0
    }
}

/// Enters one copy, unless its key was written since the sequences were set aside; the writer is
/// locked, and `memory` is what its L0s have.
fn insert_copy(
    memory: &mut usize,
    version: &Version,
    batch: &CopyBatch,
    copy: &CopiedRecord,
    sequence: u64,
) -> bool {
    let memtable =
        version.active.memtable(copy.table).filter(|_| version.table(copy.table).is_some());
    let Some(memtable) = memtable else { return false };
    let pointer = ValuePointer::new(
        batch.segment.id,
        batch.begin + copy.offset as u32,
        copy.old.is_tombstone(),
        Tag::of(copy.key_hash),
    );
    let before = memtable.bytes();
    // What came since is in this L0, for there was no freeze.
    // SAFETY: the writer is locked, says the caller.
    let is_newest = unsafe { memtable.insert(batch.key(copy), sequence, pointer, copy.len as u32) };
    *memory += memtable.bytes() - before;
    is_newest
}
