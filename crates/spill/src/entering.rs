//! Entering copies into L0: who writes enters some of them too.
//!
//! That is done under the writer's lock. The collector, nicer than any caller, would often lose its
//! processor to one of them in the middle of it, and then they would wait for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::inner::{Inner, lock};
use crate::l0::{Search, side_by_side};
use crate::log::{Segment, Writer};
use crate::newest::SIDE_BY_SIDE;
use crate::position::{Position, Tag};
use crate::record::{HEADER, Hashes, Record};
use crate::schedule::thread;
use crate::stint;
use crate::version::Version;

/// Copies that are entered under one lock: more than the one or two that a write makes necessary.
const AT_ONCE: usize = 4;
/// How long to wait between two looks at what writers have entered.
const LOOK: Duration = Duration::from_micros(100);
/// After so many looks nobody writes, or writers are slow, which may be because they are slowed down
/// for the collector: it does not wait for them then.
const PATIENCE: u32 = 10;

/// Live records on their way, in the form in which they will lie in the log.
pub(crate) struct Batch {
    pub(crate) segment: Arc<Segment>,
    /// Where it begins there.
    pub(crate) begin: u32,
    bytes: Vec<u8>,
    copies: Vec<Copy>,
    /// So many of the copies were entered, or found to be dead.
    entered: usize,
    /// The first of the sequences that were set aside for it.
    sequence: u64,
    /// How often L0 had been frozen then.
    rotations: u64,
}

struct Copy {
    /// Where it is in the bytes, and its length.
    place: usize,
    len: usize,
    key_len: usize,
    table: u32,
    key_hash: u64,
    /// Where it was.
    old: Position,
}

impl Batch {
    /// An empty one that will begin at the end of a segment. `sequence` is the first of those that
    /// were set aside for it when L0 had been frozen `rotations` times.
    pub(crate) fn new(segment: Arc<Segment>, room: usize, sequence: u64, rotations: u64) -> Batch {
        let begin = segment.written();
        let bytes = Vec::with_capacity(room);
        Batch { segment, begin, bytes, copies: Vec::new(), entered: 0, sequence, rotations }
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

    fn key(&self, copy: &Copy) -> &[u8] {
        &self.bytes[copy.place + HEADER..][..copy.key_len]
    }

    /// Adds a record that lies at `old` so far.
    pub(crate) fn add(&mut self, record: &Record<'_>, hashes: Hashes, old: Position) {
        let mut header = record.header;
        header.in_batch = false;
        header.sequence = self.sequence + self.copies.len() as u64;
        let (place, len) = (self.bytes.len(), header.record_len());
        self.bytes.resize(place + len, 0);
        let at = (self.segment.id, self.begin + place as u32);
        header.write(at, hashes, record.key, record.value, &mut self.bytes[place..]);
        self.copies.push(Copy {
            place,
            len,
            key_len: record.key.len(),
            table: header.table,
            key_hash: hashes.key,
            old,
        });
    }
}

impl Inner {
    /// Has the copies of a batch entered that are still what their keys say: begins with it when
    /// the one before is done. Answers as [`Inner::finish_entering`] does.
    #[must_use]
    pub(crate) fn enter_batch(&self, batch: Batch) -> Option<Position> {
        self.warm_up_ways(&batch);
        let again = self.finish_entering();
        self.to_enter.store(batch.len(), Ordering::Relaxed);
        lock(&self.writer).entering = Some(batch);
        if again.is_some() {
            // What this one lacks lies behind.
            let _ = self.finish_entering();
        }
        again
    }

    /// Returns when nothing is to be entered any more; writers do it as long as there are some. If
    /// a freeze came before a copy, where it was copied from: that and all that follows has to be
    /// looked up again.
    #[must_use]
    pub(crate) fn finish_entering(&self) -> Option<Position> {
        if self.options.background {
            self.wait_for_writers();
        }
        loop {
            stint::end_if_over();
            let mut writer = lock(&self.writer);
            let version = self.version.load();
            if self.enter_some(&mut writer, &version) {
                continue;
            }
            let batch = writer.entering.take()?;
            let next = batch.copies.get(batch.entered)?;
            let dead: usize = batch.copies[batch.entered..].iter().map(|copy| copy.len).sum();
            batch.segment.add_dead(dead as u64);
            return Some(next.old);
        }
    }

    /// Has the ways to all keys of a batch in the processor's cache, for what is done under the
    /// writer's lock to be short.
    fn warm_up_ways(&self, batch: &Batch) {
        let version = self.version.load();
        for copies in batch.copies.chunks(SIDE_BY_SIDE) {
            stint::end_if_over();
            let search = |copy: &Copy| {
                Search::new(version.active.l0(copy.table).map(Arc::as_ref), batch.key(copy))
            };
            side_by_side(&mut copies.iter().map(search).collect::<Vec<_>>());
        }
    }

    /// Waits a little for writers to enter what is to be entered.
    fn wait_for_writers(&self) {
        for _ in 0..PATIENCE {
            if self.to_enter.load(Ordering::Acquire) == 0 {
                return;
            }
            thread::sleep(LOOK);
        }
    }

    /// Enters some of the copies that are to be entered, if there are any; whether more are.
    #[inline]
    pub(crate) fn enter_some(&self, writer: &mut Writer, version: &Version) -> bool {
        let Writer { entering: Some(batch), memory, .. } = writer else { return false };
        // Below what a frozen generation covers recovery would not look at their sequences: what
        // is left then is dead.
        let is_over = self.rotations.load(Ordering::Acquire) != batch.rotations;
        let end = if is_over { batch.entered } else { batch.len().min(batch.entered + AT_ONCE) };
        for place in batch.entered..end {
            let copy = &batch.copies[place];
            if !enter_copy(memory, version, batch, copy, batch.sequence + place as u64) {
                batch.segment.add_dead(copy.len as u64);
            }
        }
        batch.entered = end;
        let left = if is_over { 0 } else { batch.len() - end };
        self.to_enter.store(left, Ordering::Release);
        left > 0
    }
}

/// Enters one copy, unless its key was written since the sequences were set aside; the writer is
/// locked, and `memory` is what its L0s have.
fn enter_copy(
    memory: &mut usize,
    version: &Version,
    batch: &Batch,
    copy: &Copy,
    sequence: u64,
) -> bool {
    let l0 = version.active.l0(copy.table).filter(|_| version.table(copy.table).is_some());
    let Some(l0) = l0 else { return false };
    let position = Position::new(
        batch.segment.id,
        batch.begin + copy.place as u32,
        copy.old.is_tombstone(),
        Tag::of(copy.key_hash),
    );
    let before = l0.bytes();
    // What came since is in this L0, for there was no freeze.
    // SAFETY: the writer is locked, says the caller.
    let is_newest = unsafe { l0.insert(batch.key(copy), sequence, position, copy.len as u32) };
    *memory += l0.bytes() - before;
    is_newest
}
