//! Pointers to records of the log, in 64 bits, with what an index needs to know without reading
//! them.

use xxhash_rust::xxh3::xxh3_64;

const TAG_BITS: u32 = 9;
const OFFSET_BITS: u32 = 26;
const TOMBSTONE: u64 = 1 << TAG_BITS;
const TAG_MASK: u64 = TOMBSTONE - 1;
/// Records begin at multiples of this.
pub(crate) const RECORD_ALIGN: usize = 8;

/// Segment numbers are below this.
pub(crate) const MAX_SEGMENTS: u32 = 1 << 28;

/// The longest segment that a pointer can address.
pub(crate) const MAX_SEGMENT_LEN: usize = RECORD_ALIGN << OFFSET_BITS;

/// Segment (28 bits), offset in units of [`RECORD_ALIGN`] (26 bits), tombstone flag (1 bit), and a
/// tag of the key (9 bits). Different tags mean different keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValuePointer(u64);

impl ValuePointer {
    pub(crate) fn new(segment: u32, offset: u32, tombstone: bool, tag: Tag) -> ValuePointer {
        let offset = u64::from(offset) / RECORD_ALIGN as u64;
        debug_assert!(segment < MAX_SEGMENTS && offset < 1 << OFFSET_BITS);
        let location = (u64::from(segment) << OFFSET_BITS | offset) << (TAG_BITS + 1);
        ValuePointer(location | u64::from(tombstone) << TAG_BITS | u64::from(tag.0))
    }

    pub(crate) fn from_bits(bits: u64) -> ValuePointer {
        ValuePointer(bits)
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn segment(self) -> u32 {
        (self.0 >> (OFFSET_BITS + TAG_BITS + 1)) as u32
    }

    #[inline]
    pub(crate) fn offset(self) -> u32 {
        ((self.0 >> (TAG_BITS + 1)) as u32 & ((1 << OFFSET_BITS) - 1)) * RECORD_ALIGN as u32
    }

    #[inline]
    pub(crate) fn is_tombstone(self) -> bool {
        self.0 & TOMBSTONE != 0
    }

    #[inline]
    pub(crate) fn tag(self) -> Tag {
        Tag((self.0 & TAG_MASK) as u16)
    }

    /// False: it belongs to another key. True: it may be the one.
    #[inline]
    pub(crate) fn may_match(self, tag: Tag) -> bool {
        self.tag() == tag
    }
}

/// Nine bits of a key's hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(u16);

impl Tag {
    #[inline]
    pub(crate) fn of_key(key: &[u8]) -> Tag {
        Tag::of(xxh3_64(key))
    }

    #[inline]
    pub(crate) fn of(key_hash: u64) -> Tag {
        Tag((key_hash >> 40) as u16 & TAG_MASK as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_pointer_round_trips() {
        for (segment, offset, tombstone, hash) in [
            (0, 0, false, 0),
            ((1 << 28) - 1, MAX_SEGMENT_LEN as u32 - 8, true, u64::MAX),
            (7, 64, true, 0x5a5a << 40),
        ] {
            let pointer = ValuePointer::new(segment, offset, tombstone, Tag::of(hash));
            assert_eq!(pointer.segment(), segment);
            assert_eq!(pointer.offset(), offset);
            assert_eq!(pointer.is_tombstone(), tombstone);
            assert!(pointer.may_match(Tag::of(hash)));
            assert!(!pointer.may_match(Tag::of(hash ^ 1 << 40)));
        }
    }
}
