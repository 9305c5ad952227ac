//! Collecting garbage: what still lives in a segment that is mostly dead is copied, and the
//! segment goes when that is durable.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::fs::write_whole;
use crate::inner::{Inner, lock};
use crate::level::merge::Dead;
use crate::log::segment::FILE_HEADER;
use crate::log::{Segment, Stream};
use crate::position::{Point, Position, Tag};
use crate::read::Found;
use crate::record::{Hashes, Header, Kind};
use crate::sync::sync;
use crate::version::Version;

/// Copies that are written and entered together, in bytes.
const BATCH: usize = 256 << 10;
/// Copies that are entered under one lock.
const AT_ONCE: usize = 16;
/// Sequences that are set aside for a batch: more than it has records.
const SEQUENCES: u64 = 1 << 20;
/// Of the garbage that is allowed for, collecting begins when so much is there: the rest is for
/// what merges have not found yet.
const BEGIN: f64 = 0.8;

/// Where the copies go.
#[derive(Default)]
pub(crate) struct Collector {
    segment: Option<Arc<Segment>>,
}

impl Collector {
    /// The next copies go to a new segment.
    pub(crate) fn end_segment(&mut self) -> Option<Arc<Segment>> {
        self.segment.take()
    }
}

/// A live record on its way.
struct Copy {
    header: Header,
    key: Vec<u8>,
    /// Where it is in the batch, and its length.
    place: usize,
    len: usize,
    old: Position,
}

/// How the entering of a batch ended.
enum Entered {
    All,
    /// A freeze came between: this many were entered.
    Before(usize),
}

impl Inner {
    /// Collects the segment that has the largest share of garbage, if there is more garbage than
    /// there should be; answers whether it did.
    pub(crate) fn collect(&self) -> Result<bool> {
        let Some(victim) = self.victim() else { return Ok(false) };
        self.may_write()?;
        let mut collector = lock(&self.collector);
        self.copy_live(&mut collector, &victim)?;
        drop(collector);
        self.sync_copies()?;
        // What made the other records dead must be durable too.
        let point = lock(&self.writer).point();
        self.sync_to(point)?;
        let mut durable = lock(&self.durable);
        let gone = HashSet::from([victim.id]);
        let covers = durable.covers;
        self.publish(&mut durable, covers, &Dead::default(), |version| {
            version.segments = version.segments.without(&gone);
        })?;
        drop(durable);
        self.counters.collected.add(1);
        self.update_pressure();
        Ok(true)
    }

    /// Whether writers are faster than collecting.
    pub(crate) fn has_too_much_garbage(&self, version: &Version) -> bool {
        let (all, dead) = (version.log_bytes(), version.dead_bytes());
        let allowed = self.options.space_amplification * 1.1;
        all as f64 > allowed * all.saturating_sub(dead) as f64 + self.slack()
    }

    /// Segments that are being filled are not garbage, however little lives.
    fn slack(&self) -> f64 {
        3.0 * self.options.segment as f64
    }

    /// The segment to collect, if one is due.
    fn victim(&self) -> Option<Arc<Segment>> {
        let version = self.version.load();
        let covers = lock(&self.durable).covers;
        let (all, dead) = (version.log_bytes(), version.dead_bytes());
        let allowed = 1.0 + (self.options.space_amplification - 1.0) * BEGIN;
        let live = all.saturating_sub(dead);
        let is_due = all as f64 > allowed * live as f64;
        let share = |segment: &Segment| segment.dead() as f64 / segment.bytes().max(1) as f64;
        let best = version
            .segments
            .iter()
            // What is not in the levels yet is needed for recovery.
            .filter(|segment| segment.end().is_some())
            .filter(|segment| match segment.stream {
                Stream::Main => segment.id < covers.main.segment,
                Stream::Copies => segment.id < covers.copies.segment,
            })
            .max_by(|one, other| share(one).total_cmp(&share(other)))?;
        // One that is wholly dead costs nothing to collect.
        let is_worth = share(best) >= (1.0 - 1.0 / allowed) / 2.0;
        (is_due && is_worth || best.dead() >= best.bytes()).then(|| Arc::clone(best))
    }

    fn copy_live(&self, collector: &mut Collector, victim: &Segment) -> Result<()> {
        let Some(end) = victim.end() else { return Ok(()) };
        let mut at = FILE_HEADER;
        while at < end {
            let mut batch = Vec::new();
            let mut bytes = 0;
            // Sequences first: what the index says after that is not older than they are.
            let (first, rotations) = self.begin_batch(collector)?;
            let from = at;
            let stop = victim.walk(from, end, |offset, record| {
                let tombstone = match record.header.kind {
                    Kind::Put => false,
                    Kind::Delete => true,
                    Kind::Batch | Kind::Seal | Kind::Mark => return Ok(true),
                };
                let tag = Tag::of(Hashes::of(record.key, b"").key);
                let old = Position::new(victim.id, offset, tombstone, tag);
                if self.is_current(record.header.table, record.key, old)? {
                    let mut header = record.header;
                    header.in_batch = false;
                    header.sequence = first + batch.len() as u64;
                    let len = header.record_len();
                    let key = record.key.to_vec();
                    batch.push((
                        Copy { header, key, place: bytes, len, old },
                        record.value.to_vec(),
                    ));
                    bytes += len;
                }
                Ok(bytes < BATCH)
            })?;
            let entered = self.write_batch(collector, &batch, bytes, rotations)?;
            match entered {
                Entered::All => {
                    if stop == from {
                        return Err(victim.damaged(from, "a record is not what was written"));
                    }
                    at = stop;
                }
                // The rest has to be looked up again.
                Entered::Before(0) => {}
                Entered::Before(count) => {
                    at = batch[count - 1].0.old.offset() + batch[count - 1].0.len as u32;
                }
            }
            if self.work.is_closing.load(Ordering::Relaxed) && at < end {
                return Err(Error::Halted { why: "the store is being closed".to_owned() });
            }
        }
        Ok(())
    }

    /// Sets sequences aside, and notes where the batch will lie.
    fn begin_batch(&self, collector: &mut Collector) -> Result<(u64, u64)> {
        let is_full = |segment: &Segment| {
            segment.written() as usize + BATCH + self.options.segment / 4 > segment.capacity()
        };
        if collector.segment.as_deref().is_none_or(is_full) {
            if let Some(full) = collector.segment.take() {
                full.complete(full.written());
            }
            collector.segment = Some(self.make_segment(Stream::Copies)?);
        }
        let mut writer = lock(&self.writer);
        if let Some(segment) = &collector.segment {
            writer.copies_begin = Point { segment: segment.id, offset: segment.written() };
        }
        let first = writer.sequence + 1;
        writer.sequence += SEQUENCES;
        self.visible.store(writer.sequence, Ordering::Release);
        Ok((first, self.rotations.load(Ordering::Acquire)))
    }

    /// Whether a record is what its key says now.
    fn is_current(&self, table: u32, key: &[u8], old: Position) -> Result<bool> {
        loop {
            let version = self.version.load();
            if version.table(table).is_none() {
                return Ok(false);
            }
            match self.find(&version, table, key, None)? {
                Found::At(position) => return Ok(position == old),
                Found::Nothing => return Ok(false),
                Found::Gone => {}
            }
        }
    }

    /// Writes the copies to their segment and enters those that are still what their keys say.
    fn write_batch(
        &self,
        collector: &mut Collector,
        batch: &[(Copy, Vec<u8>)],
        bytes: usize,
        rotations: u64,
    ) -> Result<Entered> {
        let mut segment = match &collector.segment {
            Some(segment) => Arc::clone(segment),
            None => return Ok(Entered::All),
        };
        if batch.is_empty() {
            return Ok(Entered::All);
        }
        if segment.written() as usize + bytes > segment.capacity() {
            // A record so long that it does not fit behind the others.
            segment.complete(segment.written());
            segment = self.make_segment(Stream::Copies)?;
            collector.segment = Some(Arc::clone(&segment));
        }
        let begin = segment.written();
        let mut out = vec![0; bytes];
        for (copy, value) in batch {
            let hashes = Hashes::of(&copy.key, value);
            let place = (segment.id, begin + copy.place as u32);
            let room = &mut out[copy.place..copy.place + copy.len];
            copy.header.write(place, hashes, &copy.key, value, room);
        }
        write_whole(&*segment.file, &out, u64::from(begin))
            .map_err(|error| Error::io(segment.path(), error))?;
        segment.set_written(begin + bytes as u32);
        self.counters.copied.add(bytes as u64);
        let mut done = 0;
        for part in batch.chunks(AT_ONCE) {
            let mut writer = lock(&self.writer);
            if self.rotations.load(Ordering::Acquire) != rotations {
                // These sequences are below what the frozen generation covers: recovery would
                // not look at them. The rest of the batch is dead.
                let rest = &batch[done..];
                let dead: usize = rest.iter().map(|(copy, _)| copy.len).sum();
                segment.add_dead(dead as u64);
                return Ok(Entered::Before(done));
            }
            let version = self.version.load();
            for (copy, _) in part {
                let table = copy.header.table;
                let Some(l0) = version.active.l0(table).filter(|_| version.table(table).is_some())
                else {
                    segment.add_dead(copy.len as u64);
                    continue;
                };
                // Written since the sequences were set aside: then it is in this L0.
                let is_newer =
                    l0.get(&copy.key).is_some_and(|newest| newest.sequence > copy.header.sequence);
                if is_newer {
                    segment.add_dead(copy.len as u64);
                    continue;
                }
                let offset = begin + copy.place as u32;
                let tag = Tag::of(Hashes::of(&copy.key, b"").key);
                let position = Position::new(segment.id, offset, copy.old.is_tombstone(), tag);
                let before = l0.bytes();
                // SAFETY: the writer is locked.
                unsafe { l0.insert(&copy.key, copy.header.sequence, position, copy.len as u32) };
                writer.memory += l0.bytes() - before;
            }
            done += part.len();
            if writer.memory >= self.options.memory {
                // Fails only if the log cannot be written: then the next write says so.
                let _ = self.rotate(&mut writer);
            }
        }
        Ok(Entered::All)
    }

    /// Everything that was copied is on the device.
    pub(crate) fn sync_copies(&self) -> Result<()> {
        let version = self.version.load();
        let (_, synced) = self.synced.points();
        let mut last = synced;
        let done = (|| {
            for segment in version.segments.iter() {
                let point = Point { segment: segment.id, offset: segment.written() };
                if segment.stream == Stream::Copies && point > synced {
                    sync(segment)?;
                    last = last.max(point);
                }
            }
            if last.segment > synced.segment {
                let dir = self.log_dir();
                self.fs.sync_dir(&dir).map_err(|error| Error::io(&dir, error))?;
            }
            Ok(())
        })();
        if let Err(error) = &done {
            self.halt(error);
        }
        if done.is_ok() {
            self.synced.copies_synced(last);
        }
        done
    }
}
