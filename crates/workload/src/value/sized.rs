//! Values of a given length.

use super::ValueMismatch;
use super::content::{HEADER, ValueContent, decode_header, hash, short};
use crate::SpecError;
use model::random::RandomStream;

/// Writes values of given lengths, and verifies them without knowing the length.
///
/// A value is a function of its key, its salt and its length, as those of a [`Workload`] are. The
/// length is part of what the check covers: a truncated or extended value is detected. A value
/// below 16 B has no room for a check: it is wrong only if its bytes do not follow from key and
/// length; a value cut to 0 B passes.
///
/// [`Workload`]: crate::Workload
#[derive(Debug, Clone)]
pub struct SizedValues {
    content: ValueContent,
}

/// The purpose of the random stream; those of a [`WorkloadSpec`](crate::WorkloadSpec) are below.
const POOL: u64 = 64;

impl SizedValues {
    /// `compressibility`: the part of a value that a compressor can remove, 0 up to, but not with, 1.
    ///
    /// # Errors
    /// A compressibility outside this.
    pub fn new(seed: u64, compressibility: f64) -> Result<SizedValues, SpecError> {
        Ok(SizedValues {
            content: ValueContent::new(compressibility, RandomStream::new(seed, POOL))?,
        })
    }

    /// Replaces `out` by the value of `length` bytes that `salt` gives to `key`. Faster where `out`
    /// still has this length.
    #[inline]
    pub fn write(&self, key: &[u8], salt: u64, length: usize, out: &mut Vec<u8>) {
        self.content.write(hash(key), salt, length, out);
    }

    /// Whether `value` was written for `key`, with any salt and any length.
    ///
    /// # Errors
    /// [`ValueMismatch::OtherKey`] where that can be determined, else [`ValueMismatch::Content`].
    #[inline]
    pub fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), ValueMismatch> {
        let key_hash = hash(key);
        let Some((header, body)) = value.split_first_chunk::<HEADER>() else {
            let right = value == &short(key_hash, value.len())[..value.len()];
            return if right { Ok(()) } else { Err(ValueMismatch::Content) };
        };
        let (salt, owner) = decode_header(header, value.len());
        if owner == key_hash && self.content.agrees(salt, key_hash, body) {
            return Ok(());
        }
        // With a body of eight bytes or more, an owner that fits it is no accident.
        if owner != key_hash && body.len() >= 8 && self.content.agrees(salt, owner, body) {
            return Err(ValueMismatch::OtherKey);
        }
        Err(ValueMismatch::Content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [usize; 12] = [0, 1, 7, 15, 16, 17, 31, 100, 1000, 4096, 9000, 300_000];

    #[test]
    fn any_length_is_written_and_verified() {
        for compressibility in [0.0, 0.5] {
            let values = SizedValues::new(3, compressibility).unwrap();
            let mut out = Vec::new();
            for salt in 0..20 {
                for length in LENGTHS {
                    values.write(b"key:1", salt, length, &mut out);
                    assert_eq!(out.len(), length);
                    assert_eq!(values.verify(b"key:1", &out), Ok(()), "{length}");
                    let again = out.clone();
                    values.write(b"key:1", salt, length, &mut out);
                    assert_eq!(out, again);
                }
            }
        }
    }

    #[test]
    fn detects_wrong_values() {
        let values = SizedValues::new(3, 0.0).unwrap();
        let (mut right, mut other) = (Vec::new(), Vec::new());
        for length in LENGTHS.into_iter().filter(|length| (1..9000).contains(length)) {
            values.write(b"key:1", 9, length, &mut right);
            for bit in 0..right.len() * 8 {
                let mut wrong = right.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert!(values.verify(b"key:1", &wrong).is_err(), "{length}, bit {bit}");
            }
            for cut in 1..length.min(200) {
                assert!(values.verify(b"key:1", &right[..length - cut]).is_err(), "{length} {cut}");
            }
            values.write(b"key:2", 9, length, &mut other);
            let expected =
                if length < 24 { ValueMismatch::Content } else { ValueMismatch::OtherKey };
            assert_eq!(values.verify(b"key:1", &other), Err(expected), "{length}");
        }
        // The first half of one version and the second of another.
        values.write(b"key:1", 1, 1000, &mut right);
        values.write(b"key:1", 2, 1000, &mut other);
        right[500..].copy_from_slice(&other[500..]);
        assert_eq!(values.verify(b"key:1", &right), Err(ValueMismatch::Content));
        assert!(SizedValues::new(1, 1.0).is_err());
    }
}
