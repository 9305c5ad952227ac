//! Writes: a record is appended to the log, then its key is inserted into the memtable.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::batch::{Batch, MAX_BATCH_WRITES};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::locks::{lock, try_lock};
use crate::memtable::InsertionPoint;
use crate::options::{Durability, MAX_KEY_LEN};
use crate::overwrite_estimate::weight;
use crate::overwrites::SampledKey;
use crate::record::{self, EMPTY_RECORD_LEN, HEADER_LEN, Hashes, Header, RecordKind};
use crate::schedule::MutexGuard;
use crate::stream::{Stream, StreamPositions};
use crate::throttle::delay;
use crate::value_log::{LogWriter, ReservedSpace};
use crate::value_pointer::{Tag, ValuePointer};
use crate::version::{TableId, Version};

/// A longer write is delayed once for each of this many bytes.
const BYTES_PER_DELAY: usize = 4 << 10;
/// The most delays of a write.
const MAX_DELAYS_PER_WRITE: usize = 32;
/// The longest delay at once; a batch is delayed once for each of its writes.
const MAX_DELAY: Duration = Duration::from_secs(1);
/// How often a long delay is recomputed.
const DELAY_RECHECK_INTERVAL: Duration = Duration::from_millis(4);

impl Engine {
    #[inline]
    pub(crate) fn write_one(
        &self,
        table: TableId,
        name: &str,
        kind: RecordKind,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        self.check_lengths(key, value)?;
        self.check_interval()?;
        let len = record::encoded_len(key.len(), value.len());
        self.delay_write(1, len)?;
        self.flush_staging_before(len)?;
        let key_hash = record::hash(key);
        self.hot_keys.prefetch(table, key_hash);
        let hashes = Hashes::of_value(key_hash, value);
        let mut header = Header {
            kind,
            in_batch: false,
            key_len: key.len() as u16,
            value_len: value.len() as u32,
            table,
            sequence: 0,
        };
        let (positions, sampled) = {
            let mut writer = self.lock_writer(table, key);
            self.check_writable()?;
            let sequence = writer.sequence + 1;
            header.sequence = sequence;
            let version = self.version.load();
            let memtable = version.table(table).and_then(|_| version.active.memtable(table));
            let memtable = memtable.ok_or_else(|| Error::NoTable { name: name.to_owned() })?;
            // Prefetches the leaf while the record is encoded.
            // SAFETY: the writer is locked.
            let insertion_point = unsafe { memtable.seek(key) };
            let stream = self.stream_of(table, hashes);
            self.reserve(&mut writer, stream, len)?;
            let space = writer.reserved(stream, len);
            let (segment, offset) = (space.segment, space.offset);
            header.write((segment, offset), hashes, key, value, space.bytes);
            let committed = writer.commit(stream, len, 0);
            self.check_commit(&writer, committed)?;
            writer.sequence = sequence;
            let location = (segment, offset);
            let tag = Tag::of(hashes.key);
            let sample_weight = self.insert_into_memtable(
                &mut writer,
                insertion_point,
                &header,
                location,
                tag,
                key,
            );
            self.visible_sequence.store(sequence, Ordering::Release);
            self.insert_pending(&mut writer, &version);
            self.freeze_if_due(&mut writer, &version);
            (writer.positions(), sample_weight.map(|sample_weight| (version, sample_weight)))
        };
        if let Some((version, sample_weight)) = sampled {
            self.estimate_overwrite(&version, &SampledKey { key, header, sample_weight });
        }
        self.after_write(positions, len)
    }

    pub(crate) fn write_batch(&self, batch: &Batch) -> Result<()> {
        let (hashes, bytes) = self.check_batch(batch)?;
        if batch.is_empty() {
            return Ok(());
        }
        let len = EMPTY_RECORD_LEN + bytes;
        self.check_interval()?;
        self.delay_write(batch.len(), bytes)?;
        self.flush_staging_before(len)?;
        let (positions, version, sampled) = {
            let mut writer = lock(&self.writer);
            self.check_writable()?;
            let first = writer.sequence + 1;
            self.reserve(&mut writer, Stream::Main, len)?;
            let version = self.version.load();
            if let Some(gone) = batch.writes.iter().find(|w| version.table(w.table.id).is_none()) {
                return Err(Error::NoTable { name: gone.table.name().to_owned() });
            }
            let space = writer.reserved(Stream::Main, len);
            let encoded = encode_batch(batch, &hashes, first, space);
            let committed = writer.commit(Stream::Main, len, EMPTY_RECORD_LEN);
            self.check_commit(&writer, committed)?;
            writer.sequence = first + batch.len() as u64 - 1;
            let sampled = self.insert_batch(&mut writer, &version, batch, &encoded);
            // All of it at once.
            self.visible_sequence.store(writer.sequence, Ordering::Release);
            self.insert_pending(&mut writer, &version);
            self.freeze_if_due(&mut writer, &version);
            (writer.positions(), version, sampled)
        };
        sampled.iter().for_each(|sampled| self.estimate_overwrite(&version, sampled));
        drop(version);
        self.after_write(positions, len)
    }

    /// Checks what can be checked without a lock. Returns the hashes of each write, and the bytes
    /// of all their records.
    fn check_batch(&self, batch: &Batch) -> Result<(Vec<Hashes>, usize)> {
        if batch.len() > MAX_BATCH_WRITES {
            return Err(Error::TooManyWrites { count: batch.len(), limit: MAX_BATCH_WRITES });
        }
        let mut hashes = Vec::with_capacity(batch.len());
        let mut bytes = 0;
        for write in &batch.writes {
            write.table.check_owner(self)?;
            let value = write.value.as_deref().unwrap_or_default();
            self.check_lengths(&write.key, value)?;
            hashes.push(Hashes::of(&write.key, value));
            bytes += record::encoded_len(write.key.len(), value.len());
        }
        let limit = LogWriter::max_unit_len(self.options.segment) - EMPTY_RECORD_LEN;
        if bytes > limit {
            return Err(Error::BatchTooLong { len: bytes, limit });
        }
        Ok((hashes, bytes))
    }

    /// Inserts the keys of a batch into their memtables; returns those that are to be sampled.
    fn insert_batch<'b>(
        &self,
        writer: &mut LogWriter,
        version: &Version,
        batch: &'b Batch,
        encoded: &[EncodedWrite],
    ) -> Vec<SampledKey<'b>> {
        let mut sampled = Vec::new();
        for (write, encoded) in batch.writes.iter().zip(encoded) {
            let EncodedWrite { header, location, tag } = *encoded;
            // Every table of a version has its memtable there.
            let Some(memtable) = version.active.memtable(header.table) else { continue };
            // SAFETY: the writer is locked.
            let insertion_point = unsafe { memtable.seek(&write.key) };
            let sample_weight = self.insert_into_memtable(
                writer,
                insertion_point,
                &header,
                location,
                tag,
                &write.key,
            );
            let key = &write.key;
            sampled.extend(sample_weight.map(|sample_weight| SampledKey {
                key,
                header,
                sample_weight,
            }));
        }
        sampled
    }

    /// Locks the writer. While that is contended, prefetches the path to the key, which shortens
    /// the work under the lock.
    #[inline]
    fn lock_writer(&self, table: TableId, key: &[u8]) -> MutexGuard<'_, LogWriter> {
        if let Some(writer) = try_lock(&self.writer) {
            return writer;
        }
        self.prefetch_path(&self.version.load(), table, key);
        lock(&self.writer)
    }

    /// Brings the path to a key of the memtable into the CPU cache.
    #[inline]
    pub(crate) fn prefetch_path(&self, version: &Version, table: TableId, key: &[u8]) {
        if let Some(memtable) = version.active.memtable(table) {
            std::hint::black_box(memtable.get(key));
        }
    }

    /// A direct record goes after everything staged. Writing that first, without the lock, spares
    /// other writers the wait.
    #[inline]
    fn flush_staging_before(&self, len: usize) -> Result<()> {
        let is_staged = len <= LogWriter::max_staged_len(self.options.segment);
        if is_staged || self.options.durability == Durability::Sync {
            return Ok(());
        }
        self.check_writable()?;
        self.flush_staging()
    }

    /// The stream of a write.
    #[inline]
    fn stream_of(&self, table: TableId, hashes: Hashes) -> Stream {
        if self.hot_keys.record_write(table, hashes.key) { Stream::Hot } else { Stream::Main }
    }

    /// Ensures that there is space in the log.
    #[inline]
    fn reserve(&self, writer: &mut LogWriter, stream: Stream, len: usize) -> Result<()> {
        let reserved = writer.reserve(stream, len, &mut |stream| self.take_segment(stream));
        if writer.is_torn() {
            let why = "a record whose write failed may reappear at the next opening".to_owned();
            self.halt(reserved.as_ref().err().unwrap_or(&Error::Halted { why }));
            self.check_writable()?;
        }
        reserved
    }

    /// Halts the store if an uncommitted record may have become part of the log.
    #[inline]
    fn check_commit<T>(&self, writer: &LogWriter, committed: Result<T>) -> Result<T> {
        // A part of it may exist, and all of it reappear at the next opening.
        if let Err(error) = &committed
            && (writer.is_torn() || !matches!(error, Error::Full { .. }))
        {
            self.halt(error);
        }
        committed
    }

    /// Reserves sequences that belong to no write; returns the first.
    pub(crate) fn reserve_sequences(&self, writer: &mut LogWriter, count: u64) -> Result<u64> {
        self.reserve(writer, Stream::Main, LogWriter::SEQUENCE_GAP_LEN)?;
        let first = writer.reserve_sequences(count);
        let first = self.check_commit(writer, first)?;
        self.visible_sequence.store(writer.sequence, Ordering::Release);
        Ok(first)
    }

    /// Inserts a key into the active memtable of its table. If the key is to be sampled, returns
    /// the weight it stands for.
    #[inline]
    fn insert_into_memtable(
        &self,
        writer: &mut LogWriter,
        insertion_point: InsertionPoint<'_>,
        header: &Header,
        (segment, offset): (u32, u32),
        tag: Tag,
        key: &[u8],
    ) -> Option<u64> {
        let memtable = insertion_point.memtable;
        let pointer = ValuePointer::new(segment, offset, header.kind == RecordKind::Delete, tag);
        let bytes = memtable.bytes();
        let size = header.record_len() as u32;
        // SAFETY: the writer is locked and assigns increasing sequences; the insertion point was
        // found just now.
        let previous = unsafe { insertion_point.insert(key, header.sequence, pointer, size) };
        writer.memory += memtable.bytes() - bytes;
        let since = &mut writer.since_freeze;
        since.bytes += u64::from(size);
        match previous {
            // A sample of the keys new to the memtable estimates what is overwritten below.
            Some(0) => writer.sampler.sample(weight(size), header.sequence),
            Some(previous) => {
                since.replaced += u64::from(previous);
                None
            }
            None => None,
        }
    }

    fn freeze_if_due(&self, writer: &mut LogWriter, version: &Version) {
        if self.blocks.take_request() || self.preallocated.take_request() {
            self.work.notify();
        }
        let hidden = self.hidden_bytes(writer);
        let written = writer.since_freeze.bytes;
        if written > writer.since_freeze.delay_updated_at + self.delay_update_interval() {
            self.hot_keys.advance_clock(written - writer.since_freeze.delay_updated_at);
            writer.since_freeze.delay_updated_at = written;
            version.active.hidden.store(hidden, Ordering::Relaxed);
            self.update_write_delay();
        }
        let is_full = writer.memory >= self.options.memory;
        if is_full || self.hides_too_much(hidden, version) {
            self.freeze_memtables(writer);
        }
    }

    /// Whether the memtables hide too much garbage: what they replace in the levels is known only
    /// after their compaction.
    #[inline]
    fn hides_too_much(&self, hidden: u64, version: &Version) -> bool {
        hidden + version.hidden_in_levels > self.max_hidden()
            // While one set waits for compaction, another would not find out sooner.
            && version.frozen.is_empty()
    }

    /// Estimated log bytes made dead since the last freeze.
    #[inline]
    pub(crate) fn hidden_bytes(&self, writer: &LogWriter) -> u64 {
        writer.since_freeze.replaced + self.overwrite_estimate.bytes()
    }

    #[inline]
    fn check_lengths(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() > MAX_KEY_LEN {
            return Err(Error::KeyTooLong { len: key.len(), limit: MAX_KEY_LEN });
        }
        let limit = LogWriter::max_unit_len(self.options.segment)
            - EMPTY_RECORD_LEN
            - HEADER_LEN
            - MAX_KEY_LEN;
        if value.len() > limit {
            return Err(Error::ValueTooLong { len: value.len(), limit });
        }
        Ok(())
    }

    /// Delays a write while compaction or collection lags: at most
    /// [`Options::throttle`](crate::Options::throttle) for each write and each [`BYTES_PER_DELAY`]
    /// bytes. Returns the error if compaction fails altogether.
    #[inline]
    fn delay_write(&self, writes: usize, len: usize) -> Result<()> {
        let write_delay = self.work.write_delay.load(Ordering::Relaxed);
        if write_delay == 0 {
            return Ok(());
        }
        if !self.options.background {
            self.maintain(true);
        }
        if self.version.load().frozen.len() > self.options.frozen
            && let Some(failure) = self.work.compaction_error()
        {
            return Err(failure);
        }
        if self.options.background {
            self.counters.throttled.add(1);
            // Collection costs by bytes, and compaction by keys.
            let times = (len / BYTES_PER_DELAY).min(MAX_DELAYS_PER_WRITE).max(writes) as u64;
            self.wait_delays(times);
        }
        Ok(())
    }

    /// Waits for a multiple of the write delay, which may change meanwhile.
    fn wait_delays(&self, times: u64) {
        let mut waited = Duration::ZERO;
        loop {
            let write_delay = u64::from(self.work.write_delay.load(Ordering::Relaxed));
            let whole = Duration::from_nanos(write_delay * times).min(MAX_DELAY);
            let part = whole.saturating_sub(waited).min(DELAY_RECHECK_INTERVAL);
            if part.is_zero() {
                return;
            }
            delay(part);
            waited += part;
        }
    }

    fn after_write(&self, positions: StreamPositions, len: usize) -> Result<()> {
        self.flusher.after_write(len);
        if self.options.durability == Durability::Sync {
            self.sync_to(positions)?;
        }
        if !self.options.background {
            self.maintain(false);
        }
        Ok(())
    }
}

/// Where a write of a batch stands in the log.
struct EncodedWrite {
    header: Header,
    /// Segment and offset.
    location: (u32, u32),
    tag: Tag,
}

/// Encodes the head of a batch and its writes, from sequence `first` on, into the reserved space.
fn encode_batch(
    batch: &Batch,
    hashes: &[Hashes],
    first: u64,
    space: ReservedSpace<'_>,
) -> Vec<EncodedWrite> {
    let ReservedSpace { segment, offset: begin, bytes } = space;
    let (head, mut rest) = bytes.split_at_mut(EMPTY_RECORD_LEN);
    let header = Header {
        kind: RecordKind::Batch,
        in_batch: false,
        key_len: 0,
        value_len: rest.len() as u32,
        table: 0,
        sequence: first,
    };
    header.write((segment, begin), Hashes::of(b"", b""), b"", b"", head);
    let mut offset = begin + EMPTY_RECORD_LEN as u32;
    let mut encoded = Vec::with_capacity(batch.len());
    for (sequence, (write, &hashes)) in (first..).zip(batch.writes.iter().zip(hashes)) {
        let value = write.value.as_deref().unwrap_or_default();
        let header = Header {
            kind: if write.value.is_some() { RecordKind::Put } else { RecordKind::Delete },
            in_batch: true,
            key_len: write.key.len() as u16,
            value_len: value.len() as u32,
            table: write.table.id,
            sequence,
        };
        let location = (segment, offset);
        let (record, behind) = rest.split_at_mut(header.record_len());
        header.write(location, hashes, &write.key, value, record);
        offset += record.len() as u32;
        rest = behind;
        encoded.push(EncodedWrite { header, location, tag: Tag::of(hashes.key) });
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::options::Options;
    use crate::store::Store;

    /// Writes wait for the requested delay on average. (The upper limit is far above what a busy
    /// machine adds to these sleeps, and far below fifty times the delay.)
    #[test]
    fn writes_are_delayed_as_long_as_requested() {
        const WAIT: Duration = Duration::from_millis(2);
        const WRITES: u32 = 64;
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path(), Options::default()).unwrap();
        let table = store.table("t").unwrap();
        // By its bytes, at most 32 times as long.
        for (len, times) in [(0, 1), (9 << 10, 2), (8 << 20, 32)] {
            let writes = WRITES / times;
            let previous = store.statistics().throttled_writes;
            let waits = WAIT * writes * times;
            let begin = Instant::now();
            for number in 0..writes {
                store.engine().work.write_delay.store(WAIT.as_nanos() as u32, Ordering::Relaxed);
                table.put(&number.to_be_bytes(), &vec![7; len]).unwrap();
            }
            let took = begin.elapsed();
            assert!(took >= waits * 9 / 10, "{len}: {took:?}");
            assert!(took < waits * 20, "{len}: {took:?}");
            assert_eq!(store.statistics().throttled_writes - previous, u64::from(writes));
        }
        // By its writes.
        let mut batch = Batch::new();
        (0..WRITES).for_each(|number| batch.put(&table, &number.to_be_bytes(), b""));
        store.engine().work.write_delay.store(WAIT.as_nanos() as u32, Ordering::Relaxed);
        let begin = Instant::now();
        store.write(&batch).unwrap();
        let (took, waits) = (begin.elapsed(), WAIT * WRITES);
        assert!(took >= waits * 9 / 10 && took < waits * 20, "{took:?}");
    }

    #[test]
    fn long_delay_ends_when_pressure_ends() {
        let home = tempfile::tempdir().unwrap();
        // Nobody else changes the delay.
        let options = Options { background: false, ..Options::default() };
        let store = Store::open(home.path(), options).unwrap();
        let write_delay = &store.engine().work.write_delay;
        write_delay.store(10_000_000, Ordering::Relaxed);
        let begin = Instant::now();
        store.engine().wait_delays(1000);
        assert!(begin.elapsed() >= MAX_DELAY * 9 / 10, "{:?}", begin.elapsed());
        assert!(begin.elapsed() < MAX_DELAY * 5, "{:?}", begin.elapsed());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(MAX_DELAY / 20);
                write_delay.store(0, Ordering::Relaxed);
            });
            let begin = Instant::now();
            store.engine().wait_delays(1000);
            assert!(begin.elapsed() < MAX_DELAY * 3 / 4, "{:?}", begin.elapsed());
        });
    }

    /// However far compaction lags.
    #[test]
    fn write_delay_never_exceeds_the_throttle_option() {
        let home = tempfile::tempdir().unwrap();
        let throttle = Duration::from_micros(640);
        let options = Options { memory: 16 << 10, frozen: 1, throttle, ..Options::default() };
        let store = Store::open(home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        let engine = store.engine();
        // No compaction ends.
        let compaction = lock(&engine.compaction);
        let delay_updated_at =
            || Duration::from_nanos(engine.work.write_delay.load(Ordering::Relaxed).into());
        let mut number = 0_u32;
        let mut fill = |frozen: usize| {
            while engine.version.load().frozen.len() < frozen {
                number += 1;
                table.put(&number.to_be_bytes(), b"v").unwrap();
            }
            engine.update_write_delay();
            delay_updated_at()
        };
        assert_eq!(fill(1), Duration::ZERO);
        assert_eq!(fill(2), throttle / 64);
        assert_eq!(fill(4), throttle * 3 / 64);
        assert_eq!(fill(65), throttle);
        assert_eq!(fill(70), throttle);
        drop(compaction);
    }
}
