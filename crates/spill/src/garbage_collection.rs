//! Garbage collection: live records of a mostly dead segment are copied. The segment is deleted
//! once the copies are durable (`segment_release.rs`).

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::admission_control::dead_share;
use crate::collector::GarbageCollector;
use crate::copy_batch::CopyBatch;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::liveness::{Candidate, INTERLEAVED};
use crate::locks::lock;
use crate::options::CachedWrites;
use crate::record::RecordKind;
use crate::stream::{LogPosition, Stream};
use crate::time_slice;
use crate::value_log::Segment;
use crate::value_log::reader::{LocatedRecord, READ_CHUNK, ReadBuffer, SegmentReader};
use crate::value_log::segment::FILE_HEADER_LEN;
use crate::version::Version;

/// Bytes of copies that are written and inserted together; less in small segments.
const MAX_BATCH_BYTES: usize = 256 << 10;
/// The fewest copies that fill a batch.
const MIN_BATCH_RECORDS: usize = 16;
/// Sequences reserved per batch, which limits its records.
const MAX_BATCH_RECORDS: usize = 1 << 12;
/// A segment is worth collecting if its garbage share is at least this multiple of the whole log's.
const MIN_RELATIVE_GARBAGE: f64 = 0.5;

/// Collected segments that may still have files. They take space; one is released while the next is
/// collected.
const MAX_UNRELEASED: usize = 2;

/// Cost-benefit score of a segment: bytes freed per byte copied, times the square root of its age
/// in segments. An old segment with some garbage will hardly lose more, so waiting gains nothing; a
/// young one gets cheaper. Rosenblum and Ousterhout (ACM TOCS 10(1), 1992) use the age itself, for
/// garbage that is known at once. Here the garbage of young segments becomes known late, which
/// already spares them.
fn benefit(segment: &Segment, newest: u32) -> f64 {
    let dead = dead_share(segment).min(1.0);
    let age = f64::from(newest - segment.id + 1);
    dead / (1.0 - dead) * age.sqrt()
}

/// A segment is small if it holds less than its capacity divided by this.
const SMALL_DIVISOR: u64 = 16;
/// Small segments are gathered above `GATHER_ABOVE`, until `GATHER_UNTIL` are left.
const GATHER_ABOVE: usize = 64;
const GATHER_UNTIL: usize = 16;

fn is_small(segment: &Segment) -> bool {
    segment.bytes() <= segment.capacity() as u64 / SMALL_DIVISOR
}

impl Engine {
    /// Collects the segment with the highest benefit, if garbage is due; returns whether it did.
    pub(crate) fn collect_garbage(&self) -> Result<bool> {
        let mut collector = lock(&self.collector);
        let Some(victim) = self.victim() else { return Ok(false) };
        self.check_writable()?;
        let mut buffer = mem::take(&mut collector.buffer);
        let copied = self.copy_live(&mut collector, &victim, &mut buffer);
        collector.buffer = buffer.drop_if_large();
        // After an early end, copies that were not inserted are copied again later.
        let _ = self.finish_insertion();
        if !copied? {
            return Ok(false);
        }
        victim.set_collected(u32::MAX);
        lock(&self.collected).add(victim);
        Ok(true)
    }

    /// Whether small segments should be gathered. Each opening starts new segments, so short
    /// sessions leave small ones, and each costs a descriptor and a mapping.
    pub(crate) fn has_many_small(&self, version: &Version) -> bool {
        let is_small = |segment: &&Arc<Segment>| {
            segment.end().is_some() && is_small(segment) && !segment.stuck.load(Ordering::Relaxed)
        };
        let count = version.segments.iter().filter(is_small).count();
        let was = self.work.has_many_small.load(Ordering::Relaxed);
        let is = count > if was { GATHER_UNTIL } else { GATHER_ABOVE };
        self.work.has_many_small.store(is, Ordering::Relaxed);
        is
    }

    /// The segment to collect now, if one is due.
    fn victim(&self) -> Option<Arc<Segment>> {
        if lock(&self.collected).count() >= MAX_UNRELEASED {
            return None;
        }
        self.next_victim()
    }

    /// The segment to collect next, if one is due; it may have to wait until others are released.
    pub(crate) fn next_victim(&self) -> Option<Arc<Segment>> {
        let waiting = lock(&self.collected).waiting();
        let version = self.version.load();
        let usage = self.space_usage(&version);
        let is_due = usage.is_due();
        let gathers_small = self.has_many_small(&version);
        let newest = version.segments.iter().map(|segment| segment.id).max()?;
        version
            .segments
            .iter()
            // Segments that the levels do not cover are needed for recovery.
            .filter(|segment| segment.end().is_some() && !waiting.contains(&segment.id))
            .filter(|segment| !segment.stuck.load(Ordering::Relaxed))
            .filter(|segment| segment.id < version.coverage.positions.of(segment.stream).segment)
            // A wholly dead segment costs nothing to collect.
            .filter(|segment| {
                let share = dead_share(segment);
                share >= 1.0
                    || is_due && share >= MIN_RELATIVE_GARBAGE * usage.share()
                    || gathers_small && is_small(segment)
            })
            // Ties go to the oldest segment.
            .max_by(|one, other| {
                let benefit = |segment| benefit(segment, newest);
                benefit(one).total_cmp(&benefit(other)).then(other.id.cmp(&one.id))
            })
            .cloned()
    }

    /// Copies all live records of a segment; false if the store was closed meanwhile.
    fn copy_live(
        &self,
        collector: &mut GarbageCollector,
        victim: &Segment,
        buffer: &mut ReadBuffer,
    ) -> Result<bool> {
        let Some(end) = victim.end() else { return Ok(false) };
        let mut reader = SegmentReader::using_mapping(victim, FILE_HEADER_LEN, end, buffer);
        let mut min_len = 0;
        loop {
            // Copies that a freeze overtakes must be copied again, so the memtables are frozen for
            // copies only between two batches.
            let is_full = self.is_memtable_full();
            if (reader.is_at_end() || is_full)
                && let Some(origin) = self.finish_insertion()
            {
                reader.seek(origin.offset());
            }
            if reader.is_at_end() {
                return Ok(true);
            }
            // Nothing is copied from a wholly dead segment.
            if is_full && dead_share(victim) < 1.0 {
                self.freeze_for_copies()?;
            }
            let from = reader.offset();
            victim.set_collected(from);
            self.update_write_delay();
            let mut batch = self.begin_batch(collector, min_len)?;
            // This only reads. Unless marked, the same victim would win each time and block all
            // others.
            min_len = self
                .fill_batch(&mut batch, &mut reader, victim)
                .inspect_err(|_| victim.stuck.store(true, Ordering::Relaxed))?;
            if batch.len() > 0 {
                // What was read by direct I/O is also written by direct I/O.
                let is_direct = match self.options.cached_writes {
                    CachedWrites::Auto => {
                        !victim.is_mostly_resident(from as usize, from as usize + READ_CHUNK)
                    }
                    CachedWrites::Always => false,
                    CachedWrites::Never => true,
                };
                self.write_copies(collector, &batch, is_direct)?;
                if let Some(origin) = self.insert_copies(batch) {
                    reader.seek(origin.offset());
                }
            }
            if self.work.is_closing.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
    }

    /// Adds the next live records of a segment until the batch is full. Returns the length of a
    /// record that the target segment has no space for, or 0.
    fn fill_batch(
        &self,
        batch: &mut CopyBatch,
        reader: &mut SegmentReader<'_>,
        victim: &Segment,
    ) -> Result<usize> {
        // A small share of the memtable's limit, which the copies may exceed.
        let max_records = (self.options.memory / 1024).clamp(MIN_BATCH_RECORDS, MAX_BATCH_RECORDS);
        while !reader.is_at_end() {
            let mut ahead = reader.ahead(INTERLEAVED)?;
            let Some(mut next) = ahead.last().map(LocatedRecord::end) else {
                return Err(victim.damaged(reader.offset(), "a record is not what was written"));
            };
            ahead.retain(|found| {
                matches!(found.record.header.kind, RecordKind::Put | RecordKind::Delete)
            });
            let candidates: Vec<Candidate<'_>> =
                ahead.iter().map(|found| Candidate::of(victim.id, found)).collect();
            let is_live = self.are_live(&candidates)?;
            let mut is_full = false;
            for at in (0..ahead.len()).filter(|&at| is_live[at]) {
                let LocatedRecord { offset, record, hashes } = &ahead[at];
                let len = record.header.record_len();
                if batch.end() as usize + len > batch.segment.capacity() {
                    let offset = *offset;
                    reader.seek(offset);
                    return Ok(len);
                }
                batch.add(record, *hashes, candidates[at].pointer);
                if batch.bytes().len() >= self.batch_len() || batch.len() >= max_records {
                    (next, is_full) = (ahead[at].end(), true);
                    break;
                }
                time_slice::yield_if_expired();
            }
            reader.seek(next);
            time_slice::yield_if_expired();
            if is_full {
                break;
            }
        }
        Ok(0)
    }

    fn batch_len(&self) -> usize {
        MAX_BATCH_BYTES.min(self.options.segment / 8)
    }

    /// A batch with reserved sequences: later index entries are newer than they are. `min_len` is
    /// the length of a record that the target segment must take.
    fn begin_batch(&self, collector: &mut GarbageCollector, min_len: usize) -> Result<CopyBatch> {
        let min_len = min_len.max(self.batch_len());
        let has_space =
            |segment: &Arc<Segment>| segment.written() as usize + min_len <= segment.capacity();
        let segment = match collector.segment.take() {
            Some(segment) if has_space(&segment) => segment,
            full => {
                if let Some(full) = full {
                    full.complete(full.written());
                }
                self.create_segment(Stream::Copies, min_len)?
            }
        };
        collector.segment = Some(Arc::clone(&segment));
        let mut writer = lock(&self.writer);
        let sequence = self.reserve_sequences(&mut writer, MAX_BATCH_RECORDS as u64)?;
        writer.copies_begin = LogPosition { segment: segment.id, offset: segment.written() };
        let freezes = self.freezes.load(Ordering::Acquire);
        drop(writer);
        Ok(CopyBatch::new(segment, min_len + min_len / 4, sequence, freezes))
    }

    /// Whether the memtables are due to be frozen.
    fn is_memtable_full(&self) -> bool {
        lock(&self.writer).memory >= self.options.memory
    }

    /// Copies fill memtables like writes, but nothing delays them. Once the maximum number of
    /// frozen memtables waits, each freeze compacts one first. Only one: checkpoints wait
    /// meanwhile, and writers may keep the backlog high for long.
    fn freeze_for_copies(&self) -> Result<()> {
        let is_backlogged = || {
            let waiting = self.version.load().frozen.len();
            waiting >= self.options.frozen && !self.work.is_closing.load(Ordering::Relaxed)
        };
        if is_backlogged() {
            self.compact_if(is_backlogged)?;
        }
        let mut writer = lock(&self.writer);
        if writer.memory >= self.options.memory {
            self.freeze_memtables(&mut writer);
        }
        Ok(())
    }

    /// Writes the copies to their segment.
    fn write_copies(
        &self,
        to: &mut GarbageCollector,
        batch: &CopyBatch,
        is_direct: bool,
    ) -> Result<()> {
        let segment = &batch.segment;
        to.direct_writer
            .append(segment, &[batch.bytes()], batch.begin, is_direct)
            .map_err(|error| Error::io(segment.path(), error))?;
        segment.set_written(batch.end());
        self.counters.copied.add(batch.bytes().len() as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value_pointer::ValuePointer;
    use crate::{Options, Store, Table};

    const VALUE: [u8; 1000] = [7; 1000];
    const COPIES: u32 = 10;

    fn key(number: u32) -> [u8; 4] {
        number.to_be_bytes()
    }

    /// Writes keys so that the first lie in a complete segment, and prepares copies of those;
    /// passes their original pointers.
    fn with_copies(check: impl FnOnce(&Store, &Table, &Engine, &[ValuePointer])) {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, segment: 64 << 10, ..Options::default() };
        let store = Store::open(home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        for number in 0..100 {
            table.put(&key(number), &VALUE).unwrap();
        }
        store.flush().unwrap();
        let engine = store.engine();
        let version = engine.version.load_full();
        let from = version.segments.iter().find(|segment| segment.end().is_some()).unwrap();
        let mut origins = Vec::new();
        let mut collector = lock(&engine.collector);
        let mut batch = engine.begin_batch(&mut collector, 0).unwrap();
        let mut buffer = ReadBuffer::default();
        let mut reader =
            SegmentReader::new(from, FILE_HEADER_LEN, from.end().unwrap(), &mut buffer);
        for number in 0..COPIES {
            let found = reader.next().unwrap().unwrap();
            assert_eq!(found.record.key, key(number));
            origins.push(Candidate::of(from.id, &found).pointer);
            batch.add(&found.record, found.hashes, origins[origins.len() - 1]);
        }
        engine.write_copies(&mut collector, &batch, false).unwrap();
        assert_eq!(engine.insert_copies(batch), None);
        drop(collector);
        check(&store, &table, engine, &origins);
        for number in COPIES..100 {
            assert_eq!(table.get(&key(number)).unwrap().unwrap(), VALUE);
        }
    }

    /// On a full device collection frees the space that compaction waits for.
    #[test]
    fn garbage_collection_continues_while_compaction_fails() {
        let home = tempfile::tempdir().unwrap();
        let options = |space_amplification| Options {
            background: false,
            segment: 64 << 10,
            space_amplification,
            ..Options::default()
        };
        {
            let store = Store::open(home.path(), options(10.0)).unwrap();
            let table = store.table("t").unwrap();
            let put = |number: u32| table.put(&key(number), &VALUE).unwrap();
            (0..1000).for_each(put);
            (0..1000).step_by(2).for_each(put);
            store.flush().unwrap();
            put(2000);
        }
        let store = Store::open(home.path(), options(1.1)).unwrap();
        let engine = store.engine();
        let max_records = engine.options.frozen + 1;
        (0..max_records).for_each(|_| engine.freeze_memtables(&mut lock(&engine.writer)));
        let frozen = || engine.version.load().frozen.len();
        assert_eq!(frozen(), max_records);
        // Blocks the files of the next compactions.
        let next = engine.next_index.load(Ordering::Relaxed);
        let names = (next..next + 100).map(|id| engine.index.join(crate::level::file::name(id)));
        names.for_each(|name| std::fs::write(name, "").unwrap());
        assert!(engine.compact().is_err());
        assert!(engine.collect_garbage().unwrap());
        assert!(engine.release_collected().unwrap());
        lock(&engine.writer).memory = engine.options.memory;
        assert!(engine.collect_garbage().is_err());
        assert_eq!(frozen(), max_records, "the backlog does not grow");
        engine.freeze_memtables(&mut lock(&engine.writer));
        assert!(store.table("t").unwrap().put(&key(0), &VALUE).is_err());
        assert!(store.flush().is_err());
        assert_eq!(frozen(), max_records + 1, "a flush freezes none");
    }

    /// Checkpoints wait for the collector, and writers may keep many memtables waiting.
    #[test]
    fn each_freeze_for_copies_compacts_one() {
        let home = tempfile::tempdir().unwrap();
        let store =
            Store::open(home.path(), Options { background: false, ..Options::default() }).unwrap();
        let engine = store.engine();
        (0..5).for_each(|_| engine.freeze_memtables(&mut lock(&engine.writer)));
        for freeze in 1..4 {
            lock(&engine.writer).memory = engine.options.memory;
            engine.freeze_for_copies().unwrap();
            assert_eq!(engine.version.load().frozen.len(), 5);
            assert_eq!(store.statistics().spills, freeze);
        }
    }

    fn pending(engine: &Engine) -> usize {
        engine.pending_insertions.load(Ordering::Relaxed)
    }

    /// The segment of a key according to the memtable.
    fn segment_of(engine: &Engine, table: &Table, number: u32) -> Option<u32> {
        let version = engine.version.load();
        let memtable = version.active.memtable(table.id)?;
        memtable.get(&key(number)).map(|newest| newest.pointer.segment())
    }

    #[test]
    fn each_write_inserts_four_copies_unless_overwritten() {
        with_copies(|store, table, engine, _| {
            assert_eq!(pending(engine), 10);
            table.put(&key(9), b"new").unwrap();
            assert_eq!(pending(engine), 6);
            table.delete(&key(8)).unwrap();
            assert_eq!(pending(engine), 2);
            let mut batch = crate::Batch::new();
            batch.put(table, &key(100), &VALUE);
            store.write(&batch).unwrap();
            assert_eq!(pending(engine), 0);
            let [copies, written] = [0, 9].map(|number| segment_of(engine, table, number));
            assert!(copies.is_some() && copies != written);
            assert!((0..8).all(|number| segment_of(engine, table, number) == copies));
            assert_eq!(segment_of(engine, table, 8), written);
            assert_eq!(engine.finish_insertion(), None);
            assert_eq!(table.get(&key(9)).unwrap().unwrap(), b"new");
            assert_eq!(table.get(&key(8)).unwrap(), None);
        });
    }

    /// Copies of a power failure would be gone, and the index would refer to nothing.
    #[test]
    fn copies_are_synced_before_an_index_refers_to_them() {
        with_copies(|store, table, engine, _| {
            table.put(&key(100), &VALUE).unwrap();
            engine.freeze_memtables(&mut lock(&engine.writer));
            let version = engine.version.load_full();
            let memtable = version.frozen.last().unwrap().memtables.get(table.id as usize).unwrap();
            let copy = memtable.get(&key(0)).unwrap().pointer;
            let synced = || engine.group_commit.positions().copies;
            let is_synced =
                || synced().segment == copy.segment() && synced().offset > copy.offset();
            assert!(!is_synced());
            assert!(engine.compact().unwrap());
            assert!(is_synced(), "{:?} of {copy:?}", synced());
            drop(version);
            assert_eq!(store.table("t").unwrap().get(&key(0)).unwrap().unwrap(), VALUE);
        });
    }

    #[test]
    fn freeze_between_copies_returns_the_next_record() {
        with_copies(|store, table, engine, origins| {
            table.put(&key(100), &VALUE).unwrap();
            assert_eq!(pending(engine), 6);
            store.flush().unwrap();
            table.put(&key(101), &VALUE).unwrap();
            assert_eq!(pending(engine), 0, "nothing can be inserted any more");
            assert_eq!(segment_of(engine, table, 4), None);
            assert_eq!(engine.finish_insertion(), Some(origins[4]));
            assert_eq!(engine.finish_insertion(), None);
            for number in 0..COPIES {
                assert_eq!(table.get(&key(number)).unwrap().unwrap(), VALUE);
            }
        });
    }
}
