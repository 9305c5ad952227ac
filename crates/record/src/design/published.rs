//! `published.toml`: the figures that a study stands beside, as they were published. They are of
//! another kind than measured ones and say so wherever they are shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::text::LevelText;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PublishedFigures {
    /// Author, title, year.
    pub source: String,
    pub series: Vec<PublishedSeries>,
    pub findings: Vec<PublishedFinding>,
}

impl PublishedFigures {
    pub fn series(&self, id: &str) -> Option<&PublishedSeries> {
        self.series.iter().find(|series| series.id == id)
    }
}

/// One line or row of bars; several with the same id belong to the same figure, each at its own
/// levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSeries {
    pub id: String,
    /// Ours by its name of `--json`, or words where we have none.
    pub metric: String,
    pub unit: String,
    /// The levels of our factors (or settings) at which it was measured.
    #[serde(default)]
    pub at: BTreeMap<String, LevelText>,
    pub points: Vec<PublishedPoint>,
    /// Where it stands: a table, a figure, or `text` for prose.
    #[serde(default)]
    pub read: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedPoint {
    pub x: LevelText,
    pub y: f64,
}

/// Something that was found, in our own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFinding {
    pub id: String,
    pub says: String,
    /// Where it stands.
    #[serde(rename = "where", default)]
    pub place: String,
}
