//! Index insertion: the collector's copies are inserted into the memtables, partly by writers.
//!
//! Insertion holds the writer lock. The collector has low priority: it would often lose its CPU
//! while holding the lock, and every writer would wait for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::copy_batch::{CopiedRecord, CopyBatch};
use crate::engine::Engine;
use crate::liveness::INTERLEAVED;
use crate::locks::lock;
use crate::memtable::{Search, run_interleaved};
use crate::schedule::thread;
use crate::time_slice;
use crate::value_log::LogWriter;
use crate::value_pointer::{Tag, ValuePointer};
use crate::version::Version;

/// Copies inserted per lock: more than the one or two that a write makes necessary.
const INSERTIONS_PER_LOCK: usize = 4;
/// How often the collector polls the writers' progress.
const POLL_INTERVAL: Duration = Duration::from_micros(100);
/// Polls after which the collector stops waiting: nobody writes, or writers are delayed for the
/// collector's sake.
const MAX_POLLS: u32 = 10;

impl Engine {
    /// Inserts the copies that are still live, after the previous batch is done. Returns the same
    /// as [`Engine::finish_insertion`].
    #[must_use]
    pub(crate) fn insert_copies(&self, batch: CopyBatch) -> Option<ValuePointer> {
        self.prefetch_paths(&batch);
        let retry_from = self.finish_insertion();
        self.pending_insertions.store(batch.len(), Ordering::Relaxed);
        lock(&self.writer).pending_copies = Some(batch);
        if retry_from.is_some() {
            // The retry position covers this batch as well.
            let _ = self.finish_insertion();
        }
        retry_from
    }

    /// Returns when nothing is left to insert; writers do it as long as there are some. If a freeze
    /// overtook a copy, returns its original: from there on all must be looked up again.
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

    /// Prefetches the paths to all keys of a batch, which shortens the work under the writer lock.
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

    /// Waits briefly for writers to insert the copies.
    fn wait_for_writers(&self) {
        for _ in 0..MAX_POLLS {
            if self.pending_insertions.load(Ordering::Acquire) == 0 {
                return;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Inserts some pending copies; returns whether more are left.
    #[inline]
    pub(crate) fn insert_pending(&self, writer: &mut LogWriter, version: &Version) -> bool {
        let LogWriter { pending_copies: Some(batch), memory, .. } = writer else { return false };
        // Recovery ignores sequences below what frozen memtables cover, so the remaining copies are
        // dead.
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

/// Inserts one copy, unless its key was written after the sequences were reserved. The caller holds
/// the writer; `memory` counts memtable bytes.
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
    // There was no freeze, so later writes are in this memtable.
    // SAFETY: the caller holds the writer lock.
    let is_newest = unsafe { memtable.insert(batch.key(copy), sequence, pointer, copy.len as u32) };
    *memory += memtable.bytes() - before;
    is_newest
}
