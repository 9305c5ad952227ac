//! Reading a segment from one record to the next, past the mapping.

use super::past_cache;
use super::segment::Segment;
use crate::error::Result;
use crate::fs::read_whole;
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
    segment: &'a Segment,
    bytes: Vec<u8>,
    /// Of `bytes`, what was read: it begins there in the file, and has so many bytes.
    start: usize,
    len: usize,
    /// Where the next record begins.
    at: usize,
    /// No record ends behind this.
    to: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(segment: &'a Segment, from: u32, to: u32) -> Self {
        let from = from as usize;
        Reader { segment, bytes: Vec::new(), start: from, len: 0, at: from, to: to as usize }
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
        if !(self.start..=self.start + self.len).contains(&self.at) {
            (self.start, self.len) = (self.at, 0);
        }
    }

    /// The next record; none: it is at the end, or what is there is not what was written.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<Found<'_>>> {
        self.read_on()?;
        let found = found(self.segment.id, self.at, &self.bytes[self.at - self.start..self.len]);
        self.at = found.as_ref().map_or(self.at, |found| found.end() as usize);
        Ok(found)
    }

    /// What comes next, without going there: so many records at most, one at least unless there is
    /// none as [`Reader::next`] has it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn ahead(&mut self, most: usize) -> Result<Vec<Found<'_>>> {
        self.read_on()?;
        let mut ahead = Vec::with_capacity(most);
        let mut at = self.at;
        while ahead.len() < most
            && let Some(found) = found(self.segment.id, at, &self.bytes[at - self.start..self.len])
        {
            at = found.end() as usize;
            ahead.push(found);
        }
        Ok(ahead)
    }

    /// Reads on if the next record is cut short by the end of what was read.
    fn read_on(&mut self) -> Result<()> {
        loop {
            let left = &self.bytes[self.at - self.start..self.len];
            let wanted = Header::read(left).map_or(HEADER, |header| header.record_len());
            let have_to = self.start + self.len;
            if left.len() >= wanted || have_to >= self.to {
                return Ok(());
            }
            let more = PIECE.max(wanted - left.len()).min(self.to - have_to);
            self.bytes.copy_within(self.at - self.start..self.len, 0);
            (self.start, self.len) = (self.at, have_to - self.at);
            // Zeroed once: a piece is as long as the one before.
            self.bytes.resize(self.bytes.len().max(self.len + more), 0);
            self.read_piece(self.len..self.len + more, have_to)?;
            self.len += more;
        }
    }

    /// Reads past the page cache what is not in it: who reads all of a segment reads it once.
    fn read_piece(&mut self, into: std::ops::Range<usize>, offset: usize) -> Result<()> {
        let (file, into) = (&*self.segment.file, &mut self.bytes[into]);
        let is_cached = self.segment.is_seen_mostly(offset, offset + into.len());
        let read = match is_cached {
            true => Ok(false),
            false => past_cache::read(file, into, offset as u64),
        };
        match read {
            Ok(false) => read_whole(file, into, offset as u64),
            read => read.map(drop),
        }
        .map_err(|error| self.segment.unread(offset, error))
    }
}

/// The record at an offset of a segment, where these bytes are, if it is right and all of it is there.
fn found(segment: u32, offset: usize, bytes: &[u8]) -> Option<Found<'_>> {
    let offset = offset as u32;
    let (record, hashes) = Record::read_hashed(bytes, (segment, offset))?;
    Some(Found { offset, record, hashes })
}
