//! Reading and writing a segment past the page cache: what nobody reads takes no memory there, and
//! none of the time that filling it takes.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;

use super::segment::Segment;
use crate::fs::{BLOCK, File, again_if_interrupted, write_whole};
use crate::memory::{HUGE, Memory};

/// Memory for whole blocks.
#[derive(Default)]
pub(super) struct Blocks(Option<Memory>);

impl Blocks {
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], Memory::as_bytes)
    }

    /// Room for so many bytes; what was there stays.
    pub(super) fn bytes(&mut self, least: usize) -> &mut [u8] {
        let memory = match self.0.take() {
            Some(memory) if memory.len() >= least => memory,
            before => {
                let mut larger = room(least);
                if let Some(mut before) = before {
                    larger.bytes()[..before.len()].copy_from_slice(before.bytes());
                }
                larger
            }
        };
        self.0.insert(memory).bytes()
    }

    /// The blocks that come of parts which follow one another, where `before` bytes of the first one
    /// are here already; zeros fill the last one.
    fn put_together<'a>(&mut self, before: usize, parts: &[&'a [u8]]) -> Vec<Piece<'a>> {
        // Lengths are offsets too, as the first byte is the first of a block.
        let mut at = before;
        let mut least = before + BLOCK;
        for part in parts {
            least += if lies_well(part, at) { part.len().min(2 * BLOCK) } else { part.len() };
            at += part.len();
        }
        let blocks = self.bytes(least);
        let mut pieces = Vec::with_capacity(2 * parts.len() + 1);
        let mut own = 0..before;
        let mut add = |own: &mut Range<usize>, bytes: &[u8]| {
            blocks[own.end..][..bytes.len()].copy_from_slice(bytes);
            own.end += bytes.len();
        };
        for part in parts {
            let first = own.len().next_multiple_of(BLOCK) - own.len();
            if !lies_well(part, own.len()) || part.len() < first + BLOCK {
                add(&mut own, part);
                continue;
            }
            let (first, rest) = part.split_at(first);
            let (whole, last) = rest.split_at(rest.len() / BLOCK * BLOCK);
            add(&mut own, first);
            if !own.is_empty() {
                pieces.push(Piece::Own(own.clone()));
            }
            pieces.push(Piece::Given(whole));
            own.start = own.end;
            add(&mut own, last);
        }
        let zeros = own.len().next_multiple_of(BLOCK) - own.len();
        add(&mut own, &[0; BLOCK][..zeros]);
        if !own.is_empty() {
            pieces.push(Piece::Own(own));
        }
        pieces
    }

    fn of<'a>(&'a self, piece: &Piece<'a>) -> IoSlice<'a> {
        IoSlice::new(match piece {
            Piece::Given(bytes) => bytes,
            Piece::Own(part) => &self.as_bytes()[part.clone()],
        })
    }

    /// The block at `place` becomes the first.
    fn begin_with(&mut self, place: usize) {
        self.bytes(BLOCK).copy_within(place..place + BLOCK, 0);
    }
}

/// Whether its blocks begin in memory where they do in the file, of which it begins at an offset.
fn lies_well(part: &[u8], offset: usize) -> bool {
    part.as_ptr() as usize % BLOCK == offset % BLOCK
}

/// Memory of at least so many bytes. A device takes so many pieces with one request, and much of it
/// is one piece in a huge page (measured: 2.9 GB/s for 2.2 to 2.7 with requests of 1 MiB).
fn room(least: usize) -> Memory {
    let is_large = least % HUGE >= HUGE / 2;
    let len = if is_large { least.next_multiple_of(HUGE) } else { least };
    Memory::new(len, if len >= HUGE { HUGE } else { BLOCK })
}

/// The segment that is being written so, one part behind the other.
#[derive(Default)]
pub(crate) struct PastCache {
    open: Option<Open>,
    /// Blocks that are put together here: in which parts meet or end, and those of a part that lies
    /// otherwise in memory than in blocks of the file. The others are written from where they are.
    blocks: Blocks,
    /// The file system writes nothing past its cache.
    is_refused: bool,
}

struct Open {
    segment: u32,
    file: Arc<dyn File>,
    /// Where the records end whose last block is the first in memory.
    end: usize,
}

/// Whole blocks that come next in the file.
enum Piece<'a> {
    Given(&'a [u8]),
    /// Of the blocks that were put together.
    Own(Range<usize>),
}

impl PastCache {
    /// Writes parts that follow one another, at `offset`: past the page cache, or through it if that
    /// is asked for or there is no other way.
    pub(crate) fn append(
        &mut self,
        segment: &Segment,
        parts: &[&[u8]],
        offset: u32,
        goes_past: bool,
    ) -> io::Result<()> {
        if !goes_past {
            // Lets go of the file.
            (self.open, self.blocks) = (None, Blocks::default());
        } else if !self.is_refused && self.write(segment, parts, offset)? {
            return Ok(());
        }
        let mut offset = u64::from(offset);
        for part in parts {
            write_whole(&*segment.file, part, offset)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Writes parts that follow one another, at `offset`. Where they do not fill their last block
    /// there are zeros behind them, where nothing was written yet, and the bytes before them are
    /// written once more with what comes next. A first block that was begun otherwise goes on so: it
    /// is in the page cache, and what lies there would have to be waited for.
    ///
    /// False: it cannot be done here, and all of it is to be written otherwise.
    fn write(&mut self, segment: &Segment, parts: &[&[u8]], offset: u32) -> io::Result<bool> {
        let offset = offset as usize;
        let (file, known) = match self.open.take() {
            Some(open) if open.segment == segment.id => (open.file, open.end == offset),
            _ => match segment.file.past_cache() {
                Some(file) => (file, false),
                None => {
                    self.is_refused = true;
                    return Ok(false);
                }
            },
        };
        let end = offset + parts.iter().map(|part| part.len()).sum::<usize>();
        let in_cache = if known { 0 } else { offset.next_multiple_of(BLOCK) - offset };
        let begin = (offset + in_cache).min(end) / BLOCK * BLOCK;
        let mut past = Vec::with_capacity(parts.len());
        let mut at = offset;
        for part in parts {
            let (cached, rest) =
                part.split_at(part.len().min((offset + in_cache).saturating_sub(at)));
            write_whole(&*segment.file, cached, at as u64)?;
            past.push(rest);
            at += part.len();
        }
        // Of what is in the blocks already.
        let before = if known { offset - begin } else { 0 };
        let pieces = self.blocks.put_together(before, &past);
        let bytes: Vec<IoSlice<'_>> = pieces.iter().map(|piece| self.blocks.of(piece)).collect();
        match write_blocks(&*file, bytes, begin as u64) {
            // Blocks are larger here, for example.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.is_refused = true;
                return Ok(false);
            }
            written => written?,
        }
        let Some(last) = pieces.last() else { return Ok(true) };
        segment.not_seen(begin..end.next_multiple_of(BLOCK));
        if let Piece::Own(last) = last {
            // The last block is the first of what comes next.
            self.blocks.begin_with(last.end - BLOCK);
        }
        self.open = Some(Open { segment: segment.id, file, end });
        Ok(true)
    }
}

/// Writes all of them; a block that was written in part is written again.
fn write_blocks(file: &dyn File, mut blocks: Vec<IoSlice<'_>>, mut offset: u64) -> io::Result<()> {
    let mut left = &mut blocks[..];
    while !left.is_empty() {
        match again_if_interrupted(|| file.write_many_at(left, offset))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => {
                let whole = written / BLOCK * BLOCK;
                IoSlice::advance_slices(&mut left, whole);
                offset += whole as u64;
            }
        }
    }
    Ok(())
}

/// Reads blocks of a file that goes past the page cache; false: it cannot be done here.
pub(super) fn read(file: &dyn File, into: &mut [u8], offset: u64) -> io::Result<bool> {
    debug_assert!(into.len().is_multiple_of(BLOCK) && offset.is_multiple_of(BLOCK as u64));
    let mut done = 0;
    while done < into.len() {
        match again_if_interrupted(|| file.read_at(&mut into[done..], offset + done as u64)) {
            // The file has ended, or it is one of other blocks: the ordinary way tells.
            Ok(0) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(false),
            Ok(read) if read < BLOCK => return Ok(false),
            read => done += read? / BLOCK * BLOCK,
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_written_from_where_they_are_if_they_lie_as_in_the_file() {
        const BEFORE: usize = 100;
        let mut memory = Memory::new(16 * BLOCK, BLOCK);
        for (at, byte) in memory.bytes().iter_mut().enumerate() {
            *byte = (at % 251) as u8;
        }
        let file = memory.as_bytes();
        let elsewhere = [&[0], file].concat();
        let elsewhere = &elsewhere[1..];
        assert!(!elsewhere.as_ptr().addr().is_multiple_of(BLOCK));
        // Ends of parts, those that lie elsewhere, and how many bytes need no copy.
        let cases: [(&[usize], &[usize], usize); 6] = [
            (&[3 * BLOCK], &[], 2 * BLOCK),
            (&[3 * BLOCK, 3 * BLOCK + 8, 7 * BLOCK + 8], &[], 5 * BLOCK),
            (&[BLOCK - 8, BLOCK + 8, 2 * BLOCK - 1], &[], 0),
            (&[5000, 9 * BLOCK - 1, 9 * BLOCK, 9 * BLOCK + 1], &[], 6 * BLOCK),
            (&[2 * BLOCK, 5 * BLOCK, 8 * BLOCK], &[1], 4 * BLOCK),
            (&[BEFORE], &[], 0),
        ];
        for (ends, others, given) in cases {
            let mut blocks = Blocks::default();
            blocks.bytes(BLOCK)[..BEFORE].copy_from_slice(&file[..BEFORE]);
            let begins = [BEFORE].iter().chain(ends);
            let parts: Vec<&[u8]> = begins
                .zip(ends)
                .enumerate()
                .map(|(number, (&begin, &end))| {
                    let from = if others.contains(&number) { elsewhere } else { file };
                    &from[begin..end]
                })
                .collect();
            let pieces = blocks.put_together(BEFORE, &parts);
            let all: Vec<u8> = pieces.iter().flat_map(|piece| blocks.of(piece).to_vec()).collect();
            let end = ends[ends.len() - 1];
            assert_eq!(all.len(), end.next_multiple_of(BLOCK));
            assert!(all[..end] == file[..end] && all[end..].iter().all(|&byte| byte == 0));
            let uncopied = pieces.iter().map(|piece| match piece {
                Piece::Given(bytes) => bytes.len(),
                Piece::Own(_) => 0,
            });
            assert_eq!(uncopied.sum::<usize>(), given, "{ends:?}");
            let is_aligned = |piece| blocks.of(piece).as_ptr().addr().is_multiple_of(BLOCK);
            assert!(pieces.iter().all(is_aligned));
        }
    }
}
