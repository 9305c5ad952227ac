//! A range of shares as people write it: `0.9..1`, `90%..100%`, `..0.5`.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::QuantityError;

/// The shares from `low` to `high`, both of them included; between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareRange {
    pub low: f64,
    pub high: f64,
}

impl ShareRange {
    pub fn contains(&self, share: f64) -> bool {
        (self.low..=self.high).contains(&share)
    }
}

impl FromStr for ShareRange {
    type Err = QuantityError;

    /// An end that is left out is 0 or 1; one share alone is the least.
    fn from_str(text: &str) -> Result<ShareRange, QuantityError> {
        let ends = text.split_once("..").unwrap_or((text, ""));
        let end = |text: &str, otherwise| match text.trim() {
            "" => Some(otherwise),
            text => share(text),
        };
        let range = || {
            let (low, high) = (end(ends.0, 0.0)?, end(ends.1, 1.0)?);
            let sound = 0.0 <= low && low <= high && high <= 1.0;
            (sound && !text.trim().trim_matches('.').is_empty()).then_some(ShareRange { low, high })
        };
        range().ok_or_else(|| QuantityError {
            text: text.to_owned(),
            what: "a range of shares between 0 and 1",
            examples: "`0.9..1`, `90%..100%`, `..0.5` or, for at least so much, `0.9`",
        })
    }
}

fn share(text: &str) -> Option<f64> {
    let (digits, unit) = match text.strip_suffix('%') {
        Some(digits) => (digits.trim_end(), 100.0),
        None => (text, 1.0),
    };
    digits.parse::<f64>().ok().filter(|value| value.is_finite()).map(|value| value / unit)
}

impl fmt::Display for ShareRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.low, self.high)
    }
}

impl Serialize for ShareRange {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ShareRange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ShareRange, D::Error> {
        struct NumberOrText;
        impl Visitor<'_> for NumberOrText {
            type Value = ShareRange;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a range of shares such as \"0.9..1\", or the least of them")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ShareRange, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, share: f64) -> Result<ShareRange, E> {
                self.visit_str(&share.to_string())
            }
            fn visit_i64<E: de::Error>(self, share: i64) -> Result<ShareRange, E> {
                self.visit_str(&share.to_string())
            }
        }
        from.deserialize_any(NumberOrText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_as_people_write_them() {
        for (text, low, high) in [
            ("0.9..1", 0.9, 1.0),
            (" 90% .. 100% ", 0.9, 1.0),
            ("0.9", 0.9, 1.0),
            ("0.9..", 0.9, 1.0),
            ("..50%", 0.0, 0.5),
            ("0.3..0.3", 0.3, 0.3),
        ] {
            let read: ShareRange = text.parse().unwrap();
            assert_eq!(read, ShareRange { low, high }, "{text}");
            assert_eq!(read.to_string().parse(), Ok(read));
        }
        for text in ["", "..", "1..0.9", "2", "90", "-0.1..1", "nan", "0.9-1", "0.5..x"] {
            assert!(
                text.parse::<ShareRange>().unwrap_err().to_string().contains("`0.9..1`"),
                "{text}"
            );
        }
        assert!(ShareRange { low: 0.5, high: 1.0 }.contains(0.5));
        assert!(!ShareRange { low: 0.5, high: 1.0 }.contains(0.499));
    }
}
