//! How often chance alone gives a verdict, and how often a true difference is found. The seeds
//! are fixed: these give the same counts for ever.

mod synthetic;

use analyse::{ComparedMetric, Verdict, compare};
use model::Run;
use synthetic::{Random, run};

const TRIALS: usize = 400;

fn throughput_verdict(a: &[Run], b: &[Run]) -> Verdict {
    let (a, b): (Vec<&Run>, Vec<&Run>) = (a.iter().collect(), b.iter().collect());
    let result = compare(&a, &b).expect("both sides have valid runs");
    let mut contrasts = result.cells[0].contrasts.iter();
    contrasts
        .find(|contrast| contrast.metric == ComparedMetric::Throughput)
        .expect("a throughput")
        .verdict
}

/// `n` repeats that vary by `noise` around `rate`.
fn repeats(store: &str, n: usize, rate: f64, noise: f64, random: &mut Random) -> Vec<Run> {
    (0..n)
        .map(|i| {
            let rate = rate * (1.0 + noise * random.normal());
            run(&format!("{store}{i}"), &[("store", store), ("workload", "w")], rate, 1e4, 1)
        })
        .collect()
}

/// One run whose rate moves as a first-order autoregression from second to second.
fn wandering(store: &str, seconds: usize, rate: f64, alike: f64, random: &mut Random) -> Run {
    let pairs = [("store", store), ("workload", "w")];
    let mut made = run(store, &pairs, rate, 1e4, seconds);
    let mut state = random.normal();
    made.operations = 0;
    for point in &mut made.series {
        point.operations = (rate * (1.0 + 0.05 * state)) as u64;
        made.operations += point.operations;
        state = alike * state + (1.0 - alike * alike).sqrt() * random.normal();
    }
    made
}

/// Shares of `better` or `worse`, and of `not enough data`.
fn shares(mut trial: impl FnMut(&mut Random) -> (Vec<Run>, Vec<Run>), seed: u64) -> (f64, f64) {
    let mut random = Random::new(seed);
    let (mut told, mut untold) = (0, 0);
    for _ in 0..TRIALS {
        let (a, b) = trial(&mut random);
        match throughput_verdict(&a, &b) {
            Verdict::Better | Verdict::Worse => told += 1,
            Verdict::NoDifference | Verdict::Different => {}
            Verdict::NotEnoughData | Verdict::OtherWork => untold += 1,
        }
    }
    (f64::from(told) / TRIALS as f64, f64::from(untold) / TRIALS as f64)
}

#[test]
fn equal_repeats_differ_by_chance_in_5_percent() {
    // Welch is cautious with few repeats: with two its rate lies below 5 %.
    for (n, least, most) in
        [(2, 0.0, 0.065), (3, 0.015, 0.07), (5, 0.025, 0.075), (10, 0.03, 0.075)]
    {
        let same = |random: &mut Random| {
            (repeats("a", n, 1e5, 0.03, random), repeats("b", n, 1e5, 0.03, random))
        };
        let (told, untold) = shares(same, 11);
        assert!((least..=most).contains(&told), "{n} repeats: {told}");
        assert_eq!(untold, 0.0);
    }
}

#[test]
fn equal_single_runs_seldom_differ_despite_autocorrelation() {
    for seconds in [10, 20, 60, 200] {
        for alike in [0.0, 0.3, 0.6, 0.8] {
            let same = |random: &mut Random| {
                let a = wandering("a", seconds, 1e5, alike, random);
                (vec![a], vec![wandering("b", seconds, 1e5, alike, random)])
            };
            let (told, untold) = shares(same, 12);
            let what = format!("{seconds} s, autocorrelation {alike}: {told}, {untold} untold");
            assert!(told <= 0.07, "{what}");
            // Where neighbours hardly matter and the series is not the shortest, it does tell.
            if alike <= 0.3 && seconds >= 20 {
                assert!(told >= 0.01 && untold < 0.25, "{what}");
            }
        }
    }
}

#[test]
fn a_true_difference_of_10_percent_is_found() {
    let differ = |random: &mut Random| {
        (repeats("a", 3, 1e5, 0.02, random), repeats("b", 3, 1.1e5, 0.02, random))
    };
    let (told, _) = shares(differ, 13);
    assert!(told > 0.9, "three repeats: {told}");
    let differ = |random: &mut Random| {
        let a = wandering("a", 60, 1e5, 0.3, random);
        (vec![a], vec![wandering("b", 60, 1.1e5, 0.3, random)])
    };
    let (told, _) = shares(differ, 14);
    assert!(told > 0.9, "one run: {told}");
}
