//! The value of a record: written fast, verified whole.

mod content;
mod lengths;
mod sized;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use content::hash;
pub use sized::SizedValues;

use crate::key::Keys;
use crate::length::LengthSampler;
use crate::{LengthSpec, SpecError};
use content::{HEADER, ValueContent, decode_header, short};
use lengths::ValueLengths;
use model::random::{RandomStream, mix};

/// The longest value.
pub const LONGEST: u64 = 1 << 30;

/// Whether a value's length depends on the write or on the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthSource {
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
    pub size: LengthSpec,
    /// Other sizes of the first records, which are the popular ones under most laws: rows of a part
    /// of the records and their size. The rest has `size`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub size_of_first: Vec<(f64, LengthSpec)>,
    /// The part of a value, at its end, that a compressor can remove; 0 up to, but not with, 1.
    pub compressibility: f64,
    pub length_by: LengthSource,
}

impl Default for ValueSpec {
    /// YCSB's ten fields of 100 bytes as one value that does not compress.
    fn default() -> ValueSpec {
        ValueSpec {
            size: LengthSpec::fixed(1000),
            size_of_first: Vec::new(),
            compressibility: 0.0,
            length_by: LengthSource::Write,
        }
    }
}

/// Why a value that a store returned is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum ValueMismatch {
    #[error("the value has a length that was never written")]
    Length,
    /// Bytes are not what was written: damaged, or parts of two versions.
    #[error("the value's content is not what was written: damaged or torn")]
    Content,
    #[error("the value belongs to another key")]
    OtherKey,
}

/// Writes and verifies values whose length is drawn; their bytes: [`ValueContent`].
#[derive(Debug, Clone)]
pub struct Values {
    lengths: ValueLengths,
    length_by: LengthSource,
    content: ValueContent,
}

impl Values {
    /// For so many records with these keys.
    ///
    /// # Errors
    /// A size above [`LONGEST`], a compressibility outside 0 .. 1, first records that cannot be told
    /// from others.
    pub fn new(
        spec: &ValueSpec,
        pool: RandomStream,
        keys: &Keys,
        records: u64,
    ) -> Result<Values, SpecError> {
        Ok(Values {
            content: ValueContent::new(spec.compressibility, pool)?,
            lengths: ValueLengths::new(spec, keys, records)?,
            length_by: spec.length_by,
        })
    }

    /// The expected length in bytes.
    pub fn mean(&self) -> f64 {
        self.lengths.mean()
    }

    /// The longest that can be drawn, in bytes.
    pub fn longest(&self) -> u64 {
        self.lengths.longest()
    }

    #[inline(always)]
    fn drawn_length(&self, key: &[u8], salt: u64, key_hash: u64) -> usize {
        self.drawn(self.lengths.of(key), salt, key_hash)
    }

    #[inline(always)]
    fn drawn(&self, length: &LengthSampler, salt: u64, key_hash: u64) -> usize {
        let from = match self.length_by {
            LengthSource::Write => salt,
            LengthSource::Key => key_hash,
        };
        length.draw(mix(from ^ 0x6c65_6e67_7468_5f5f)) as usize
    }

    /// Bytes of the value that `salt` gives to `key`.
    pub fn length(&self, key: &[u8], salt: u64) -> u64 {
        self.drawn_length(key, salt, hash(key)) as u64
    }

    /// Replaces the content of `out` by the value that `salt` gives to `key`.
    #[inline]
    pub fn write(&self, key: &[u8], salt: u64, out: &mut Vec<u8>) {
        let key_hash = hash(key);
        let length = self.drawn_length(key, salt, key_hash);
        self.content.write(key_hash, salt, length, out);
    }

    /// Whether `value` is one that was written for `key`, in any version.
    ///
    /// # Errors
    /// [`ValueMismatch`], with the most likely cause.
    #[inline]
    pub fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), ValueMismatch> {
        let key_hash = hash(key);
        let Some((header, body)) = value.split_first_chunk::<HEADER>() else {
            return self.verify_short(key, key_hash, value);
        };
        let (salt, owner) = decode_header(header, value.len());
        if owner == key_hash
            && self.drawn_length(key, salt, key_hash) == value.len()
            && self.content.agrees(salt, key_hash, body)
        {
            return Ok(());
        }
        Err(self.diagnose(key, key_hash, value))
    }

    fn verify_short(&self, key: &[u8], key_hash: u64, value: &[u8]) -> Result<(), ValueMismatch> {
        let length = value.len();
        let fits = match self.length_by {
            LengthSource::Write => self.lengths.of(key).possible(length as u64),
            LengthSource::Key => self.drawn_length(key, 0, key_hash) == length,
        };
        if !fits {
            return Err(ValueMismatch::Length);
        }
        if value == &short(key_hash, length)[..length] {
            Ok(())
        } else {
            Err(ValueMismatch::Content)
        }
    }

    #[cold]
    fn diagnose(&self, key: &[u8], key_hash: u64, value: &[u8]) -> ValueMismatch {
        let Some((header, body)) = value.split_first_chunk::<HEADER>() else {
            return ValueMismatch::Length;
        };
        let (salt, owner) = decode_header(header, value.len());
        // With a body of eight bytes or more, an owner that fits it is no accident.
        if owner != key_hash
            && body.len() >= 8
            && self.lengths.all().any(|length| self.drawn(length, salt, owner) == value.len())
            && self.content.agrees(salt, owner, body)
        {
            return ValueMismatch::OtherKey;
        }
        if self.drawn_length(key, salt, key_hash) != value.len() {
            ValueMismatch::Length
        } else {
            ValueMismatch::Content
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{InsertOrder, KeySpec};

    fn compiled(spec: &ValueSpec) -> Result<Values, SpecError> {
        let random = RandomStream::new(1, 4);
        let keys = Keys::new(&KeySpec::default(), InsertOrder::Hashed, 100, false, random);
        Values::new(spec, RandomStream::new(1, 5), &keys.unwrap(), 100)
    }

    fn of(spec: &ValueSpec) -> Values {
        compiled(spec).unwrap()
    }

    fn values(size: &str, compressibility: f64) -> Values {
        let spec = ValueSpec {
            size: LengthSpec::parse(size).unwrap(),
            compressibility,
            ..Default::default()
        };
        of(&spec)
    }

    fn value(values: &Values, key: &[u8], salt: u64) -> Vec<u8> {
        let mut out = vec![7; 3];
        values.write(key, salt, &mut out);
        out
    }

    const SIZES: [&str; 10] =
        ["0", "1", "9", "15", "16", "17", "100", "1000", "9000", "uniform:0..300"];

    #[test]
    fn verifies_written_values() {
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
    fn longest_matches_drawn_lengths() {
        for (size, longest) in
            [("1000", 1000), ("uniform:5..300", 300), ("discrete:7=0.5,99=0.5,1000=0", 99)]
        {
            let values = values(size, 0.0);
            assert_eq!(values.longest(), longest, "{size}");
            let drawn = (0..10_000).map(|salt| value(&values, b"k", salt).len()).max();
            assert_eq!(drawn, Some(longest as usize), "{size}");
        }
    }

    #[test]
    fn detects_every_flipped_bit() {
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
    fn detects_wrong_lengths() {
        for size in SIZES.iter().filter(|size| !size.contains(':')) {
            let values = values(size, 0.0);
            let right = value(&values, b"k", 1);
            for length in (0..right.len()).step_by(1 + right.len() / 100) {
                assert_eq!(
                    values.verify(b"k", &right[..length]),
                    Err(ValueMismatch::Length),
                    "{size}"
                );
            }
            let longer: Vec<u8> = right.iter().copied().chain([0]).collect();
            assert_eq!(values.verify(b"k", &longer), Err(ValueMismatch::Length), "{size}");
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
    fn detects_torn_values() {
        for compressibility in [0.0, 0.5, 0.9] {
            let values = values("1000", compressibility);
            let (old, new) = (value(&values, b"k", 1), value(&values, b"k", 2));
            for at in 1..1000 {
                let torn: Vec<u8> = old[..at].iter().chain(&new[at..]).copied().collect();
                // Neighbouring bytes of two versions may be equal by chance.
                if torn != old && torn != new {
                    let wrong = values.verify(b"k", &torn);
                    assert_eq!(wrong, Err(ValueMismatch::Content), "{compressibility} {at}");
                }
            }
        }
    }

    #[test]
    fn detects_value_of_another_key() {
        for by in [LengthSource::Write, LengthSource::Key] {
            let size = LengthSpec::parse("uniform:24..300").unwrap();
            let spec = ValueSpec { size, length_by: by, ..Default::default() };
            let values = of(&spec);
            for salt in 0..50 {
                let other = value(&values, b"user124", salt);
                assert_eq!(values.verify(b"user123", &other), Err(ValueMismatch::OtherKey));
            }
        }
        // Too short to name its key: wrong all the same.
        assert_eq!(
            values("10", 0.0).verify(b"a", &value(&values("10", 0.0), b"b", 1)),
            Err(ValueMismatch::Content)
        );
    }

    #[test]
    fn lengths_by_key_do_not_change_with_the_version() {
        let size = LengthSpec::parse("uniform:0..1000").unwrap();
        let spec = ValueSpec { size, length_by: LengthSource::Key, ..Default::default() };
        let values = of(&spec);
        let lengths = |key: &[u8]| -> HashSet<usize> {
            (0..50).map(|salt| value(&values, key, salt).len()).collect()
        };
        assert_eq!(lengths(b"a").len(), 1);
        assert_ne!(lengths(b"a"), lengths(b"b"));
    }

    #[test]
    fn the_first_records_have_sizes_of_their_own() {
        let size = |text: &str| LengthSpec::parse(text).unwrap();
        for by in [LengthSource::Write, LengthSource::Key] {
            let spec = ValueSpec {
                size: size("1000"),
                size_of_first: vec![(0.01, size("8")), (0.09, size("uniform:100..200"))],
                length_by: by,
                ..Default::default()
            };
            let form = crate::KeyForm::Text;
            let keys = KeySpec { form, size: Some(size("uniform:11..40")) };
            let random = RandomStream::new(1, 4);
            let keys = Keys::new(&keys, InsertOrder::Hashed, 1000, false, random).unwrap();
            let values = Values::new(&spec, RandomStream::new(1, 5), &keys, 1000).unwrap();
            assert_eq!(values.longest(), 1000);
            assert!((values.mean() - (0.08 + 13.5 + 900.0)).abs() < 0.01, "{}", values.mean());
            let (mut key, mut sum) = (Vec::new(), 0);
            for record in 0..1000 {
                keys.write(record, &mut key);
                let out = value(&values, &key, record * 7);
                let expected = match record {
                    0..10 => 8..=8,
                    10..100 => 100..=200,
                    _ => 1000..=1000,
                };
                assert!(expected.contains(&out.len()), "{record}: {}", out.len());
                assert_eq!(values.verify(&key, &out), Ok(()));
                assert!(values.verify(&key, &out[..out.len() - 1]).is_err());
                sum += out.len();
            }
            assert!((sum as f64 / 1000.0 / values.mean() - 1.0).abs() < 0.01, "{sum}");
        }
        let first = |rows: Vec<(f64, LengthSpec)>, form| {
            let value = ValueSpec { size_of_first: rows, ..Default::default() };
            let key = KeySpec { form, size: None };
            crate::WorkloadSpec { value, key, ..Default::default() }
                .check()
                .unwrap_err()
                .to_string()
        };
        let ycsb = first(vec![(0.1, size("8"))], crate::KeyForm::Ycsb);
        assert!(ycsb.contains("value.size_of_first") && ycsb.contains("key.form"), "{ycsb}");
        for rows in [vec![(0.0, size("8"))], vec![(0.7, size("8")), (0.4, size("9"))]] {
            let wrong = first(rows, crate::KeyForm::Text);
            assert!(wrong.contains("all parts sum to 1 at most"), "{wrong}");
        }
    }

    /// Bytes that LZ4 saves over values written one behind the other, as in a log or a block.
    #[test]
    fn values_compress_as_specified() {
        for size in ["1000", "4KiB", "64KiB", "300KiB"] {
            for specified in [0.0, 0.25, 0.5, 0.9] {
                let values = values(size, specified);
                let mut log = Vec::new();
                let mut salt = 0;
                while log.len() < 1 << 20 {
                    log.extend(value(&values, format!("user{salt}").as_bytes(), salt));
                    salt += 1;
                }
                for block in [64 << 10, 1 << 20] {
                    // Whole values only: a truncated one would lack its run.
                    let block = &log[..block - block % values.mean() as usize];
                    if !block.is_empty() {
                        let ratio = lz4_flex::compress(block).len() as f64 / block.len() as f64;
                        let saved = 1.0 - ratio;
                        assert!((saved - specified).abs() < 0.03, "{size} {specified}: {saved}");
                    }
                }
            }
        }
    }

    #[test]
    fn refuses_sizes_and_shares_out_of_range() {
        let spec = ValueSpec { compressibility: 1.0, ..Default::default() };
        let error = compiled(&spec).unwrap_err().to_string();
        assert!(error.contains("value.compressibility"), "{error}");
        let spec = ValueSpec { size: LengthSpec::parse("2GiB").unwrap(), ..Default::default() };
        let error = compiled(&spec).unwrap_err().to_string();
        assert!(error.contains("between 0 and 1GiB"), "{error}");
    }
}
