//! The value of a record: written fast, verified whole.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::length::{Length, Limits};
use crate::{Size, SpecError};
use model::random::{Draws, Lane, fold, mix};

/// The longest value.
pub const LONGEST: u64 = 1 << 30;

/// From what a value's length is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthBy {
    /// Each write draws its own length.
    #[default]
    Write,
    /// A key's values all have the same length.
    Key,
}

/// The length and the content of values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValueSpec {
    /// Bytes of the whole value, at most 1 GiB.
    pub size: Size,
    /// The part of a value, at its end, that a compressor can remove; 0 up to, but not with, 1.
    pub compressibility: f64,
    pub length_by: LengthBy,
}

impl Default for ValueSpec {
    /// YCSB's ten fields of 100 bytes as one value that does not compress.
    fn default() -> ValueSpec {
        ValueSpec { size: Size::fixed(1000), compressibility: 0.0, length_by: LengthBy::Write }
    }
}

/// What is wrong with a value that a store returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Wrong {
    #[error("the value has a length that was never written")]
    Length,
    /// Bytes are not what was written: damaged, or parts of two versions.
    #[error("the value's content is not what was written: damaged or torn")]
    Content,
    #[error("the value belongs to another key")]
    OtherKey,
}

/// Salt and check: a shorter value has no room for them.
const HEADER: usize = 16;

/// What ends a value that has a run.
const SEAL: usize = 8;

/// Bytes of the pool at which a window may begin. Pools of 64 and 512 KiB were read as fast by a
/// harness alone; a small one leaves the caches to the store that is measured.
const POOL: usize = 16 << 10;

/// Bytes of noise that are read from one place of the pool.
const WINDOW: usize = 4 << 10;

/// Writes and verifies values.
///
/// From 16 bytes on a value is: 8 bytes of salt (the version), 8 bytes of check, noise, and, where
/// it is to compress, a run of one byte with a seal of 8 bytes behind it. The check is the key's
/// hash under a mask that follows from salt and length, so that a reader can tell whose value it
/// is. Noise is a window of a fixed pool of random bytes, under a mask of 8 bytes that, like the
/// window's place, follows from salt and key: no two values share long substrings, and each part
/// of the noise proves its version. A run proves it with a probability of 255 in 256 only, hence
/// the seal: a value of which one part is from one version and the rest from another is found
/// wherever it was torn. A value below 16 bytes follows from its key and length alone: its versions
/// do not differ, and a longer one that was cut to nothing passes where values of 0 bytes are
/// written.
///
/// Everything is recomputed by [`Values::verify`], so that a single changed bit is found. Numbers
/// are stored little-endian.
#[derive(Debug, Clone)]
pub struct Values {
    length: Length,
    length_by: LengthBy,
    compressibility: f64,
    pool: Box<[u8]>,
}

/// What a key and a salt determine.
#[derive(Clone, Copy)]
struct Stamp(u64);

impl Stamp {
    #[inline(always)]
    fn new(salt: u64, key_hash: u64) -> Stamp {
        Stamp(mix(salt ^ key_hash.rotate_left(32)))
    }

    /// The mask of the noise, by window.
    #[inline(always)]
    fn mask(self, window: usize) -> u64 {
        mix(self.0.wrapping_add(window as u64))
    }

    /// The bytes behind the run, the first of which the run repeats.
    #[inline(always)]
    fn seal(self) -> [u8; SEAL] {
        fold(self.0, 0xd6e8_feb8_6659_fd93).to_le_bytes()
    }
}

impl Values {
    /// # Errors
    /// A size above [`LONGEST`], a compressibility outside 0 .. 1.
    pub fn new(spec: &ValueSpec, pool: Lane) -> Result<Values, SpecError> {
        if !(0.0..1.0).contains(&spec.compressibility) {
            let problem = format!("{} is not at least 0 and below 1", spec.compressibility);
            return Err(SpecError::invalid("value.compressibility", problem));
        }
        let limits = Limits { key: "value.size", lowest: 0, highest: LONGEST, cut: 1 << 20 };
        let mut draws = Draws::from(pool.at(0));
        let words = (POOL + WINDOW) / 8;
        Ok(Values {
            length: Length::new(&spec.size, limits)?,
            length_by: spec.length_by,
            compressibility: spec.compressibility,
            pool: (0..words).flat_map(|_| draws.next().to_le_bytes()).collect(),
        })
    }

    /// The expected length in bytes.
    pub fn mean(&self) -> f64 {
        self.length.mean()
    }

    #[inline(always)]
    fn drawn_length(&self, salt: u64, key_hash: u64) -> usize {
        let from = match self.length_by {
            LengthBy::Write => salt,
            LengthBy::Key => key_hash,
        };
        self.length.draw(mix(from ^ 0x6c65_6e67_7468_5f5f)) as usize
    }

    /// How many bytes behind the header are noise; the others are the run and the seal.
    #[inline(always)]
    fn noise(&self, length: usize) -> usize {
        let body = length - HEADER;
        if self.compressibility == 0.0 {
            return body;
        }
        body.saturating_sub((length as f64 * self.compressibility).round() as usize + SEAL)
    }

    /// The window of the pool that a mask chooses.
    #[inline(always)]
    fn window(&self, mask: u64) -> &[u8] {
        let start = (mask >> 32) as usize % POOL;
        &self.pool[start..start + WINDOW]
    }

    /// Replaces the content of `out` by the value that `salt` gives to `key`.
    #[inline]
    pub fn write(&self, key: &[u8], salt: u64, out: &mut Vec<u8>) {
        let key_hash = hash(key);
        let length = self.drawn_length(salt, key_hash);
        // What is there already is overwritten, not cleared first.
        if out.len() != length {
            out.resize(length, 0);
        }
        let Some((header, body)) = out.split_first_chunk_mut::<HEADER>() else {
            out.copy_from_slice(&short(key_hash, length)[..length]);
            return;
        };
        header[..8].copy_from_slice(&salt.to_le_bytes());
        header[8..].copy_from_slice(&(key_hash ^ cover(salt, length)).to_le_bytes());
        let stamp = Stamp::new(salt, key_hash);
        let (noise, run) = body.split_at_mut(self.noise(length));
        for (index, part) in noise.chunks_mut(WINDOW).enumerate() {
            let mask = stamp.mask(index);
            masked(part, self.window(mask), mask);
        }
        if !run.is_empty() {
            let seal = stamp.seal();
            let (run, end) = run.split_at_mut(run.len().saturating_sub(SEAL));
            run.fill(seal[0]);
            end.copy_from_slice(&seal[..end.len()]);
        }
    }

    /// Whether `value` is one that was written for `key`, in any version.
    ///
    /// # Errors
    /// [`Wrong`], with the best guess at what happened.
    #[inline]
    pub fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), Wrong> {
        let key_hash = hash(key);
        let Some((header, body)) = value.split_first_chunk::<HEADER>() else {
            return self.verify_short(key_hash, value);
        };
        let (salt, owner) = opened(header, value.len());
        if owner == key_hash
            && self.drawn_length(salt, key_hash) == value.len()
            && self.agrees(salt, key_hash, body)
        {
            return Ok(());
        }
        Err(self.diagnose(key_hash, value))
    }

    /// Whether noise and run are those of this salt and key.
    #[inline(always)]
    fn agrees(&self, salt: u64, key_hash: u64, body: &[u8]) -> bool {
        let stamp = Stamp::new(salt, key_hash);
        let (noise, run) = body.split_at(self.noise(body.len() + HEADER));
        let mut difference = 0;
        for (index, part) in noise.chunks(WINDOW).enumerate() {
            let mask = stamp.mask(index);
            difference |= unlike(part, self.window(mask), mask);
        }
        if !run.is_empty() {
            let seal = stamp.seal();
            let (run, end) = run.split_at(run.len().saturating_sub(SEAL));
            difference |= unlike_byte(run, seal[0]) | u64::from(end != &seal[..end.len()]);
        }
        difference == 0
    }

    fn verify_short(&self, key_hash: u64, value: &[u8]) -> Result<(), Wrong> {
        let length = value.len();
        let fits = match self.length_by {
            LengthBy::Write => self.length.possible(length as u64),
            LengthBy::Key => self.drawn_length(0, key_hash) == length,
        };
        if !fits {
            return Err(Wrong::Length);
        }
        if value == &short(key_hash, length)[..length] { Ok(()) } else { Err(Wrong::Content) }
    }

    #[cold]
    fn diagnose(&self, key_hash: u64, value: &[u8]) -> Wrong {
        let Some((header, body)) = value.split_first_chunk::<HEADER>() else {
            return Wrong::Length;
        };
        let (salt, owner) = opened(header, value.len());
        // With a body of eight bytes or more, an owner that fits it is no accident.
        if owner != key_hash
            && body.len() >= 8
            && self.drawn_length(salt, owner) == value.len()
            && self.agrees(salt, owner, body)
        {
            return Wrong::OtherKey;
        }
        if self.drawn_length(salt, key_hash) != value.len() {
            Wrong::Length
        } else {
            Wrong::Content
        }
    }
}

/// What covers the key's hash in the check.
#[inline(always)]
fn cover(salt: u64, length: usize) -> u64 {
    mix(salt.wrapping_add((length as u64).wrapping_mul(0xd6e8_feb8_6659_fd93)))
}

/// The salt of a header, and the hash of the key that it was written for.
#[inline(always)]
fn opened(header: &[u8; HEADER], length: usize) -> (u64, u64) {
    let ([salt, check], _) = header.as_chunks::<8>() else {
        return (0, 0);
    };
    let salt = u64::from_le_bytes(*salt);
    (salt, u64::from_le_bytes(*check) ^ cover(salt, length))
}

/// The bytes of a value that is shorter than a header.
fn short(key_hash: u64, length: usize) -> [u8; HEADER] {
    let first = mix(key_hash.wrapping_add(length as u64));
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&mix(first).to_le_bytes());
    bytes
}

/// Bytes that are treated at once: one vector register.
const LANES: usize = 32;

/// `to` becomes the first bytes of `from` under a repeated mask; `from` is not shorter.
#[inline(always)]
fn masked(to: &mut [u8], from: &[u8], mask: u64) {
    let wide = repeated(mask);
    let (to_whole, to_rest) = to.as_chunks_mut::<LANES>();
    let (from_whole, from_rest) =
        from[..to_whole.len() * LANES + to_rest.len()].as_chunks::<LANES>();
    for (to, from) in to_whole.iter_mut().zip(from_whole) {
        // One value, so that the compiler need not ask whether the places overlap.
        *to = std::array::from_fn(|index| from[index] ^ wide[index]);
    }
    for ((to, from), mask) in to_rest.iter_mut().zip(from_rest).zip(&wide) {
        *to = from ^ mask;
    }
}

/// Zero exactly where [`masked`] would have written `seen`.
#[inline(always)]
fn unlike(seen: &[u8], from: &[u8], mask: u64) -> u64 {
    let wide = repeated(mask);
    let (seen_whole, seen_rest) = seen.as_chunks::<LANES>();
    let (from_whole, from_rest) =
        from[..seen_whole.len() * LANES + seen_rest.len()].as_chunks::<LANES>();
    let mut difference = [0u8; LANES];
    for (seen, from) in seen_whole.iter().zip(from_whole) {
        for (((all, seen), from), mask) in difference.iter_mut().zip(seen).zip(from).zip(&wide) {
            *all |= seen ^ from ^ mask;
        }
    }
    for (((all, seen), from), mask) in
        difference.iter_mut().zip(seen_rest).zip(from_rest).zip(&wide)
    {
        *all |= seen ^ from ^ mask;
    }
    u64::from(difference != [0; LANES])
}

/// Zero exactly where all bytes are `byte`.
#[inline(always)]
fn unlike_byte(seen: &[u8], byte: u8) -> u64 {
    let (whole, rest) = seen.as_chunks::<8>();
    let word = u64::from_ne_bytes([byte; 8]);
    let difference = whole.iter().fold(0, |all, seen| all | (u64::from_ne_bytes(*seen) ^ word));
    rest.iter().fold(difference, |all, seen| all | u64::from(seen ^ byte))
}

#[inline(always)]
fn repeated(mask: u64) -> [u8; LANES] {
    let bytes = mask.to_le_bytes();
    std::array::from_fn(|index| bytes[index % 8])
}

/// A hash of a key's bytes: sixteen at a time through a 128-bit product. It tells keys apart; it
/// is no defence against anyone who means harm.
#[inline(always)]
fn hash(key: &[u8]) -> u64 {
    const A: u64 = 0xa076_1d64_78bd_642f;
    const B: u64 = 0xe703_7ed1_a0b4_28db;
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let mut state = (key.len() as u64).wrapping_mul(A);
    let (first, last) = match (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        (Some(first), Some(last)) => (word(first), word(last)),
        _ => {
            let mut bytes = [0; 8];
            bytes[..key.len()].copy_from_slice(key);
            (word(&bytes), 0)
        }
    };
    if key.len() > 16 {
        // The last, incomplete piece is covered by the last sixteen bytes, read across the edge.
        for piece in key[..key.len() - 1].as_chunks::<16>().0 {
            if let ([low, high], _) = piece.as_chunks::<8>() {
                state = fold(word(low) ^ state ^ A, word(high) ^ B);
            }
        }
        let before = key[..key.len() - 8].last_chunk::<8>().map_or(0, word);
        return mix(fold(before ^ state ^ B, last ^ A));
    }
    mix(fold(first ^ state ^ A, last ^ B))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn values(size: &str, compressibility: f64) -> Values {
        let spec =
            ValueSpec { size: Size::parse(size).unwrap(), compressibility, ..Default::default() };
        Values::new(&spec, Lane::new(1, 5)).unwrap()
    }

    fn value(values: &Values, key: &[u8], salt: u64) -> Vec<u8> {
        let mut out = vec![7; 3];
        values.write(key, salt, &mut out);
        out
    }

    const SIZES: [&str; 10] =
        ["0", "1", "9", "15", "16", "17", "100", "1000", "9000", "uniform:0..300"];

    #[test]
    fn what_was_written_is_right() {
        for size in SIZES {
            for compressibility in [0.0, 0.3, 0.99] {
                let values = values(size, compressibility);
                for salt in 0..200 {
                    let value = value(&values, b"user123", salt);
                    assert_eq!(values.verify(b"user123", &value), Ok(()), "{size} {salt}");
                }
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        for size in SIZES {
            for compressibility in [0.0, 0.5] {
                let values = values(size, compressibility);
                let right = value(&values, b"user123", 42);
                for bit in 0..right.len() * 8 {
                    let mut wrong = right.clone();
                    wrong[bit / 8] ^= 1 << (bit % 8);
                    assert!(values.verify(b"user123", &wrong).is_err(), "{size}, bit {bit}");
                }
            }
        }
    }

    #[test]
    fn every_other_length_is_found() {
        for size in SIZES.iter().filter(|size| !size.contains(':')) {
            let values = values(size, 0.0);
            let right = value(&values, b"k", 1);
            for length in (0..right.len()).step_by(1 + right.len() / 100) {
                assert_eq!(values.verify(b"k", &right[..length]), Err(Wrong::Length), "{size}");
            }
            let longer: Vec<u8> = right.iter().copied().chain([0]).collect();
            assert_eq!(values.verify(b"k", &longer), Err(Wrong::Length), "{size}");
        }
        let drawn = values("uniform:0..300", 0.0);
        for salt in 0..300 {
            let right = value(&drawn, b"k", salt);
            for length in 8..right.len() {
                assert!(drawn.verify(b"k", &right[..length]).is_err(), "{salt} {length}");
            }
        }
    }

    #[test]
    fn a_torn_value_is_found_wherever_it_is_torn() {
        for compressibility in [0.0, 0.5, 0.9] {
            let values = values("1000", compressibility);
            let (old, new) = (value(&values, b"k", 1), value(&values, b"k", 2));
            for at in 1..1000 {
                let torn: Vec<u8> = old[..at].iter().chain(&new[at..]).copied().collect();
                // Neighbouring bytes of two versions may be equal by chance.
                if torn != old && torn != new {
                    let wrong = values.verify(b"k", &torn);
                    assert_eq!(wrong, Err(Wrong::Content), "{compressibility} {at}");
                }
            }
        }
    }

    #[test]
    fn the_value_of_another_key_is_known_as_such() {
        for by in [LengthBy::Write, LengthBy::Key] {
            let size = Size::parse("uniform:24..300").unwrap();
            let spec = ValueSpec { size, length_by: by, ..Default::default() };
            let values = Values::new(&spec, Lane::new(1, 5)).unwrap();
            for salt in 0..50 {
                let other = value(&values, b"user124", salt);
                assert_eq!(values.verify(b"user123", &other), Err(Wrong::OtherKey));
            }
        }
        // Too short to name its key: wrong all the same.
        assert_eq!(
            values("10", 0.0).verify(b"a", &value(&values("10", 0.0), b"b", 1)),
            Err(Wrong::Content)
        );
    }

    #[test]
    fn lengths_by_key_do_not_change_with_the_version() {
        let size = Size::parse("uniform:0..1000").unwrap();
        let spec = ValueSpec { size, length_by: LengthBy::Key, ..Default::default() };
        let values = Values::new(&spec, Lane::new(1, 5)).unwrap();
        let lengths = |key: &[u8]| -> HashSet<usize> {
            (0..50).map(|salt| value(&values, key, salt).len()).collect()
        };
        assert_eq!(lengths(b"a").len(), 1);
        assert_ne!(lengths(b"a"), lengths(b"b"));
    }

    /// Bytes that LZ4 saves over values written one behind the other, as in a log or a block.
    #[test]
    fn compressors_find_what_was_asked_for_and_no_more() {
        for size in ["1000", "4KiB", "64KiB", "300KiB"] {
            for asked in [0.0, 0.25, 0.5, 0.9] {
                let values = values(size, asked);
                let mut log = Vec::new();
                let mut salt = 0;
                while log.len() < 1 << 20 {
                    log.extend(value(&values, format!("user{salt}").as_bytes(), salt));
                    salt += 1;
                }
                for block in [64 << 10, 1 << 20] {
                    // Whole values only: what is cut off would not have its run.
                    let block = &log[..block - block % values.mean() as usize];
                    if !block.is_empty() {
                        let left = lz4_flex::compress(block).len() as f64 / block.len() as f64;
                        let saved = 1.0 - left;
                        assert!((saved - asked).abs() < 0.03, "{size} {asked}: {saved}");
                    }
                }
            }
        }
    }

    #[test]
    fn hashes_of_similar_keys_differ() {
        let mut seen = HashSet::new();
        for length in 0..70 {
            for byte in 0..=length {
                let mut key = vec![b'0'; length];
                if let Some(slot) = key.get_mut(byte) {
                    *slot = b'1';
                }
                seen.insert((hash(&key), key));
            }
        }
        let hashes: HashSet<u64> = seen.iter().map(|(hash, _)| *hash).collect();
        assert_eq!(hashes.len(), seen.len());
    }

    #[test]
    fn refuses_sizes_and_shares_out_of_range() {
        let spec = ValueSpec { compressibility: 1.0, ..Default::default() };
        let error = Values::new(&spec, Lane::new(1, 5)).unwrap_err().to_string();
        assert!(error.contains("value.compressibility"), "{error}");
        let spec = ValueSpec { size: Size::parse("2GiB").unwrap(), ..Default::default() };
        let error = Values::new(&spec, Lane::new(1, 5)).unwrap_err().to_string();
        assert!(error.contains("between 0 and 1GiB"), "{error}");
    }
}
