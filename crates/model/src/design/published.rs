//! `published.toml`: published figures that a study is compared with. They are marked as published
//! wherever they are shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Conditions;
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
    /// A metric by its name in `--json`, or prose where kvmeter has none.
    pub metric: String,
    pub unit: String,
    /// The levels of the study's factors (or settings) at which it was measured.
    #[serde(default)]
    pub at: BTreeMap<String, LevelText>,
    pub points: Vec<PublishedPoint>,
    /// Its place in the source: a table, a figure, or `text` for prose.
    #[serde(default)]
    pub read: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedPoint {
    pub x: LevelText,
    pub y: f64,
}

/// A finding of the source, paraphrased.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFinding {
    pub id: String,
    pub says: String,
    /// Its place in the source.
    #[serde(rename = "where", default)]
    pub place: String,
    /// What of it the study's own runs can test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<PublishedClaim>,
}

/// How many times as much of a metric there is at one level of a factor as at another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedClaim {
    /// A name of `--json`.
    pub metric: String,
    pub factor: String,
    pub from: LevelText,
    pub to: LevelText,
    /// The quotient `to / from` is at least this; None: without a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The runs that it is about.
    #[serde(rename = "where", default)]
    pub within: Conditions,
}
