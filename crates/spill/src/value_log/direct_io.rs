//! Direct I/O on segments: data that nobody reads takes no page cache, nor the time to fill it.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;

use super::segment::Segment;
use crate::fs::{BLOCK_SIZE, File, cache_page, retry_interrupted, write_all_at};
use crate::memory::{AlignedMemory, HUGE_PAGE};

/// An aligned buffer of whole blocks.
#[derive(Default)]
pub(super) struct BlockBuffer(Option<AlignedMemory>);

impl BlockBuffer {
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], AlignedMemory::as_bytes)
    }

    /// At least `least` bytes; the content stays.
    pub(super) fn bytes(&mut self, least: usize) -> &mut [u8] {
        let memory = match self.0.take() {
            Some(memory) if memory.len() >= least => memory,
            before => {
                let mut larger = allocate(least);
                if let Some(mut before) = before {
                    larger.bytes()[..before.len()].copy_from_slice(before.bytes());
                }
                larger
            }
        };
        self.0.insert(memory).bytes()
    }

    /// Assembles consecutive parts into blocks, with `before` bytes of the first block already
    /// here; zeros fill the last one.
    fn assemble<'a>(&mut self, before: usize, parts: &[&'a [u8]]) -> Vec<IoPiece<'a>> {
        // Lengths double as offsets, since the first byte starts a block.
        let mut at = before;
        let mut least = before + BLOCK_SIZE;
        for part in parts {
            least +=
                if is_aligned_with(part, at) { part.len().min(2 * BLOCK_SIZE) } else { part.len() };
            at += part.len();
        }
        let blocks = self.bytes(least);
        let mut pieces = Vec::with_capacity(2 * parts.len() + 1);
        let mut buffered = 0..before;
        let mut add = |buffered: &mut Range<usize>, bytes: &[u8]| {
            blocks[buffered.end..][..bytes.len()].copy_from_slice(bytes);
            buffered.end += bytes.len();
        };
        for part in parts {
            let first = buffered.len().next_multiple_of(BLOCK_SIZE) - buffered.len();
            if !is_aligned_with(part, buffered.len()) || part.len() < first + BLOCK_SIZE {
                add(&mut buffered, part);
                continue;
            }
            let (first, rest) = part.split_at(first);
            let (whole, last) = rest.split_at(rest.len() / BLOCK_SIZE * BLOCK_SIZE);
            add(&mut buffered, first);
            if !buffered.is_empty() {
                pieces.push(IoPiece::Buffered(buffered.clone()));
            }
            pieces.push(IoPiece::Borrowed(whole));
            buffered.start = buffered.end;
            add(&mut buffered, last);
        }
        let zeros = buffered.len().next_multiple_of(BLOCK_SIZE) - buffered.len();
        add(&mut buffered, &[0; BLOCK_SIZE][..zeros]);
        if !buffered.is_empty() {
            pieces.push(IoPiece::Buffered(buffered));
        }
        pieces
    }

    fn slice_of<'a>(&'a self, piece: &IoPiece<'a>) -> IoSlice<'a> {
        IoSlice::new(match piece {
            IoPiece::Borrowed(bytes) => bytes,
            IoPiece::Buffered(part) => &self.as_bytes()[part.clone()],
        })
    }

    /// Moves the block at `offset` to the front.
    fn keep_block(&mut self, offset: usize) {
        self.bytes(BLOCK_SIZE).copy_within(offset..offset + BLOCK_SIZE, 0);
    }
}

/// Whether a part that belongs at a file offset has the same alignment in memory.
fn is_aligned_with(part: &[u8], offset: usize) -> bool {
    part.as_ptr() as usize % BLOCK_SIZE == offset % BLOCK_SIZE
}

/// Aligned memory of at least `least` bytes. A huge page is a single segment of a device request.
fn allocate(least: usize) -> AlignedMemory {
    let is_large = least % HUGE_PAGE >= HUGE_PAGE / 2;
    let len = if is_large { least.next_multiple_of(HUGE_PAGE) } else { least };
    AlignedMemory::new(len, if len >= HUGE_PAGE { HUGE_PAGE } else { BLOCK_SIZE })
}

/// Appends to one segment at a time.
#[derive(Default)]
pub(crate) struct DirectWriter {
    open: Option<OpenSegment>,
    /// Blocks assembled here: where parts meet or end, and misaligned parts. All others are written
    /// in place.
    blocks: BlockBuffer,
    /// The file system does not support direct I/O.
    is_unsupported: bool,
}

struct OpenSegment {
    segment: u32,
    file: Arc<dyn File>,
    /// End of the records whose last block is first in the buffer.
    end: usize,
}

/// Consecutive whole blocks for the file.
enum IoPiece<'a> {
    Borrowed(&'a [u8]),
    /// In the buffer.
    Buffered(Range<usize>),
}

impl DirectWriter {
    /// Writes consecutive parts at `offset`: directly, or through the page cache if asked to or if
    /// there is no other way.
    pub(crate) fn append(
        &mut self,
        segment: &Segment,
        parts: &[&[u8]],
        offset: u32,
        is_direct: bool,
    ) -> io::Result<()> {
        if !is_direct {
            // Closes the file.
            (self.open, self.blocks) = (None, BlockBuffer::default());
        } else if !self.is_unsupported && self.write(segment, parts, offset)? {
            return Ok(());
        }
        let mut offset = u64::from(offset);
        for part in parts {
            write_all_at(&*segment.file, part, offset)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Writes consecutive parts at `offset`. A partial last block is padded with zeros, where
    /// nothing was written yet, and written again with the next parts. A first page that began in
    /// the page cache is completed there, since otherwise its writeback would have to be waited
    /// for. No other page of these may be in the page cache (`settled.rs`).
    ///
    /// False: direct I/O does not work here, and everything must be written otherwise.
    fn write(&mut self, segment: &Segment, parts: &[&[u8]], offset: u32) -> io::Result<bool> {
        let offset = offset as usize;
        let (file, continues) = match self.open.take() {
            Some(open) if open.segment == segment.id => (open.file, open.end == offset),
            _ => match segment.file.open_direct() {
                Some(file) => (file, false),
                None => {
                    self.is_unsupported = true;
                    return Ok(false);
                }
            },
        };
        let end = offset + parts.iter().map(|part| part.len()).sum::<usize>();
        let in_cache = if continues { 0 } else { offset.next_multiple_of(cache_page()) - offset };
        let begin = (offset + in_cache).min(end) / BLOCK_SIZE * BLOCK_SIZE;
        let mut direct_parts = Vec::with_capacity(parts.len());
        let mut at = offset;
        for part in parts {
            let (cached, rest) =
                part.split_at(part.len().min((offset + in_cache).saturating_sub(at)));
            write_all_at(&*segment.file, cached, at as u64)?;
            direct_parts.push(rest);
            at += part.len();
        }
        // Bytes that are already in the buffer.
        let before = if continues { offset - begin } else { 0 };
        let pieces = self.blocks.assemble(before, &direct_parts);
        let bytes: Vec<IoSlice<'_>> =
            pieces.iter().map(|piece| self.blocks.slice_of(piece)).collect();
        match write_blocks(&*file, bytes, begin as u64) {
            // For example where blocks are larger.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.is_unsupported = true;
                return Ok(false);
            }
            written => written?,
        }
        let Some(last) = pieces.last() else { return Ok(true) };
        segment.clear_resident(begin..end.next_multiple_of(BLOCK_SIZE));
        if let IoPiece::Buffered(last) = last {
            // The last block is the first of the next write.
            self.blocks.keep_block(last.end - BLOCK_SIZE);
        }
        self.open = Some(OpenSegment { segment: segment.id, file, end });
        Ok(true)
    }
}

/// Writes all blocks; a partially written one is written again.
fn write_blocks(file: &dyn File, mut blocks: Vec<IoSlice<'_>>, mut offset: u64) -> io::Result<()> {
    let mut left = &mut blocks[..];
    while !left.is_empty() {
        match retry_interrupted(|| file.write_many_at(left, offset))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => {
                let whole = written / BLOCK_SIZE * BLOCK_SIZE;
                IoSlice::advance_slices(&mut left, whole);
                offset += whole as u64;
            }
        }
    }
    Ok(())
}

/// Reads blocks directly; false if that does not work here.
pub(super) fn read(file: &dyn File, into: &mut [u8], offset: u64) -> io::Result<bool> {
    debug_assert!(
        into.len().is_multiple_of(BLOCK_SIZE) && offset.is_multiple_of(BLOCK_SIZE as u64)
    );
    let mut done = 0;
    while done < into.len() {
        match retry_interrupted(|| file.read_at(&mut into[done..], offset + done as u64)) {
            // The file ended or has other blocks: a buffered read will tell.
            Ok(0) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(false),
            Ok(read) if read < BLOCK_SIZE => return Ok(false),
            read => done += read? / BLOCK_SIZE * BLOCK_SIZE,
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_blocks_are_written_without_copying() {
        const BEFORE: usize = 100;
        let mut memory = AlignedMemory::new(16 * BLOCK_SIZE, BLOCK_SIZE);
        for (at, byte) in memory.bytes().iter_mut().enumerate() {
            *byte = (at % 251) as u8;
        }
        let file = memory.as_bytes();
        let elsewhere = [&[0], file].concat();
        let elsewhere = &elsewhere[1..];
        assert!(!elsewhere.as_ptr().addr().is_multiple_of(BLOCK_SIZE));
        // Ends of parts, misaligned parts, and bytes that need no copy.
        let cases: [(&[usize], &[usize], usize); 6] = [
            (&[3 * BLOCK_SIZE], &[], 2 * BLOCK_SIZE),
            (&[3 * BLOCK_SIZE, 3 * BLOCK_SIZE + 8, 7 * BLOCK_SIZE + 8], &[], 5 * BLOCK_SIZE),
            (&[BLOCK_SIZE - 8, BLOCK_SIZE + 8, 2 * BLOCK_SIZE - 1], &[], 0),
            (&[5000, 9 * BLOCK_SIZE - 1, 9 * BLOCK_SIZE, 9 * BLOCK_SIZE + 1], &[], 6 * BLOCK_SIZE),
            (&[2 * BLOCK_SIZE, 5 * BLOCK_SIZE, 8 * BLOCK_SIZE], &[1], 4 * BLOCK_SIZE),
            (&[BEFORE], &[], 0),
        ];
        for (ends, others, borrowed) in cases {
            let mut blocks = BlockBuffer::default();
            blocks.bytes(BLOCK_SIZE)[..BEFORE].copy_from_slice(&file[..BEFORE]);
            let begins = [BEFORE].iter().chain(ends);
            let parts: Vec<&[u8]> = begins
                .zip(ends)
                .enumerate()
                .map(|(number, (&begin, &end))| {
                    let from = if others.contains(&number) { elsewhere } else { file };
                    &from[begin..end]
                })
                .collect();
            let pieces = blocks.assemble(BEFORE, &parts);
            let all: Vec<u8> =
                pieces.iter().flat_map(|piece| blocks.slice_of(piece).to_vec()).collect();
            let end = ends[ends.len() - 1];
            assert_eq!(all.len(), end.next_multiple_of(BLOCK_SIZE));
            assert!(all[..end] == file[..end] && all[end..].iter().all(|&byte| byte == 0));
            let uncopied = pieces.iter().map(|piece| match piece {
                IoPiece::Borrowed(bytes) => bytes.len(),
                IoPiece::Buffered(_) => 0,
            });
            assert_eq!(uncopied.sum::<usize>(), borrowed, "{ends:?}");
            let is_aligned =
                |piece| blocks.slice_of(piece).as_ptr().addr().is_multiple_of(BLOCK_SIZE);
            assert!(pieces.iter().all(is_aligned));
        }
    }
}
