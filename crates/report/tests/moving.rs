//! A page of a run whose rate moves.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, unused_imports)]
mod sample;

use model::{Origin, Scope, Series, Unit};
use report::html;

#[test]
fn a_load_that_moves_is_drawn_and_said() {
    let mut study = sample::study();
    study.truncate(1);
    let runs = &mut study[0].1;
    let open =
        |run: &&mut model::Run| matches!(run.pacing, model::LoopKind::Open { .. }) && run.valid();
    let run = runs.iter_mut().find(open).unwrap();
    let template = run.series[0];
    run.series.clear();
    run.samples.clear();
    run.seconds = 40.0;
    let ends: Vec<f64> = (1..=40).map(f64::from).collect();
    let offered: Vec<f64> = ends.iter().map(|at| 20e3 - 10e3 * (at / 20.0 - 1.0).abs()).collect();
    for (at_s, rate) in ends.iter().zip(&offered) {
        let slower = if *at_s > 20.0 { 2 } else { 1 };
        run.series.push(model::SeriesPoint {
            at_s: *at_s,
            seconds: 1.0,
            operations: *rate as u64,
            p50_ns: 50_000 * slower,
            p99_ns: 100_000 * slower,
            ..template
        });
    }
    let series = |signal: &str, unit, origin, values: Vec<f64>| Series {
        signal: signal.to_owned(),
        unit,
        scope: Scope::Client,
        source: String::new(),
        origin,
        at_s: ends.clone(),
        values,
    };
    let watts = vec![30.0; ends.len()];
    run.samples.push(series("client.offered_rate", Unit::OpsPerSecond, Origin::Modelled, offered));
    run.samples.push(series("power.package", Unit::Watts, Origin::Measured, watts));
    let page = html::page(&study);
    for words in [
        "offered (by the profile)",
        ">answered<",
        "offered, ops/s",
        "while the load fell, ",
        "at p50 and 200 µs at p99, +100 % and +100 % against 50.0 µs and 100 µs while it rose",
        "mJ rising and",
        "(power.package)",
        "offered 15.00 kops/s",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // It is not drawn a second time among the samples.
    assert_eq!(page.matches("client.offered_rate").count(), 0);
}
