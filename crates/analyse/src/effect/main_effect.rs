use std::collections::BTreeMap;

use super::contrast::RepeatVariance;
use super::crossed::{Crossed, Terms, runs};
use super::{CellObservations, EffectError, EffectSize, check, levels};

/// The effect of a level of a factor, averaged over the other factors.
#[derive(Debug, Clone, PartialEq)]
pub struct MainEffect {
    pub from: String,
    pub to: String,
    /// On [`EffectScale::Ratio`](super::EffectScale::Ratio) the geometric mean of `to / from`, on
    /// `Difference` the mean of `to - from`.
    pub size: EffectSize,
    /// The same in each combination of the other factors that has both levels.
    pub simple: Vec<SimpleEffect>,
    /// Combinations that have only one of the levels, and do not count.
    pub left_out: usize,
    /// Runs of either level.
    pub n_from: usize,
    pub n_to: usize,
}

/// An effect in one combination of the other factors.
#[derive(Debug, Clone, PartialEq)]
pub struct SimpleEffect {
    pub at: BTreeMap<String, String>,
    pub size: EffectSize,
}

/// The effect of each level of `factor` against its first: in each combination of the other factors
/// that has both, and on average over those, with equal weights. A factor that only one of the two
/// levels has is averaged over.
///
/// `order` names the levels, the first being what the others are compared with; levels that it
/// lacks follow by name. `resolution` is the relative rounding of the values. The sizes, their
/// intervals and p are those of a contrast of 20 % trimmed cell means with Welch and
/// Satterthwaite's degrees of freedom, on logarithms where every value is positive.
///
/// Errors: no such factor; a single level; no pair of cells that differ in it alone; a value
/// that is not a number.
pub fn main_effects(
    cells: &[CellObservations],
    factor: &str,
    order: &[String],
    resolution: f64,
) -> Result<Vec<MainEffect>, EffectError> {
    check(cells)?;
    let levels = levels(cells, factor, order)?;
    let (from, others) = (levels[0], &levels[1..]);
    let repeats = RepeatVariance::of(cells, resolution);
    let effects: Vec<MainEffect> =
        others.iter().filter_map(|to| effect(cells, factor, (from, to), &repeats)).collect();
    match effects.is_empty() {
        true => Err(EffectError::Confounded(factor.to_owned())),
        false => Ok(effects),
    }
}

fn effect(
    cells: &[CellObservations],
    factor: &str,
    (from, to): (&str, &str),
    repeats: &RepeatVariance,
) -> Option<MainEffect> {
    let crossed = Crossed::of(cells, &[(-1.0, vec![(factor, from)]), (1.0, vec![(factor, to)])]);
    if crossed.blocks.is_empty() {
        return None;
    }
    let owned = |at: &BTreeMap<&str, &str>| {
        at.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect()
    };
    let simple = |(at, terms): &(BTreeMap<&str, &str>, Terms<'_>)| SimpleEffect {
        at: owned(at),
        size: repeats.contrast(terms),
    };
    let terms = crossed.terms();
    Some(MainEffect {
        from: from.to_owned(),
        to: to.to_owned(),
        size: repeats.contrast(&terms),
        simple: crossed.blocks.iter().map(simple).collect(),
        left_out: crossed.left_out,
        n_from: runs(&terms, |share| share < 0.0),
        n_to: runs(&terms, |share| share > 0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::super::EffectScale;
    use super::*;
    use crate::interval::{IntervalMethod, NoInterval};

    fn cell(pairs: &[(&str, &str)], values: &[f64]) -> CellObservations {
        let at = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        CellObservations { at, values: values.to_vec() }
    }

    fn order(levels: &[&str]) -> Vec<String> {
        levels.iter().map(|level| (*level).to_owned()).collect()
    }

    #[test]
    fn a_two_by_two_by_hand() {
        // `on` is 2 times `off` at y = 1 and 1.5 times at y = 2: their geometric mean.
        let cells = [
            cell(&[("x", "off"), ("y", "1")], &[10.0, 10.0]),
            cell(&[("x", "on"), ("y", "1")], &[20.0, 20.0]),
            cell(&[("x", "off"), ("y", "2")], &[8.0, 8.0]),
            cell(&[("x", "on"), ("y", "2")], &[12.0, 12.0]),
        ];
        let effects = main_effects(&cells, "x", &order(&["off", "on"]), 0.0).unwrap();
        let [effect] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!((effect.from.as_str(), effect.to.as_str()), ("off", "on"));
        assert!((effect.size.value - 3.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!((effect.n_from, effect.n_to, effect.left_out), (4, 4, 0));
        assert_eq!(effect.simple.len(), 2);
        assert_eq!(effect.simple[1].at["y"], "2");
        assert!((effect.simple[1].size.value - 1.5).abs() < 1e-12);
        // Nothing varies: an interval of no width, and no standard deviation to measure by.
        assert_eq!(effect.size.p, Some(0.0));
        assert_eq!(effect.size.standardised, None);
    }

    #[test]
    fn welch_by_hand_on_differences() {
        // A value of 0 has no logarithm, so differences. Means 1 and 5, variances 1 and 4 of
        // three values: se^2 = 5 / 3, df = (5/3)^2 / ((1/3)^2 / 2 + (4/3)^2 / 2) = 50/17.
        let cells = [cell(&[("x", "a")], &[0.0, 1.0, 2.0]), cell(&[("x", "b")], &[3.0, 5.0, 7.0])];
        let effects = main_effects(&cells, "x", &[], 0.001).unwrap();
        let size = &effects[0].size;
        assert_eq!((size.scale, size.value), (EffectScale::Difference, 4.0));
        let interval = size.interval.clone().unwrap();
        let IntervalMethod::Contrast { df, logarithms: false, trimmed: false, pooled: false } =
            interval.method
        else {
            panic!("{interval:?}")
        };
        assert!((df - 50.0 / 17.0).abs() < 1e-12);
        // R: t.test(c(3,5,7), c(0,1,2)): t = 3.0984, p = 0.0548.
        assert!((size.p.unwrap() - 0.0548).abs() < 5e-4, "{:?}", size.p);
        // Pooled within: (2 + 8) / 4.
        assert!((size.standardised.unwrap() - 4.0 / 2.5_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn only_pairs_that_differ_in_the_factor_alone_count() {
        let cells = [
            cell(&[("x", "a"), ("y", "1")], &[10.0, 11.0]),
            cell(&[("x", "b"), ("y", "1")], &[20.0, 22.0]),
            cell(&[("x", "b"), ("y", "2")], &[500.0, 510.0]),
        ];
        let effects = main_effects(&cells, "x", &[], 0.0).unwrap();
        assert!((effects[0].size.value - 2.0).abs() < 1e-12);
        assert_eq!((effects[0].left_out, effects[0].n_to), (1, 2));
        let confounded = [cells[0].clone(), cells[2].clone()];
        assert_eq!(
            main_effects(&confounded, "x", &[], 0.0),
            Err(EffectError::Confounded("x".to_owned()))
        );
        assert_eq!(
            main_effects(&cells[..1], "x", &[], 0.0),
            Err(EffectError::OneLevel { factor: "x".to_owned(), level: "a".to_owned() })
        );
        assert_eq!(main_effects(&cells, "z", &[], 0.0), Err(EffectError::NoFactor("z".to_owned())));
    }

    #[test]
    fn a_factor_of_one_level_alone_is_averaged_over() {
        let cells = [
            cell(&[("store", "a"), ("cache", "1"), ("y", "1")], &[10.0, 10.0]),
            cell(&[("store", "a"), ("cache", "2"), ("y", "1")], &[40.0, 40.0]),
            cell(&[("store", "b"), ("tables", "4"), ("y", "1")], &[60.0, 60.0]),
            cell(&[("store", "b"), ("tables", "4"), ("y", "2")], &[1.0, 1.0]),
        ];
        let effects = main_effects(&cells, "store", &[], 0.0).unwrap();
        // 60 against the geometric mean of 10 and 40.
        assert!((effects[0].size.value - 3.0).abs() < 1e-12, "{effects:?}");
        assert_eq!((effects[0].n_from, effects[0].n_to, effects[0].left_out), (4, 2, 1));
        assert_eq!(effects[0].simple[0].at, BTreeMap::from([("y".to_owned(), "1".to_owned())]));
    }

    #[test]
    fn a_single_repeat_borrows_the_spread_of_the_others_or_has_no_interval() {
        let cells = [cell(&[("x", "a")], &[10.0]), cell(&[("x", "b")], &[20.0])];
        let effects = main_effects(&cells, "x", &[], 0.0).unwrap();
        assert_eq!(effects[0].size.interval, Err(NoInterval::OneValue));
        assert_eq!(effects[0].size.p, None);
        let cells = [cell(&[("x", "a")], &[10.0]), cell(&[("x", "b")], &[20.0, 21.0, 19.0])];
        let effects = main_effects(&cells, "x", &[], 0.0).unwrap();
        let interval = effects[0].size.interval.clone().unwrap();
        assert!(matches!(interval.method, IntervalMethod::Contrast { pooled: true, .. }));
        assert!(interval.low > 1.0 && interval.high < 4.0, "{interval:?}");
    }

    #[test]
    fn levels_come_in_the_order_of_the_study() {
        let cells: Vec<CellObservations> =
            ["none", "all", "c1"].map(|level| cell(&[("idle", level)], &[1.0, 2.0])).into();
        let effects = main_effects(&cells, "idle", &order(&["none", "c1"]), 0.0).unwrap();
        let to: Vec<&str> = effects.iter().map(|effect| effect.to.as_str()).collect();
        assert_eq!((effects[0].from.as_str(), to), ("none", vec!["c1", "all"]));
    }

    #[test]
    fn a_difference_below_the_resolution_is_not_significant() {
        let cells = [cell(&[("x", "a")], &[1000.0; 3]), cell(&[("x", "b")], &[1000.5; 3])];
        let effects = main_effects(&cells, "x", &[], 0.001).unwrap();
        assert_eq!(effects[0].size.p, Some(1.0));
        assert!(effects[0].size.interval.clone().unwrap().covers(1.0));
    }
}
