//! Many comparisons at once.

/// Holm's adjusted p-values, in the order of `p`.
///
/// With the m p-values in rising order, `p~(i) = max over j <= i of min(1, (m - j + 1) p(j))`.
/// Calling those below 0.05 a difference, the chance of even one wrong call among all of them is at
/// most 5 %, however they depend on each other. Source: Holm, "A simple sequentially rejective
/// multiple test procedure", Scandinavian Journal of Statistics 6 (1979). NaN counts as 1.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let certain = |p: f64| if p.is_nan() { 1.0 } else { p };
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| certain(p[*a]).total_cmp(&certain(p[*b])));
    let mut adjusted = vec![1.0; p.len()];
    let mut highest = 0.0_f64;
    for (before, at) in order.into_iter().enumerate() {
        let left = (p.len() - before) as f64;
        highest = highest.max((left * certain(p[at])).min(1.0));
        adjusted[at] = highest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(result: &[f64], expected: &[f64]) {
        assert_eq!(result.len(), expected.len());
        for (a, b) in result.iter().zip(expected) {
            assert!((a - b).abs() < 1e-12, "{result:?} is not {expected:?}");
        }
    }

    #[test]
    fn the_common_worked_example() {
        // 4 x 0.005, 3 x 0.01, 2 x 0.03, and 0.04 raised to the one before it.
        close(&holm(&[0.01, 0.04, 0.03, 0.005]), &[0.03, 0.06, 0.06, 0.02]);
    }

    #[test]
    fn agrees_with_r() {
        // R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm") is 0.05 0.08 0.09 0.09 0.09.
        close(&holm(&[0.01, 0.02, 0.03, 0.04, 0.05]), &[0.05, 0.08, 0.09, 0.09, 0.09]);
    }

    #[test]
    fn ends_and_odd_values() {
        close(&holm(&[]), &[]);
        close(&holm(&[0.2]), &[0.2]);
        close(&holm(&[0.7, 0.6]), &[1.0, 1.0]);
        close(&holm(&[f64::NAN, 0.01]), &[1.0, 0.02]);
    }
}
