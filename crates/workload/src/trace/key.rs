//! The key that is sent for a request of a trace.

use model::random::mix;

use crate::value::hash;

/// The longest key that is sent: memcached takes no longer one.
pub const LONGEST: usize = 250;

/// Letters and figures that every text protocol takes, six bits each.
const LETTERS: &[u8; 64] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/// Letters of a hash of 64 bits.
const HASH: usize = 11;

/// How a trace's key was fitted to the original size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFit {
    AsItIs,
    Cut,
    Lengthened,
    /// Letters of its hash stand for bytes that text protocols do not take.
    Hashed,
}

/// Bytes of the key that is sent for a number.
pub(super) const NUMBER: usize = 16;

/// Whether text protocols do not take a key.
#[inline]
pub(super) fn has_other_bytes(key: &[u8]) -> bool {
    key.iter().any(|byte| *byte <= b' ' || *byte == 0x7f)
}

/// Appends the trace's key in its original size, at most [`LONGEST`].
///
/// Anonymised keys are often longer or shorter than the ones they stand for. What is too long is
/// cut, and its last letters (up to eleven) become those of a hash of the whole key; what is too
/// short is lengthened by such letters. Hence the same key and size always give the same key, and
/// different ones differ but for accidents of the hash: of 6 bits a letter where the size is below
/// 11 B. A copy ends in letters of the hash of the key and its number.
#[inline]
pub(super) fn append(key: &[u8], size: u32, copy: u32, out: &mut Vec<u8>) -> KeyFit {
    let size = (size as usize).min(LONGEST);
    let fit = match key.len() {
        length if length == size => KeyFit::AsItIs,
        length if length < size => KeyFit::Lengthened,
        _ => KeyFit::Cut,
    };
    let prefix = match (fit, copy) {
        (KeyFit::AsItIs, 0) => size,
        (KeyFit::Lengthened, 0) => key.len(),
        _ => key.len().min(size - size.min(HASH)),
    };
    out.extend_from_slice(&key[..prefix]);
    if prefix < size {
        letters(hash_of(key, copy), size - prefix, out);
    }
    fit
}

/// Appends letters of the key's hash alone.
pub(super) fn append_hashed(key: &[u8], size: u32, copy: u32, out: &mut Vec<u8>) -> KeyFit {
    letters(hash_of(key, copy), (size as usize).min(LONGEST), out);
    KeyFit::Hashed
}

/// Appends the key for a number: its digits to the base of 16.
#[inline]
pub(super) fn append_number(number: u64, copy: u32, out: &mut Vec<u8>) -> KeyFit {
    let number = if copy == 0 { number } else { mix(mix(number) ^ u64::from(copy)) };
    let digits: [u8; NUMBER] = std::array::from_fn(|at| {
        let digit = (number >> (60 - 4 * at)) as u8 & 15;
        digit + if digit < 10 { b'0' } else { b'a' - 10 }
    });
    out.extend_from_slice(&digits);
    KeyFit::AsItIs
}

#[inline]
fn hash_of(key: &[u8], copy: u32) -> u64 {
    if copy == 0 { hash(key) } else { mix(hash(key) ^ u64::from(copy)) }
}

/// Appends so many letters of a hash.
fn letters(hash: u64, count: usize, out: &mut Vec<u8>) {
    let mut word = hash;
    let mut remaining = HASH;
    for _ in 0..count {
        if remaining == 0 {
            word = mix(word ^ hash);
            remaining = HASH;
        }
        out.push(LETTERS[(word & 63) as usize]);
        // Turned, not shifted: four bits of the last letter would else be empty.
        word = word.rotate_right(6);
        remaining -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn fitted(key: &str, size: u32) -> Vec<u8> {
        let mut out = b"before".to_vec();
        append(key.as_bytes(), size, 0, &mut out);
        out.split_off(6)
    }

    #[test]
    fn keys_get_their_size_and_stay_distinct() {
        let key = "nz:u:eeW511W3dcH3de3d15ec";
        assert_eq!(fitted(key, 25), key.as_bytes());
        for size in (1..=LONGEST as u32).filter(|size| *size != 25) {
            let sent = fitted(key, size);
            assert_eq!(sent.len(), size as usize);
            assert_eq!(sent, fitted(key, size));
            assert!(sent.iter().all(u8::is_ascii_graphic));
            let same = key.bytes().zip(&sent).take_while(|(a, b)| a == *b).count();
            assert!(same >= if size > 25 { 25 } else { (size as usize).saturating_sub(HASH) });
        }
        assert_eq!(fitted(key, 4000).len(), LONGEST);
        assert_eq!(fitted(&"k".repeat(300), 300).len(), LONGEST);
    }

    #[test]
    fn keys_with_a_common_beginning_stay_apart() {
        for size in [8, 12, 20, 60] {
            let keys: HashSet<Vec<u8>> =
                (0..10_000).map(|k| fitted(&format!("space:of:names:{k:08}:x"), size)).collect();
            // 48 bits and more: two of 10,000 are the same once in five million.
            assert_eq!(keys.len(), 10_000, "{size}");
        }
    }
}
