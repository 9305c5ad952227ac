//! The key of a record.

use model::{Bytes, Count};
use serde::{Deserialize, Serialize};

use crate::decimal::{self, WIDTH};
use crate::fnv::{DISTINCT, fnv64};
use crate::length::{LengthLimits, LengthSampler};
use crate::{LengthSpec, SpecError};
use model::random::{RandomStream, mix, unmix};

/// The longest key: above the limits of LMDB, memcached and others.
pub const LONGEST: u64 = 4096;

/// Keys of a drawn length have room for this many times the loaded records.
const ROOM: u64 = 16;

/// How a key is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyForm {
    /// `user` and a decimal number, as YCSB writes it.
    #[default]
    Ycsb,
    /// The number as big-endian bytes.
    Binary,
    /// A zero-padded decimal number.
    Decimal,
    /// The number in digits of six bits: letters, figures, `-` and `_`, in the order of ASCII. The
    /// shortest form that can be printed, and that every text protocol takes.
    Text,
}

impl KeyForm {
    /// The fewest characters of ordered keys of so many records.
    pub(crate) fn ordered_width(self, records: u64) -> u64 {
        (prefix(self).len() + narrowest(self, InsertOrder::Ordered, records)) as u64
    }
}

/// Whether consecutive records are scattered over the key space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InsertOrder {
    /// A key holds a hash of its record number: FNV-64 for `ycsb`, a bijection of 64 bits for the
    /// other forms.
    #[default]
    Hashed,
    /// A key holds its record number, and keys sort by it.
    Ordered,
}

/// The form and the length of keys.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeySpec {
    pub form: KeyForm,
    /// Bytes of the whole key. Left out: for `ycsb` what the digits need when hashed (23 or 24
    /// bytes, mostly) and 20 when ordered, 8 for `binary`, 20 for `decimal`, 11 for `text`.
    ///
    /// A fixed size pads the number: zeros (`-` for `text`) in front of the digits; for `binary`,
    /// hash bytes behind the number's eight. A distribution gives each record its length, always the same one, and
    /// every length that is too short for distinct keys is raised to the shortest that is not; the
    /// number then has the same width in all keys and the padding, zeros or hash bytes, is behind
    /// it, so that ordered keys still sort by record number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<LengthSpec>,
}

/// Writes keys.
///
/// Keys are distinct for different record numbers below 2^48: FNV-64 of YCSB is one to one there
/// (proof at `fnv64`); YCSB then takes the absolute value, which could make two keys one, and here
/// the hash is written unsigned: a key equals YCSB's where the highest bit of the hash is 0.
#[derive(Debug, Clone)]
pub struct Keys {
    form: KeyForm,
    order: InsertOrder,
    /// Digits or bytes of the number, at least.
    width: usize,
    /// The length of the whole key, where it is drawn.
    drawn: Option<(LengthSampler, RandomStream)>,
}

impl Keys {
    /// `inserts`: whether the run adds records to the loaded ones.
    ///
    /// # Errors
    /// A size that cannot hold distinct keys or is outside 1 B to [`LONGEST`].
    pub fn new(
        spec: &KeySpec,
        order: InsertOrder,
        records: u64,
        inserts: bool,
        random: RandomStream,
    ) -> Result<Keys, SpecError> {
        let KeySpec { form, ref size } = *spec;
        let prefix = prefix(form).len();
        let keys = |width, drawn| Ok(Keys { form, order, width, drawn });
        let limits = LengthLimits { key: "key.size", lowest: 1, highest: LONGEST, cut: LONGEST };
        match size {
            None => {
                let width = match (form, order) {
                    (KeyForm::Ycsb, InsertOrder::Hashed) => 1,
                    (KeyForm::Ycsb, InsertOrder::Ordered) => 16,
                    (KeyForm::Binary, _) => 8,
                    (KeyForm::Decimal, _) => 20,
                    (KeyForm::Text, _) => 11,
                };
                keys(width, None)
            }
            Some(LengthSpec::Fixed(size)) => {
                let length = LengthSampler::new(&LengthSpec::Fixed(*size), limits)?.max() as usize;
                let known = if inserts { records.saturating_mul(ROOM) } else { records };
                let smallest = prefix + narrowest(form, order, known);
                if length < smallest {
                    return Err(SpecError::KeyTooSmall {
                        size: *size,
                        smallest: Bytes(smallest as u64),
                        records: Count(records),
                        room_for: if known > records && order == InsertOrder::Ordered {
                            " with room for inserts"
                        } else {
                            ""
                        },
                    });
                }
                keys(length - prefix, None)
            }
            Some(size) => {
                let width = narrowest(form, order, records.saturating_mul(ROOM));
                let length = LengthSampler::new(size, limits)?.at_least((prefix + width) as u64);
                keys(width, Some((length, random)))
            }
        }
    }

    /// Whether records up to [`DISTINCT`], far beyond the loaded ones, have keys that are none of
    /// theirs. A hash has room for all of them; a number must be written as wide for all.
    ///
    /// # Errors
    /// A size without room for them, or that is drawn: then the padding behind a loaded record's
    /// number could make another's of it.
    pub fn check_absent(&self, spec: &KeySpec, records: u64) -> Result<(), SpecError> {
        let needed = narrowest(self.form, self.order, DISTINCT);
        if self.width >= needed || self.order == InsertOrder::Hashed {
            return Ok(());
        }
        match spec.size {
            Some(LengthSpec::Fixed(size)) => Err(SpecError::KeyTooSmall {
                size,
                smallest: Bytes((prefix(self.form).len() + needed) as u64),
                records: Count(records),
                room_for: " with room for absent records (`hit_ratio` is below 1)",
            }),
            _ => Err(SpecError::invalid(
                "key.size",
                "ordered keys of a drawn length leave no room for absent records (`hit_ratio` is \
                 below 1); use a fixed size, or `order = \"hashed\"`",
            )),
        }
    }

    /// Replaces the content of `out` by the key of `record`. A number that outgrows the width, by
    /// inserts, is written in full, and its key is longer.
    #[inline]
    pub fn write(&self, record: u64, out: &mut Vec<u8>) {
        match (self.form, self.order) {
            (KeyForm::Ycsb, InsertOrder::Hashed) => self.decimal(fnv64(record), out),
            (KeyForm::Ycsb, InsertOrder::Ordered) => self.decimal(record, out),
            (KeyForm::Decimal, InsertOrder::Hashed) => self.decimal(mix(record), out),
            (KeyForm::Decimal, InsertOrder::Ordered) => self.decimal(record, out),
            (KeyForm::Binary, InsertOrder::Hashed) => self.binary(mix(record), out),
            (KeyForm::Binary, InsertOrder::Ordered) => self.binary(record, out),
            (KeyForm::Text, InsertOrder::Hashed) => self.text(mix(record), out),
            (KeyForm::Text, InsertOrder::Ordered) => self.text(record, out),
        }
        if let Some((length, random)) = &self.drawn {
            let length = length.draw(random.at(record)) as usize;
            match self.form {
                KeyForm::Binary => hash_bytes(record, length, out),
                KeyForm::Text if out.len() < length => out.resize(length, TEXT[0]),
                KeyForm::Text => {}
                _ if out.len() < length => out.resize(length, b'0'),
                _ => {}
            }
        }
    }

    #[inline(always)]
    fn decimal(&self, number: u64, out: &mut Vec<u8>) {
        let prefix = prefix(self.form);
        let (digits, needed) = decimal::digits(number);
        let length = prefix.len() + self.width.max(needed);
        out.clear();
        // Copies of a known size are a few instructions, others a call: hence too many zeros first
        // and then the digits, which are at most twenty, right to left.
        match length {
            20..=32 => out.extend_from_slice(&[b'0'; 32]),
            33..=64 => out.extend_from_slice(&[b'0'; 64]),
            _ => {
                out.extend_from_slice(prefix);
                out.resize(length.saturating_sub(WIDTH).max(prefix.len()), b'0');
                out.extend_from_slice(&digits[WIDTH - (length - out.len())..]);
                return;
            }
        }
        out[length - 16..length].copy_from_slice(&digits[WIDTH - 16..]);
        out[length - 20..length - 16].copy_from_slice(&digits[WIDTH - 20..WIDTH - 16]);
        if !prefix.is_empty() {
            out[..4].copy_from_slice(b"user");
        }
        out.truncate(length);
    }

    #[inline(always)]
    fn binary(&self, number: u64, out: &mut Vec<u8>) {
        let bytes = number.to_be_bytes();
        let needed = 8 - number.leading_zeros() as usize / 8;
        out.clear();
        out.extend_from_slice(&bytes[8 - self.width.min(8).max(needed)..]);
        hash_bytes(number, self.width, out);
    }

    #[inline(always)]
    fn text(&self, number: u64, out: &mut Vec<u8>) {
        const MOST: usize = 11;
        let mut digits = [0; MOST];
        let mut rest = number;
        for digit in digits.iter_mut().rev() {
            *digit = TEXT[(rest & 63) as usize];
            rest >>= 6;
        }
        let needed = (64 - number.leading_zeros() as usize).div_ceil(6);
        out.clear();
        out.resize(self.width.saturating_sub(MOST), TEXT[0]);
        out.extend_from_slice(&digits[MOST - self.width.min(MOST).max(needed)..]);
    }

    /// Reads the numbers of records from keys; None where a key does not hold one.
    pub fn decoder(&self) -> Option<KeyDecoder> {
        let Keys { form, order, width, .. } = *self;
        if (form, order) == (KeyForm::Ycsb, InsertOrder::Hashed) {
            return None;
        }
        // What is behind the number of a key of a drawn length is padding.
        Some(KeyDecoder { form, order, width: self.drawn.is_some().then_some(width) })
    }

    /// The expected length in bytes.
    pub fn mean(&self) -> f64 {
        // Digits of a 64-bit hash: twenty, less the probability that the first ones are zeros.
        const HASH_DIGITS: f64 = 20.0 - 1.111_111_111_111_111e19 / 18_446_744_073_709_551_616.0;
        match &self.drawn {
            Some((length, _)) => length.mean(),
            None if self.width == 1 => prefix(self.form).len() as f64 + HASH_DIGITS,
            None => (prefix(self.form).len() + self.width) as f64,
        }
    }
}

/// Reads the number of a record from its key.
#[derive(Debug, Clone)]
pub struct KeyDecoder {
    form: KeyForm,
    order: InsertOrder,
    /// Digits or bytes of the number, where padding is behind them.
    width: Option<usize>,
}

impl KeyDecoder {
    /// The record of a key that [`Keys::write`] made. For numbers that have outgrown the width of
    /// drawn keys, and for other texts, any number or None, always the same one.
    pub fn record(&self, key: &[u8]) -> Option<u64> {
        let key = key.strip_prefix(prefix(self.form))?;
        let digits = match self.form {
            // Behind the number's bytes are those of a hash.
            KeyForm::Binary => &key[..self.width.unwrap_or(8).min(8).min(key.len())],
            _ => &key[..self.width.unwrap_or(key.len()).min(key.len())],
        };
        let number = match self.form {
            KeyForm::Binary => digits.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
            KeyForm::Text => digits
                .iter()
                .fold(0, |number, byte| number << 6 | u64::from(TEXT_DIGITS[usize::from(*byte)])),
            KeyForm::Ycsb | KeyForm::Decimal => digits.iter().try_fold(0u64, |number, byte| {
                let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
                number.checked_mul(10)?.checked_add(u64::from(digit))
            })?,
        };
        Some(match self.order {
            InsertOrder::Hashed => unmix(number),
            InsertOrder::Ordered => number,
        })
    }
}

/// The value of each byte of [`TEXT`]; 0 of all others.
const TEXT_DIGITS: [u8; 256] = {
    let mut digits = [0; 256];
    let mut at = 0;
    while at < TEXT.len() {
        digits[TEXT[at] as usize] = at as u8;
        at += 1;
    }
    digits
};

/// Six bits each, in the order of ASCII, so that keys sort by their numbers.
const TEXT: &[u8; 64] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

const fn prefix(form: KeyForm) -> &'static [u8] {
    match form {
        KeyForm::Ycsb => b"user",
        KeyForm::Binary | KeyForm::Decimal | KeyForm::Text => b"",
    }
}

/// The fewest digits or bytes that keep the numbers of `records` records apart.
fn narrowest(form: KeyForm, order: InsertOrder, records: u64) -> usize {
    let last = records.saturating_sub(1);
    match (form, order) {
        (KeyForm::Binary, InsertOrder::Hashed) => 8,
        (KeyForm::Binary, InsertOrder::Ordered) => (8 - last.leading_zeros() as usize / 8).max(1),
        (KeyForm::Text, InsertOrder::Hashed) => 11,
        (KeyForm::Text, InsertOrder::Ordered) => {
            (64 - last.leading_zeros() as usize).div_ceil(6).max(1)
        }
        (_, InsertOrder::Hashed) => 20,
        (_, InsertOrder::Ordered) => decimal::width(last) as usize,
    }
}

/// Lengthens a key to `length` by bytes that follow from its number.
#[inline(always)]
fn hash_bytes(number: u64, length: usize, out: &mut Vec<u8>) {
    let mut word = number;
    while out.len() < length {
        word = mix(word ^ 0x6b65_795f_7461_696c);
        let missing = (length - out.len()).min(8);
        out.extend_from_slice(&word.to_be_bytes()[..missing]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn keys(
        form: KeyForm,
        order: InsertOrder,
        size: &str,
        records: u64,
    ) -> Result<Keys, SpecError> {
        let size = (!size.is_empty()).then(|| LengthSpec::parse(size).unwrap());
        Keys::new(&KeySpec { form, size }, order, records, false, RandomStream::new(1, 1))
    }

    fn key(keys: &Keys, record: u64) -> Vec<u8> {
        let mut out = b"what was there before".to_vec();
        keys.write(record, &mut out);
        out
    }

    use InsertOrder::{Hashed, Ordered};
    use KeyForm::{Binary, Decimal, Text, Ycsb};

    #[test]
    fn decoding_finds_the_record_of_a_key() {
        for form in [Ycsb, Binary, Decimal, Text] {
            for (order, size) in [Hashed, Ordered]
                .into_iter()
                .flat_map(|order| ["", "24", "40", "uniform:20..60"].map(|size| (order, size)))
            {
                let keys = keys(form, order, size, 100_000).unwrap();
                let Some(decoder) = keys.decoder() else {
                    assert_eq!((form, order), (Ycsb, Hashed));
                    continue;
                };
                for record in (0..100_000).step_by(77) {
                    let read = decoder.record(&key(&keys, record));
                    assert_eq!(read, Some(record), "{form:?} {order:?} {size}");
                }
                for text in [&b""[..], b"u", b"user", b"key with words", &[0xff; 300]] {
                    assert_eq!(decoder.record(text), decoder.record(text));
                }
            }
        }
        let short = keys(Binary, Ordered, "2", 1000).unwrap();
        assert_eq!(short.decoder().unwrap().record(&key(&short, 258)), Some(258));
    }

    #[test]
    fn keys_have_the_documented_form() {
        let text = |form, order, size, record| {
            String::from_utf8(key(&keys(form, order, size, 1000).unwrap(), record)).unwrap()
        };
        // The same as YCSB's where the hash is positive as a signed number.
        assert_eq!(text(Ycsb, Hashed, "", 1), format!("user{}", fnv64(1)));
        assert_eq!(text(Ycsb, Hashed, "30", 1), format!("user{:026}", fnv64(1)));
        assert_eq!(text(Ycsb, Hashed, "100", 1), format!("user{:096}", fnv64(1)));
        assert_eq!(text(Ycsb, Ordered, "", 42), "user0000000000000042");
        assert_eq!(text(Ycsb, Ordered, "7", 42), "user042");
        assert_eq!(text(Decimal, Ordered, "", 42), "00000000000000000042");
        assert_eq!(text(Decimal, Ordered, "3", 12345), "12345");
        assert_eq!(text(Decimal, Ordered, "uniform:8..8", 42), "00042000");
        assert_eq!(key(&keys(Binary, Ordered, "", 1000).unwrap(), 258), [0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(key(&keys(Binary, Ordered, "2", 1000).unwrap(), 258), [1, 2]);
        assert_eq!(key(&keys(Binary, Ordered, "12", 9).unwrap(), 258)[..8], 258u64.to_be_bytes());
        assert_eq!(key(&keys(Binary, Hashed, "16", 9).unwrap(), 1).len(), 16);
        assert_eq!(text(Text, Ordered, "", 64 * 64 + 11), "--------0-A");
        assert_eq!(text(Text, Ordered, "2", 64 * 64 + 11), "0-A");
        assert_eq!(text(Text, Ordered, "13", 1), "------------0");
        assert_eq!(text(Text, Ordered, "uniform:8..8", 63), "--z-----");
        assert!(TEXT.is_sorted());
    }

    #[test]
    fn keys_are_distinct_stable_and_sorted_where_ordered() {
        let records = 20_000;
        for form in [Ycsb, Binary, Decimal, Text] {
            for order in [Hashed, Ordered] {
                for size in ["", "24", "200", "uniform:1..60", "gev:30.7984,8.20449,0.078688"] {
                    let keys = keys(form, order, size, records).unwrap();
                    let all: Vec<Vec<u8>> = (0..records).map(|r| key(&keys, r)).collect();
                    let distinct: HashSet<&Vec<u8>> = all.iter().collect();
                    assert_eq!(distinct.len() as u64, records, "{form:?} {order:?} {size}");
                    assert_eq!(order == Ordered, all.is_sorted(), "{form:?} {order:?} {size}");
                    assert_eq!(all[77], key(&keys, 77));
                    let mean = all.iter().map(Vec::len).sum::<usize>() as f64 / records as f64;
                    let error = (mean / keys.mean() - 1.0).abs();
                    assert!(error < 0.02, "{form:?} {order:?} {size}: {mean} {}", keys.mean());
                }
            }
        }
    }

    /// Where the check passes, keys of absent records differ from those of loaded ones, also where
    /// the number of an absent one begins with the digits of a loaded one.
    #[test]
    fn keys_of_absent_records_are_distinct_or_refused() {
        let (records, absent) = (2000, crate::Workload::ABSENT);
        let mut passed = 0;
        for form in [Ycsb, Binary, Decimal, Text] {
            for order in [Hashed, Ordered] {
                for size in ["", "4", "19", "24", "200", "uniform:1..60"] {
                    let Ok(keys) = keys(form, order, size, records) else { continue };
                    let size = (!size.is_empty()).then(|| LengthSpec::parse(size).unwrap());
                    if let Err(error) = keys.check_absent(&KeySpec { form, size }, records) {
                        let error = error.to_string();
                        assert!(order == Ordered && error.contains("`key.size`"), "{error}");
                        assert!(error.contains("`hit_ratio`"), "{error}");
                        continue;
                    }
                    passed += 1;
                    let beginnings = (0..records).map(|k| absent + k * 10u64.pow(9));
                    let all: HashSet<Vec<u8>> = (0..records)
                        .chain(absent..absent + records)
                        .chain((1..=records).map(|k| 2 * absent - k))
                        .chain(beginnings.skip(1))
                        .map(|record| key(&keys, record))
                        .collect();
                    assert_eq!(all.len() as u64, 4 * records - 1, "{form:?} {order:?}");
                }
            }
        }
        assert!(passed > 25, "{passed}");
        let error = |size: &str, order| {
            let keys = keys(Ycsb, order, size, 1000).unwrap();
            let size = Some(LengthSpec::parse(size).unwrap());
            keys.check_absent(&KeySpec { form: Ycsb, size }, 1000).unwrap_err().to_string()
        };
        assert!(error("8", Ordered).ends_with("the smallest that works is 19"));
        assert!(error("uniform:8..90", Ordered).contains("`order = \"hashed\"`"));
    }

    #[test]
    fn suggests_the_smallest_key_size() {
        for (form, order, size, smallest) in [
            (Ycsb, Hashed, "23", 24),
            (Ycsb, Ordered, "9", 10),
            (Decimal, Hashed, "19", 20),
            (Decimal, Ordered, "5", 6),
            (Binary, Hashed, "7", 8),
            (Binary, Ordered, "2", 3),
            (Text, Hashed, "10", 11),
            (Text, Ordered, "3", 4),
        ] {
            let error = keys(form, order, size, 1_000_000).unwrap_err();
            let says = format!("the smallest that works is {smallest}");
            assert!(error.to_string().ends_with(&says), "{error}");
            keys(form, order, &smallest.to_string(), 1_000_000).unwrap();
        }
        let error = keys(Ycsb, Hashed, "8KiB", 10).unwrap_err().to_string();
        assert!(error.contains("between 1 and 4KiB"), "{error}");
    }
}
