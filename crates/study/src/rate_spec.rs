//! A target rate: operations per second, or a share of a maximum.

use std::fmt;
use std::str::FromStr;

use model::{QuantityError, Rate};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

/// `20k`, or `80%` of the maximum that a calibration finds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateSpec {
    Rate(Rate),
    /// 0.8 is 80 %.
    Share(f64),
}

impl RateSpec {
    pub fn rate(self) -> Option<Rate> {
        match self {
            RateSpec::Rate(rate) => Some(rate),
            RateSpec::Share(_) => None,
        }
    }

    pub fn share(self) -> Option<f64> {
        match self {
            RateSpec::Rate(_) => None,
            RateSpec::Share(share) => Some(share),
        }
    }
}

impl fmt::Display for RateSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateSpec::Rate(rate) => rate.fmt(f),
            // 0.07 x 100 is not 7 in binary.
            RateSpec::Share(share) => write!(f, "{}%", (share * 1e8).round() / 1e6),
        }
    }
}

impl FromStr for RateSpec {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<RateSpec, QuantityError> {
        let Some(percent) = text.trim().strip_suffix('%') else {
            return text.parse().map(RateSpec::Rate);
        };
        let number = percent.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        number.map(|percent| RateSpec::Share(percent / 100.0)).ok_or_else(|| QuantityError {
            text: text.to_owned(),
            what: "a share of a maximum",
            examples: "`80%`",
        })
    }
}

impl<'de> Deserialize<'de> for RateSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RateSpec, D::Error> {
        struct NumberOrText;
        impl Visitor<'_> for NumberOrText {
            type Value = RateSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rate such as \"20k\", or a share of a maximum such as \"80%\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<RateSpec, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, rate: i64) -> Result<RateSpec, E> {
                self.visit_str(&rate.to_string())
            }
            fn visit_u64<E: de::Error>(self, rate: u64) -> Result<RateSpec, E> {
                self.visit_str(&rate.to_string())
            }
            fn visit_f64<E: de::Error>(self, rate: f64) -> Result<RateSpec, E> {
                self.visit_str(&rate.to_string())
            }
        }
        from.deserialize_any(NumberOrText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_shares_read_and_write_alike() {
        for (text, pace) in [
            ("20k", RateSpec::Rate(Rate(20e3))),
            ("80%", RateSpec::Share(0.8)),
            (" 7 % ", RateSpec::Share(0.07)),
            ("12.5%", RateSpec::Share(0.125)),
        ] {
            assert_eq!(text.parse::<RateSpec>().unwrap(), pace);
            assert_eq!(pace.to_string(), text.replace(' ', ""));
        }
        for wrong in ["%", "x%", "nan%", "-5k", "5x"] {
            assert!(wrong.parse::<RateSpec>().is_err(), "{wrong}");
        }
    }
}
