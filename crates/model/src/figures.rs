//! The figures of a distribution under their common names.

use crate::Distribution;

const NANOS_PER_MICRO: f64 = 1e3;

/// The names in the order of [`figures_us`]; a column adds its unit: `p99_us`.
pub const FIGURES: [&str; 9] =
    ["mean", "min", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max"];

/// Microseconds, from a distribution of nanoseconds. Without a sample there is no figure.
pub fn figures_us(distribution: &Distribution) -> [Option<f64>; FIGURES.len()] {
    if distribution.is_empty() {
        return [None; FIGURES.len()];
    }
    let at = |percentile| distribution.value_at_percentile(percentile) as f64;
    [
        distribution.mean(),
        distribution.min() as f64,
        at(50.0),
        at(90.0),
        at(95.0),
        at(99.0),
        at(99.9),
        at(99.99),
        distribution.max() as f64,
    ]
    .map(|nanoseconds| Some(nanoseconds / NANOS_PER_MICRO))
}
