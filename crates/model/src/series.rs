use serde::{Deserialize, Serialize};

use crate::reading::{Origin, Scope, Unit};

/// A signal over the time of a run. `at_s` and `values` are equally long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Dotted name, e.g. `power.meter`.
    pub signal: String,
    pub unit: Unit,
    pub scope: Scope,
    /// The file, register or program that was read.
    pub source: String,
    pub origin: Origin,
    /// Seconds since the window began, rising. The first may lie before the window and the
    /// last behind it: both edges are interpolated between two samples.
    pub at_s: Vec<f64>,
    pub values: Vec<f64>,
}
