//! The bytes of a value.

use multiversion::multiversion;

use crate::SpecError;
use model::random::{Draws, RandomStream, fold, mix};

/// Salt and check: a shorter value has no room for them.
pub const HEADER: usize = 16;

/// The bytes at the end of a value that has a run.
const SEAL: usize = 8;

/// Bytes of the pool at which a window may begin. Pools of 64 and 512 KiB were read as fast by a
/// harness alone; a small one leaves the caches to the measured store.
const POOL: usize = 16 << 10;

/// Bytes of noise from one position of the pool.
const WINDOW: usize = 4 << 10;

/// Writes and verifies the content of values.
///
/// From 16 bytes on a value is: 8 bytes of salt (the version), 8 bytes of check, noise, and, where
/// it is to compress, a run of one byte with a seal of 8 bytes behind it. The check is the key's
/// hash under a mask that follows from salt and length, so that a reader can check the key. Noise
/// is a window of a fixed pool of random bytes, under a mask of 8 bytes that, like the window's
/// position, follows from salt and key: no two values share long substrings, and each part of the
/// noise proves its version. A run proves it with a probability of 255 in 256 only, hence the seal:
/// a value of which one part is from one version and the rest from another is found wherever it was
/// torn. A value below 16 bytes follows from its key and length alone: its versions do not differ,
/// and a longer one that was cut to nothing passes where values of 0 bytes are written.
///
/// Everything is recomputed by [`ValueContent::agrees`] and its callers, so that a single changed
/// bit is found. Numbers are stored little-endian.
#[derive(Debug, Clone)]
pub struct ValueContent {
    compressibility: f64,
    pool: Box<[u8]>,
}

/// A word that key and salt determine.
#[derive(Clone, Copy)]
struct ContentStamp(u64);

impl ContentStamp {
    #[inline(always)]
    fn new(salt: u64, key_hash: u64) -> ContentStamp {
        ContentStamp(mix(salt ^ key_hash.rotate_left(32)))
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

impl ValueContent {
    /// # Errors
    /// A compressibility outside 0 .. 1.
    pub fn new(compressibility: f64, pool: RandomStream) -> Result<ValueContent, SpecError> {
        if !(0.0..1.0).contains(&compressibility) {
            let problem = format!("{compressibility} is not at least 0 and below 1");
            return Err(SpecError::invalid("value.compressibility", problem));
        }
        let mut draws = Draws::from(pool.at(0));
        let words = (POOL + WINDOW) / 8;
        let pool = (0..words).flat_map(|_| draws.next().to_le_bytes()).collect();
        Ok(ValueContent { compressibility, pool })
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

    /// Makes `out` the value of `length` bytes that `salt` gives to the key with this hash.
    #[inline(always)]
    pub fn write(&self, key_hash: u64, salt: u64, length: usize, out: &mut Vec<u8>) {
        // Existing content is overwritten, not cleared first.
        if out.len() != length {
            out.resize(length, 0);
        }
        let Some((header, body)) = out.split_first_chunk_mut::<HEADER>() else {
            out.copy_from_slice(&short(key_hash, length)[..length]);
            return;
        };
        header[..8].copy_from_slice(&salt.to_le_bytes());
        header[8..].copy_from_slice(&(key_hash ^ cover(salt, length)).to_le_bytes());
        let stamp = ContentStamp::new(salt, key_hash);
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

    /// Whether noise and run are those of this salt and key.
    #[inline(always)]
    pub fn agrees(&self, salt: u64, key_hash: u64, body: &[u8]) -> bool {
        let stamp = ContentStamp::new(salt, key_hash);
        let (noise, run) = body.split_at(self.noise(body.len() + HEADER));
        let mut differs = 0;
        for (index, part) in noise.chunks(WINDOW).enumerate() {
            let mask = stamp.mask(index);
            differs |= difference(part, self.window(mask), mask);
        }
        if !run.is_empty() {
            let seal = stamp.seal();
            let (run, end) = run.split_at(run.len().saturating_sub(SEAL));
            differs |= difference_from_byte(run, seal[0]) | u64::from(end != &seal[..end.len()]);
        }
        differs == 0
    }
}

/// The mask of the key's hash in the check.
#[inline(always)]
fn cover(salt: u64, length: usize) -> u64 {
    mix(salt.wrapping_add((length as u64).wrapping_mul(0xd6e8_feb8_6659_fd93)))
}

/// The salt of a header, and the hash of the key that it was written for.
#[inline(always)]
pub fn decode_header(header: &[u8; HEADER], length: usize) -> (u64, u64) {
    let ([salt, check], _) = header.as_chunks::<8>() else {
        return (0, 0);
    };
    let salt = u64::from_le_bytes(*salt);
    (salt, u64::from_le_bytes(*check) ^ cover(salt, length))
}

/// The bytes of a value that is shorter than a header.
pub fn short(key_hash: u64, length: usize) -> [u8; HEADER] {
    let first = mix(key_hash.wrapping_add(length as u64));
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&mix(first).to_le_bytes());
    bytes
}

/// Bytes that are treated at once: one vector register. What is left at the end is treated by
/// halves.
const LANES: usize = 32;

/// `to` becomes the first bytes of `from` under a repeated mask; `from` is not shorter.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2"))]
fn masked(to: &mut [u8], from: &[u8], mask: u64) {
    let wide = repeated(mask);
    let (to_whole, to_rest) = to.as_chunks_mut::<LANES>();
    let (from_whole, from_rest) =
        from[..to_whole.len() * LANES + to_rest.len()].as_chunks::<LANES>();
    for (to, from) in to_whole.iter_mut().zip(from_whole) {
        // A local value, so that the compiler knows that the memory does not overlap.
        *to = std::array::from_fn(|index| from[index] ^ wide[index]);
    }
    let (to_rest, from_rest) = masked_part::<16>(to_rest, from_rest, &wide);
    let (to_rest, from_rest) = masked_part::<8>(to_rest, from_rest, &wide);
    for ((to, from), mask) in to_rest.iter_mut().zip(from_rest).zip(&wide) {
        *to = from ^ mask;
    }
}

/// Masks the first `N` bytes, if there are as many; returns the rest.
#[inline(always)]
fn masked_part<'a, 'b, const N: usize>(
    to: &'a mut [u8],
    from: &'b [u8],
    wide: &[u8; LANES],
) -> (&'a mut [u8], &'b [u8]) {
    // Of the length alone, so that the borrow ends where there are fewer.
    if to.len() < N {
        return (to, from);
    }
    match (to.split_first_chunk_mut::<N>(), from.split_first_chunk::<N>()) {
        (Some((to, to_rest)), Some((from, from_rest))) => {
            *to = std::array::from_fn(|index| from[index] ^ wide[index]);
            (to_rest, from_rest)
        }
        _ => (&mut [], &[]),
    }
}

/// Zero exactly where [`masked`] would have written `actual`.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2"))]
fn difference(actual: &[u8], from: &[u8], mask: u64) -> u64 {
    let wide = repeated(mask);
    let (actual_whole, actual_rest) = actual.as_chunks::<LANES>();
    let (from_whole, from_rest) =
        from[..actual_whole.len() * LANES + actual_rest.len()].as_chunks::<LANES>();
    let mut difference = [0u8; LANES];
    for (actual, from) in actual_whole.iter().zip(from_whole) {
        for (((all, actual), from), mask) in difference.iter_mut().zip(actual).zip(from).zip(&wide)
        {
            *all |= actual ^ from ^ mask;
        }
    }
    let (actual_rest, from_rest) =
        difference_of_part::<16>(actual_rest, from_rest, &wide, &mut difference);
    let (actual_rest, from_rest) =
        difference_of_part::<8>(actual_rest, from_rest, &wide, &mut difference);
    let mut last = 0;
    for ((actual, from), mask) in actual_rest.iter().zip(from_rest).zip(&wide) {
        last |= actual ^ from ^ mask;
    }
    u64::from(last) | u64::from(difference != [0; LANES])
}

/// Adds the differences of the first `N` bytes, if there are as many; returns the rest.
#[inline(always)]
fn difference_of_part<'a, 'b, const N: usize>(
    actual: &'a [u8],
    from: &'b [u8],
    wide: &[u8; LANES],
    difference: &mut [u8; LANES],
) -> (&'a [u8], &'b [u8]) {
    match (actual.split_first_chunk::<N>(), from.split_first_chunk::<N>()) {
        (Some((first, actual_rest)), Some((from, from_rest))) => {
            for (((all, actual), from), mask) in
                difference.iter_mut().zip(first).zip(from).zip(wide)
            {
                *all |= actual ^ from ^ mask;
            }
            (actual_rest, from_rest)
        }
        _ => (actual, from),
    }
}

/// Zero exactly where all bytes are `byte`.
#[inline(always)]
fn difference_from_byte(actual: &[u8], byte: u8) -> u64 {
    let (whole, rest) = actual.as_chunks::<8>();
    let word = u64::from_ne_bytes([byte; 8]);
    let difference = whole.iter().fold(0, |all, actual| all | (u64::from_ne_bytes(*actual) ^ word));
    rest.iter().fold(difference, |all, actual| all | u64::from(actual ^ byte))
}

#[inline(always)]
fn repeated(mask: u64) -> [u8; LANES] {
    let bytes = mask.to_le_bytes();
    std::array::from_fn(|index| bytes[index % 8])
}

/// A hash of a key's bytes: sixteen at a time through a 128-bit product. Not collision-resistant
/// against attacks.
#[inline(always)]
pub fn hash(key: &[u8]) -> u64 {
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

    #[test]
    fn hashes_of_similar_keys_differ() {
        let mut actual = HashSet::new();
        for length in 0..70 {
            for byte in 0..=length {
                let mut key = vec![b'0'; length];
                if let Some(slot) = key.get_mut(byte) {
                    *slot = b'1';
                }
                actual.insert((hash(&key), key));
            }
        }
        let hashes: HashSet<u64> = actual.iter().map(|(hash, _)| *hash).collect();
        assert_eq!(hashes.len(), actual.len());
    }
}
