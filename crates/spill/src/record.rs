//! Encoding of a log record, and how it is distinguished from anything else.
//!
//! ```text
//! 0  checksum   u32      of everything below, and of the location of the record
//! 4  kind       3 bits   the lowest bits of a number of 14 bytes
//!    in a batch 1 bit
//!    key        11 bits  length
//!    value      29 bits  length; of a batch: of all its records; of a seal: the next segment
//!    table      16 bits
//!    sequence   52 bits
//! 18 key, value, and zeros up to a multiple of 8
//! ```
//! Numbers are little-endian.

use xxhash_rust::xxh3::xxh3_64;

use crate::options::MAX_KEY_LEN;
use crate::value_pointer::{MAX_SEGMENT_LEN, RECORD_ALIGN};

pub(crate) const HEADER_LEN: usize = 18;
/// Length of a record without key and value.
pub(crate) const EMPTY_RECORD_LEN: usize = encoded_len(0, 0);

const KIND_BITS: u32 = 3;
const KEY_BITS: u32 = 11;
const VALUE_BITS: u32 = 29;
const TABLE_BITS: u32 = 16;
const SEQUENCE_BITS: u32 = 52;
const KEY_AT: u32 = KIND_BITS + 1;
const VALUE_AT: u32 = KEY_AT + KEY_BITS;
const TABLE_AT: u32 = VALUE_AT + VALUE_BITS;
const SEQUENCE_AT: u32 = TABLE_AT + TABLE_BITS;
/// Bits of the sequence in the first eight bytes.
const LOW_BITS: u32 = u64::BITS - SEQUENCE_AT;

const _: () = assert!(SEQUENCE_AT + SEQUENCE_BITS == 8 * (HEADER_LEN as u32 - 4));
const _: () = assert!(MAX_KEY_LEN < 1 << KEY_BITS && MAX_SEGMENT_LEN <= 1 << VALUE_BITS);

/// Number of tables that the format can distinguish.
pub(crate) const MAX_TABLES: u32 = 1 << TABLE_BITS;
/// Reached after 28 years at five million writes a second.
pub(crate) const MAX_SEQUENCE: u64 = (1 << SEQUENCE_BITS) - 1;

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Put,
    Delete,
    /// The following records, `value` bytes of them, count together or not at all.
    Batch,
    /// The segment ends here.
    Seal,
    /// Its value holds [`StreamPositions`](crate::stream::StreamPositions) of the writers' streams:
    /// everything before them was durable when this was written.
    SyncMark,
    /// Its value is a count (u64) of sequences, from its own on, that belong to no write.
    SequenceGap,
}

/// The byte after the checksum of a sync mark, which has no key. Marks are searched for at offsets
/// where no record is known to begin.
pub(crate) const SYNC_MARK_BYTE: u8 = 5;

impl RecordKind {
    fn from_byte(byte: u8) -> Option<RecordKind> {
        Some(match byte {
            1 => RecordKind::Put,
            2 => RecordKind::Delete,
            3 => RecordKind::Batch,
            4 => RecordKind::Seal,
            SYNC_MARK_BYTE => RecordKind::SyncMark,
            6 => RecordKind::SequenceGap,
            _ => return None,
        })
    }

    fn byte(self) -> u8 {
        match self {
            RecordKind::Put => 1,
            RecordKind::Delete => 2,
            RecordKind::Batch => 3,
            RecordKind::Seal => 4,
            RecordKind::SyncMark => SYNC_MARK_BYTE,
            RecordKind::SequenceGap => 6,
        }
    }
}

/// The fixed part of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: RecordKind,
    pub(crate) in_batch: bool,
    pub(crate) key_len: u16,
    pub(crate) value_len: u32,
    pub(crate) table: u32,
    pub(crate) sequence: u64,
}

/// Hashes of key and value for the checksum, computed before the record has its offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hashes {
    pub(crate) key: u64,
    value: u64,
}

/// The hash of a key or of a value.
#[inline]
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

impl Hashes {
    #[inline]
    pub(crate) fn of(key: &[u8], value: &[u8]) -> Hashes {
        Hashes::of_value(hash(key), value)
    }

    /// Hashes for a key whose hash is known.
    #[inline]
    pub(crate) fn of_value(key: u64, value: &[u8]) -> Hashes {
        Hashes { key, value: hash(value) }
    }
}

/// The length of a record in the log, in bytes.
#[inline]
pub(crate) const fn encoded_len(key: usize, value: usize) -> usize {
    (HEADER_LEN + key + value).next_multiple_of(RECORD_ALIGN)
}

impl Header {
    /// Length of the whole record; for a batch, of its header alone.
    #[inline]
    pub(crate) fn record_len(&self) -> usize {
        match self.kind {
            RecordKind::Batch | RecordKind::Seal => EMPTY_RECORD_LEN,
            _ => encoded_len(usize::from(self.key_len), self.value_len as usize),
        }
    }

    /// The eight bytes after the checksum, and the six after them.
    #[inline]
    fn words(&self) -> (u64, u64) {
        debug_assert!(self.key_len < 1 << KEY_BITS && self.value_len < 1 << VALUE_BITS);
        debug_assert!(self.table < MAX_TABLES && self.sequence <= MAX_SEQUENCE);
        let first = u64::from(self.kind.byte())
            | u64::from(self.in_batch) << KIND_BITS
            | u64::from(self.key_len) << KEY_AT
            | u64::from(self.value_len) << VALUE_AT
            | u64::from(self.table) << TABLE_AT
            | self.sequence << SEQUENCE_AT;
        (first, self.sequence >> LOW_BITS)
    }

    /// Checksum of a record at `offset` of `segment`.
    #[inline]
    fn checksum(&self, segment: u32, offset: u32, hashes: Hashes) -> u32 {
        let (first, rest) = self.words();
        let location = u64::from(segment) << 32 | u64::from(offset);
        let mut mixed = mix(first ^ hashes.key.rotate_left(17));
        mixed = mix(mixed ^ hashes.value);
        mixed = mix(mixed ^ rest);
        mixed = mix(mixed ^ location);
        // Never zero: zeroed space is no record.
        (mixed >> 32) as u32 | 1
    }

    /// Encodes the record into `into`, which has [`encoded_len`] bytes.
    #[inline]
    pub(crate) fn write(
        &self,
        (segment, offset): (u32, u32),
        hashes: Hashes,
        key: &[u8],
        value: &[u8],
        into: &mut [u8],
    ) {
        let checksum = self.checksum(segment, offset, hashes);
        into[0..4].copy_from_slice(&checksum.to_le_bytes());
        let (first, rest) = self.words();
        into[4..12].copy_from_slice(&first.to_le_bytes());
        into[12..HEADER_LEN].copy_from_slice(&rest.to_le_bytes()[..HEADER_LEN - 12]);
        let (all, rest) = into[HEADER_LEN..].split_at_mut(key.len());
        all.copy_from_slice(key);
        let (all, rest) = rest.split_at_mut(value.len());
        all.copy_from_slice(value);
        rest.fill(0);
    }

    /// Parses a header without verification; its lengths may be anything. `None` if it is not a
    /// header.
    #[inline]
    pub(crate) fn parse(bytes: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER_LEN] = bytes.first_chunk()?;
        let first = u64::from_le_bytes(*bytes[4..].first_chunk()?);
        // The last eight bytes, two of which belong to the first word.
        let rest = u64::from_le_bytes(*bytes.last_chunk()?) >> 16;
        let field = |at: u32, bits: u32| (first >> at) as u32 & ((1 << bits) - 1);
        Some(Header {
            kind: RecordKind::from_byte(field(0, KIND_BITS) as u8)?,
            in_batch: field(KIND_BITS, 1) == 1,
            key_len: field(KEY_AT, KEY_BITS) as u16,
            value_len: field(VALUE_AT, VALUE_BITS),
            table: field(TABLE_AT, TABLE_BITS),
            sequence: first >> SEQUENCE_AT | rest << LOW_BITS,
        })
    }
}

/// A record in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) header: Header,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl<'a> Record<'a> {
    /// Parses the record at the start of `bytes` without verification; `None` if there is none or
    /// it is truncated.
    #[inline]
    pub(crate) fn parse_unchecked(bytes: &'a [u8]) -> Option<Record<'a>> {
        let header = Header::parse(bytes)?;
        let end = header.record_len();
        if end > bytes.len() {
            return None;
        }
        let (key, rest) = bytes[HEADER_LEN..end].split_at_checked(usize::from(header.key_len))?;
        let value =
            if matches!(header.kind, RecordKind::Batch | RecordKind::Seal) { &[] } else { rest };
        let value = value.get(..value.len().min(header.value_len as usize))?;
        Some(Record { header, key, value })
    }

    /// Parses the record at the start of `bytes` if its checksum matches this location.
    #[inline]
    pub(crate) fn parse(bytes: &'a [u8], location: (u32, u32)) -> Option<Record<'a>> {
        Some(Record::parse_with_hashes(bytes, location)?.0)
    }

    /// The same, with the hashes it computed.
    #[inline]
    pub(crate) fn parse_with_hashes(
        bytes: &'a [u8],
        location: (u32, u32),
    ) -> Option<(Record<'a>, Hashes)> {
        let record = Record::parse_unchecked(bytes)?;
        let hashes = Hashes::of(record.key, record.value);
        record.matches_checksum(bytes, location, hashes).then_some((record, hashes))
    }

    /// Whether the checksum at the start of `bytes` is that of this record at this location.
    #[inline]
    pub(crate) fn has_valid_checksum(&self, bytes: &[u8], location: (u32, u32)) -> bool {
        self.matches_checksum(bytes, location, Hashes::of(self.key, self.value))
    }

    #[inline]
    fn matches_checksum(
        &self,
        bytes: &[u8],
        (segment, offset): (u32, u32),
        hashes: Hashes,
    ) -> bool {
        let checksum = self.header.checksum(segment, offset, hashes);
        bytes.first_chunk() == Some(&checksum.to_le_bytes())
    }
}

/// The 64-bit finaliser of MurmurHash3.
#[inline]
fn mix(mut word: u64) -> u64 {
    word = (word ^ word >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word = (word ^ word >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ word >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(key: &[u8], value: &[u8], location: (u32, u32)) -> Vec<u8> {
        let header = Header {
            kind: RecordKind::Put,
            in_batch: false,
            key_len: key.len() as u16,
            value_len: value.len() as u32,
            table: 3,
            sequence: 99,
        };
        let mut bytes = vec![0xff; encoded_len(key.len(), value.len())];
        header.write(location, Hashes::of(key, value), key, value, &mut bytes);
        bytes
    }

    #[test]
    fn record_round_trips() {
        for (key, value) in [(&b""[..], &b""[..]), (b"key", b"value"), (b"k", &[7; 1000])] {
            let bytes = encoded(key, value, (5, 640));
            assert_eq!(bytes.len() % RECORD_ALIGN, 0);
            let record = Record::parse(&bytes, (5, 640)).unwrap();
            assert_eq!((record.key, record.value), (key, value));
            assert_eq!((record.header.table, record.header.sequence), (3, 99));
        }
    }

    #[test]
    fn header_fields_hold_their_limits() {
        let most = Header {
            kind: RecordKind::SequenceGap,
            in_batch: true,
            key_len: MAX_KEY_LEN as u16,
            value_len: MAX_SEGMENT_LEN as u32 - 1,
            table: MAX_TABLES - 1,
            sequence: MAX_SEQUENCE,
        };
        let least = Header {
            kind: RecordKind::Put,
            in_batch: false,
            key_len: 0,
            value_len: 0,
            table: 0,
            sequence: 0,
        };
        let single = [
            Header { kind: RecordKind::SequenceGap, ..least },
            Header { in_batch: true, ..least },
            Header { key_len: most.key_len, ..least },
            Header { value_len: most.value_len, ..least },
            Header { table: most.table, ..least },
            Header { sequence: most.sequence, ..least },
        ];
        let none = Hashes::of(b"", b"");
        for header in single.into_iter().chain([least, most]) {
            let mut bytes = [0xff; EMPTY_RECORD_LEN];
            header.write((1, 64), none, b"", b"", &mut bytes);
            assert_eq!(Header::parse(&bytes), Some(header));
        }
        let checksums = single.map(|header| header.checksum(1, 64, none));
        let apart: std::collections::HashSet<u32> = checksums.into_iter().collect();
        assert_eq!(apart.len(), single.len(), "each field affects the checksum");
    }

    #[test]
    fn changed_or_moved_record_is_detected() {
        let bytes = encoded(b"key", b"some value", (1, 64));
        let padding = encoded_len(3, 10) - HEADER_LEN - 13;
        for bit in 0..(bytes.len() - padding) * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::parse(&bytes, (1, 64)).is_none(), "bit {bit}");
        }
        assert!(Record::parse(&bytes, (1, 72)).is_none());
        assert!(Record::parse(&bytes, (2, 64)).is_none());
        for end in 0..bytes.len() {
            assert!(Record::parse(&bytes[..end], (1, 64)).is_none());
        }
        assert!(Record::parse(&[0; 64], (0, 0)).is_none());
    }
}
