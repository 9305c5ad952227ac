//! Whether a run's reads found what they asked for: a run that mostly misses measures misses.

use drive::PhaseOutcome;
use model::Op;
use record::Phase;
use store::Statistic;

use crate::plan::Step;

/// A hit ratio so far below the one that the workload asks for is one that nobody asked for.
const NOTABLE: f64 = 0.01;
/// Where misses belong to what is asked (a trace, deletes, refill), and how many do nobody has
/// said, a run of which the greater part of the reads miss is worth a word.
const MOSTLY: f64 = 0.5;
/// And more than chance, in standard deviations of a binomial share.
const DEVIATIONS: f64 = 4.0;
/// A load of which the store dropped a larger share while it went on is not what was loaded.
const NOTABLE_EVICTIONS: f64 = 0.001;

/// What a reader should know of the reads of a run for which no hit ratio was expected.
pub(crate) fn doubt(step: &Step, outcome: &PhaseOutcome) -> Option<String> {
    let ratio = outcome.hit_ratio()?;
    // That keys are gone that had to be there is a failure, and said as one.
    if step.phase != Phase::Measure || outcome.missing > 0 || step.manner.expects_hits.is_some() {
        return None;
    }
    let keys = (outcome.hits + outcome.misses) as f64;
    let asked = asked_for(step, outcome);
    let open =
        step.trace.is_some() || step.workload.refill || step.workload.mix.contains(Op::Delete);
    let least = if open { MOSTLY * asked } else { asked - NOTABLE };
    let chance = DEVIATIONS * (asked * (1.0 - asked) / keys).sqrt();
    (ratio < least - chance).then(|| {
        let of_asked = match step.trace {
            Some(_) => String::new(),
            None => format!(", where the workload asks for {asked:.3}"),
        };
        format!(
            "{:.1} % of the keys that reads asked for were not there (hit ratio {ratio:.3}\
             {of_asked}): throughput and latency are largely those of misses; give the store more \
             memory than the data takes, warm it up or refill it, or say which hit ratio is meant \
             with --expect-hit-ratio (`measure.expect_hit_ratio` of a study)",
            (1.0 - ratio) * 100.0
        )
    })
}

/// The hit ratio if the store had all that was written: of a trace and of deletes nobody knows.
fn asked_for(step: &Step, outcome: &PhaseOutcome) -> f64 {
    let keys = outcome.counts[Op::Read] as f64 * f64::from(step.workload.multi_get.max(1));
    let others = outcome.counts[Op::ReadModifyWrite] as f64;
    match step.trace {
        None if keys + others > 0.0 => (keys * step.workload.hit_ratio + others) / (keys + others),
        _ => 1.0,
    }
}

/// What a reader should know of a load from which the store dropped records while it went on.
pub(crate) fn lost_loading(
    step: &Step,
    outcome: &PhaseOutcome,
    before: &[Statistic],
    after: &[Statistic],
) -> Option<String> {
    let total = |all: &[Statistic]| {
        all.iter().find(|one| one.name == "evictions.total").map(|one| one.value)
    };
    let evicted = total(after)? - total(before).unwrap_or(0.0);
    let loaded = outcome.changes.inserted as f64;
    (step.phase == Phase::Load && evicted > NOTABLE_EVICTIONS * loaded).then(|| {
        format!(
            "the store evicted {evicted:.0} records while {loaded:.0} were loaded: not all of the \
             data is in it; give it more memory, or load less"
        )
    })
}

#[cfg(test)]
mod tests {
    use drive::Pacing;
    use model::{PerOp, ShareRange};
    use store::StoreUrl;
    use workload::{Mix, WorkloadSpec};

    use super::*;
    use crate::asking::LoadConfig;
    use crate::plan::step;
    use crate::trace::TraceSource;

    fn step_of(change: impl FnOnce(&mut WorkloadSpec)) -> Step {
        let store: StoreUrl = "memcached://localhost".parse().unwrap();
        let mut spec = WorkloadSpec::preset("ycsb-c").unwrap();
        change(&mut spec);
        let manner = LoadConfig::closed(1);
        assert!(matches!(manner.pacing, Pacing::Closed { .. }));
        step((&store, None), "w", &spec, Phase::Measure, &manner, (1, 0, 1)).unwrap()
    }

    fn seen(hits: u64, misses: u64) -> PhaseOutcome {
        let counts = PerOp::from_fn(|op| if op == Op::Read { hits + misses } else { 0 });
        PhaseOutcome { hits, misses, counts, ..PhaseOutcome::default() }
    }

    #[test]
    fn a_run_that_mostly_misses_is_told() {
        let plain = step_of(|_| {});
        assert_eq!(doubt(&plain, &seen(1000, 0)), None);
        assert_eq!(doubt(&plain, &seen(995, 5)), None);
        let words = doubt(&plain, &seen(14_691, 177_753)).unwrap();
        assert!(words.contains("92.4 %") && words.contains("hit ratio 0.076"), "{words}");
        assert!(
            words.contains("asks for 1.000") && words.contains("--expect-hit-ratio"),
            "{words}"
        );
        assert!(doubt(&plain, &seen(980, 20)).is_some());
    }

    #[test]
    fn misses_that_were_asked_for_are_none() {
        let half = step_of(|spec| spec.hit_ratio = 0.5);
        assert_eq!(doubt(&half, &seen(5000, 5000)), None);
        // Within chance for so few, and far beyond it for many.
        assert_eq!(doubt(&half, &seen(45, 55)), None);
        assert!(doubt(&half, &seen(45_000, 55_000)).is_some());
        let refill = step_of(|spec| spec.refill = true);
        assert_eq!(doubt(&refill, &seen(700, 300)), None);
        assert!(doubt(&refill, &seen(300, 700)).is_some());
        let deletes = step_of(|spec| spec.mix = Mix::parse("read=0.5,delete=0.5").unwrap());
        assert_eq!(doubt(&deletes, &seen(700, 300)), None);
        let mut expected = step_of(|_| {});
        expected.manner.expects_hits = Some(ShareRange { low: 0.0, high: 0.2 });
        assert_eq!(doubt(&expected, &seen(100, 900)), None);
    }

    #[test]
    fn a_replay_that_mostly_misses_is_told_too() {
        let mut traced = step_of(|_| {});
        traced.trace = Some(TraceSource {
            file: "trace".into(),
            bytes: None,
            modified: None,
            compressibility: 0.0,
            refill: false,
            header: None,
        });
        assert_eq!(doubt(&traced, &seen(600, 400)), None);
        let words = doubt(&traced, &seen(100, 900)).unwrap();
        assert!(words.contains("90.0 %") && !words.contains("workload asks"), "{words}");
    }

    #[test]
    fn keys_that_had_to_be_there_are_failures_and_no_misses() {
        let outcome = PhaseOutcome { missing: 985, ..seen(1015, 0) };
        assert_eq!(doubt(&step_of(|_| {}), &outcome), None);
        assert!((outcome.hit_ratio().unwrap() - 0.5075).abs() < 1e-12);
    }

    #[test]
    fn a_load_that_does_not_fit_is_told() {
        let load = Step { phase: Phase::Load, ..step_of(|_| {}) };
        let mut outcome = PhaseOutcome::default();
        outcome.changes.inserted = 1000;
        let at = |value| {
            let name = "evictions.total".to_owned();
            vec![Statistic { name, value, unit: model::Unit::Count }]
        };
        assert_eq!(lost_loading(&load, &outcome, &at(5.0), &at(5.0)), None);
        assert_eq!(lost_loading(&load, &outcome, &[], &[]), None);
        let words = lost_loading(&load, &outcome, &at(5.0), &at(505.0)).unwrap();
        assert!(words.contains("evicted 500 records while 1000"), "{words}");
    }
}
