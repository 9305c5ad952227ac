//! How far drawn lengths are from their law.

/// The distance between the drawn and the analytic P(length <= k), in units of 1 / sqrt(n): by
/// Kolmogorov's law above 1.95 once in a thousand, less often for whole numbers.
pub fn distance(mut drawn: Vec<usize>, cdf: impl Fn(usize) -> f64) -> f64 {
    drawn.sort_unstable();
    let n = drawn.len() as f64;
    let mut worst = 0.0f64;
    for (index, &k) in drawn.iter().enumerate() {
        if drawn.get(index + 1) != Some(&k) {
            worst = worst.max(((index + 1) as f64 / n - cdf(k)).abs());
        }
    }
    worst * n.sqrt()
}
