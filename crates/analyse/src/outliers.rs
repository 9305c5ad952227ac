//! Outliers among few values. They are marked and never left out.

use crate::describe::median;

/// The fewest values among which outliers are sought.
pub const OUTLIERS_FROM: usize = 5;
/// Scores beyond it are outliers (Iglewicz and Hoaglin's recommendation).
const LIMIT: f64 = 3.5;
/// The median absolute deviation of a normal distribution in standard deviations.
const MAD_OF_NORMAL: f64 = 0.674_489_750_196_081_7;
/// The same of the mean absolute deviation, `sqrt(2 / pi)`.
const MEAN_AD_OF_NORMAL: f64 = 0.797_884_560_802_865_4;

/// The positions of the values whose modified z-score, `0.6745 |x - median| / MAD`, exceeds 3.5.
///
/// Where more than half of the values are equal the MAD is 0, and the mean absolute deviation
/// from the median takes its place, with its own constant. None of fewer than 5 values. Source:
/// Iglewicz and Hoaglin, "How to Detect and Handle Outliers" (1993), ch. 3.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    if values.len() < OUTLIERS_FROM {
        return Vec::new();
    }
    let middle = median(values);
    let away: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let mad = median(&away);
    let unit = match mad > 0.0 {
        true => mad / MAD_OF_NORMAL,
        false => away.iter().sum::<f64>() / away.len() as f64 / MEAN_AD_OF_NORMAL,
    };
    let apart = |away: &f64| unit > 0.0 && away / unit > LIMIT;
    away.iter().enumerate().filter(|(_, away)| apart(away)).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Median 2.6, deviations 0.5 0.0 0.2 0.1 2.4 ...: MAD 0.2, so 0.6745 x 2.4 / 0.2 = 8.1.
        let values = [2.1, 2.6, 2.4, 2.5, 5.0, 2.7, 2.8];
        assert_eq!(outliers(&values), [4]);
        // 0.6745 x 0.9 / 0.2 = 3.04 is not beyond 3.5.
        assert_eq!(outliers(&[2.1, 2.6, 2.4, 2.5, 3.5, 2.7, 2.8]), [0; 0]);
    }

    #[test]
    fn one_different_among_equal_values() {
        assert_eq!(outliers(&[3.0; 9]), [0; 0]);
        let mut values = [3.0; 9];
        values[7] = 3.1;
        // Mean deviation 0.1 / 9; 0.7979 x 0.1 / 0.0111 = 7.2.
        assert_eq!(outliers(&values), [7]);
    }

    #[test]
    fn few_values_have_none() {
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 100.0]), [0; 0]);
        assert_eq!(outliers(&[]), [0; 0]);
    }
}
