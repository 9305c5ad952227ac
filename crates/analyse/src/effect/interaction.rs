use super::contrast::RepeatVariance;
use super::crossed::{Crossed, runs};
use super::{CellObservations, EffectError, EffectSize, check, levels};

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
    pub size: EffectSize,
    /// Combinations of the other factors over which it is averaged.
    pub over: usize,
    /// Runs of its cells.
    pub n: usize,
}

/// Interactions of two factors, for each pair of levels against the first level of either; averaged
/// over the combinations of the other factors that have all four cells. A factor that only some of
/// the four have is averaged over, as in main effects. Orders, resolution and method as for
/// [`main_effects`](super::main_effects).
///
/// Errors: no such factor; a single level of one; no four cells that are crossed; a value that
/// is not a number.
pub fn interactions(
    cells: &[CellObservations],
    (first, order_first): (&str, &[String]),
    (second, order_second): (&str, &[String]),
    resolution: f64,
) -> Result<Vec<Interaction>, EffectError> {
    check(cells)?;
    let levels_first = levels(cells, first, order_first)?;
    let levels_second = levels(cells, second, order_second)?;
    let repeats = RepeatVariance::of(cells, resolution);
    let mut result = Vec::new();
    for a in &levels_first[1..] {
        for b in &levels_second[1..] {
            let (a0, b0) = (levels_first[0], levels_second[0]);
            let corner = |sign: f64, a, b| (sign, vec![(first, a), (second, b)]);
            let corners = [
                corner(1.0, a0, b0),
                corner(-1.0, *a, b0),
                corner(-1.0, a0, *b),
                corner(1.0, *a, *b),
            ];
            let crossed = Crossed::of(cells, &corners);
            if crossed.blocks.is_empty() {
                continue;
            }
            let terms = crossed.terms();
            let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
            result.push(Interaction {
                factors: [first.to_owned(), second.to_owned()],
                first: pair(a0, a),
                second: pair(b0, b),
                size: repeats.contrast(&terms),
                over: crossed.blocks.len(),
                n: runs(&terms, |_| true),
            });
        }
    }
    match result.is_empty() {
        true => Err(EffectError::NotCrossed(first.to_owned(), second.to_owned())),
        false => Ok(result),
    }
}

#[cfg(test)]
mod tests {
    use super::super::main_effects;
    use super::*;

    fn cells(table: [[f64; 2]; 2]) -> Vec<CellObservations> {
        let mut cells = Vec::new();
        for (a, row) in table.iter().enumerate() {
            for (b, value) in row.iter().enumerate() {
                let at = [("a", a), ("b", b)].map(|(k, v)| (k.to_owned(), v.to_string()));
                cells.push(CellObservations {
                    at: at.into(),
                    values: vec![value * 0.99, value * 1.01],
                });
            }
        }
        cells
    }

    #[test]
    fn multiplying_factors_do_not_interact() {
        // a doubles, b triples, both together 6 times.
        let result =
            interactions(&cells([[1.0, 3.0], [2.0, 6.0]]), ("a", &[]), ("b", &[]), 0.0).unwrap();
        assert!((result[0].size.value - 1.0).abs() < 1e-12);
        assert!(result[0].size.p.unwrap() > 0.99);
        // And where both together are 12 times, b makes a's effect twice as large.
        let result =
            interactions(&cells([[1.0, 3.0], [2.0, 12.0]]), ("a", &[]), ("b", &[]), 0.0).unwrap();
        assert!((result[0].size.value - 2.0).abs() < 1e-12);
        assert!(result[0].size.p.unwrap() < 0.01);
        assert_eq!((result[0].over, result[0].n), (1, 8));
        let (first, second) = (&result[0].first, &result[0].second);
        assert_eq!((first.0.as_str(), first.1.as_str()), ("0", "1"));
        assert_eq!((second.0.as_str(), second.1.as_str()), ("0", "1"));
    }

    fn cell(pairs: &[(&str, &str)], value: f64) -> CellObservations {
        let at = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        CellObservations { at, values: vec![value; 2] }
    }

    #[test]
    fn a_factor_that_some_corners_lack_is_averaged_over() {
        // The block cache is store a's alone, and burst varies with two threads only.
        let cells = [
            cell(&[("store", "a"), ("threads", "1"), ("cache", "0"), ("y", "1")], 10.0),
            cell(&[("store", "a"), ("threads", "1"), ("cache", "1"), ("y", "1")], 40.0),
            cell(&[("store", "a"), ("threads", "2"), ("cache", "0"), ("y", "1")], 20.0),
            cell(&[("store", "a"), ("threads", "2"), ("cache", "1"), ("y", "1")], 80.0),
            cell(&[("store", "b"), ("threads", "1"), ("y", "1")], 5.0),
            cell(&[("store", "b"), ("threads", "2"), ("burst", "x"), ("y", "1")], 20.0),
            cell(&[("store", "b"), ("threads", "2"), ("burst", "z"), ("y", "1")], 45.0),
            // Not included, as its other three corners are missing.
            cell(&[("store", "b"), ("threads", "2"), ("burst", "z"), ("y", "2")], 999.0),
        ];
        let result = interactions(&cells, ("store", &[]), ("threads", &[]), 0.0).unwrap();
        let [one] = result.as_slice() else { panic!("{result:?}") };
        // Geometric means: a 20 and 40, b 5 and 30; (30 / 40) / (5 / 20) = 3.
        assert!((one.size.value - 3.0).abs() < 1e-12, "{one:?}");
        assert_eq!((one.over, one.n), (1, 14));
        // What the main effect says of the same cells: (5 * 30) / (20 * 40), its root.
        let main = main_effects(&cells, "store", &[], 0.0).unwrap();
        let same = [("threads", "1"), ("threads", "2")]
            .map(|at| main[0].simple.iter().find(|s| s.at.get(at.0).is_some_and(|l| l == at.1)));
        assert!((same[0].unwrap().size.value - 5.0 / 20.0).abs() < 1e-12);
        assert!((same[1].unwrap().size.value - 30.0 / 40.0).abs() < 1e-12);
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
