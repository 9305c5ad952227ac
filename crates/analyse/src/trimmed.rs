//! A robust location of the values of one cell.

/// Share of the values that is trimmed at each end, rounded down to whole values.
const TRIM: f64 = 0.2;

/// The location of a cell's values and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Location {
    pub(crate) at: f64,
    /// Of `at`, with its degrees of freedom; None of a single value.
    pub(crate) spread: Option<Spread>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) variance: f64,
    pub(crate) df: f64,
}

/// The 20 % trimmed mean with Yuen's variance.
///
/// With `g = floor(0.2 n)` values left out at each end and `h = n - 2 g`:
/// `var = (n - 1) s_w^2 / (h (h - 1))`, `df = h - 1`, where `s_w^2` is the variance of the values
/// after the trimmed ones were moved to the nearest kept. Fewer than 5 values are not trimmed,
/// which leaves the mean and `s^2 / n`. Source: Yuen, "The two-sample trimmed t for unequal
/// population variances", Biometrika 61 (1974). `values` has one or more.
pub(crate) fn location(values: &[f64]) -> Location {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let cut = trimmed_at_each_end(n);
    let rest = &sorted[cut..n - cut];
    let h = rest.len() as f64;
    let at = rest.iter().sum::<f64>() / h;
    let (low, high) = (rest[0], rest[rest.len() - 1]);
    let winsorized = sorted.iter().map(|value| value.clamp(low, high));
    let mean = winsorized.clone().sum::<f64>() / n as f64;
    // (n - 1) s_w^2
    let squares: f64 = winsorized.map(|value| (value - mean) * (value - mean)).sum();
    let spread =
        (rest.len() > 1).then(|| Spread { variance: squares / (h * (h - 1.0)), df: h - 1.0 });
    Location { at, spread }
}

/// How many of `n` values are left out at each end.
pub(crate) fn trimmed_at_each_end(n: usize) -> usize {
    (TRIM * n as f64).floor() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_averaged() {
        let result = location(&[1.0, 2.0, 6.0]);
        assert_eq!(result.at, 3.0);
        // s^2 = 7, / 3.
        let spread = result.spread.unwrap();
        assert!((spread.variance - 7.0 / 3.0).abs() < 1e-12 && spread.df == 2.0);
        assert_eq!(location(&[4.0]), Location { at: 4.0, spread: None });
    }

    #[test]
    fn yuen_by_hand() {
        // 10 values, 2 off each end: mean of 3..8 is 5.5; winsorized 3 3 3 4 5 6 7 8 8 8 has the
        // squares 3 x 6.25 x 2 + 2 x (2.25 + 0.25) = 42.5, over 6 x 5.
        let values: Vec<f64> = (1..=9).map(f64::from).chain([1000.0]).collect();
        let result = location(&values);
        assert_eq!(result.at, 5.5);
        let spread = result.spread.unwrap();
        assert!((spread.variance - 42.5 / 30.0).abs() < 1e-12, "{spread:?}");
        assert_eq!(spread.df, 5.0);
    }
}
