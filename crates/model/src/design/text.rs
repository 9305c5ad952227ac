//! Levels as text, however a file holds them: `"10k"`, `4` and `true` are all levels.

use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// One level or value, which a file may hold as text, a number or a boolean.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct LevelText(pub String);

impl<'de> Deserialize<'de> for LevelText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = LevelText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a level: text, a number or a boolean")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<LevelText, E> {
                Ok(LevelText(text.to_owned()))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<LevelText, E> {
                Ok(LevelText(number.to_string()))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<LevelText, E> {
                Ok(LevelText(number.to_string()))
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<LevelText, E> {
                Ok(LevelText(number.to_string()))
            }
            fn visit_bool<E: de::Error>(self, yes: bool) -> Result<LevelText, E> {
                Ok(LevelText(yes.to_string()))
            }
        }
        from.deserialize_any(Text)
    }
}

impl fmt::Display for LevelText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One value or a list of them: `"on"` is `["on"]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Texts(pub Vec<String>);

impl Texts {
    pub fn contains(&self, value: &str) -> bool {
        self.0.iter().any(|one| one == value)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Texts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a level or a list of levels")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts(vec![text.to_owned()]))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Texts, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Texts, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Texts, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_bool<E: de::Error>(self, yes: bool) -> Result<Texts, E> {
                self.visit_str(&yes.to_string())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
                let mut texts = Vec::new();
                while let Some(LevelText(text)) = list.next_element()? {
                    texts.push(text);
                }
                Ok(Texts(texts))
            }
        }
        from.deserialize_any(OneOrMany)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_is_a_list_of_one() {
        let read = |text| serde_json::from_str::<Texts>(text).map(|texts| texts.0);
        assert_eq!(read("\"on\"").unwrap(), ["on"]);
        assert_eq!(read("4").unwrap(), ["4"]);
        assert_eq!(read("[1, \"2\", 0.5, true]").unwrap(), ["1", "2", "0.5", "true"]);
        assert!(read("{}").unwrap_err().to_string().contains("a level or a list"));
    }
}
