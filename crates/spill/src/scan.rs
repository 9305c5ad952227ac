//! Range scans in either direction, as of one moment.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::{self, Bound};
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::level;
use crate::memtable;
use crate::read::visible_version;
use crate::record::Record;
use crate::value_pointer::ValuePointer;
use crate::version::{Lookup, TableId, Version};

/// Records prefetched ahead of the scan.
const PREFETCH_AHEAD: usize = 8;
/// A longer value is verified and copied only when it is returned, since it may lie outside of the
/// range.
const LAZY_VALUE_LEN: u32 = 16 << 10;
/// Up to this many entries are searched linearly, more by bisection.
const LINEAR_SEARCH_MAX: usize = 4;

/// A range of keys of a table as of one moment, readable from both ends.
///
/// Segments and levels that it reads stay on disk until it is dropped, even if they are replaced.
pub struct Range {
    version: Arc<Version>,
    sequence: u64,
    table: TableId,
    front: Option<MergingIterator>,
    back: Option<MergingIterator>,
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    /// The last returned pair.
    pair: KeyValue,
    /// Returned by the first step instead of a pair.
    pending_error: Option<Error>,
    is_finished: bool,
    /// Dropped last: files are deleted while the directory is still locked.
    engine: Arc<Engine>,
}

#[derive(Default)]
struct KeyValue {
    key: Vec<u8>,
    value: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

impl Range {
    pub(crate) fn new(
        engine: Arc<Engine>,
        version: Arc<Version>,
        sequence: u64,
        table: TableId,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Range {
        Range {
            engine,
            version,
            sequence,
            table,
            front: None,
            back: None,
            low: low.map(<[u8]>::to_vec),
            high: high.map(<[u8]>::to_vec),
            pair: KeyValue::default(),
            pending_error: None,
            is_finished: false,
        }
    }

    /// A range that returns an error.
    pub(crate) fn with_error(self, error: Error) -> Range {
        Range { pending_error: Some(error), ..self }
    }

    /// The next pair from the front; `None` when the ends have met, and after an error.
    ///
    /// # Errors
    /// As [`Table::get`](crate::Table::get); for a [`Snapshot`](crate::Snapshot), at the first
    /// step, [`Error::NoTable`] if the table belongs to another store.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.step(Direction::Forward)
    }

    /// The next pair from the back; None when the ends have met, and after an error.
    ///
    /// # Errors
    /// As [`Range::next`].
    pub fn next_back(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.step(Direction::Backward)
    }

    /// An iterator over owned pairs.
    pub fn pairs(self) -> Pairs {
        Pairs(self)
    }

    fn step(&mut self, direction: Direction) -> Result<Option<(&[u8], &[u8])>> {
        if self.is_finished {
            return Ok(None);
        }
        // The range ends after an error: an unreadable source would be missing, and what it hides
        // would appear.
        self.is_finished = true;
        if !self.try_step(direction)? {
            return Ok(None);
        }
        self.is_finished = false;
        Ok(Some((&self.pair.key, &self.pair.value)))
    }

    /// Moves to the next pair; false if the ends have met.
    fn try_step(&mut self, direction: Direction) -> Result<bool> {
        if let Some(error) = self.pending_error.take() {
            return Err(error);
        }
        let end = match direction {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        };
        let merging = match end {
            Some(merging) => merging,
            None => {
                let mut merging = MergingIterator::new(&self.version, self.table);
                let context = ScanContext {
                    engine: &self.engine,
                    version: &self.version,
                    sequence: self.sequence,
                    direction,
                };
                let from = match direction {
                    Direction::Forward => &self.low,
                    Direction::Backward => &self.high,
                };
                merging.start(&context, from)?;
                end.insert(merging)
            }
        };
        let context = ScanContext {
            engine: &self.engine,
            version: &self.version,
            sequence: self.sequence,
            direction,
        };
        // The other end, moved by what was returned there.
        let (low, high) = (&self.low, &self.high);
        let is_within = |key: &[u8]| match direction {
            Direction::Forward => match high {
                Bound::Included(high) => key <= high.as_slice(),
                Bound::Excluded(high) => key < high.as_slice(),
                Bound::Unbounded => true,
            },
            Direction::Backward => match low {
                Bound::Included(low) => key >= low.as_slice(),
                Bound::Excluded(low) => key > low.as_slice(),
                Bound::Unbounded => true,
            },
        };
        if !merging.next(&context, is_within, &mut self.pair)? {
            return Ok(false);
        }
        let key = &self.pair.key;
        let passed = match direction {
            Direction::Forward => &mut self.low,
            Direction::Backward => &mut self.high,
        };
        match passed {
            Bound::Excluded(passed) => passed.clone_from(key),
            other => *other = Bound::Excluded(key.clone()),
        }
        Ok(true)
    }
}

/// What a scan reads from.
struct ScanContext<'a> {
    engine: &'a Engine,
    version: &'a Version,
    sequence: u64,
    direction: Direction,
}

/// Merges the sources of a table, newest first.
struct MergingIterator {
    sources: Vec<ScanSource>,
}

/// A memtable or level with its cursor.
struct ScanSource {
    cursor: SourceCursor,
    /// The current key and, for a level, its value; `None` at the end.
    current: Option<CurrentEntry>,
    scratch: Vec<u8>,
    prefetched: VecDeque<ValuePointer>,
}

enum SourceCursor {
    Memtable(memtable::Cursor),
    Level(level::Cursor),
}

/// Its buffers are reused for each entry.
struct CurrentEntry {
    pair: KeyValue,
    pointer: ValuePointer,
    /// The value was read together with the key.
    has_value: bool,
}

impl MergingIterator {
    fn new(version: &Version, table: TableId) -> MergingIterator {
        let memtable_sets = std::iter::once(&version.active).chain(&version.frozen);
        let memtable_sets = memtable_sets.filter(|_| version.table(table).is_some());
        let memtables = memtable_sets.filter_map(|memtable_set| memtable_set.memtable(table));
        let memtables = memtables.filter(|memtable| !memtable.is_empty());
        let memtables = memtables
            .map(|memtable| SourceCursor::Memtable(memtable::Cursor::new(Arc::clone(memtable))));
        let levels = version.table(table).into_iter().flat_map(|table| &table.levels).flatten();
        let levels = levels.map(|level| SourceCursor::Level(level::Cursor::new(Arc::clone(level))));
        let source = |cursor| ScanSource {
            cursor,
            current: None,
            scratch: Vec::new(),
            prefetched: VecDeque::new(),
        };
        MergingIterator { sources: memtables.chain(levels).map(source).collect() }
    }

    fn start(&mut self, context: &ScanContext<'_>, from: &Bound<Vec<u8>>) -> Result<()> {
        for source in &mut self.sources {
            source.current = Some(CurrentEntry {
                pair: KeyValue::default(),
                pointer: ValuePointer::from_bits(0),
                has_value: false,
            });
            source.start(context, from)?;
        }
        Ok(())
    }

    /// The next pair that is not a tombstone; false at the end, or outside of the range.
    fn next(
        &mut self,
        context: &ScanContext<'_>,
        is_within: impl Fn(&[u8]) -> bool,
        pair: &mut KeyValue,
    ) -> Result<bool> {
        loop {
            let mut best: Option<usize> = None;
            for (index, source) in self.sources.iter().enumerate() {
                let Some(current) = &source.current else { continue };
                let is_better =
                    best.and_then(|best| self.sources[best].current.as_ref()).is_none_or(|best| {
                        let order = current.pair.key.cmp(&best.pair.key);
                        match context.direction {
                            Direction::Forward => order == Ordering::Less,
                            Direction::Backward => order == Ordering::Greater,
                        }
                    });
                if is_better {
                    best = Some(index);
                }
            }
            let Some(best) = best else { return Ok(false) };
            let current = self.sources[best].current.as_ref();
            if !current.is_some_and(|current| is_within(&current.pair.key)) {
                return Ok(false);
            }
            let is_tombstone = self.sources[best].take(context, pair)?;
            self.sources[best].advance(context)?;
            // Skips older versions of the same key.
            for source in &mut self.sources[best + 1..] {
                if source.current.as_ref().is_some_and(|current| current.pair.key == pair.key) {
                    source.advance(context)?;
                }
            }
            if !is_tombstone {
                return Ok(true);
            }
        }
    }
}

impl ScanSource {
    fn start(&mut self, context: &ScanContext<'_>, from: &Bound<Vec<u8>>) -> Result<()> {
        match (context.direction, from) {
            (Direction::Forward, Bound::Unbounded) => self.seek(context, b"")?,
            (Direction::Forward, Bound::Included(key)) => self.seek(context, key)?,
            (Direction::Forward, Bound::Excluded(key)) => {
                self.seek(context, key)?;
                if self.current.as_ref().is_some_and(|current| current.pair.key == *key) {
                    self.advance(context)?;
                }
            }
            (Direction::Backward, Bound::Unbounded) => {
                match &mut self.cursor {
                    SourceCursor::Memtable(cursor) => cursor.seek_below(None),
                    SourceCursor::Level(cursor) => cursor.seek_end()?,
                }
                self.load_current(context)?;
            }
            (Direction::Backward, Bound::Excluded(key)) => self.seek_below(context, key)?,
            (Direction::Backward, Bound::Included(key)) => {
                // The smallest key above it; nothing lies between.
                let mut above = key.clone();
                above.push(0);
                self.seek_below(context, &above)?;
            }
        }
        Ok(())
    }

    /// Moves to the first key at or above this one.
    fn seek(&mut self, context: &ScanContext<'_>, key: &[u8]) -> Result<()> {
        match &mut self.cursor {
            SourceCursor::Memtable(cursor) => {
                cursor.seek(key);
                self.load_current(context)
            }
            SourceCursor::Level(cursor) => {
                let ambiguous = cursor.seek(key)?;
                let ambiguous = narrow(cursor, context, key, ambiguous, &mut self.scratch)?;
                cursor.skip(ambiguous.start)?;
                let mut ambiguous = ambiguous.len();
                self.load_current(context)?;
                while ambiguous > 0
                    && self
                        .current
                        .as_ref()
                        .is_some_and(|current| current.pair.key.as_slice() < key)
                {
                    self.advance(context)?;
                    ambiguous -= 1;
                }
                Ok(())
            }
        }
    }

    /// Moves to the last key below this one.
    fn seek_below(&mut self, context: &ScanContext<'_>, key: &[u8]) -> Result<()> {
        match &mut self.cursor {
            SourceCursor::Memtable(cursor) => {
                cursor.seek_below(Some(key));
                self.load_current(context)
            }
            SourceCursor::Level(cursor) => {
                let ambiguous = cursor.seek(key)?;
                let ambiguous = narrow(cursor, context, key, ambiguous, &mut self.scratch)?;
                // Behind the entries that may be below it.
                cursor.skip(ambiguous.end)?;
                let mut ambiguous = ambiguous.len();
                self.load_current(context)?;
                while ambiguous > 0
                    && self
                        .current
                        .as_ref()
                        .is_some_and(|current| current.pair.key.as_slice() >= key)
                {
                    self.advance(context)?;
                    ambiguous -= 1;
                }
                Ok(())
            }
        }
    }

    /// Reads the entry at the cursor (before it for a level going backward), and skips those that
    /// do not count.
    fn load_current(&mut self, context: &ScanContext<'_>) -> Result<()> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        loop {
            match &mut self.cursor {
                SourceCursor::Memtable(cursor) => {
                    let Some((key, newest)) = cursor.current() else { return Ok(()) };
                    if let Some(found) = visible_version(newest, context.version, context.sequence)
                    {
                        current.pair.key.clear();
                        current.pair.key.extend_from_slice(key);
                        current.pointer = found.pointer;
                        current.has_value = false;
                        self.current = Some(current);
                        return Ok(());
                    }
                    match context.direction {
                        Direction::Forward => cursor.next(),
                        Direction::Backward => cursor.previous(),
                    }
                }
                SourceCursor::Level(cursor) => {
                    if context.direction == Direction::Backward && !cursor.previous()? {
                        return Ok(());
                    }
                    let Some(pointer) = cursor.current()? else { return Ok(()) };
                    prefetch_ahead(cursor, context, &mut self.prefetched, pointer)?;
                    let KeyValue { key, value } = &mut current.pair;
                    let (version, staging) = (context.version, &context.engine.staging);
                    let verify = context.engine.options.verify;
                    let scratch = &mut self.scratch;
                    let is_long = |record: &Record<'_>| record.header.value_len > LAZY_VALUE_LEN;
                    let verify = |record: &Record<'_>| verify && !is_long(record);
                    let lookup =
                        version.read_record_if(staging, pointer, verify, scratch, |record| {
                            if is_long(record) {
                                return false;
                            }
                            key.clear();
                            key.extend_from_slice(record.key);
                            value.clear();
                            value.extend_from_slice(record.value);
                            true
                        });
                    let lookup = match lookup {
                        // The record may have been replaced or lie outside of the range. Its value
                        // is verified, or read again, if it is returned.
                        Ok(Lookup::Found(false))
                        | Err(Error::Damaged { .. } | Error::Io { .. }) => {
                            version.read_key(staging, pointer, scratch, |record| {
                                key.clear();
                                key.extend_from_slice(record.key);
                                false
                            })?
                        }
                        other => other?,
                    };
                    if let Lookup::Found(has_value) = lookup {
                        current.pointer = pointer;
                        current.has_value = has_value;
                        self.current = Some(current);
                        return Ok(());
                    }
                    if context.direction == Direction::Forward {
                        cursor.next()?;
                    }
                }
            }
        }
    }

    /// Moves to the next entry that counts.
    fn advance(&mut self, context: &ScanContext<'_>) -> Result<()> {
        match &mut self.cursor {
            SourceCursor::Memtable(cursor) => match context.direction {
                Direction::Forward => cursor.next(),
                Direction::Backward => cursor.previous(),
            },
            SourceCursor::Level(cursor) => {
                if context.direction == Direction::Forward {
                    cursor.next()?;
                }
            }
        }
        self.load_current(context)
    }

    /// Puts the current entry into `pair`; returns whether it is a tombstone.
    fn take(&mut self, context: &ScanContext<'_>, pair: &mut KeyValue) -> Result<bool> {
        let Some(current) = &mut self.current else { return Ok(true) };
        std::mem::swap(pair, &mut current.pair);
        if current.pointer.is_tombstone() {
            return Ok(true);
        }
        if !current.has_value {
            let value = &mut pair.value;
            let verify = context.engine.options.verify;
            let staging = &context.engine.staging;
            staging.note_read();
            let version = context.version;
            let lookup = version.read_record(
                staging,
                current.pointer,
                verify,
                &mut self.scratch,
                |record| {
                    value.clear();
                    value.extend_from_slice(record.value);
                },
            )?;
            debug_assert!(matches!(lookup, Lookup::Found(())));
        }
        Ok(false)
    }
}

/// Narrows the `ambiguous` entries at a cursor, which only their records can order against a key.
/// Entries before the result are below the key, and entries behind it are not; the result counts
/// few live entries.
fn narrow(
    cursor: &level::Cursor,
    context: &ScanContext<'_>,
    key: &[u8],
    ambiguous: usize,
    scratch: &mut Vec<u8>,
) -> Result<ops::Range<usize>> {
    let entries: Vec<ValuePointer> = match ambiguous {
        0..=LINEAR_SEARCH_MAX => return Ok(0..ambiguous),
        _ => cursor.ahead(ambiguous)?.collect(),
    };
    let mut range = 0..entries.len();
    while range.len() > LINEAR_SEARCH_MAX {
        let middle = range.start + range.len() / 2;
        // Entries whose segment is gone tell nothing. Nor do damaged ones, which are reported if
        // the scan meets them; they stay in the range unless another entry orders them.
        let (mut found, mut skipped) = (None, middle + 1);
        for at in (range.start..=middle).rev().chain(middle + 1..range.end) {
            let is_below = |record: &Record<'_>| record.key < key;
            match context.version.read_key(&context.engine.staging, entries[at], scratch, is_below)
            {
                Ok(Lookup::Found(below)) => {
                    found = Some((at, below));
                    break;
                }
                Ok(Lookup::SegmentGone) => {}
                Err(_) if at <= middle => skipped = at,
                Err(_) => {}
            }
        }
        match found {
            None => return Ok(range),
            Some((at, true)) => range.start = if at > middle { at + 1 } else { skipped },
            Some((at, false)) => range.end = at,
        }
    }
    Ok(range)
}

/// Prefetches the next records, each once.
fn prefetch_ahead(
    cursor: &level::Cursor,
    context: &ScanContext<'_>,
    prefetched: &mut VecDeque<ValuePointer>,
    now: ValuePointer,
) -> Result<()> {
    if prefetched.front() == Some(&now) {
        prefetched.pop_front();
    } else {
        prefetched.clear();
    }
    if prefetched.len() > PREFETCH_AHEAD / 2 {
        return Ok(());
    }
    let have = prefetched.len();
    match context.direction {
        Direction::Forward => {
            prefetched.extend(cursor.ahead(have + 1 + PREFETCH_AHEAD)?.skip(have + 1))
        }
        Direction::Backward => prefetched.extend(cursor.behind(have + PREFETCH_AHEAD)?.skip(have)),
    }
    context.version.prefetch_all(prefetched.iter().skip(have).copied());
    Ok(())
}

/// Iterates over a [`Range`] from either end. An error is one of [`Range::next`], and the last
/// item.
pub struct Pairs(Range);

type OwnedPair = (Vec<u8>, Vec<u8>);

fn to_owned_pair(pair: Result<Option<(&[u8], &[u8])>>) -> Option<Result<OwnedPair>> {
    pair.map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec()))).transpose()
}

impl Iterator for Pairs {
    type Item = Result<OwnedPair>;

    fn next(&mut self) -> Option<Self::Item> {
        to_owned_pair(self.0.next())
    }
}

impl DoubleEndedIterator for Pairs {
    fn next_back(&mut self) -> Option<Self::Item> {
        to_owned_pair(self.0.next_back())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Range;
    use std::time::Duration;

    use crate::{Options, Store, Table};

    /// A page strips 128 bytes of common prefix, so all heads of a leaf are equal here.
    fn key(number: u32) -> Vec<u8> {
        format!("{}{number:05}", "p".repeat(200)).into_bytes()
    }

    /// Checks where ranges begin and end.
    fn check(table: &Table, all: &BTreeMap<Vec<u8>, Vec<u8>>, keys: Range<u32>) {
        let own = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        for number in keys {
            for key in [key(number), [key(number), vec![0]].concat()] {
                let first = table.range(key.as_slice()..).pairs().next().map(Result::unwrap);
                let last = table.range(..key.as_slice()).pairs().next_back().map(Result::unwrap);
                assert_eq!(last, all.range(..key.clone()).next_back().map(own), "below {number}");
                assert_eq!(first, all.range(key..).next().map(own), "from {number}");
            }
        }
    }

    #[test]
    fn ranges_start_correctly_when_all_heads_tie() {
        const KEYS: u32 = 3000;
        let home = tempfile::tempdir().unwrap();
        let options = Options {
            background: false,
            memory: 64 << 10,
            segment: 64 << 10,
            space_amplification: 2.5,
            growth: 2,
            ..Options::default()
        };
        let store = Store::open(home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        let mut all = BTreeMap::new();
        for round in 0..8 * KEYS {
            let key = key((round.wrapping_mul(0x9e37_79b9) >> 7) % KEYS);
            if round % 11 == 0 {
                table.delete(&key).unwrap();
                all.remove(&key);
            } else {
                table.put(&key, &round.to_be_bytes()).unwrap();
                all.insert(key, round.to_be_bytes().to_vec());
            }
        }
        let found = store.statistics();
        assert!(found.levels >= 2 && found.collected_segments > 0, "{found:?}");
        check(&table, &all, 0..KEYS);
    }

    /// Only an upper level tells, since the segments of the earlier records are gone.
    #[test]
    fn ranges_start_correctly_after_collected_segments() {
        const KEYS: u32 = 3000;
        let home = tempfile::tempdir().unwrap();
        let options = |memory, space_amplification| Options {
            background: false,
            memory,
            segment: 64 << 10,
            space_amplification,
            growth: 2,
            ..Options::default()
        };
        let mut all = BTreeMap::new();
        let mut put = |table: &Table, number: u32, value: &[u8]| {
            table.put(&key(number), value).unwrap();
            all.insert(key(number), value.to_vec());
        };
        {
            let store = Store::open(home.path(), options(64 << 10, 1000.0)).unwrap();
            let (table, other) = (store.table("t").unwrap(), store.table("other").unwrap());
            for number in 0..KEYS {
                put(&table, number, b"old");
                other.put(&key(number), &[7; 1000]).unwrap();
            }
            // Makes so much of each segment dead that it will be collected.
            store.drop_table("other").unwrap();
            (1000..1400).for_each(|number| put(&table, number, b"new"));
            store.flush().unwrap();
        }
        // With memory for all copies, no compaction sees what is gone.
        let store = Store::open(home.path(), options(32 << 20, 1.1)).unwrap();
        let table = store.table("t").unwrap();
        assert!(store.settle(Duration::from_secs(60)).unwrap());
        let found = store.statistics();
        assert!(found.levels >= 2 && found.collected_segments > 0, "{found:?}");
        check(&table, &all, 900..1500);
    }
}
