//! The share of variation that each factor explains.

use std::collections::{BTreeMap, BTreeSet};

use super::{CellObservations, EffectError, EffectScale, check};

/// A part of the variation of a metric over the cells.
#[derive(Debug, Clone, PartialEq)]
pub struct VariationShare {
    /// One factor, or the two whose interaction it is. Empty: interactions of more than two.
    pub factors: Vec<String>,
    /// Between 0 and 1, of the variation between all repeats of all cells.
    pub share: f64,
}

/// The allocation of variation: which share of the variation of all repeats (of their
/// logarithms, where every value is positive) is explained by each factor, by each pair beyond
/// its two factors, and by more of them together, largest first; what is left of 1 is the
/// variation between repeats.
///
/// With r the harmonic mean of the numbers of repeats and m the mean of the cells' means:
/// `SS_A = r (cells of a level) sum over levels (m_a - m)^2`,
/// `SS_AB = r (cells of a pair) sum (m_ab - m_a - m_b + m)^2`,
/// `SS_all = r sum over cells (m_c - m)^2`, `SS_error = r sum over cells s_c^2 (n_c - 1) / n_c`.
/// Source: Jain, "The Art of Computer Systems Performance Analysis" (1991), ch. 18 and 22, with
/// unweighted means where repeats are missing. It describes these levels; other levels of the
/// same factors have other shares.
///
/// Errors: combinations without a cell; no factor that varies; a value that is not a number.
pub fn variation(cells: &[CellObservations]) -> Result<Vec<VariationShare>, EffectError> {
    check(cells)?;
    let names: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.at.keys()).collect();
    let levels = |name: &String| -> BTreeSet<Option<&String>> {
        cells.iter().map(|cell| cell.at.get(name)).collect()
    };
    let factors: Vec<&String> = names.into_iter().filter(|name| levels(name).len() > 1).collect();
    let combinations: usize = factors.iter().map(|name| levels(name).len()).product();
    if factors.is_empty() {
        return Err(EffectError::NoFactor("any".to_owned()));
    }
    if cells.len() < combinations {
        return Err(EffectError::Incomplete { missing: combinations - cells.len() });
    }
    let scale = EffectScale::of(cells);
    let means: Vec<f64> = cells
        .iter()
        .map(|cell| {
            cell.values.iter().map(|v| scale.to_additive(*v)).sum::<f64>()
                / cell.values.len() as f64
        })
        .collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let all: f64 = means.iter().map(|m| (m - mean) * (m - mean)).sum();
    let by = |of: &[&String]| -> GroupMean<'_> { grouped(cells, &means, of) };
    let mut parts: Vec<(Vec<String>, f64)> = Vec::new();
    for (at, a) in factors.iter().enumerate() {
        let of_a = by(&[a]);
        parts.push((vec![(*a).clone()], of_a.squares(|_, m| m - mean)));
        for b in &factors[at + 1..] {
            let of_b = by(&[b]);
            let squares = by(&[a, b]).squares(|key, m| {
                let one = |group: &GroupMean<'_>, i: usize| {
                    group.means.get(&key[i..=i]).map_or(mean, |(mean, _)| *mean)
                };
                m - one(&of_a, 0) - one(&of_b, 1) + mean
            });
            parts.push((vec![(*a).clone(), (*b).clone()], squares));
        }
    }
    let explained: f64 = parts.iter().map(|(_, squares)| squares).sum();
    if factors.len() > 2 {
        parts.push((Vec::new(), (all - explained).max(0.0)));
    }
    let total = all + error(cells, scale);
    let share = |squares: f64| if total > 0.0 { (squares / total).clamp(0.0, 1.0) } else { 0.0 };
    let mut shares: Vec<VariationShare> = parts
        .into_iter()
        .map(|(factors, squares)| VariationShare { factors, share: share(squares) })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    Ok(shares)
}

/// The sum over the cells of `(n_c - 1) / n_c s_c^2`: `SS_error / r`.
fn error(cells: &[CellObservations], scale: EffectScale) -> f64 {
    let of_one = |cell: &CellObservations| -> f64 {
        let values = cell.values.iter().map(|value| scale.to_additive(*value));
        let n = cell.values.len() as f64;
        let mean = values.clone().sum::<f64>() / n;
        values.map(|v| (v - mean) * (v - mean)).sum::<f64>() / n
    };
    cells.iter().map(of_one).sum()
}

/// Means of the cells that agree in some factors, and how many these are.
struct GroupMean<'a> {
    means: BTreeMap<Vec<Option<&'a String>>, (f64, usize)>,
}

impl GroupMean<'_> {
    /// Over the groups: the number of cells times the square of `away`.
    fn squares(&self, away: impl Fn(&[Option<&String>], f64) -> f64) -> f64 {
        let square = |(key, (mean, count)): (&Vec<Option<&String>>, &(f64, usize))| {
            let away = away(key, *mean);
            away * away * *count as f64
        };
        self.means.iter().map(square).sum()
    }
}

fn grouped<'a>(cells: &'a [CellObservations], means: &[f64], of: &[&String]) -> GroupMean<'a> {
    let mut sums: BTreeMap<Vec<Option<&String>>, (f64, usize)> = BTreeMap::new();
    for (cell, mean) in cells.iter().zip(means) {
        let key = of.iter().map(|name| cell.at.get(*name)).collect();
        let entry = sums.entry(key).or_default();
        entry.0 += mean;
        entry.1 += 1;
    }
    for (sum, count) in sums.values_mut() {
        *sum /= *count as f64;
    }
    GroupMean { means: sums }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(pairs: &[(&str, &str)], values: &[f64]) -> CellObservations {
        let at = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        CellObservations { at, values: values.to_vec() }
    }

    #[test]
    fn jains_memory_and_cache() {
        // Example 18.1: 78.88 % by memory, 15.4 % by cache, 4.27 % by both, the rest is error.
        // Its sums are of the values themselves, so these are their exponentials.
        let of = |memory, cache, values: [f64; 3]| {
            cell(&[("memory", memory), ("cache", cache)], &values.map(f64::exp))
        };
        let cells = [
            of("4", "1", [15.0, 18.0, 12.0]),
            of("4", "2", [25.0, 28.0, 19.0]),
            of("16", "1", [45.0, 48.0, 51.0]),
            of("16", "2", [75.0, 75.0, 81.0]),
        ];
        let result = variation(&cells).unwrap();
        let expected =
            [(vec!["memory"], 5547.0), (vec!["cache"], 1083.0), (vec!["cache", "memory"], 300.0)];
        assert_eq!(result.len(), expected.len());
        for (share, (factors, squares)) in result.iter().zip(expected) {
            assert_eq!(share.factors, factors);
            assert!((share.share - squares / 7032.0).abs() < 1e-9, "{share:?}");
        }
    }

    #[test]
    fn higher_interactions_are_separate_and_shares_add_up_to_one() {
        let mut cells = Vec::new();
        for i in 0..8 {
            let (x, y, z) = (i & 1, i >> 1 & 1, i >> 2 & 1);
            let at = [("x", x), ("y", y), ("z", z)].map(|(k, v)| (k.to_owned(), v.to_string()));
            let value = (f64::from(x ^ y ^ z) + 1e-3 * f64::from(i)).exp();
            cells.push(CellObservations { at: at.into(), values: vec![value] });
        }
        let result = variation(&cells).unwrap();
        assert_eq!(result[0].factors, [""; 0]);
        assert!(result[0].share > 0.99);
        let sum: f64 = result.iter().map(|share| share.share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn missing_combinations_are_counted() {
        let cells = [
            cell(&[("x", "1"), ("y", "1")], &[1.0]),
            cell(&[("x", "2"), ("y", "1")], &[2.0]),
            cell(&[("x", "2"), ("y", "2")], &[3.0]),
        ];
        assert_eq!(variation(&cells), Err(EffectError::Incomplete { missing: 1 }));
        assert!(variation(&cells[..1]).is_err());
        let still = [cell(&[("x", "1")], &[2.0, 2.0]), cell(&[("x", "2")], &[2.0, 2.0])];
        assert_eq!(variation(&still).unwrap()[0].share, 0.0);
    }
}
