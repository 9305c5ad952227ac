//! Which cells a design has: pure, from factors to combinations of their levels.

use std::collections::BTreeSet;

use model::design::{Conditions, DesignKind, Factor, FactorLevels};

/// Every cell of a design for one store and workload, in the order of the factors and their
/// levels; the first factor varies slowest. A factor varies only where its conditions hold. Without
/// factors there is one cell; duplicates are removed. None: there are more than `most`.
pub(crate) fn cells(
    kind: DesignKind,
    factors: &[Factor],
    (baseline, list): (&FactorLevels, &[FactorLevels]),
    place: (&str, Option<&str>),
    most: usize,
) -> Option<Vec<FactorLevels>> {
    let left = |levels: &FactorLevels| effective(factors, levels, place);
    let all: Vec<FactorLevels> = match kind {
        DesignKind::Factorial => factorial(factors, place, most)?,
        DesignKind::OneAtATime => one_at_a_time(factors, baseline).iter().map(left).collect(),
        DesignKind::List => list.iter().map(left).collect(),
    };
    let mut seen = BTreeSet::new();
    Some(all.into_iter().filter(|cell| seen.insert(cell.clone())).collect())
}

/// Factor by factor, so that those that vary elsewhere multiply nothing here.
fn factorial(
    factors: &[Factor],
    place: (&str, Option<&str>),
    most: usize,
) -> Option<Vec<FactorLevels>> {
    let mut cells = vec![FactorLevels::new()];
    for factor in in_order(factors) {
        let with = |cell: &FactorLevels, level: &String| {
            let mut cell = cell.clone();
            cell.insert(factor.name.clone(), level.clone());
            cell
        };
        let varied = |cell: FactorLevels| match holds(&factor.within, &cell, place) {
            true => factor.levels.iter().map(|level| with(&cell, level)).collect(),
            false => vec![cell],
        };
        cells = cells.into_iter().flat_map(varied).take(most.saturating_add(1)).collect();
        if cells.len() > most {
            return None;
        }
    }
    Some(cells)
}

/// The factors in their order, but each behind those that its conditions name.
fn in_order(factors: &[Factor]) -> Vec<&Factor> {
    let mut left: Vec<&Factor> = factors.iter().collect();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let waits = |factor: &Factor| {
            let mut named = factor.within.0.keys();
            named.any(|name| left.iter().any(|other| other.name == *name && *name != factor.name))
        };
        // Circular conditions never hold.
        let next = left.iter().position(|factor| !waits(factor)).unwrap_or(0);
        ordered.push(left.remove(next));
    }
    ordered
}

fn holds(
    within: &Conditions,
    levels: &FactorLevels,
    (store, workload): (&str, Option<&str>),
) -> bool {
    within.0.iter().all(|(name, wanted)| match (levels.get(name), name.as_str()) {
        (Some(level), _) => wanted.contains(level),
        (None, "store") => wanted.contains(store),
        // A load is of no workload.
        (None, "workload") => workload.is_some_and(|name| wanted.contains(name)),
        (None, _) => false,
    })
}

/// A factor that the baseline leaves out stands at its first level.
fn one_at_a_time(factors: &[Factor], baseline: &FactorLevels) -> Vec<FactorLevels> {
    let first = |factor: &Factor| {
        let level = baseline.get(&factor.name).or(factor.levels.first())?;
        Some((factor.name.clone(), level.clone()))
    };
    let centre: FactorLevels = factors.iter().filter_map(first).collect();
    let mut cells = vec![centre.clone()];
    for factor in factors {
        for level in &factor.levels {
            let mut cell = centre.clone();
            cell.insert(factor.name.clone(), level.clone());
            cells.push(cell);
        }
    }
    cells
}

/// The levels that apply in a cell for one store and workload: a factor whose conditions do not
/// hold does not vary, so that it cannot fulfil another factor's condition.
fn effective(
    factors: &[Factor],
    levels: &FactorLevels,
    place: (&str, Option<&str>),
) -> FactorLevels {
    let mut left = levels.clone();
    loop {
        let idle: Vec<&Factor> = factors
            .iter()
            .filter(|factor| {
                left.contains_key(&factor.name) && !holds(&factor.within, &left, place)
            })
            .collect();
        if idle.is_empty() {
            return left;
        }
        for factor in idle {
            left.remove(&factor.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::design::Texts;
    use proptest::prelude::*;

    use super::*;

    fn factor(name: &str, levels: &[&str], within: &[(&str, &[&str])]) -> Factor {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Factor {
            name: name.to_owned(),
            sets: vec![format!("knobs.{name}")],
            levels: owned(levels),
            within: Conditions(
                within.iter().map(|(key, some)| ((*key).to_owned(), Texts(owned(some)))).collect(),
            ),
            given: None,
        }
    }

    const MOST: usize = 10_000;
    const PLACE: (&str, Option<&str>) = ("s", None);

    fn whole(factors: &[Factor]) -> Vec<FactorLevels> {
        cells(DesignKind::Factorial, factors, (&FactorLevels::new(), &[]), PLACE, MOST).unwrap()
    }

    /// A factor for each size, with so many levels.
    fn factors(sizes: &[usize]) -> Vec<Factor> {
        let factor = |(n, size): (usize, &usize)| {
            let names: Vec<String> = (0..*size).map(|level| format!("l{level}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            factor(&format!("f{n}"), &names, &[])
        };
        sizes.iter().enumerate().map(factor).collect()
    }

    fn levels(pairs: &[(&str, &str)]) -> FactorLevels {
        pairs.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect()
    }

    #[test]
    fn a_full_factorial_has_every_combination() {
        let factors = [
            factor("smt", &["on", "off"], &[]),
            factor("idle", &["all", "c1e", "c1", "none"], &[]),
            factor("rate", &["10k", "100k", "200k"], &[]),
        ];
        let cells = whole(&factors);
        // Two by four by three levels.
        assert_eq!(cells.len(), 24);
        assert_eq!(cells[0], levels(&[("smt", "on"), ("idle", "all"), ("rate", "10k")]));
        assert_eq!(cells[1], levels(&[("smt", "on"), ("idle", "all"), ("rate", "100k")]));
        assert_eq!(cells[23], levels(&[("smt", "off"), ("idle", "none"), ("rate", "200k")]));
        assert_eq!(whole(&[]), [FactorLevels::new()]);
    }

    #[test]
    fn one_at_a_time_goes_around_the_baseline() {
        let factors = [
            factor("smt", &["on", "off"], &[]),
            factor("idle", &["all", "c1e", "c1", "none"], &[]),
        ];
        let cells = cells(
            DesignKind::OneAtATime,
            &factors,
            (&levels(&[("idle", "none")]), &[]),
            PLACE,
            MOST,
        )
        .unwrap();
        // The baseline, one other level of smt, three others of idle.
        assert_eq!(cells.len(), 5);
        assert_eq!(cells[0], levels(&[("smt", "on"), ("idle", "none")]));
        assert!(cells.contains(&levels(&[("smt", "off"), ("idle", "none")])));
        assert!(!cells.contains(&levels(&[("smt", "off"), ("idle", "all")])));
    }

    #[test]
    fn a_list_is_kept_without_duplicates() {
        let one = levels(&[("smt", "on")]);
        let list = [one.clone(), levels(&[("smt", "off"), ("idle", "c1")]), one.clone()];
        let cells =
            cells(DesignKind::List, &[], (&FactorLevels::new(), &list), PLACE, MOST).unwrap();
        assert_eq!(cells, list[..2]);
    }

    #[test]
    fn a_nested_factor_varies_only_under_its_conditions() {
        let factors = [
            factor("rate", &["1", "2"], &[("store", &["memcached"])]),
            factor("burst", &["a", "b"], &[("rate", &["2"])]),
            factor("cache", &["x"], &[("workload", &["ycsb-c"])]),
        ];
        let cell = levels(&[("rate", "2"), ("burst", "a"), ("cache", "x")]);
        let at = |store, workload| effective(&factors, &cell, (store, workload));
        assert_eq!(at("memcached", Some("ycsb-c")), cell);
        assert_eq!(at("memcached", Some("etc")), levels(&[("rate", "2"), ("burst", "a")]));
        // What hangs on a factor that does not vary does not vary either.
        assert_eq!(at("redis", Some("ycsb-c")), levels(&[("cache", "x")]));
        assert_eq!(at("redis", None), FactorLevels::new());
        let slow = levels(&[("rate", "1"), ("burst", "a")]);
        assert_eq!(effective(&factors, &slow, ("memcached", None)), levels(&[("rate", "1")]));
        // The whole design has these cells and no other, whichever factor stands first.
        for order in [[0, 1, 2], [2, 1, 0]] {
            let factors = order.map(|at| factors[at].clone());
            let none = (&FactorLevels::new(), &[][..]);
            let mut cells =
                cells(DesignKind::Factorial, &factors, none, ("memcached", None), MOST).unwrap();
            cells.sort();
            let fast = |burst| levels(&[("rate", "2"), ("burst", burst)]);
            let mut wanted = vec![levels(&[("rate", "1")]), fast("a"), fast("b")];
            wanted.sort();
            assert_eq!(cells, wanted);
        }
    }

    #[test]
    fn factors_of_other_places_multiply_nothing() {
        // Far too many combinations to list.
        let names: Vec<String> = (0..40).map(|n| format!("f{n}")).collect();
        let factors: Vec<Factor> = names
            .iter()
            .map(|name| factor(name, &["1", "2", "3"], &[("workload", &[name.as_str()])]))
            .collect();
        let none = (&FactorLevels::new(), &[][..]);
        let place = ("s", Some("f7"));
        let cells = cells(DesignKind::Factorial, &factors, none, place, MOST).unwrap();
        let one = |level| levels(&[("f7", level)]);
        assert_eq!(cells, [one("1"), one("2"), one("3")]);
    }

    #[test]
    fn too_many_cells_are_not_listed() {
        let factors = factors(&[10; 40]);
        let none = (&FactorLevels::new(), &[][..]);
        assert_eq!(cells(DesignKind::Factorial, &factors, none, PLACE, MOST), None);
        let factors = &factors[..4];
        let all = cells(DesignKind::Factorial, factors, none, PLACE, MOST);
        assert_eq!(all.map(|all| all.len()), Some(MOST));
    }

    proptest! {
        /// Whatever the levels: the product, no cell twice, every level as often as the others.
        #[test]
        fn a_factorial_is_balanced(sizes in proptest::collection::vec(1..5_usize, 0..5)) {
            let factors = factors(&sizes);
            let cells = whole(&factors);
            let product: usize = sizes.iter().product();
            prop_assert_eq!(cells.len(), product);
            prop_assert_eq!(cells.iter().collect::<BTreeSet<_>>().len(), product);
            for factor in &factors {
                for level in &factor.levels {
                    let at = cells.iter().filter(|cell| cell[&factor.name] == *level).count();
                    prop_assert_eq!(at, product / factor.levels.len());
                }
            }
        }

        /// The baseline and each other level once.
        #[test]
        fn one_at_a_time_is_a_star(sizes in proptest::collection::vec(1..6_usize, 1..6)) {
            let factors = factors(&sizes);
            let cells = cells(DesignKind::OneAtATime, &factors, (&FactorLevels::new(), &[]), PLACE, MOST).unwrap();
            prop_assert_eq!(cells.len(), 1 + sizes.iter().map(|size| size - 1).sum::<usize>());
            for cell in &cells {
                let moved = cell.iter().filter(|(name, level)| cells[0][*name] != **level).count();
                prop_assert!(moved <= 1);
            }
        }
    }
}
