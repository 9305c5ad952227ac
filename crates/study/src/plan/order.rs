//! The order of runs: from the recorded seed, repeat by repeat, and within a repeat in blocks of
//! what is expensive to change.

use model::random::{Draws, below};

/// Whether two units agree in something that is expensive to change.
pub(super) type Agree<U> = fn(&U, &U) -> bool;

/// Every unit once in each repeat, as (unit, repeat). Units that agree in the first of `costly`
/// stay together, within them those that agree in the second, and so on.
///
/// No repeat begins before the one before it has had every unit: what drifts over the hours meets
/// all cells alike, and an execution that ends early has lost repeats and no cell.
///
/// Within a repeat the blocks come in random order, and what is in them, too. The same seed
/// gives the same order.
pub(super) fn order<U>(
    units: &[U],
    costly: &[Agree<U>],
    repeats: u32,
    seed: u64,
) -> Vec<(usize, u32)> {
    let mut draws = Draws::from(seed);
    let mut all = Vec::new();
    for repeat in 1..=repeats {
        let within = blocks(units, (0..units.len()).collect(), costly, &mut draws);
        all.extend(within.into_iter().map(|unit| (unit, repeat)));
    }
    all
}

fn blocks<U>(
    units: &[U],
    mut some: Vec<usize>,
    costly: &[Agree<U>],
    draws: &mut Draws,
) -> Vec<usize> {
    let Some((agree, rest)) = costly.split_first() else {
        shuffle(&mut some, draws);
        return some;
    };
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for unit in some {
        let same = |part: &&mut Vec<usize>| agree(&units[part[0]], &units[unit]);
        match parts.iter_mut().find(same) {
            Some(part) => part.push(unit),
            None => parts.push(vec![unit]),
        }
    }
    shuffle(&mut parts, draws);
    parts.into_iter().flat_map(|part| blocks(units, part, rest, draws)).collect()
}

/// Fisher-Yates.
fn shuffle<T>(items: &mut [T], draws: &mut Draws) {
    for i in (1..items.len()).rev() {
        items.swap(i, below(draws.next(), i as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const COSTLY: [Agree<[String; 2]>; 2] = [|a, b| a[0] == b[0], |a, b| a[1] == b[1]];

    /// 2 x 2 knob levels, 2 data sets and 3 rates: 24 units.
    fn units() -> Vec<[String; 2]> {
        let mut units = Vec::new();
        for knobs in ["on,all", "on,none", "off,all", "off,none"] {
            for data in ["small", "large"] {
                for _rate in 0..3 {
                    units.push([knobs.to_owned(), data.to_owned()]);
                }
            }
        }
        units
    }

    /// How often something changes from one unit to the next, the first included.
    fn changes(units: &[[String; 2]], order: &[(usize, u32)], depth: usize) -> usize {
        let mut last = None;
        let mut count = 0;
        for (unit, _) in order {
            let now = Some(&units[*unit][..=depth]);
            count += usize::from(now != last);
            last = now;
        }
        count
    }

    #[test]
    fn expensive_settings_change_once_a_block() {
        let units = units();
        let order = order(&units, &COSTLY, 9, 7);
        assert_eq!(order.len(), 24 * 9);
        // Four sets of levels in each of nine repeats, and two data sets in each of those; where
        // a repeat begins with what the last one ended with, nothing changes.
        let knobs = changes(&units, &order, 0);
        assert!((28..=36).contains(&knobs), "{knobs}");
        let data = changes(&units, &order, 1);
        assert!((64..=72).contains(&data), "{data}");
    }

    #[test]
    fn the_seed_determines_the_order() {
        let units = units();
        assert_eq!(order(&units, &COSTLY, 3, 1), order(&units, &COSTLY, 3, 1));
        assert!((2..5).all(|seed| order(&units, &COSTLY, 3, seed) != order(&units, &COSTLY, 3, 1)));
        // Repeats have orders of their own.
        let of = |repeat: u32| -> Vec<usize> {
            order(&units, &COSTLY, 3, 1)
                .into_iter()
                .filter(|(_, r)| *r == repeat)
                .map(|(u, _)| u)
                .collect()
        };
        assert_ne!(of(1), of(2));
    }

    proptest! {
        #[test]
        fn every_unit_is_in_every_repeat_before_the_next_begins(
            keys in proptest::collection::vec((0..4_u8, 0..3_u8), 1..30),
            repeats in 1..6_u32,
            seed in any::<u64>(),
        ) {
            let units: Vec<[String; 2]> =
                keys.iter().map(|(a, b)| [a.to_string(), b.to_string()]).collect();
            let order = order(&units, &COSTLY, repeats, seed);
            prop_assert_eq!(order.len(), units.len() * repeats as usize);
            for (n, chunk) in order.chunks(units.len()).enumerate() {
                prop_assert!(chunk.iter().all(|(_, repeat)| *repeat == n as u32 + 1));
                let seen: BTreeSet<usize> = chunk.iter().map(|(unit, _)| *unit).collect();
                prop_assert_eq!(seen.len(), units.len());
                let kinds: BTreeSet<&String> = units.iter().map(|unit| &unit[0]).collect();
                prop_assert_eq!(changes(&units, chunk, 0), kinds.len());
                let kinds: BTreeSet<&[String; 2]> = units.iter().collect();
                prop_assert_eq!(changes(&units, chunk, 1), kinds.len());
            }
        }
    }
}
