//! A record of the log: what it looks like in bytes, and how it is told from anything else.
//!
//! ```text
//! 0  check      u32  of everything below, and of where the record lies
//! 4  kind       u8
//! 5  flags      u8   bit 0: part of a batch
//! 6  key        u16  length
//! 8  value      u32  length; of a batch: of all its records
//! 12 table      u32  of a seal: the next segment
//! 16 sequence   u64
//! 24 key, value, and zeros up to a multiple of 8
//! ```
//! Numbers are little-endian.

use xxhash_rust::xxh3::xxh3_64;

use crate::position::ALIGN;

pub(crate) const HEADER: usize = 24;

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    Delete,
    /// The records that follow, `value` bytes of them, count together or not at all.
    Batch,
    /// The segment ends here.
    Seal,
    /// Its value are [`Places`](crate::stream::Places) of the writers' streams: all before them was
    /// on the device when this was written.
    Mark,
    /// Its value is a number (u64): so many sequences, from this one's on, are no write's.
    Skip,
}

/// The byte of a mark, which is looked for where no record is known to begin.
pub(crate) const MARK: u8 = 5;

impl Kind {
    fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            1 => Kind::Put,
            2 => Kind::Delete,
            3 => Kind::Batch,
            4 => Kind::Seal,
            MARK => Kind::Mark,
            6 => Kind::Skip,
            _ => return None,
        })
    }

    fn byte(self) -> u8 {
        match self {
            Kind::Put => 1,
            Kind::Delete => 2,
            Kind::Batch => 3,
            Kind::Seal => 4,
            Kind::Mark => MARK,
            Kind::Skip => 6,
        }
    }
}

/// The fixed part of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) in_batch: bool,
    pub(crate) key_len: u16,
    pub(crate) value_len: u32,
    pub(crate) table: u32,
    pub(crate) sequence: u64,
}

/// A key and a value as the check sees them; worked out before the record has its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hashes {
    pub(crate) key: u64,
    value: u64,
}

impl Hashes {
    #[inline]
    pub(crate) fn of(key: &[u8], value: &[u8]) -> Hashes {
        Hashes { key: xxh3_64(key), value: xxh3_64(value) }
    }
}

/// The length of a record in the log, in bytes.
#[inline]
pub(crate) fn len(key: usize, value: usize) -> usize {
    (HEADER + key + value).next_multiple_of(ALIGN)
}

impl Header {
    /// The length of the whole record; of a batch, of its header alone.
    #[inline]
    pub(crate) fn record_len(&self) -> usize {
        match self.kind {
            Kind::Batch => HEADER,
            _ => len(usize::from(self.key_len), self.value_len as usize),
        }
    }

    fn words(&self) -> [u64; 2] {
        let flags = u64::from(self.in_batch);
        let first = u64::from(self.kind.byte())
            | flags << 8
            | u64::from(self.key_len) << 16
            | u64::from(self.value_len) << 32;
        [first, u64::from(self.table)]
    }

    /// The check of a record at `offset` of `segment`.
    #[inline]
    fn check(&self, segment: u32, offset: u32, hashes: Hashes) -> u32 {
        let [first, table] = self.words();
        let place = u64::from(segment) << 32 | u64::from(offset);
        let mut mixed = mix(first ^ hashes.key.rotate_left(17));
        mixed = mix(mixed ^ hashes.value ^ table << 32);
        mixed = mix(mixed ^ self.sequence);
        mixed = mix(mixed ^ place);
        // Zeros are no record, wherever they are.
        (mixed >> 32) as u32 | 1
    }

    /// Writes the record into `into`, which has [`len`] bytes.
    #[inline]
    pub(crate) fn write(
        &self,
        (segment, offset): (u32, u32),
        hashes: Hashes,
        key: &[u8],
        value: &[u8],
        into: &mut [u8],
    ) {
        let check = self.check(segment, offset, hashes);
        into[0..4].copy_from_slice(&check.to_le_bytes());
        into[4] = self.kind.byte();
        into[5] = u8::from(self.in_batch);
        into[6..8].copy_from_slice(&self.key_len.to_le_bytes());
        into[8..12].copy_from_slice(&self.value_len.to_le_bytes());
        into[12..16].copy_from_slice(&self.table.to_le_bytes());
        into[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        let (all, rest) = into[HEADER..].split_at_mut(key.len());
        all.copy_from_slice(key);
        let (all, rest) = rest.split_at_mut(value.len());
        all.copy_from_slice(value);
        rest.fill(0);
    }

    /// Reads a header without checking it: its lengths may be anything. None: it is none.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER] = bytes.first_chunk()?;
        Some(Header {
            kind: Kind::from_byte(bytes[4])?,
            in_batch: match bytes[5] {
                0 => false,
                1 => true,
                _ => return None,
            },
            key_len: u16::from_le_bytes([bytes[6], bytes[7]]),
            value_len: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            table: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
            sequence: u64::from_le_bytes([
                bytes[16], bytes[17], bytes[18], bytes[19], bytes[20], bytes[21], bytes[22],
                bytes[23],
            ]),
        })
    }
}

/// A record as it lies in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) header: Header,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record that begins `bytes`, unchecked; None if there is none or it is cut short.
    #[inline]
    pub(crate) fn peek(bytes: &'a [u8]) -> Option<Record<'a>> {
        let header = Header::read(bytes)?;
        let end = header.record_len();
        if end > bytes.len() {
            return None;
        }
        let (key, rest) = bytes[HEADER..end].split_at_checked(usize::from(header.key_len))?;
        let value = if header.kind == Kind::Batch { &[] } else { rest };
        let value = value.get(..value.len().min(header.value_len as usize))?;
        Some(Record { header, key, value })
    }

    /// The record that begins `bytes`, if its check says that it was written at this place.
    #[inline]
    pub(crate) fn read(bytes: &'a [u8], place: (u32, u32)) -> Option<Record<'a>> {
        Some(Record::read_hashed(bytes, place)?.0)
    }

    /// The same, with the hashes that it took.
    #[inline]
    pub(crate) fn read_hashed(bytes: &'a [u8], place: (u32, u32)) -> Option<(Record<'a>, Hashes)> {
        let record = Record::peek(bytes)?;
        let hashes = Hashes::of(record.key, record.value);
        record.has_check(bytes, place, hashes).then_some((record, hashes))
    }

    /// Whether the check, which is at the begin of `bytes`, is that of this record here.
    #[inline]
    pub(crate) fn is_right(&self, bytes: &[u8], place: (u32, u32)) -> bool {
        self.has_check(bytes, place, Hashes::of(self.key, self.value))
    }

    #[inline]
    fn has_check(&self, bytes: &[u8], (segment, offset): (u32, u32), hashes: Hashes) -> bool {
        let check = self.header.check(segment, offset, hashes);
        bytes.first_chunk() == Some(&check.to_le_bytes())
    }
}

/// The finaliser of MurmurHash3, 64 bits.
#[inline]
fn mix(mut word: u64) -> u64 {
    word = (word ^ word >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word = (word ^ word >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ word >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(key: &[u8], value: &[u8], place: (u32, u32)) -> Vec<u8> {
        let header = Header {
            kind: Kind::Put,
            in_batch: false,
            key_len: key.len() as u16,
            value_len: value.len() as u32,
            table: 3,
            sequence: 99,
        };
        let mut bytes = vec![0xff; len(key.len(), value.len())];
        header.write(place, Hashes::of(key, value), key, value, &mut bytes);
        bytes
    }

    #[test]
    fn comes_back_as_it_was() {
        for (key, value) in [(&b""[..], &b""[..]), (b"key", b"value"), (b"k", &[7; 1000])] {
            let bytes = written(key, value, (5, 640));
            assert_eq!(bytes.len() % ALIGN, 0);
            let record = Record::read(&bytes, (5, 640)).unwrap();
            assert_eq!((record.key, record.value), (key, value));
            assert_eq!((record.header.table, record.header.sequence), (3, 99));
        }
    }

    #[test]
    fn no_bit_may_change_and_no_record_move() {
        let bytes = written(b"key", b"some value", (1, 64));
        let padding = len(3, 10) - HEADER - 13;
        for bit in 0..(bytes.len() - padding) * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::read(&bytes, (1, 64)).is_none(), "bit {bit}");
        }
        assert!(Record::read(&bytes, (1, 72)).is_none());
        assert!(Record::read(&bytes, (2, 64)).is_none());
        for end in 0..bytes.len() {
            assert!(Record::read(&bytes[..end], (1, 64)).is_none());
        }
        assert!(Record::read(&[0; 64], (0, 0)).is_none());
    }
}
