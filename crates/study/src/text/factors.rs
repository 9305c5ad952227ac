//! `[factors]`, `[design]` and `[scale]` as they are written.

use std::collections::BTreeMap;
use std::fmt;

use model::design::{AdaptiveRepeats, Conditions, DesignKind, LevelText};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

/// `[factors.NAME]`: a key of the study, or several, with the values that it takes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactorTable {
    /// The key that the levels are values of; left out where each level is a table of keys.
    pub set: Option<Spanned<String>>,
    pub levels: Spanned<LevelsTable>,
    /// The cells in which it varies; elsewhere its key keeps its own value.
    #[serde(rename = "where")]
    pub within: Option<Spanned<Conditions>>,
    /// Whether its levels are given or chosen; derived from what it sets if left out.
    pub given: Option<bool>,
}

/// The levels of a factor: values of one key, or tables of several.
#[derive(Debug, Clone)]
pub enum LevelsTable {
    Values(Vec<Spanned<toml::Value>>),
    Tables(BTreeMap<Spanned<String>, BTreeMap<Spanned<String>, toml::Value>>),
}

impl<'de> Deserialize<'de> for LevelsTable {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = LevelsTable;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of values, or a table with a table of keys for each level")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LevelsTable, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                Ok(LevelsTable::Values(values))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LevelsTable, A::Error> {
                let mut tables = BTreeMap::new();
                while let Some((name, keys)) = map.next_entry()? {
                    tables.insert(name, keys);
                }
                Ok(LevelsTable::Tables(tables))
            }
        }
        from.deserialize_any(Either)
    }
}

/// `[design]`: which cells there are, and how often each is run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DesignTable {
    pub kind: Option<Spanned<DesignKind>>,
    /// Of one factor at a time; a factor that it leaves out stands at its first level.
    pub baseline: BTreeMap<Spanned<String>, Spanned<LevelText>>,
    pub list: Vec<Spanned<BTreeMap<Spanned<String>, Spanned<LevelText>>>>,
    pub exclude: Vec<Spanned<Conditions>>,
    pub adaptive: Option<Spanned<AdaptiveRepeats>>,
    pub spare_repeats: Option<Spanned<u32>>,
}

/// `[scale.NAME]`: another size of the same study.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleTable {
    /// What it does to the meaning of the results.
    pub note: String,
    /// Keys with their values, as `--set` takes them.
    pub set: BTreeMap<Spanned<String>, toml::Value>,
}
