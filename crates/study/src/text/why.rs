//! `[why]` as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// A pass after the measured runs that says where the time goes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhyTable {
    /// Samples a second of CPU time.
    pub frequency: Option<Spanned<u64>>,
    /// Only cells with these settings: `{ workload = "ycsb-c" }`.
    #[serde(default)]
    pub only: BTreeMap<Spanned<String>, Spanned<String>>,
}
