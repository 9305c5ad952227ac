//! `[beside]` as it is written.

use model::Bytes;
use serde::Deserialize;
use toml::Spanned;

/// `[beside]`: what runs beside a load.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoRunnerTable {
    pub hog: Option<HogTable>,
}

/// `[beside.hog]` as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HogTable {
    /// `10GB/s`, `max`, or `none` for a cell without a hog.
    pub rate: Spanned<String>,
    /// `1` or `2-5,8`: a thread on each.
    pub cpus: Option<Spanned<String>>,
    /// Or a number of threads, on the CPUs that client threads take last.
    pub threads: Option<Spanned<u32>>,
    /// `read` unless it says `update` or `write`.
    pub traffic: Option<Spanned<String>>,
    /// Bytes of each thread's buffer; four times the last-level caches if not given.
    pub size: Option<Spanned<Bytes>>,
}
