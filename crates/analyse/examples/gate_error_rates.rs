//! How often a gate fails without a change, and finds a change of 5 %, at a threshold of no change:
//! by Welch's t on logarithms, which it uses, by Yuen's on trimmed means, and by permutation. Prints
//! the table of `docs/decisions/0022-a-gate-proves.md`.
//!
//! `cargo run --release --package analyse --example gate_error_rates`

// An example panics where its premises fail.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::collections::BTreeMap;

use analyse::effect::{CellObservations, main_effects};
use analyse::gate::{GATE_CONFIDENCE, GateOutcome, GateRequest, gate};
use analyse::{compare, holm};
use model::Run;
use synthetic::{Random, run};

const TRIALS: usize = 10_000;
/// Of the tests by permutation, which take long.
const PERMUTED: usize = 2_000;
const CHANGE: f64 = 1.05;
/// One-sided.
const LEVEL: f64 = (1.0 - GATE_CONFIDENCE) / 2.0;
/// Of permutations, where they are too many for all.
const DRAWS: usize = 2_000;

/// What values vary by around 1, `cv` in relation to them.
type Draw = fn(f64, &mut Random) -> f64;

const KINDS: [(&str, Draw); 3] = [
    ("normal", |cv, random| (1.0 + cv * random.normal()).max(0.01)),
    ("log-normal", |cv, random| ((cv * cv).ln_1p().sqrt() * random.normal()).exp()),
    ("normal, 10 % outliers of +20 %", |cv, random| {
        let value = (1.0 + cv * random.normal()).max(0.01);
        if random.share() < 0.1 { value * 1.2 } else { value }
    }),
];

/// Sums of a side's logarithms, for Welch's statistic.
fn welch(a: &[f64], b: &[f64]) -> f64 {
    let of = |side: &[f64]| {
        let n = side.len() as f64;
        let mean = side.iter().sum::<f64>() / n;
        let squares: f64 = side.iter().map(|x| (x - mean) * (x - mean)).sum();
        (mean, squares / (n - 1.0) / n)
    };
    let ((a, of_a), (b, of_b)) = (of(a), of(b));
    (b - a) / (of_a + of_b).sqrt()
}

/// Whether B is larger by the gate itself.
fn by_gate(template: &Run, a: &[f64], b: &[f64], request: &GateRequest) -> bool {
    let side = |name: &str, values: &[f64]| -> Vec<Run> {
        let made = values.iter().enumerate().map(|(i, value)| {
            let mut run = template.clone();
            run.id = format!("{name}{i}");
            run.settings.insert("store".to_owned(), name.to_owned());
            run.operations = (value * 1e9) as u64;
            run
        });
        made.collect()
    };
    let (a, b) = (side("a", a), side("b", b));
    let (a, b): (Vec<&Run>, Vec<&Run>) = (a.iter().collect(), b.iter().collect());
    let judged = gate(&compare(&a, &b).unwrap(), &a, &b, request).unwrap();
    judged.outcome() == GateOutcome::Failed
}

fn by_trimmed_means(a: &[f64], b: &[f64]) -> bool {
    let cell = |level: &str, values: &[f64]| CellObservations {
        at: BTreeMap::from([("side".to_owned(), level.to_owned())]),
        values: values.to_vec(),
    };
    let cells = [cell("a", a), cell("b", b)];
    let size = &main_effects(&cells, "side", &[], 0.0).unwrap()[0].size;
    let p = holm(&[size.p.unwrap()])[0];
    size.value > 1.0 && p / 2.0 < LEVEL
}

/// Welch's statistic among those of all exchanges of the sides, or of 2,000 of them.
fn by_permutation(a: &[f64], b: &[f64], random: &mut Random) -> bool {
    let logs = |side: &[f64]| side.iter().map(|x| x.ln()).collect::<Vec<f64>>();
    let (a, b) = (logs(a), logs(b));
    let found = welch(&a, &b);
    let mut all = [a.clone(), b].concat();
    let n = a.len();
    let (mut as_large, mut tried) = (0_usize, 0_usize);
    if n <= 5 {
        for mask in 0_u32..1 << all.len() {
            if mask.count_ones() as usize != n {
                continue;
            }
            let of = |bit: u32| {
                let chosen = (0..all.len()).filter(|i| mask >> i & 1 == bit);
                chosen.map(|i| all[i]).collect::<Vec<f64>>()
            };
            tried += 1;
            as_large += usize::from(welch(&of(1), &of(0)) >= found - 1e-12);
        }
    } else {
        // The data themselves are one of the permutations.
        (as_large, tried) = (1, 1);
        for _ in 0..DRAWS {
            for i in (1..all.len()).rev() {
                all.swap(i, (random.share() * (i + 1) as f64) as usize);
            }
            tried += 1;
            as_large += usize::from(welch(&all[..n], &all[n..]) >= found - 1e-12);
        }
    }
    (as_large as f64 / tried as f64) < LEVEL
}

fn main() {
    let mut template = run("a", &[("store", "a"), ("workload", "w")], 1e9, 1e4, 1);
    template.series.clear();
    template.latencies = Vec::new().into();
    template.readings.clear();
    let conditions = vec!["throughput_ops_s > 0%".parse().unwrap()];
    let request = GateRequest { conditions, confidence: GATE_CONFIDENCE };
    println!("| values | repeats | cv | Welch | trimmed | permutation |");
    println!("|---|---|---|---|---|---|");
    for (kind, draw) in KINDS {
        for n in [3, 5, 9] {
            for cv in [0.01, 0.03, 0.1] {
                let mut random = Random::new(n as u64 * 1000 + (cv * 100.0) as u64);
                let mut shares = [[0.0; 3]; 2];
                for (row, change) in [1.0, CHANGE].into_iter().enumerate() {
                    for trial in 0..TRIALS {
                        let a: Vec<f64> = (0..n).map(|_| draw(cv, &mut random)).collect();
                        let b: Vec<f64> = (0..n).map(|_| change * draw(cv, &mut random)).collect();
                        let permuted = trial < PERMUTED;
                        let found = [
                            by_gate(&template, &a, &b, &request),
                            by_trimmed_means(&a, &b),
                            permuted && by_permutation(&a, &b, &mut random),
                        ];
                        let of = [TRIALS, TRIALS, PERMUTED];
                        for (at, found) in found.into_iter().enumerate() {
                            shares[row][at] += 100.0 * f64::from(u8::from(found)) / of[at] as f64;
                        }
                    }
                }
                let [without, with] = shares;
                let cell = |at: usize| format!("{:.2} / {:.1}", without[at], with[at]);
                println!(
                    "| {kind} | {n} | {:.0} % | {} | {} | {} |",
                    cv * 100.0,
                    cell(0),
                    cell(1),
                    cell(2)
                );
            }
        }
    }
}
