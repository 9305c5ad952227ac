//! Which cells a design has: pure, from factors to combinations of their levels.

use std::collections::BTreeSet;

use record::design::{Conditions, DesignKind, Factor, Levels};

/// Every combination of a design before conditions and exclusions, in the order of the factors
/// and their levels; the first factor varies slowest. Without factors there is one cell, and no
/// cell is there twice.
pub(crate) fn combinations(
    kind: DesignKind,
    factors: &[Factor],
    baseline: &Levels,
    list: &[Levels],
) -> Vec<Levels> {
    let all = match kind {
        DesignKind::Factorial => factorial(factors),
        DesignKind::OneAtATime => one_at_a_time(factors, baseline),
        DesignKind::List => list.to_vec(),
    };
    let mut seen = BTreeSet::new();
    all.into_iter().filter(|cell| seen.insert(cell.clone())).collect()
}

fn factorial(factors: &[Factor]) -> Vec<Levels> {
    let mut cells = vec![Levels::new()];
    for factor in factors {
        let with = |cell: &Levels, level: &String| {
            let mut cell = cell.clone();
            cell.insert(factor.name.clone(), level.clone());
            cell
        };
        cells = cells
            .iter()
            .flat_map(|cell| factor.levels.iter().map(|level| with(cell, level)))
            .collect();
    }
    cells
}

/// A factor that the baseline leaves out stands at its first level.
fn one_at_a_time(factors: &[Factor], baseline: &Levels) -> Vec<Levels> {
    let first = |factor: &Factor| {
        let level = baseline.get(&factor.name).or(factor.levels.first())?;
        Some((factor.name.clone(), level.clone()))
    };
    let centre: Levels = factors.iter().filter_map(first).collect();
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

/// The levels that count in a cell for one store and workload: a factor whose conditions do not
/// hold there does not vary, and so cannot be what another's condition asks for.
pub(crate) fn effective(
    factors: &[Factor],
    levels: &Levels,
    store: &str,
    workload: Option<&str>,
) -> Levels {
    let mut left = levels.clone();
    loop {
        let holds = |within: &Conditions| {
            within.0.iter().all(|(name, wanted)| match (left.get(name), name.as_str()) {
                (Some(level), _) => wanted.contains(level),
                (None, "store") => wanted.contains(store),
                // A load is of no workload.
                (None, "workload") => workload.is_some_and(|name| wanted.contains(name)),
                (None, _) => false,
            })
        };
        let idle: Vec<&Factor> = factors
            .iter()
            .filter(|factor| left.contains_key(&factor.name) && !holds(&factor.within))
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
    use proptest::prelude::*;
    use record::design::Texts;

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
        }
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

    fn levels(pairs: &[(&str, &str)]) -> Levels {
        pairs.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect()
    }

    #[test]
    fn a_full_factorial_has_every_combination() {
        let factors = [
            factor("smt", &["on", "off"], &[]),
            factor("idle", &["all", "c1e", "c1", "none"], &[]),
            factor("rate", &["10k", "100k", "200k"], &[]),
        ];
        let cells = combinations(DesignKind::Factorial, &factors, &Levels::new(), &[]);
        // The second seed: 2 x 4 x 3.
        assert_eq!(cells.len(), 24);
        assert_eq!(cells[0], levels(&[("smt", "on"), ("idle", "all"), ("rate", "10k")]));
        assert_eq!(cells[1], levels(&[("smt", "on"), ("idle", "all"), ("rate", "100k")]));
        assert_eq!(cells[23], levels(&[("smt", "off"), ("idle", "none"), ("rate", "200k")]));
        assert_eq!(combinations(DesignKind::Factorial, &[], &Levels::new(), &[]), [Levels::new()]);
    }

    #[test]
    fn one_at_a_time_goes_around_the_baseline() {
        let factors = [
            factor("smt", &["on", "off"], &[]),
            factor("idle", &["all", "c1e", "c1", "none"], &[]),
        ];
        let cells =
            combinations(DesignKind::OneAtATime, &factors, &levels(&[("idle", "none")]), &[]);
        // The baseline, one other level of smt, three others of idle.
        assert_eq!(cells.len(), 5);
        assert_eq!(cells[0], levels(&[("smt", "on"), ("idle", "none")]));
        assert!(cells.contains(&levels(&[("smt", "off"), ("idle", "none")])));
        assert!(!cells.contains(&levels(&[("smt", "off"), ("idle", "all")])));
    }

    #[test]
    fn a_list_is_taken_as_it_is_but_for_doubles() {
        let one = levels(&[("smt", "on")]);
        let list = [one.clone(), levels(&[("smt", "off"), ("idle", "c1")]), one.clone()];
        let cells = combinations(DesignKind::List, &[], &Levels::new(), &list);
        assert_eq!(cells, list[..2]);
    }

    #[test]
    fn a_nested_factor_varies_only_where_it_may() {
        let factors = [
            factor("rate", &["1", "2"], &[("store", &["memcached"])]),
            factor("burst", &["a", "b"], &[("rate", &["2"])]),
            factor("cache", &["x"], &[("workload", &["ycsb-c"])]),
        ];
        let cell = levels(&[("rate", "2"), ("burst", "a"), ("cache", "x")]);
        let at = |store, workload| effective(&factors, &cell, store, workload);
        assert_eq!(at("memcached", Some("ycsb-c")), cell);
        assert_eq!(at("memcached", Some("etc")), levels(&[("rate", "2"), ("burst", "a")]));
        // What hangs on a factor that does not vary does not vary either.
        assert_eq!(at("redis", Some("ycsb-c")), levels(&[("cache", "x")]));
        assert_eq!(at("redis", None), Levels::new());
        let slow = levels(&[("rate", "1"), ("burst", "a")]);
        assert_eq!(effective(&factors, &slow, "memcached", None), levels(&[("rate", "1")]));
    }

    proptest! {
        /// Whatever the levels: the product, no cell twice, every level as often as the others.
        #[test]
        fn a_factorial_is_balanced(sizes in proptest::collection::vec(1..5_usize, 0..5)) {
            let factors = factors(&sizes);
            let cells = combinations(DesignKind::Factorial, &factors, &Levels::new(), &[]);
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
            let cells = combinations(DesignKind::OneAtATime, &factors, &Levels::new(), &[]);
            prop_assert_eq!(cells.len(), 1 + sizes.iter().map(|size| size - 1).sum::<usize>());
            for cell in &cells {
                let moved = cell.iter().filter(|(name, level)| cells[0][*name] != **level).count();
                prop_assert!(moved <= 1);
            }
        }
    }
}
