//! A value with its place in the source.

use std::fmt;

use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// One number: `4100`, or `{ value = 4100, from = "table I" }`.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenValue {
    pub value: f64,
    /// Where in the platform's source it stands; None where the file does not say.
    pub from: Option<String>,
}

/// Several numbers: `0.15`, `[0.07, 0.25]`, or `{ values = [0.07, 0.25], from = "chapter 5" }`.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenLevels {
    pub values: Vec<f64>,
    pub from: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenTable {
    value: f64,
    from: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelsTable {
    values: Vec<f64>,
    from: Option<String>,
}

impl<'de> Deserialize<'de> for GivenValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = GivenValue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or `{ value = NUMBER, from = \"PLACE\" }`")
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<GivenValue, E> {
                Ok(GivenValue { value, from: None })
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<GivenValue, E> {
                self.visit_f64(value as f64)
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<GivenValue, E> {
                self.visit_f64(value as f64)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GivenValue, A::Error> {
                let table = GivenTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(GivenValue { value: table.value, from: table.from })
            }
        }
        from.deserialize_any(Form)
    }
}

impl<'de> Deserialize<'de> for GivenLevels {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = GivenLevels;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a number, a list of them, or `{ values = [NUMBER, ...], from = \"PLACE\" }`",
                )
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<GivenLevels, E> {
                Ok(GivenLevels { values: vec![value], from: None })
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<GivenLevels, E> {
                self.visit_f64(value as f64)
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<GivenLevels, E> {
                self.visit_f64(value as f64)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<GivenLevels, A::Error> {
                let values = Vec::deserialize(de::value::SeqAccessDeserializer::new(seq))?;
                Ok(GivenLevels { values, from: None })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GivenLevels, A::Error> {
                let table = LevelsTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(GivenLevels { values: table.values, from: table.from })
            }
        }
        from.deserialize_any(Form)
    }
}
