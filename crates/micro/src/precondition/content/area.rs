//! The beginning and the end of a device, in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::BLOCK;

/// Bytes that are read at each end.
#[derive(Debug, Clone, Copy)]
pub(super) struct AreaEnds {
    head: u64,
    tail: u64,
}

/// Of a whole device.
pub(super) const WHOLE: AreaEnds = AreaEnds { head: 2 << 20, tail: 1 << 20 };
/// Of a partition.
pub(super) const PART: AreaEnds = AreaEnds { head: 512 << 10, tail: 1 << 20 };

/// A device, a file, or a partition of one.
pub(super) struct Area {
    pub(super) bytes: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Area {
    pub(super) fn read(file: &File, begin: u64, bytes: u64, ends: AreaEnds) -> io::Result<Area> {
        // A new or short file has nothing behind its end.
        let there = file.metadata().ok().filter(std::fs::Metadata::is_file);
        let bytes = there.map_or(bytes, |there| bytes.min(there.len().saturating_sub(begin)));
        let head_len = if bytes <= ends.head + ends.tail { bytes } else { ends.head };
        let tail_from = if head_len == bytes { bytes } else { bytes - ends.tail };
        let tail_from = tail_from / BLOCK as u64 * BLOCK as u64;
        let mut head = vec![0; head_len as usize];
        file.read_exact_at(&mut head, begin)?;
        let mut tail = vec![0; (bytes - tail_from.max(head_len)) as usize];
        file.read_exact_at(&mut tail, begin + tail_from.max(head_len))?;
        Ok(Area { bytes, head, tail })
    }

    /// The bytes at an offset, if all of them were read.
    pub(super) fn at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let within = |bytes| {
            let offset = usize::try_from(offset).ok()?;
            <[u8]>::get(bytes, offset..offset.checked_add(length)?)
        };
        within(&self.head).or_else(|| {
            let offset = usize::try_from(offset.checked_sub(self.tail_begins())?).ok()?;
            self.tail.get(offset..offset.checked_add(length)?)
        })
    }

    pub(super) fn is_at(&self, offset: u64, bytes: &[u8]) -> bool {
        self.at(offset, bytes.len()) == Some(bytes)
    }

    pub(super) fn u16(&self, offset: u64) -> Option<u16> {
        Some(u16::from_le_bytes(self.at(offset, 2)?.try_into().ok()?))
    }

    pub(super) fn u32(&self, offset: u64) -> Option<u32> {
        Some(u32::from_le_bytes(self.at(offset, 4)?.try_into().ok()?))
    }

    pub(super) fn u64(&self, offset: u64) -> Option<u64> {
        Some(u64::from_le_bytes(self.at(offset, 8)?.try_into().ok()?))
    }

    /// Text that ends with a zero or fills its field; none if it is empty.
    pub(super) fn text(&self, offset: u64, length: usize) -> Option<String> {
        let bytes = self.at(offset, length)?.split(|byte| *byte == 0).next()?;
        plain(&String::from_utf8_lossy(bytes))
    }

    /// The blocks that were read, with their addresses.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let of = |begin: u64, bytes| {
            let each = <[u8]>::chunks(bytes, BLOCK).enumerate();
            each.map(move |(at, block)| (begin + (at * BLOCK) as u64, block))
        };
        of(0, &self.head).chain(of(self.tail_begins(), &self.tail))
    }

    /// The range between head and tail.
    pub(super) fn gap(&self) -> Option<(u64, u64)> {
        let (begin, end) = (self.head.len() as u64, self.tail_begins());
        (begin < end).then_some((begin, end))
    }

    fn tail_begins(&self) -> u64 {
        self.bytes - self.tail.len() as u64
    }

    /// A hash of the bytes that were read (FNV-1a).
    pub(super) fn digits(&self) -> String {
        let all = self.head.iter().chain(&self.tail);
        let sum = all.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        super::digits_of(&sum.to_be_bytes())
    }
}

/// Untrusted text made printable for messages; none if nothing remains.
pub(super) fn plain(text: &str) -> Option<String> {
    let text: String =
        text.trim().chars().map(|c| if c.is_control() { '?' } else { c }).take(64).collect();
    Some(text).filter(|text| !text.is_empty())
}
