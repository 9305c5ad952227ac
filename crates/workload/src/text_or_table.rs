//! Values that a file may contain as one text (`"uniform:1..100"`), as a number or as a table.
//!
//! A visitor rather than serde's `untagged`: then an error names what is wrong inside the table
//! instead of saying that no alternative matched.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::Deserializer;
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};

/// A type with both forms.
pub trait TextOrTable: FromStr<Err: Display> {
    /// How to write it, for the error message.
    const EXPECTED: &'static str;

    /// The enum as serde tags it: a table with one key, the variant's name.
    fn table<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error>;
}

/// Reads text and numbers by `FromStr`, tables by [`TextOrTable::table`].
pub fn read<'de, T: TextOrTable, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(Either(PhantomData))
}

struct Either<T>(PhantomData<T>);

impl<'de, T: TextOrTable> Visitor<'de> for Either<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::table(MapAccessDeserializer::new(map))
    }
}
