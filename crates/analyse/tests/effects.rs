//! Effects that are known, found among simulated repeats. The seeds are fixed: these give the
//! same counts for ever.

// Helpers of tests panic as tests do.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod synthetic;

use std::collections::BTreeMap;

use analyse::effect::{CellObservations, interactions, main_effects};
use analyse::holm;
use synthetic::Random;

const TRIALS: usize = 1000;

/// How the repeats of a cell vary around its truth.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// Log-normal, the same everywhere.
    Even(f64),
    /// Log-normal, four times as wide where `idle` is not the first level.
    Uneven(f64),
    /// As `Even`, and one value in fifteen is three times as large.
    Disturbed(f64),
}

/// SMT x idle x rate, 2 x 3 x 2, whose truth is a product of effects.
fn simulated(
    n: usize,
    smt: f64,
    together: f64,
    noise: Noise,
    random: &mut Random,
) -> Vec<CellObservations> {
    let mut cells = Vec::new();
    for i in 0..12 {
        let (s, idle, rate) = (i % 2, i / 2 % 3, i / 6);
        let mut truth = 100.0 * [1.0, smt][s] * [1.0, 1.3, 2.0][idle] * [1.0, 5.0][rate];
        if s == 1 && idle == 1 {
            truth *= together;
        }
        let value = |random: &mut Random| {
            let sd = match noise {
                Noise::Even(sd) | Noise::Disturbed(sd) => sd,
                Noise::Uneven(sd) => sd * if idle > 0 { 4.0 } else { 1.0 },
            };
            let disturbed = matches!(noise, Noise::Disturbed(_)) && random.share() < 1.0 / 15.0;
            truth * (sd * random.normal()).exp() * if disturbed { 3.0 } else { 1.0 }
        };
        let at = [("smt", s), ("idle", idle), ("rate", rate)];
        cells.push(CellObservations {
            at: at.map(|(name, level)| (name.to_owned(), level.to_string())).into(),
            values: (0..n).map(|_| value(random)).collect(),
        });
    }
    cells
}

/// Shares of trials in which the interval of SMT's effect covers the truth, in which the
/// effect is told from none, and the same of the interaction with the idle states.
fn counted(n: usize, smt: f64, together: f64, noise: Noise, seed: u64) -> [f64; 4] {
    let mut random = Random::new(seed);
    let mut counts = [0; 4];
    // The interaction is in one of three idle states, so in the mean a third of it is SMT's.
    let of_smt = smt * f64::powf(together, 1.0 / 3.0);
    for _ in 0..TRIALS {
        let cells = simulated(n, smt, together, noise, &mut random);
        let main = &main_effects(&cells, "smt", &[], 0.0).unwrap()[0].size;
        let both = &interactions(&cells, ("smt", &[]), ("idle", &[]), 0.0).unwrap()[0].size;
        let covers = |size: &analyse::effect::EffectSize, truth| {
            usize::from(size.interval.as_ref().unwrap().covers(truth))
        };
        counts[0] += covers(main, of_smt);
        counts[1] += usize::from(main.p.unwrap() < 0.05);
        counts[2] += covers(both, together);
        counts[3] += usize::from(both.p.unwrap() < 0.05);
    }
    counts.map(|count| count as f64 / TRIALS as f64)
}

#[test]
fn intervals_cover_the_truth_where_cells_vary_alike_and_where_not() {
    for noise in [Noise::Even(0.03), Noise::Uneven(0.03)] {
        for n in [2, 3, 5, 9] {
            let [main, _, both, _] = counted(n, 1.1, 1.2, noise, 21);
            println!("{noise:?}, {n} repeats: {main} and {both}");
            assert!((0.93..=0.985).contains(&main), "{noise:?}, {n} repeats: {main}");
            assert!((0.93..=0.995).contains(&both), "{noise:?}, {n} repeats: {both}");
        }
    }
}

#[test]
fn false_effects_occur_in_5_percent() {
    for noise in [Noise::Even(0.03), Noise::Uneven(0.03), Noise::Disturbed(0.03)] {
        for n in [2, 3, 5, 9] {
            let [_, main, _, both] = counted(n, 1.0, 1.0, noise, 22);
            println!("{noise:?}, {n} repeats: {main} and {both}");
            assert!(main <= 0.07 && both <= 0.07, "{noise:?}, {n} repeats: {main} {both}");
        }
    }
}

#[test]
fn a_true_effect_is_found_in_spite_of_disturbed_repeats() {
    // Plain means would find 80 % and 29 % of the disturbed ones.
    for (noise, least) in [(Noise::Even(0.05), [0.99, 0.99]), (Noise::Disturbed(0.05), [0.85, 0.5])]
    {
        let [_, main, _, both] = counted(9, 1.1, 1.2, noise, 23);
        println!("{noise:?}: {main} and {both}");
        assert!(main >= least[0] && both >= least[1], "{noise:?}: {main} {both}");
    }
}

#[test]
fn holm_bounds_the_error_of_all_comparisons() {
    let mut random = Random::new(24);
    let (mut plain, mut corrected) = (0, 0);
    for _ in 0..TRIALS {
        // Ten factors that do nothing, five repeats of two levels each.
        let p: Vec<f64> = (0..10)
            .map(|_| {
                let cell = |level: &str, random: &mut Random| CellObservations {
                    at: BTreeMap::from([("x".to_owned(), level.to_owned())]),
                    values: (0..5).map(|_| (0.05 * random.normal()).exp()).collect(),
                };
                let cells = [cell("a", &mut random), cell("b", &mut random)];
                main_effects(&cells, "x", &[], 0.0).unwrap()[0].size.p.unwrap()
            })
            .collect();
        plain += usize::from(p.iter().any(|p| *p < 0.05));
        corrected += usize::from(holm(&p).iter().any(|p| *p < 0.05));
    }
    let (plain, corrected) = (plain as f64 / TRIALS as f64, corrected as f64 / TRIALS as f64);
    println!("any of ten: {plain}, corrected {corrected}");
    assert!(plain > 0.25 && corrected <= 0.06, "{plain} {corrected}");
}
