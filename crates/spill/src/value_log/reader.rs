//! Reads a segment record by record.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::direct_io::{self, BlockBuffer};
use super::segment::Segment;
use crate::error::Result;
use crate::fs::{BLOCK_SIZE, File};
use crate::record::{HEADER_LEN, Hashes, Header, Record};

/// Bytes read at once.
pub(crate) const READ_CHUNK: usize = 1 << 20;

/// A record with its offset.
pub(crate) struct LocatedRecord<'a> {
    pub(crate) offset: u32,
    pub(crate) record: Record<'a>,
    pub(crate) hashes: Hashes,
}

impl LocatedRecord<'_> {
    /// Offset of the next record.
    pub(crate) fn end(&self) -> u32 {
        self.offset + self.record.header.record_len() as u32
    }
}

/// A position in a segment.
pub(crate) struct SegmentReader<'a> {
    window: Window<'a>,
    /// Offset of the next record.
    offset: usize,
    /// No record ends behind this.
    end: usize,
}

impl<'a> SegmentReader<'a> {
    /// A reader that does not use the mapping.
    pub(crate) fn new(
        segment: &'a Segment,
        from: u32,
        end: u32,
        buffer: &'a mut ReadBuffer,
    ) -> Self {
        let (offset, end) = (from as usize, end as usize);
        let window = Window {
            segment,
            begin: offset,
            end: offset,
            source: WindowSource::Buffer,
            buffer,
            direct_file: None,
            using_mapping: false,
        };
        SegmentReader { window, offset, end }
    }

    /// A reader that uses the mapping for resident parts.
    pub(crate) fn using_mapping(
        segment: &'a Segment,
        from: u32,
        end: u32,
        buffer: &'a mut ReadBuffer,
    ) -> Self {
        let mut reader = SegmentReader::new(segment, from, end, buffer);
        reader.window.using_mapping = true;
        reader
    }

    /// Offset of the next record, or of the end.
    pub(crate) fn offset(&self) -> u32 {
        self.offset as u32
    }

    /// Whether it has reached its end.
    pub(crate) fn is_at_end(&self) -> bool {
        self.offset >= self.end
    }

    /// Continues at another offset.
    pub(crate) fn seek(&mut self, offset: u32) {
        self.offset = offset as usize;
    }

    /// The next record; `None` at the end, or if the data is not what was written.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<LocatedRecord<'_>>> {
        self.window.ensure(self.offset, self.end)?;
        let found = self.window.record_at(self.offset);
        self.offset = found.as_ref().map_or(self.offset, |found| found.end() as usize);
        Ok(found)
    }

    /// The next records without advancing: at most `most`, at least one unless
    /// [`SegmentReader::next`] would return none.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn ahead(&mut self, most: usize) -> Result<Vec<LocatedRecord<'_>>> {
        self.window.ensure(self.offset, self.end)?;
        let mut ahead = Vec::with_capacity(most);
        let mut offset = self.offset;
        while ahead.len() < most
            && let Some(found) = self.window.record_at(offset)
        {
            offset = found.end() as usize;
            ahead.push(found);
        }
        Ok(ahead)
    }
}

/// A reusable read buffer: allocating and zeroing memory takes longer than reading into it.
#[derive(Default)]
pub(crate) struct ReadBuffer {
    /// Has the alignment of the file.
    blocks: BlockBuffer,
    /// File offset of its start.
    begin: usize,
}

impl ReadBuffer {
    /// Drops the memory that a long record made it grow to.
    pub(crate) fn drop_if_large(self) -> ReadBuffer {
        if self.blocks.as_bytes().len() > 2 * READ_CHUNK { ReadBuffer::default() } else { self }
    }

    /// Makes space for the file range `begin..end`, at the same alignment.
    fn reserve(&mut self, begin: usize, end: usize) {
        self.begin = begin / BLOCK_SIZE * BLOCK_SIZE;
        self.blocks.bytes(end.next_multiple_of(BLOCK_SIZE) - self.begin);
    }

    fn part(&self, part: Range<usize>) -> &[u8] {
        &self.blocks.as_bytes()[part.start - self.begin..part.end - self.begin]
    }

    fn part_mut(&mut self, part: Range<usize>) -> &mut [u8] {
        let (from, end) = (part.start - self.begin, part.end - self.begin);
        &mut self.blocks.bytes(end)[from..end]
    }
}

/// The part of a segment in memory.
struct Window<'a> {
    segment: &'a Segment,
    begin: usize,
    end: usize,
    source: WindowSource,
    buffer: &'a mut ReadBuffer,
    /// Handle for direct reads, if supported, once it was opened.
    direct_file: Option<Option<Arc<dyn File>>>,
    using_mapping: bool,
}

/// Where its bytes are.
enum WindowSource {
    Buffer,
    Mapping,
}

impl Window<'_> {
    /// The bytes from an offset on.
    #[inline]
    fn from(&self, offset: usize) -> &[u8] {
        if !(self.begin..self.end).contains(&offset) {
            return &[];
        }
        match self.source {
            WindowSource::Buffer => self.buffer.part(offset..self.end),
            WindowSource::Mapping => &self.segment.mapped()[offset..self.end],
        }
    }

    /// The valid and complete record at an offset.
    fn record_at(&self, offset: usize) -> Option<LocatedRecord<'_>> {
        let (bytes, offset) = (self.from(offset), offset as u32);
        let (record, hashes) = Record::parse_with_hashes(bytes, (self.segment.id, offset))?;
        Some(LocatedRecord { offset, record, hashes })
    }

    /// Moves until it holds the record at an offset, unless that ends behind `end`.
    fn ensure(&mut self, offset: usize, end: usize) -> Result<()> {
        loop {
            let have = self.from(offset);
            let wanted = Header::parse(have).map_or(HEADER_LEN, |header| header.record_len());
            let (have, missing) = (have.len(), wanted.saturating_sub(have.len()));
            let end = end.min(offset + have + READ_CHUNK.max(missing));
            if missing == 0 || end <= offset + have {
                return Ok(());
            }
            self.move_to(offset, have, end)?;
        }
    }

    /// Holds `begin..end`, of which it already has the first `have` bytes.
    fn move_to(&mut self, begin: usize, have: usize, end: usize) -> Result<()> {
        let from = begin + have;
        let failed = |error| self.segment.read_error(from, error);
        let is_resident = self.segment.is_mostly_resident(from, end);
        if is_resident && self.using_mapping && end <= self.segment.settled() {
            self.segment.populate(begin, end).map_err(failed)?;
            self.source = WindowSource::Mapping;
        } else {
            let before = self.buffer.begin;
            self.buffer.reserve(begin, end);
            match self.source {
                _ if have == 0 => {}
                WindowSource::Buffer => {
                    let to = begin - self.buffer.begin;
                    let kept = begin - before..from - before;
                    self.buffer.blocks.bytes(kept.end).copy_within(kept, to);
                }
                WindowSource::Mapping => {
                    let kept = &self.segment.mapped()[begin..from];
                    self.buffer.part_mut(begin..from).copy_from_slice(kept);
                }
            }
            // Directly: a sequential reader reads everything once.
            if is_resident || !self.read_direct(from, end).map_err(failed)? {
                let into = self.buffer.part_mut(from..end);
                self.segment.read_at(into, from).map_err(failed)?;
            }
            self.source = WindowSource::Buffer;
        }
        (self.begin, self.end) = (begin, end);
        Ok(())
    }

    /// Reads the blocks of a part directly; false if that does not work.
    fn read_direct(&mut self, from: usize, end: usize) -> io::Result<bool> {
        let direct_file = self.direct_file.get_or_insert_with(|| self.segment.file.open_direct());
        let Some(file) = direct_file else { return Ok(false) };
        let from = from / BLOCK_SIZE * BLOCK_SIZE;
        let into = self.buffer.part_mut(from..end.next_multiple_of(BLOCK_SIZE));
        direct_io::read(&**file, into, from as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value_log::segment::FILE_HEADER_LEN;
    use crate::{Options, Store};

    /// A reopened store whose first segment has records of all lengths, one longer than a chunk.
    fn with_segment(check: impl FnOnce(&Segment)) {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, segment: 16 << 20, ..Options::default() };
        let store = Store::open(home.path(), options.clone()).unwrap();
        let table = store.table("t").unwrap();
        for number in 0..4000_u32 {
            let len = if number == 1000 { 5 * READ_CHUNK / 2 } else { number as usize * 7 % 5000 };
            table.put(&number.to_be_bytes(), &vec![number as u8; len]).unwrap();
        }
        store.flush().unwrap();
        drop((table, store));
        let store = Store::open(home.path(), options).unwrap();
        let version = store.engine().version.load_full();
        check(version.segments.iter().next().unwrap());
    }

    fn offsets(reader: &mut SegmentReader<'_>) -> Vec<u32> {
        let mut offsets = Vec::new();
        while let Some(LocatedRecord { offset, .. }) = reader.next().unwrap() {
            offsets.push(offset);
        }
        offsets
    }

    /// Offset, key, and length of the value.
    type RecordSummary = (u32, Vec<u8>, usize);

    /// All records, and how often they came from the buffer and from the mapping.
    fn all(mut reader: SegmentReader<'_>, ahead: usize) -> (Vec<RecordSummary>, [usize; 2]) {
        let mut all = Vec::new();
        let mut sources = [0; 2];
        loop {
            let found = reader.ahead(ahead).unwrap();
            let Some(end) = found.last().map(LocatedRecord::end) else { break };
            for LocatedRecord { offset, record, .. } in &found {
                assert!(record.value.iter().all(|byte| *byte == record.value[0]));
                all.push((*offset, record.key.to_vec(), record.value.len()));
            }
            sources[usize::from(matches!(reader.window.source, WindowSource::Mapping))] += 1;
            reader.seek(end);
        }
        assert!(reader.is_at_end());
        (all, sources)
    }

    #[test]
    fn mapping_and_buffer_yield_the_same_records() {
        with_segment(|segment| {
            let end = segment.end().unwrap();
            let mut buffer = ReadBuffer::default();
            let offsets =
                offsets(&mut SegmentReader::new(segment, FILE_HEADER_LEN, end, &mut buffer));
            let mut past =
                |ahead| all(SegmentReader::new(segment, FILE_HEADER_LEN, end, &mut buffer), ahead);
            let (known, sources) = past(1);
            assert!(known.iter().map(|(offset, ..)| offset).eq(&offsets));
            assert!(known.len() > 2000 && sources[1] == 0);
            assert!(past(16).0 == known && past(5000).0 == known);
            // Makes every other group of three chunks resident.
            for begin in (3 * READ_CHUNK..end as usize).step_by(6 * READ_CHUNK) {
                segment.populate(begin, (begin + 3 * READ_CHUNK).min(end as usize)).unwrap();
            }
            let reader = SegmentReader::using_mapping(segment, FILE_HEADER_LEN, end, &mut buffer);
            let (found, sources) = all(reader, 16);
            assert!(found == known && sources.iter().all(|&times| times > 20), "{sources:?}");
        });
    }

    #[test]
    fn oversized_buffer_is_dropped() {
        with_segment(|segment| {
            let after = |end| {
                let mut buffer = ReadBuffer::default();
                offsets(&mut SegmentReader::new(segment, FILE_HEADER_LEN, end, &mut buffer));
                buffer.drop_if_large().blocks.as_bytes().len()
            };
            assert_eq!(after(READ_CHUNK as u32), 2 * READ_CHUNK);
            assert_eq!(after(segment.end().unwrap()), 0);
        });
    }

    #[test]
    fn reader_seeks_to_any_record() {
        with_segment(|segment| {
            let end = segment.end().unwrap();
            let mut buffer = ReadBuffer::default();
            let mut reader =
                SegmentReader::using_mapping(segment, FILE_HEADER_LEN, end, &mut buffer);
            let offsets = offsets(&mut reader);
            for &offset in offsets.iter().step_by(37).rev().chain(offsets.iter().step_by(911)) {
                reader.seek(offset);
                assert_eq!(reader.next().unwrap().unwrap().offset, offset);
            }
        });
    }
}
