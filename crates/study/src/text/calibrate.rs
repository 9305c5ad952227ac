//! `[calibrate]` as it is written.

use model::{Rate, Span};
use serde::Deserialize;
use toml::Spanned;

/// `[calibrate]`: how the maximum is found of which `measure.rate` is a share.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrateTable {
    /// The objective: `p99<1ms`.
    pub slo: Spanned<String>,
    /// Length of a trial; an inconclusive one is repeated for longer.
    pub time: Option<Spanned<Span>>,
    /// Final distance between the rate that met the objective and the one that did not.
    pub resolution: Option<Spanned<f64>>,
    /// The most trials.
    pub trials: Option<Spanned<usize>>,
    /// No lower and no higher rate is tried.
    pub from: Option<Spanned<Rate>>,
    pub to: Option<Spanned<Rate>>,
    /// No trial begins that would not end within it.
    pub max_time: Option<Spanned<Span>>,
}
