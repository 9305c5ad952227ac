use std::collections::BTreeMap;

use super::contrast::Repeats;
use super::{EffectError, Observed, Size, check, levels, rest};

/// How far the effect of one factor depends on the level of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Interaction {
    pub factors: [String; 2],
    /// The two levels of the first factor.
    pub first: (String, String),
    /// And those of the second.
    pub second: (String, String),
    /// The effect of the first factor at `second.1` against that at `second.0`: a ratio of
    /// ratios, or a difference of differences. No interaction is 1, or 0.
    pub size: Size,
    /// Combinations of the other factors over which it is averaged.
    pub over: usize,
    /// Runs of the cells behind it.
    pub n: usize,
}

/// What two factors do together beyond what each does alone, for each pair of levels against
/// the first level of either; averaged over the combinations of the other factors that have all
/// four cells. Orders, resolution and method as for [`main_effects`](super::main_effects).
///
/// Errors: no such factor; a single level of one; no four cells that are crossed; a value that
/// is not a number.
pub fn interactions(
    cells: &[Observed],
    (first, order_first): (&str, &[String]),
    (second, order_second): (&str, &[String]),
    resolution: f64,
) -> Result<Vec<Interaction>, EffectError> {
    check(cells)?;
    let levels_first = levels(cells, first, order_first)?;
    let levels_second = levels(cells, second, order_second)?;
    let repeats = Repeats::of(cells, resolution);
    let mut crossed: BTreeMap<_, BTreeMap<(&str, &str), &Observed>> = BTreeMap::new();
    for cell in cells {
        if let (Some(a), Some(b)) = (cell.at.get(first), cell.at.get(second)) {
            crossed.entry(rest(cell, &[first, second])).or_default().insert((a, b), cell);
        }
    }
    let mut found = Vec::new();
    for a in &levels_first[1..] {
        for b in &levels_second[1..] {
            let (a0, b0) = (levels_first[0], levels_second[0]);
            let corners = [(1.0, (a0, b0)), (-1.0, (*a, b0)), (-1.0, (a0, *b)), (1.0, (*a, *b))];
            let blocks: Vec<Vec<(f64, &Observed)>> = crossed
                .values()
                .filter_map(|block| {
                    corners.iter().map(|(sign, at)| Some((*sign, *block.get(at)?))).collect()
                })
                .collect();
            if blocks.is_empty() {
                continue;
            }
            let weight = 1.0 / blocks.len() as f64;
            let terms: Vec<(f64, &Observed)> =
                blocks.iter().flatten().map(|(sign, cell)| (sign * weight, *cell)).collect();
            let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
            found.push(Interaction {
                factors: [first.to_owned(), second.to_owned()],
                first: pair(a0, a),
                second: pair(b0, b),
                size: repeats.contrast(&terms),
                over: blocks.len(),
                n: terms.iter().map(|(_, cell)| cell.values.len()).sum(),
            });
        }
    }
    match found.is_empty() {
        true => Err(EffectError::NotCrossed(first.to_owned(), second.to_owned())),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(table: [[f64; 2]; 2]) -> Vec<Observed> {
        let mut cells = Vec::new();
        for (a, row) in table.iter().enumerate() {
            for (b, value) in row.iter().enumerate() {
                let at = [("a", a), ("b", b)].map(|(k, v)| (k.to_owned(), v.to_string()));
                cells.push(Observed { at: at.into(), values: vec![value * 0.99, value * 1.01] });
            }
        }
        cells
    }

    #[test]
    fn what_multiplies_does_not_interact() {
        // a doubles, b triples, both together 6 times.
        let found =
            interactions(&cells([[1.0, 3.0], [2.0, 6.0]]), ("a", &[]), ("b", &[]), 0.0).unwrap();
        assert!((found[0].size.value - 1.0).abs() < 1e-12);
        assert!(found[0].size.p.unwrap() > 0.99);
        // And where both together are 12 times, b makes a's effect twice as large.
        let found =
            interactions(&cells([[1.0, 3.0], [2.0, 12.0]]), ("a", &[]), ("b", &[]), 0.0).unwrap();
        assert!((found[0].size.value - 2.0).abs() < 1e-12);
        assert!(found[0].size.p.unwrap() < 0.01);
        assert_eq!((found[0].over, found[0].n), (1, 8));
        let (first, second) = (&found[0].first, &found[0].second);
        assert_eq!((first.0.as_str(), first.1.as_str()), ("0", "1"));
        assert_eq!((second.0.as_str(), second.1.as_str()), ("0", "1"));
    }

    #[test]
    fn three_corners_are_not_enough() {
        let cells = cells([[1.0, 3.0], [2.0, 6.0]]);
        assert_eq!(
            interactions(&cells[..3], ("a", &[]), ("b", &[]), 0.0),
            Err(EffectError::NotCrossed("a".to_owned(), "b".to_owned()))
        );
    }
}
