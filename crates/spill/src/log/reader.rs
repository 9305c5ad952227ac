//! Reading a segment from one record to the next.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::past_cache::{self, Blocks};
use super::segment::Segment;
use crate::error::Result;
use crate::fs::{BLOCK, File, read_whole};
use crate::record::{HEADER, Hashes, Header, Record};

/// What is read at once.
pub(crate) const PIECE: usize = 1 << 20;

/// A record as it lies in its segment.
pub(crate) struct Found<'a> {
    pub(crate) offset: u32,
    pub(crate) record: Record<'a>,
    pub(crate) hashes: Hashes,
}

impl Found<'_> {
    /// Where the next one begins.
    pub(crate) fn end(&self) -> u32 {
        self.offset + self.record.header.record_len() as u32
    }
}

/// On its way through a segment.
pub(crate) struct Reader<'a> {
    window: Window<'a>,
    /// Where the next record begins.
    at: usize,
    /// No record ends behind this.
    to: usize,
}

impl<'a> Reader<'a> {
    /// One that reads past the mapping.
    pub(crate) fn new(segment: &'a Segment, from: u32, to: u32, buffer: &'a mut Buffer) -> Self {
        let (at, to) = (from as usize, to as usize);
        let window = Window {
            segment,
            begin: at,
            end: at,
            place: Place::Buffer,
            buffer,
            past: None,
            by_mapping: false,
        };
        Reader { window, at, to }
    }

    /// One that takes from the mapping what is in memory.
    pub(crate) fn by_mapping(
        segment: &'a Segment,
        from: u32,
        to: u32,
        buffer: &'a mut Buffer,
    ) -> Self {
        let mut reader = Reader::new(segment, from, to, buffer);
        reader.window.by_mapping = true;
        reader
    }

    /// Where the next record begins, or would.
    pub(crate) fn at(&self) -> u32 {
        self.at as u32
    }

    /// Whether it came to where it was to end.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.to
    }

    /// Goes on at another offset.
    pub(crate) fn go_to(&mut self, offset: u32) {
        self.at = offset as usize;
    }

    /// The next record; none: it is at the end, or what is there is not what was written.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<Found<'_>>> {
        self.window.hold(self.at, self.to)?;
        let found = self.window.found(self.at);
        self.at = found.as_ref().map_or(self.at, |found| found.end() as usize);
        Ok(found)
    }

    /// What comes next, without going there: so many records at most, one at least unless there is
    /// none as [`Reader::next`] has it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn ahead(&mut self, most: usize) -> Result<Vec<Found<'_>>> {
        self.window.hold(self.at, self.to)?;
        let mut ahead = Vec::with_capacity(most);
        let mut at = self.at;
        while ahead.len() < most
            && let Some(found) = self.window.found(at)
        {
            at = found.end() as usize;
            ahead.push(found);
        }
        Ok(ahead)
    }
}

/// Into which parts of segments are read, one after the other and one segment after the other: memory
/// that has to be found and zeroed first takes longer than the reading.
#[derive(Default)]
pub(crate) struct Buffer {
    /// They lie here as they do in the file.
    blocks: Blocks,
    /// Where in the file the first of them begins.
    begin: usize,
}

impl Buffer {
    /// For the next segment, unless a long record made much of it.
    pub(crate) fn unless_large(self) -> Buffer {
        if self.blocks.as_bytes().len() > 2 * PIECE { Buffer::default() } else { self }
    }

    /// Room for what lies in the file from `begin` to `end`, at the same place of a block.
    fn make_room(&mut self, begin: usize, end: usize) {
        self.begin = begin / BLOCK * BLOCK;
        self.blocks.bytes(end.next_multiple_of(BLOCK) - self.begin);
    }

    fn part(&self, part: Range<usize>) -> &[u8] {
        &self.blocks.as_bytes()[part.start - self.begin..part.end - self.begin]
    }

    fn part_mut(&mut self, part: Range<usize>) -> &mut [u8] {
        let (from, to) = (part.start - self.begin, part.end - self.begin);
        &mut self.blocks.bytes(to)[from..to]
    }
}

/// A part of a segment that was read.
struct Window<'a> {
    segment: &'a Segment,
    begin: usize,
    end: usize,
    place: Place,
    buffer: &'a mut Buffer,
    /// The segment's file past the page cache, if there is such a way, once it was asked for.
    past: Option<Option<Arc<dyn File>>>,
    by_mapping: bool,
}

/// Where its bytes are.
enum Place {
    Buffer,
    Mapping,
}

impl Window<'_> {
    /// What there is from an offset on.
    #[inline]
    fn from(&self, offset: usize) -> &[u8] {
        if !(self.begin..self.end).contains(&offset) {
            return &[];
        }
        match self.place {
            Place::Buffer => self.buffer.part(offset..self.end),
            Place::Mapping => &self.segment.mapped()[offset..self.end],
        }
    }

    /// The record at an offset, if it is right and all of it is here.
    fn found(&self, offset: usize) -> Option<Found<'_>> {
        let (bytes, offset) = (self.from(offset), offset as u32);
        let (record, hashes) = Record::read_hashed(bytes, (self.segment.id, offset))?;
        Some(Found { offset, record, hashes })
    }

    /// Moves on until it has all of the record at an offset, if that does not end behind `to`.
    fn hold(&mut self, offset: usize, to: usize) -> Result<()> {
        loop {
            let have = self.from(offset);
            let wanted = Header::read(have).map_or(HEADER, |header| header.record_len());
            let (have, missing) = (have.len(), wanted.saturating_sub(have.len()));
            let end = to.min(offset + have + PIECE.max(missing));
            if missing == 0 || end <= offset + have {
                return Ok(());
            }
            self.move_to(offset, have, end)?;
        }
    }

    /// Has all from `begin` to `end`, of which it has the first `have` bytes.
    fn move_to(&mut self, begin: usize, have: usize, end: usize) -> Result<()> {
        let from = begin + have;
        let failed = |error| self.segment.unread(from, error);
        let is_in_memory = self.segment.is_seen_mostly(from, end);
        if is_in_memory && self.by_mapping {
            self.segment.bring(begin, end).map_err(failed)?;
            self.place = Place::Mapping;
        } else {
            let before = self.buffer.begin;
            self.buffer.make_room(begin, end);
            match self.place {
                _ if have == 0 => {}
                Place::Buffer => {
                    let to = begin - self.buffer.begin;
                    let kept = begin - before..from - before;
                    self.buffer.blocks.bytes(kept.end).copy_within(kept, to);
                }
                Place::Mapping => {
                    let kept = &self.segment.mapped()[begin..from];
                    self.buffer.part_mut(begin..from).copy_from_slice(kept);
                }
            }
            // Past the page cache too: who reads all of a segment reads it once.
            if is_in_memory || !self.read_past(from, end).map_err(failed)? {
                let file = &*self.segment.file;
                read_whole(file, self.buffer.part_mut(from..end), from as u64).map_err(failed)?;
            }
            self.place = Place::Buffer;
        }
        (self.begin, self.end) = (begin, end);
        Ok(())
    }

    /// Reads the blocks that a part lies in past the page cache; false: there is no such way.
    fn read_past(&mut self, from: usize, end: usize) -> io::Result<bool> {
        let past = self.past.get_or_insert_with(|| self.segment.file.past_cache());
        let Some(file) = past else { return Ok(false) };
        let from = from / BLOCK * BLOCK;
        let into = self.buffer.part_mut(from..end.next_multiple_of(BLOCK));
        past_cache::read(&**file, into, from as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::segment::FILE_HEADER;
    use crate::{Options, Store};

    /// A reopened store whose first segment has records of all lengths, one longer than a piece.
    fn with_segment(check: impl FnOnce(&Segment)) {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, segment: 16 << 20, ..Options::default() };
        let store = Store::open(home.path(), options.clone()).unwrap();
        let table = store.table("t").unwrap();
        for number in 0..4000_u32 {
            let len = if number == 1000 { 5 * PIECE / 2 } else { number as usize * 7 % 5000 };
            table.put(&number.to_be_bytes(), &vec![number as u8; len]).unwrap();
        }
        store.flush().unwrap();
        drop((table, store));
        let store = Store::open(home.path(), options).unwrap();
        let version = store.inner().version.load_full();
        check(version.segments.iter().next().unwrap());
    }

    fn offsets(reader: &mut Reader<'_>) -> Vec<u32> {
        let mut offsets = Vec::new();
        while let Some(Found { offset, .. }) = reader.next().unwrap() {
            offsets.push(offset);
        }
        offsets
    }

    /// Where a record is, its key, and the length of its value.
    type Seen = (u32, Vec<u8>, usize);

    /// All records, and how often they came from the buffer and from the mapping.
    fn all(mut reader: Reader<'_>, ahead: usize) -> (Vec<Seen>, [usize; 2]) {
        let mut all = Vec::new();
        let mut places = [0; 2];
        loop {
            let found = reader.ahead(ahead).unwrap();
            let Some(end) = found.last().map(Found::end) else { break };
            for Found { offset, record, .. } in &found {
                assert!(record.value.iter().all(|byte| *byte == record.value[0]));
                all.push((*offset, record.key.to_vec(), record.value.len()));
            }
            places[usize::from(matches!(reader.window.place, Place::Mapping))] += 1;
            reader.go_to(end);
        }
        assert!(reader.is_at_end());
        (all, places)
    }

    #[test]
    fn records_are_the_same_out_of_the_mapping_past_it_and_across_both() {
        with_segment(|segment| {
            let end = segment.end().unwrap();
            let mut buffer = Buffer::default();
            let offsets = offsets(&mut Reader::new(segment, FILE_HEADER, end, &mut buffer));
            let mut past = |ahead| all(Reader::new(segment, FILE_HEADER, end, &mut buffer), ahead);
            let (known, places) = past(1);
            assert!(known.iter().map(|(offset, ..)| offset).eq(&offsets));
            assert!(known.len() > 2000 && places[1] == 0);
            assert!(past(16).0 == known && past(5000).0 == known);
            // Every other three pieces are in memory.
            for begin in (3 * PIECE..end as usize).step_by(6 * PIECE) {
                segment.bring(begin, (begin + 3 * PIECE).min(end as usize)).unwrap();
            }
            let reader = Reader::by_mapping(segment, FILE_HEADER, end, &mut buffer);
            let (found, places) = all(reader, 16);
            assert!(found == known && places.iter().all(|&times| times > 20), "{places:?}");
        });
    }

    #[test]
    fn what_a_long_record_made_of_the_buffer_is_not_kept() {
        with_segment(|segment| {
            let after = |end| {
                let mut buffer = Buffer::default();
                offsets(&mut Reader::new(segment, FILE_HEADER, end, &mut buffer));
                buffer.unless_large().blocks.as_bytes().len()
            };
            assert_eq!(after(PIECE as u32), 2 * PIECE);
            assert_eq!(after(segment.end().unwrap()), 0);
        });
    }

    #[test]
    fn goes_back_to_any_record() {
        with_segment(|segment| {
            let end = segment.end().unwrap();
            let mut buffer = Buffer::default();
            let mut reader = Reader::by_mapping(segment, FILE_HEADER, end, &mut buffer);
            let offsets = offsets(&mut reader);
            for &offset in offsets.iter().step_by(37).rev().chain(offsets.iter().step_by(911)) {
                reader.go_to(offset);
                assert_eq!(reader.next().unwrap().unwrap().offset, offset);
            }
        });
    }
}
