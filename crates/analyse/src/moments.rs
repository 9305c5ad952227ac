//! Mean and standard deviation.

pub(crate) struct Moments {
    pub(crate) mean: f64,
    pub(crate) sd: Option<f64>,
}

/// Mean and sample standard deviation; the second pass keeps what a sum of squares would lose.
pub(crate) fn moments(values: &[f64]) -> Moments {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    Moments { mean, sd: (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()) }
}
