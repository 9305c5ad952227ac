//! What stands for a key in a trace: a keyed hash, and the class of its prefix.

use std::collections::HashMap;
use std::hash::Hasher;

use siphasher::sip::SipHasher24;

/// Bytes of a secret.
pub const SECRET: usize = 16;

/// Classes beside "no prefix" and "another prefix".
const MOST_CLASSES: usize = 254;
/// The class of a key without a prefix, and that of prefixes beyond the most.
const NONE: u8 = 0;
const OTHER: u8 = 255;

/// Hashes keys by SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012). Without the secret, a guessed
/// key cannot be looked up in the trace.
pub struct KeyHasher {
    secret: [u8; SECRET],
    /// Classes by the keyed hash of their prefix, in order of appearance from 1.
    classes: HashMap<u64, u8>,
}

/// What is written of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedKey {
    pub hash: u64,
    /// The number of its prefix, which is what stands before the first figure or separator.
    pub class: u8,
}

impl KeyHasher {
    pub fn new(secret: [u8; SECRET]) -> KeyHasher {
        KeyHasher { secret, classes: HashMap::new() }
    }

    pub fn hash(&mut self, key: &[u8]) -> HashedKey {
        let class = match prefix(key) {
            [] => NONE,
            prefix => {
                let hash = self.of(prefix);
                let next = self.classes.len();
                match self.classes.get(&hash) {
                    Some(class) => *class,
                    None if next >= MOST_CLASSES => OTHER,
                    None => *self.classes.entry(hash).or_insert(next as u8 + 1),
                }
            }
        };
        HashedKey { hash: self.of(key), class }
    }

    fn of(&self, bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.secret);
        hasher.write(bytes);
        hasher.finish()
    }
}

/// What stands before the first figure or separator; nothing where there is none.
fn prefix(key: &[u8]) -> &[u8] {
    let ends = |byte: &u8| byte.is_ascii_digit() || b":/.|-_#,;=@".contains(byte);
    key.iter().position(ends).map_or(&[], |at| &key[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_needs_its_secret() {
        let hash = |secret| KeyHasher::new([secret; SECRET]).hash(b"user:1").hash;
        assert_eq!(hash(1), hash(1));
        assert_ne!(hash(1), hash(2));
        // The vector of the reference implementation.
        let secret = std::array::from_fn(|at| at as u8);
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(KeyHasher::new(secret).hash(&message).hash, 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn prefixes_are_numbered_and_bounded() {
        let mut hasher = KeyHasher::new([7; SECRET]);
        let keys: [&[u8]; 6] = [b"user:1", b"user:2", b"item77", b"plain", b"9", b"user9"];
        let mut class = |key: &[u8]| hasher.hash(key).class;
        assert_eq!(keys.map(&mut class), [1, 1, 2, 0, 0, 1]);
        let letters = |number: u32| -> String {
            number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
        };
        let more: Vec<u8> =
            (0..400).map(|n| class(format!("x{}:", letters(n)).as_bytes())).collect();
        assert_eq!(more[..252], (3..=254).collect::<Vec<u8>>());
        assert!(more[252..].iter().all(|class| *class == OTHER));
        assert_eq!(class(b"item1"), 2);
    }
}
