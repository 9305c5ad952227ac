//! Walking over a range of keys, in either direction, as the store was at one moment.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::{self, Bound};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::inner::Inner;
use crate::l0;
use crate::level;
use crate::position::Position;
use crate::read::visible;
use crate::record::Record;
use crate::version::{Look, TableId, Version};

/// How far ahead of the walk records are asked for.
const AHEAD: usize = 8;
/// A longer value is checked and copied when it is answered, as it may lie outside of the range.
const LONG: u32 = 16 << 10;
/// So many entries are walked over, one after the other, rather than looked at by halves.
const FEW: usize = 4;

/// A range of keys of a table as they were at one moment; both ends may be walked from.
///
/// It holds what it reads from: segments and levels that are replaced meanwhile stay on the disk
/// until it is dropped.
pub struct Range {
    version: Arc<Version>,
    sequence: u64,
    table: TableId,
    front: Option<Merged>,
    back: Option<Merged>,
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    /// The key and value that were answered last.
    pair: Pair,
    /// What the first step answers instead of a pair.
    refused: Option<Error>,
    is_over: bool,
    /// Goes last: what it read from goes while the directory is locked.
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Pair {
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
        inner: Arc<Inner>,
        version: Arc<Version>,
        sequence: u64,
        table: TableId,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Range {
        Range {
            inner,
            version,
            sequence,
            table,
            front: None,
            back: None,
            low: low.map(<[u8]>::to_vec),
            high: high.map(<[u8]>::to_vec),
            pair: Pair::default(),
            refused: None,
            is_over: false,
        }
    }

    /// One that answers an error.
    pub(crate) fn refused(self, error: Error) -> Range {
        Range { refused: Some(error), ..self }
    }

    /// The next pair from the front; None when the ends have met, and after an error.
    ///
    /// # Errors
    /// As [`Table::get`](crate::Table::get); of a [`Snapshot`](crate::Snapshot), at the first step,
    /// [`Error::NoTable`] if the table is of another store.
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

    /// The pairs with memory of their own.
    pub fn pairs(self) -> Pairs {
        Pairs(self)
    }

    fn step(&mut self, direction: Direction) -> Result<Option<(&[u8], &[u8])>> {
        if self.is_over {
            return Ok(None);
        }
        // After an error it is over: a source that could not be read would be missing, and what it hides
        // would show.
        self.is_over = true;
        if !self.try_step(direction)? {
            return Ok(None);
        }
        self.is_over = false;
        Ok(Some((&self.pair.key, &self.pair.value)))
    }

    /// Goes on to the next pair; false if the ends have met.
    fn try_step(&mut self, direction: Direction) -> Result<bool> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        let side = match direction {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        };
        let merged = match side {
            Some(merged) => merged,
            None => {
                let mut merged = Merged::new(&self.version, self.table);
                let walk = Walk {
                    inner: &self.inner,
                    version: &self.version,
                    sequence: self.sequence,
                    direction,
                };
                let from = match direction {
                    Direction::Forward => &self.low,
                    Direction::Backward => &self.high,
                };
                merged.start(&walk, from)?;
                side.insert(merged)
            }
        };
        let walk =
            Walk { inner: &self.inner, version: &self.version, sequence: self.sequence, direction };
        // The other end, which has come closer by what was answered there.
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
        if !merged.next(&walk, is_within, &mut self.pair)? {
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

/// What a walk reads from.
struct Walk<'a> {
    inner: &'a Inner,
    version: &'a Version,
    sequence: u64,
    direction: Direction,
}

/// The sources of a table, the newest first, walked together.
struct Merged {
    sources: Vec<Source>,
}

/// One L0 or level, and where it stands.
struct Source {
    cursor: Cursor,
    /// The key where it stands and, of a level, the value too; None at its end.
    current: Option<Current>,
    scratch: Vec<u8>,
    asked: VecDeque<Position>,
}

enum Cursor {
    L0(l0::Cursor),
    Level(level::Cursor),
}

/// Buffers are kept from one entry to the next.
struct Current {
    pair: Pair,
    position: Position,
    /// The value was read together with the key.
    has_value: bool,
}

impl Merged {
    fn new(version: &Version, table: TableId) -> Merged {
        let generations = std::iter::once(&version.active).chain(&version.frozen);
        let generations = generations.filter(|_| version.table(table).is_some());
        let l0s = generations.filter_map(|generation| generation.l0(table));
        let l0s = l0s.filter(|l0| !l0.is_empty());
        let l0s = l0s.map(|l0| Cursor::L0(l0::Cursor::new(Arc::clone(l0))));
        let levels = version.table(table).into_iter().flat_map(|table| &table.levels).flatten();
        let levels = levels.map(|level| Cursor::Level(level::Cursor::new(Arc::clone(level))));
        let source =
            |cursor| Source { cursor, current: None, scratch: Vec::new(), asked: VecDeque::new() };
        Merged { sources: l0s.chain(levels).map(source).collect() }
    }

    fn start(&mut self, walk: &Walk<'_>, from: &Bound<Vec<u8>>) -> Result<()> {
        for source in &mut self.sources {
            source.current = Some(Current {
                pair: Pair::default(),
                position: Position::from_bits(0),
                has_value: false,
            });
            source.start(walk, from)?;
        }
        Ok(())
    }

    /// The next pair that is no tombstone; false at the end, or where a key is not within the range.
    fn next(
        &mut self,
        walk: &Walk<'_>,
        is_within: impl Fn(&[u8]) -> bool,
        pair: &mut Pair,
    ) -> Result<bool> {
        loop {
            let mut best: Option<usize> = None;
            for (place, source) in self.sources.iter().enumerate() {
                let Some(current) = &source.current else { continue };
                let is_better =
                    best.and_then(|best| self.sources[best].current.as_ref()).is_none_or(|best| {
                        let order = current.pair.key.cmp(&best.pair.key);
                        match walk.direction {
                            Direction::Forward => order == Ordering::Less,
                            Direction::Backward => order == Ordering::Greater,
                        }
                    });
                if is_better {
                    best = Some(place);
                }
            }
            let Some(best) = best else { return Ok(false) };
            let current = self.sources[best].current.as_ref();
            if !current.is_some_and(|current| is_within(&current.pair.key)) {
                return Ok(false);
            }
            let is_tombstone = self.sources[best].take(walk, pair)?;
            self.sources[best].advance(walk)?;
            // Older versions of the same key.
            for source in &mut self.sources[best + 1..] {
                if source.current.as_ref().is_some_and(|current| current.pair.key == pair.key) {
                    source.advance(walk)?;
                }
            }
            if !is_tombstone {
                return Ok(true);
            }
        }
    }
}

impl Source {
    fn start(&mut self, walk: &Walk<'_>, from: &Bound<Vec<u8>>) -> Result<()> {
        match (walk.direction, from) {
            (Direction::Forward, Bound::Unbounded) => self.seek(walk, b"")?,
            (Direction::Forward, Bound::Included(key)) => self.seek(walk, key)?,
            (Direction::Forward, Bound::Excluded(key)) => {
                self.seek(walk, key)?;
                if self.current.as_ref().is_some_and(|current| current.pair.key == *key) {
                    self.advance(walk)?;
                }
            }
            (Direction::Backward, Bound::Unbounded) => {
                match &mut self.cursor {
                    Cursor::L0(cursor) => cursor.seek_below(None),
                    Cursor::Level(cursor) => cursor.seek_end()?,
                }
                self.arrive(walk)?;
            }
            (Direction::Backward, Bound::Excluded(key)) => self.seek_below(walk, key)?,
            (Direction::Backward, Bound::Included(key)) => {
                // The next possible key is above it and nothing lies between.
                let mut above = key.clone();
                above.push(0);
                self.seek_below(walk, &above)?;
            }
        }
        Ok(())
    }

    /// To the first key at or above this one.
    fn seek(&mut self, walk: &Walk<'_>, key: &[u8]) -> Result<()> {
        match &mut self.cursor {
            Cursor::L0(cursor) => {
                cursor.seek(key);
                self.arrive(walk)
            }
            Cursor::Level(cursor) => {
                let unsure = cursor.seek(key)?;
                let unsure = narrow(cursor, walk, key, unsure, &mut self.scratch)?;
                cursor.skip(unsure.start)?;
                let mut unsure = unsure.len();
                self.arrive(walk)?;
                while unsure > 0
                    && self
                        .current
                        .as_ref()
                        .is_some_and(|current| current.pair.key.as_slice() < key)
                {
                    self.advance(walk)?;
                    unsure -= 1;
                }
                Ok(())
            }
        }
    }

    /// To the last key below this one.
    fn seek_below(&mut self, walk: &Walk<'_>, key: &[u8]) -> Result<()> {
        match &mut self.cursor {
            Cursor::L0(cursor) => {
                cursor.seek_below(Some(key));
                self.arrive(walk)
            }
            Cursor::Level(cursor) => {
                let unsure = cursor.seek(key)?;
                let unsure = narrow(cursor, walk, key, unsure, &mut self.scratch)?;
                // Behind the entries that may be below it.
                cursor.skip(unsure.end)?;
                let mut unsure = unsure.len();
                self.arrive(walk)?;
                while unsure > 0
                    && self
                        .current
                        .as_ref()
                        .is_some_and(|current| current.pair.key.as_slice() >= key)
                {
                    self.advance(walk)?;
                    unsure -= 1;
                }
                Ok(())
            }
        }
    }

    /// Reads the entry where the cursor stands (forward) or before which it stands (backward, of
    /// a level), and goes on to one that counts.
    fn arrive(&mut self, walk: &Walk<'_>) -> Result<()> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        loop {
            match &mut self.cursor {
                Cursor::L0(cursor) => {
                    let Some((key, newest)) = cursor.current() else { return Ok(()) };
                    if let Some(found) = visible(newest, walk.version, walk.sequence) {
                        current.pair.key.clear();
                        current.pair.key.extend_from_slice(key);
                        current.position = found.position;
                        current.has_value = false;
                        self.current = Some(current);
                        return Ok(());
                    }
                    match walk.direction {
                        Direction::Forward => cursor.next(),
                        Direction::Backward => cursor.previous(),
                    }
                }
                Cursor::Level(cursor) => {
                    if walk.direction == Direction::Backward && !cursor.previous()? {
                        return Ok(());
                    }
                    let Some(position) = cursor.current()? else { return Ok(()) };
                    ask_ahead(cursor, walk, &mut self.asked, position)?;
                    let Pair { key, value } = &mut current.pair;
                    let (version, staging) = (walk.version, &walk.inner.staging);
                    let verify = walk.inner.options.verify;
                    let scratch = &mut self.scratch;
                    let is_long = |record: &Record<'_>| record.header.value_len > LONG;
                    let verify = |record: &Record<'_>| verify && !is_long(record);
                    let looked = version.look_if(staging, position, verify, scratch, |record| {
                        if is_long(record) {
                            return false;
                        }
                        key.clear();
                        key.extend_from_slice(record.key);
                        value.clear();
                        value.extend_from_slice(record.value);
                        true
                    });
                    let looked = match looked {
                        // It may have been replaced, or lie outside of the range: the value is checked, or
                        // read again, if it is wanted.
                        Ok(Look::Found(false)) | Err(Error::Damaged { .. } | Error::Io { .. }) => {
                            version.key_at(staging, position, scratch, |record| {
                                key.clear();
                                key.extend_from_slice(record.key);
                                false
                            })?
                        }
                        other => other?,
                    };
                    if let Look::Found(has_value) = looked {
                        current.position = position;
                        current.has_value = has_value;
                        self.current = Some(current);
                        return Ok(());
                    }
                    if walk.direction == Direction::Forward {
                        cursor.next()?;
                    }
                }
            }
        }
    }

    /// From where it stands to the next entry that counts.
    fn advance(&mut self, walk: &Walk<'_>) -> Result<()> {
        match &mut self.cursor {
            Cursor::L0(cursor) => match walk.direction {
                Direction::Forward => cursor.next(),
                Direction::Backward => cursor.previous(),
            },
            Cursor::Level(cursor) => {
                if walk.direction == Direction::Forward {
                    cursor.next()?;
                }
            }
        }
        self.arrive(walk)
    }

    /// Puts what it stands at into `pair`; answers whether that is a tombstone.
    fn take(&mut self, walk: &Walk<'_>, pair: &mut Pair) -> Result<bool> {
        let Some(current) = &mut self.current else { return Ok(true) };
        std::mem::swap(pair, &mut current.pair);
        if current.position.is_tombstone() {
            return Ok(true);
        }
        if !current.has_value {
            let value = &mut pair.value;
            let verify = walk.inner.options.verify;
            let staging = &walk.inner.staging;
            staging.note_read();
            let version = walk.version;
            let looked =
                version.look(staging, current.position, verify, &mut self.scratch, |record| {
                    value.clear();
                    value.extend_from_slice(record.value);
                })?;
            debug_assert!(matches!(looked, Look::Found(())));
        }
        Ok(false)
    }
}

/// Of the entries from where a cursor stands on, `unsure` of which only their records tell on which side
/// of a key they are: those before the range are below it, and those behind it are not. It is a few at
/// most that still count.
fn narrow(
    cursor: &level::Cursor,
    walk: &Walk<'_>,
    key: &[u8],
    unsure: usize,
    scratch: &mut Vec<u8>,
) -> Result<ops::Range<usize>> {
    let entries: Vec<Position> = match unsure {
        0..=FEW => return Ok(0..unsure),
        _ => cursor.ahead(unsure)?.collect(),
    };
    let mut range = 0..entries.len();
    while range.len() > FEW {
        let middle = range.start + range.len() / 2;
        // Those whose segment is gone do not count, and tell nothing; nor does one that is damaged, which is told
        // if the walk meets it: it stays, unless another one tells on which side it is.
        let (mut found, mut skipped) = (None, middle + 1);
        for at in (range.start..=middle).rev().chain(middle + 1..range.end) {
            let is_below = |record: &Record<'_>| record.key < key;
            match walk.version.key_at(&walk.inner.staging, entries[at], scratch, is_below) {
                Ok(Look::Found(below)) => {
                    found = Some((at, below));
                    break;
                }
                Ok(Look::Gone) => {}
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

/// Asks the processor for the records that come next, each once.
fn ask_ahead(
    cursor: &level::Cursor,
    walk: &Walk<'_>,
    asked: &mut VecDeque<Position>,
    now: Position,
) -> Result<()> {
    if asked.front() == Some(&now) {
        asked.pop_front();
    } else {
        asked.clear();
    }
    if asked.len() > AHEAD / 2 {
        return Ok(());
    }
    let have = asked.len();
    match walk.direction {
        Direction::Forward => asked.extend(cursor.ahead(have + 1 + AHEAD)?.skip(have + 1)),
        Direction::Backward => asked.extend(cursor.behind(have + AHEAD)?.skip(have)),
    }
    walk.version.bring_together(asked.iter().skip(have).copied());
    Ok(())
}

/// The pairs of a [`Range`], from either end. An error is one of [`Range::next`], and the last
/// item.
pub struct Pairs(Range);

type OwnPair = (Vec<u8>, Vec<u8>);

fn own(pair: Result<Option<(&[u8], &[u8])>>) -> Option<Result<OwnPair>> {
    pair.map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec()))).transpose()
}

impl Iterator for Pairs {
    type Item = Result<OwnPair>;

    fn next(&mut self) -> Option<Self::Item> {
        own(self.0.next())
    }
}

impl DoubleEndedIterator for Pairs {
    fn next_back(&mut self) -> Option<Self::Item> {
        own(self.0.next_back())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Range;
    use std::time::Duration;

    use crate::{Options, Store, Table};

    /// A page takes out 128 bytes of what its keys share, so that all heads of a leaf are the same here.
    fn key(number: u32) -> Vec<u8> {
        format!("{}{number:05}", "p".repeat(200)).into_bytes()
    }

    /// Whether ranges begin and end where they should.
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
    fn ranges_begin_where_they_should_where_heads_tell_nothing() {
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

    /// Which only an upper level tells, for the segments of the records before are gone.
    #[test]
    fn ranges_begin_where_they_should_behind_many_that_are_gone() {
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
            // So much of each segment is dead that it will be collected.
            store.drop_table("other").unwrap();
            (1000..1400).for_each(|number| put(&table, number, b"new"));
            store.flush().unwrap();
        }
        // With memory for all copies no merge looks at what is gone.
        let store = Store::open(home.path(), options(32 << 20, 1.1)).unwrap();
        let table = store.table("t").unwrap();
        assert!(store.settle(Duration::from_secs(60)).unwrap());
        let found = store.statistics();
        assert!(found.levels >= 2 && found.collected_segments > 0, "{found:?}");
        check(&table, &all, 900..1500);
    }
}
