//! Writing: a record into the log, then its key into L0.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::batch::{Batch, MOST_WRITES};
use crate::error::{Error, Result};
use crate::inner::{Inner, lock, try_lock};
use crate::l0::Way;
use crate::log::Writer;
use crate::options::{Durability, LONGEST_KEY};
use crate::position::{Position, Tag};
use crate::record::{self, BARE, HEADER, Hashes, Header, Kind};
use crate::schedule::MutexGuard;
use crate::stream::{Places, Stream};
use crate::throttle::pause;
use crate::updates::{self, Drawn};
use crate::version::{TableId, Version};

/// A write of more bytes waits as often as it has so many.
const AT_ONCE: usize = 4 << 10;
/// But no more often.
const MOST_TIMES: usize = 32;
/// Nor does a batch, which waits as often as it has writes, wait longer at once.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// After so long it is asked again how long that is.
const ASKS_AGAIN: Duration = Duration::from_millis(4);

impl Inner {
    #[inline]
    pub(crate) fn write_one(
        &self,
        table: TableId,
        name: &str,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        self.check_lengths(key, value)?;
        self.check_interval()?;
        let len = record::len(key.len(), value.len());
        self.slow_down(1, len)?;
        self.write_out_before(len)?;
        let key_hash = record::hash(key);
        self.lately.prefetch(table, key_hash);
        let hashes = Hashes::of_value(key_hash, value);
        let mut header = Header {
            kind,
            in_batch: false,
            key_len: key.len() as u16,
            value_len: value.len() as u32,
            table,
            sequence: 0,
        };
        let (places, drawn) = {
            let mut writer = self.lock_writer(table, key);
            self.may_write()?;
            let sequence = writer.sequence + 1;
            header.sequence = sequence;
            let version = self.version.load();
            let l0 = version.table(table).and_then(|_| version.active.l0(table));
            let l0 = l0.ok_or_else(|| Error::NoTable { name: name.to_owned() })?;
            // The leaf is fetched while the record is put together.
            // SAFETY: the writer is locked.
            let way = unsafe { l0.seek(key) };
            let stream = self.stream_of(table, hashes);
            self.reserve(&mut writer, stream, len)?;
            let room = writer.room(stream, len);
            let (segment, offset) = (room.segment, room.offset);
            header.write((segment, offset), hashes, key, value, room.bytes);
            let committed = writer.commit(stream, len, 0);
            self.committed(&writer, committed)?;
            writer.sequence = sequence;
            let place = (segment, offset);
            let tag = Tag::of(hashes.key);
            let stands_for = self.enter(&mut writer, way, &header, place, tag, key);
            self.visible.store(sequence, Ordering::Release);
            self.enter_some(&mut writer, &version);
            self.rotate_if_due(&mut writer, &version);
            (writer.places(), stands_for.map(|stands_for| (version, stands_for)))
        };
        if let Some((version, stands_for)) = drawn {
            self.look_below(&version, &Drawn { key, header, stands_for });
        }
        self.after_write(places, len)
    }

    pub(crate) fn write_batch_of(&self, batch: &Batch) -> Result<()> {
        if batch.len() > MOST_WRITES {
            return Err(Error::TooManyWrites { count: batch.len(), limit: MOST_WRITES });
        }
        let mut hashes = Vec::with_capacity(batch.len());
        let mut bytes = 0;
        for write in &batch.writes {
            write.table.check_is_of(self)?;
            let value = write.value.as_deref().unwrap_or_default();
            self.check_lengths(&write.key, value)?;
            hashes.push(Hashes::of(&write.key, value));
            bytes += record::len(write.key.len(), value.len());
        }
        if batch.is_empty() {
            return Ok(());
        }
        let limit = Writer::longest(self.options.segment) - BARE;
        if bytes > limit {
            return Err(Error::BatchTooLong { len: bytes, limit });
        }
        self.check_interval()?;
        self.slow_down(batch.len(), bytes)?;
        self.write_out_before(BARE + bytes)?;
        let (places, version, drawn) = {
            let mut writer = lock(&self.writer);
            self.may_write()?;
            let first = writer.sequence + 1;
            self.reserve(&mut writer, Stream::Main, BARE + bytes)?;
            let room = writer.room(Stream::Main, BARE + bytes);
            let (segment, begin) = (room.segment, room.offset);
            let version = self.version.load();
            for write in &batch.writes {
                if version.table(write.table.id).is_none() {
                    return Err(Error::NoTable { name: write.table.name().to_owned() });
                }
            }
            let head = Header {
                kind: Kind::Batch,
                in_batch: false,
                key_len: 0,
                value_len: bytes as u32,
                table: 0,
                sequence: first,
            };
            head.write((segment, begin), Hashes::of(b"", b""), b"", b"", &mut room.bytes[..BARE]);
            let mut at = BARE;
            let mut entered = Vec::with_capacity(batch.len());
            for (sequence, (write, &hashes)) in (first..).zip(batch.writes.iter().zip(&hashes)) {
                let value = write.value.as_deref().unwrap_or_default();
                let header = Header {
                    kind: if write.value.is_some() { Kind::Put } else { Kind::Delete },
                    in_batch: true,
                    key_len: write.key.len() as u16,
                    value_len: value.len() as u32,
                    table: write.table.id,
                    sequence,
                };
                let place = (segment, begin + at as u32);
                let len = header.record_len();
                header.write(place, hashes, &write.key, value, &mut room.bytes[at..at + len]);
                entered.push((header, place, Tag::of(hashes.key)));
                at += len;
            }
            let committed = writer.commit(Stream::Main, BARE + bytes, BARE);
            self.committed(&writer, committed)?;
            writer.sequence = first + batch.len() as u64 - 1;
            let mut drawn = Vec::new();
            for (write, (header, place, tag)) in batch.writes.iter().zip(&entered) {
                // Every table of a version has its L0 there.
                let Some(l0) = version.active.l0(header.table) else { continue };
                // SAFETY: the writer is locked.
                let way = unsafe { l0.seek(&write.key) };
                let stands_for = self.enter(&mut writer, way, header, *place, *tag, &write.key);
                let of = |stands_for| Drawn { key: &write.key, header: *header, stands_for };
                drawn.extend(stands_for.map(of));
            }
            // All of it at once.
            self.visible.store(writer.sequence, Ordering::Release);
            self.enter_some(&mut writer, &version);
            self.rotate_if_due(&mut writer, &version);
            (writer.places(), version, drawn)
        };
        drawn.iter().for_each(|drawn| self.look_below(&version, drawn));
        drop(version);
        self.after_write(places, BARE + bytes)
    }

    /// The writer, once it is free. The time until then is used to have the way to the key in the
    /// processor's cache: what is done under the lock is then shorter.
    #[inline]
    fn lock_writer(&self, table: TableId, key: &[u8]) -> MutexGuard<'_, Writer> {
        if let Some(writer) = try_lock(&self.writer) {
            return writer;
        }
        self.warm_up(&self.version.load(), table, key);
        lock(&self.writer)
    }

    /// Brings the way to a key of L0 into the processor's cache.
    #[inline]
    pub(crate) fn warm_up(&self, version: &Version, table: TableId, key: &[u8]) {
        if let Some(l0) = version.active.l0(table) {
            std::hint::black_box(l0.get(key));
        }
    }

    /// A record that goes to its segment directly goes behind what is on its way there: others, who wait
    /// for the writer, need not wait for all of that.
    #[inline]
    fn write_out_before(&self, len: usize) -> Result<()> {
        let is_staged = len <= Writer::longest_staged(self.options.segment);
        if is_staged || self.options.durability == Durability::Sync {
            return Ok(());
        }
        self.may_write()?;
        self.write_out()
    }

    /// The stream of a write.
    #[inline]
    fn stream_of(&self, table: TableId, hashes: Hashes) -> Stream {
        if self.lately.note(table, hashes.key) { Stream::Hot } else { Stream::Main }
    }

    /// Makes sure that there is room in the log.
    #[inline]
    fn reserve(&self, writer: &mut Writer, stream: Stream, len: usize) -> Result<()> {
        let reserved = writer.reserve(stream, len, &mut |stream| self.take_segment(stream));
        if writer.is_torn() {
            let why = "a record that failed may turn up at the next opening".to_owned();
            self.halt(reserved.as_ref().err().unwrap_or(&Error::Halted { why }));
            self.may_write()?;
        }
        reserved
    }

    /// Halts the store if what was put into the room may have become a part of the log, and did not
    /// count.
    #[inline]
    fn committed<T>(&self, writer: &Writer, committed: Result<T>) -> Result<T> {
        // A part of it may be there, and all of it turn up at the next opening.
        if let Err(error) = &committed
            && (writer.is_torn() || !matches!(error, Error::Full { .. }))
        {
            self.halt(error);
        }
        committed
    }

    /// Sets so many sequences aside that are no write's; the first of them.
    pub(crate) fn set_aside(&self, writer: &mut Writer, count: u64) -> Result<u64> {
        self.reserve(writer, Stream::Main, Writer::SKIP)?;
        let first = writer.set_aside(count);
        let first = self.committed(writer, first)?;
        self.visible.store(writer.sequence, Ordering::Release);
        Ok(first)
    }

    /// Puts a key where it belongs in the active L0 of its table; if it is to be looked for below that, for
    /// how much it stands.
    #[inline]
    fn enter(
        &self,
        writer: &mut Writer,
        way: Way<'_>,
        header: &Header,
        (segment, offset): (u32, u32),
        tag: Tag,
        key: &[u8],
    ) -> Option<u64> {
        let l0 = way.l0;
        let position = Position::new(segment, offset, header.kind == Kind::Delete, tag);
        let bytes = l0.bytes();
        let size = header.record_len() as u32;
        // SAFETY: the writer is locked, and gives ever larger sequences away; the way was looked for
        // just now.
        let before = unsafe { way.insert(key, header.sequence, position, size) };
        writer.memory += l0.bytes() - bytes;
        let since = &mut writer.since_freeze;
        since.bytes += u64::from(size);
        match before {
            // What lies below is told by some of those that are new to the L0.
            Some(0) => writer.draw.is_drawn(updates::weight(size), header.sequence),
            Some(before) => {
                since.replaced += u64::from(before);
                None
            }
            None => None,
        }
    }

    fn rotate_if_due(&self, writer: &mut Writer, version: &Version) {
        if self.blocks.asks() || self.spares.asks() {
            self.work.tell();
        }
        let hidden = self.hidden_by(writer);
        let written = writer.since_freeze.bytes;
        if written > writer.since_freeze.told + self.weigh_after() {
            self.lately.written(written - writer.since_freeze.told);
            writer.since_freeze.told = written;
            version.active.hidden.store(hidden, Ordering::Relaxed);
            self.update_pressure();
        }
        let is_full = writer.memory >= self.options.memory;
        if is_full || self.hides_garbage(hidden, version) {
            self.rotate(writer);
        }
    }

    /// Whether L0 has taken in so many updates that much of the log may be dead without anyone
    /// knowing: what it replaces in the levels is found out by the merge.
    #[inline]
    fn hides_garbage(&self, hidden: u64, version: &Version) -> bool {
        hidden + version.hidden_in_levels > self.may_hide()
            // While one waits for its merge another would find out nothing sooner.
            && version.frozen.is_empty()
    }

    /// Bytes of the log that were made dead since the last freeze, by estimate.
    #[inline]
    pub(crate) fn hidden_by(&self, writer: &Writer) -> u64 {
        writer.since_freeze.replaced + self.dead_below.bytes()
    }

    #[inline]
    fn check_lengths(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() > LONGEST_KEY {
            return Err(Error::KeyTooLong { len: key.len(), limit: LONGEST_KEY });
        }
        let limit = Writer::longest(self.options.segment) - BARE - HEADER - LONGEST_KEY;
        if value.len() > limit {
            return Err(Error::ValueTooLong { len: value.len(), limit });
        }
        Ok(())
    }

    /// Waits a little, at most [`Options::throttle`](crate::Options::throttle) for each write and for each
    /// [`AT_ONCE`] bytes, while more waits to be merged or collected than should; says what is wrong if
    /// nothing can be merged at all.
    #[inline]
    fn slow_down(&self, writes: usize, len: usize) -> Result<()> {
        let pressure = self.work.pressure.load(Ordering::Relaxed);
        if pressure == 0 {
            return Ok(());
        }
        if !self.options.background {
            self.maintain(true);
        }
        if self.version.load().frozen.len() > self.options.frozen
            && let Some(failure) = self.work.merge_failure()
        {
            return Err(failure);
        }
        if self.options.background {
            self.counters.throttled.add(1);
            // What is collected for it, too, is by its bytes, and what is merged by its keys.
            let times = (len / AT_ONCE).min(MOST_TIMES).max(writes) as u64;
            self.wait_for(times);
        }
        Ok(())
    }

    /// Waits so many times what the pressure says, which may change meanwhile.
    fn wait_for(&self, times: u64) {
        let mut waited = Duration::ZERO;
        loop {
            let pressure = u64::from(self.work.pressure.load(Ordering::Relaxed));
            let whole = Duration::from_nanos(pressure * times).min(LONGEST_WAIT);
            let part = whole.saturating_sub(waited).min(ASKS_AGAIN);
            if part.is_zero() {
                return;
            }
            pause(part);
            waited += part;
        }
    }

    fn after_write(&self, places: Places, len: usize) -> Result<()> {
        self.flusher.after_write(len);
        if self.options.durability == Durability::Sync {
            self.sync_to(places)?;
        }
        if !self.options.background {
            self.maintain(false);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::options::Options;
    use crate::store::Store;

    /// Whatever the pressure says is what writes wait, on average. (The limit on the test's own time is
    /// far above what a busy machine adds to so many sleeps, and far below fifty times as much.)
    #[test]
    fn writes_wait_as_long_as_they_are_told_to() {
        const WAIT: Duration = Duration::from_millis(2);
        const WRITES: u32 = 64;
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path(), Options::default()).unwrap();
        let table = store.table("t").unwrap();
        // By its bytes, 32 times as long at most.
        for (len, times) in [(0, 1), (9 << 10, 2), (8 << 20, 32)] {
            let writes = WRITES / times;
            let before = store.statistics().throttled_writes;
            let waits = WAIT * writes * times;
            let begin = Instant::now();
            for number in 0..writes {
                store.inner().work.pressure.store(WAIT.as_nanos() as u32, Ordering::Relaxed);
                table.put(&number.to_be_bytes(), &vec![7; len]).unwrap();
            }
            let took = begin.elapsed();
            assert!(took >= waits * 9 / 10, "{len}: {took:?}");
            assert!(took < waits * 20, "{len}: {took:?}");
            assert_eq!(store.statistics().throttled_writes - before, u64::from(writes));
        }
        // By its writes.
        let mut batch = Batch::new();
        (0..WRITES).for_each(|number| batch.put(&table, &number.to_be_bytes(), b""));
        store.inner().work.pressure.store(WAIT.as_nanos() as u32, Ordering::Relaxed);
        let begin = Instant::now();
        store.write(&batch).unwrap();
        let (took, waits) = (begin.elapsed(), WAIT * WRITES);
        assert!(took >= waits * 9 / 10 && took < waits * 20, "{took:?}");
    }

    #[test]
    fn a_long_wait_ends_with_what_it_is_for() {
        let home = tempfile::tempdir().unwrap();
        // Nobody else changes the pressure.
        let options = Options { background: false, ..Options::default() };
        let store = Store::open(home.path(), options).unwrap();
        let pressure = &store.inner().work.pressure;
        pressure.store(10_000_000, Ordering::Relaxed);
        let begin = Instant::now();
        store.inner().wait_for(1000);
        assert!(begin.elapsed() >= LONGEST_WAIT * 9 / 10, "{:?}", begin.elapsed());
        assert!(begin.elapsed() < LONGEST_WAIT * 5, "{:?}", begin.elapsed());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(LONGEST_WAIT / 20);
                pressure.store(0, Ordering::Relaxed);
            });
            let begin = Instant::now();
            store.inner().wait_for(1000);
            assert!(begin.elapsed() < LONGEST_WAIT * 3 / 4, "{:?}", begin.elapsed());
        });
    }

    /// However late merges are.
    #[test]
    fn no_write_is_told_to_wait_longer_than_the_throttle() {
        let home = tempfile::tempdir().unwrap();
        let throttle = Duration::from_micros(640);
        let options = Options { memory: 16 << 10, frozen: 1, throttle, ..Options::default() };
        let store = Store::open(home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        let inner = store.inner();
        // No merge ends.
        let merging = lock(&inner.merging);
        let told = || Duration::from_nanos(inner.work.pressure.load(Ordering::Relaxed).into());
        let mut number = 0_u32;
        let mut fill = |frozen: usize| {
            while inner.version.load().frozen.len() < frozen {
                number += 1;
                table.put(&number.to_be_bytes(), b"v").unwrap();
            }
            inner.update_pressure();
            told()
        };
        assert_eq!(fill(1), Duration::ZERO);
        assert_eq!(fill(2), throttle / 64);
        assert_eq!(fill(4), throttle * 3 / 64);
        assert_eq!(fill(65), throttle);
        assert_eq!(fill(70), throttle);
        drop(merging);
    }
}
