//! Warnings on the hit ratio: a run that mostly misses measures misses.

use drive::PhaseOutcome;
use model::{Op, Phase};
use store::Statistic;

use crate::load_step::LoadStep;

/// Tolerated difference to the workload's hit ratio.
const NOTABLE: f64 = 0.01;
/// Where misses are part of the workload (a trace, deletes, refill) and no hit ratio is given, a
/// warning is given below this ratio.
const MOSTLY: f64 = 0.5;
/// Required significance, in standard deviations of a binomial share.
const DEVIATIONS: f64 = 4.0;
/// Share of records evicted during a load from which a warning is given.
const NOTABLE_EVICTIONS: f64 = 0.001;

/// A warning on the reads of a run without an expected hit ratio.
pub(crate) fn doubt(step: LoadStep<'_>, outcome: &PhaseOutcome) -> Option<String> {
    let ratio = outcome.hit_ratio()?;
    // Missing keys are reported as failures.
    if step.phase() != Phase::Measure
        || outcome.missing > 0
        || step.load.load_config.expected_hit_ratio.is_some()
    {
        return None;
    }
    let keys = (outcome.hits + outcome.misses) as f64;
    let expected = expected_ratio(step, outcome);
    let open = step.activity.trace().is_some()
        || step.load.workload.refill
        || step.load.workload.mix.contains(Op::Delete)
        || step.load.workload.ttl.is_some();
    let least = if open { MOSTLY * expected } else { expected - NOTABLE };
    let chance = DEVIATIONS * (expected * (1.0 - expected) / keys).sqrt();
    (ratio < least - chance).then(|| {
        let of_expected = match step.activity.trace() {
            Some(_) => String::new(),
            None => format!("; the workload's is {expected:.3}"),
        };
        format!(
            "{:.1} % of the keys read were missing (hit ratio {ratio:.3}{of_expected}), so \
             throughput and latency are largely those of misses; give the store more memory, warm \
             it up or refill it, or state the expected hit ratio with --expect-hit-ratio \
             (`measure.expect_hit_ratio` of a study)",
            (1.0 - ratio) * 100.0
        )
    })
}

/// The hit ratio if the store kept everything; 1 where it is not known, for traces and deletes.
fn expected_ratio(step: LoadStep<'_>, outcome: &PhaseOutcome) -> f64 {
    let keys = outcome.counts[Op::Read] as f64 * f64::from(step.load.workload.multi_get.max(1));
    let others = outcome.counts[Op::ReadModifyWrite] as f64;
    match step.activity.trace() {
        None if keys + others > 0.0 => {
            (keys * step.load.workload.hit_ratio + others) / (keys + others)
        }
        _ => 1.0,
    }
}

/// A warning where the store evicted records during a load.
pub(crate) fn lost_loading(
    step: LoadStep<'_>,
    outcome: &PhaseOutcome,
    before: &[Statistic],
    after: &[Statistic],
) -> Option<String> {
    let total = |all: &[Statistic]| {
        all.iter().find(|one| one.name == "evictions.total").map(|one| one.value)
    };
    let evicted = total(after)? - total(before).unwrap_or(0.0);
    let loaded = outcome.changes.inserted as f64;
    (step.phase() == Phase::Load && evicted > NOTABLE_EVICTIONS * loaded).then(|| {
        format!(
            "the store evicted {evicted:.0} records while {loaded:.0} were loaded: not all of the \
             data is in it; give it more memory, or load less"
        )
    })
}

#[cfg(test)]
mod tests {
    use model::Pacing;
    use model::{PerOp, ShareRange};
    use store::StoreUrl;
    use workload::{Mix, WorkloadSpec};

    use super::*;
    use study::LoadConfig;
    use study::TraceSource;
    use study::{Activity, Step, StoreLoad, step};

    fn step_of(change: impl FnOnce(&mut WorkloadSpec)) -> Step {
        let store: StoreUrl = "memcached://localhost".parse().unwrap();
        let mut spec = WorkloadSpec::preset("ycsb-c").unwrap();
        change(&mut spec);
        let load_config = LoadConfig::closed(1);
        assert!(matches!(load_config.shape.pacing, Pacing::Closed { .. }));
        step((&store, None), "w", &spec, Phase::Measure, &load_config, (1, 0, 1)).unwrap()
    }

    fn of(step: &Step) -> LoadStep<'_> {
        LoadStep::of(step).unwrap()
    }

    fn load_of(step: &Step) -> Box<StoreLoad> {
        Box::new(of(step).load.clone())
    }

    fn outcome_of(hits: u64, misses: u64) -> PhaseOutcome {
        let counts = PerOp::from_fn(|op| if op == Op::Read { hits + misses } else { 0 });
        PhaseOutcome { hits, misses, counts, ..PhaseOutcome::default() }
    }

    #[test]
    fn mostly_missing_runs_give_a_warning() {
        let plain = step_of(|_| {});
        assert_eq!(doubt(of(&plain), &outcome_of(1000, 0)), None);
        assert_eq!(doubt(of(&plain), &outcome_of(995, 5)), None);
        let words = doubt(of(&plain), &outcome_of(14_691, 177_753)).unwrap();
        assert!(words.contains("92.4 %") && words.contains("hit ratio 0.076"), "{words}");
        assert!(
            words.contains("workload's is 1.000") && words.contains("--expect-hit-ratio"),
            "{words}"
        );
        assert!(doubt(of(&plain), &outcome_of(980, 20)).is_some());
    }

    #[test]
    fn misses_of_the_workload_give_no_warning() {
        let half = step_of(|spec| spec.hit_ratio = 0.5);
        assert_eq!(doubt(of(&half), &outcome_of(5000, 5000)), None);
        // Within chance for so few, and far beyond it for many.
        assert_eq!(doubt(of(&half), &outcome_of(45, 55)), None);
        assert!(doubt(of(&half), &outcome_of(45_000, 55_000)).is_some());
        let refill = step_of(|spec| spec.refill = true);
        assert_eq!(doubt(of(&refill), &outcome_of(700, 300)), None);
        assert!(doubt(of(&refill), &outcome_of(300, 700)).is_some());
        let deletes = step_of(|spec| spec.mix = Mix::parse("read=0.5,delete=0.5").unwrap());
        assert_eq!(doubt(of(&deletes), &outcome_of(700, 300)), None);
        let mut expected = step_of(|_| {});
        expected.activity.load_mut().unwrap().load_config.expected_hit_ratio =
            Some(ShareRange { low: 0.0, high: 0.2 });
        assert_eq!(doubt(of(&expected), &outcome_of(100, 900)), None);
    }

    #[test]
    fn mostly_missing_replays_give_a_warning() {
        let trace = TraceSource {
            file: "trace".into(),
            bytes: None,
            modified: None,
            compressibility: 0.0,
            refill: false,
            header: None,
            options: workload::trace::TraceOptions::default(),
            format: None,
        };
        let mut traced = step_of(|_| {});
        traced.activity = Activity::Replay(load_of(&traced), trace);
        assert_eq!(doubt(of(&traced), &outcome_of(600, 400)), None);
        let words = doubt(of(&traced), &outcome_of(100, 900)).unwrap();
        assert!(words.contains("90.0 %") && !words.contains("workload's"), "{words}");
    }

    #[test]
    fn missing_keys_are_failures_not_misses() {
        let outcome = PhaseOutcome { missing: 985, ..outcome_of(1015, 0) };
        assert_eq!(doubt(of(&step_of(|_| {})), &outcome), None);
        assert!((outcome.hit_ratio().unwrap() - 0.5075).abs() < 1e-12);
    }

    #[test]
    fn a_load_that_does_not_fit_gives_a_warning() {
        let mut load = step_of(|_| {});
        load.activity = Activity::Load(load_of(&load));
        let mut outcome = PhaseOutcome::default();
        outcome.changes.inserted = 1000;
        let at = |value| {
            let name = "evictions.total".to_owned();
            vec![Statistic { name, value, unit: model::Unit::Count }]
        };
        assert_eq!(lost_loading(of(&load), &outcome, &at(5.0), &at(5.0)), None);
        assert_eq!(lost_loading(of(&load), &outcome, &[], &[]), None);
        let words = lost_loading(of(&load), &outcome, &at(5.0), &at(505.0)).unwrap();
        assert!(words.contains("evicted 500 records while 1000"), "{words}");
    }
}
