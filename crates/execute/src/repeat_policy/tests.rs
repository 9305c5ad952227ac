use std::cell::Cell;
use std::rc::Rc;

use host::Root;
use model::{LatencyClock, LoopKind, Op};

use super::*;
use study::StudyText;

/// Cells of two factors on the null store, half a second each: 4 cells, this many repeats.
fn plan(repeats: u32, more: &str) -> Plan {
    let text = format!(
        "name = \"x\"\nrepeats = {repeats}\nsequence = [\"ycsb-c\"]\n[store.null]\n\
         [data]\nrecords = 1000\n[measure]\ntime = \"500ms\"\n\
         [factors.a]\nset = \"measure.threads\"\nlevels = [1, 2]\n\
         [factors.b]\nset = \"data.records\"\nlevels = [1000, 2000]\n{more}"
    );
    let folder = tempfile::tempdir().unwrap();
    Plan::of(&StudyText::new("x.toml", &text), folder.path(), &Root::live()).unwrap()
}

/// Simulates an execution: each run takes `pace` times its estimate, and its metric is `value`.
fn executed(
    plan: &Plan,
    limit: Option<f64>,
    pace: f64,
    value: impl Fn(&Step) -> f64,
) -> (Vec<(u32, u32)>, RepeatPolicy) {
    let now = Rc::new(Cell::new(0.0));
    let clock = Rc::clone(&now);
    let limit = limit.map(Duration::from_secs_f64);
    let elapsed = Box::new(move || Duration::from_secs_f64(clock.get()));
    let mut policy = RepeatPolicy::timed(plan, &[], limit, elapsed).unwrap();
    let mut done = Vec::new();
    for (_, step) in plan.steps() {
        if policy.decide(step) == Decision::Run {
            now.set(now.get() + step.estimate().seconds * pace);
            policy.saved(step, &run(step, value(step)));
            done.push((step.repeat, step.unit));
        }
    }
    (done, policy)
}

pub(crate) fn run(step: &Step, ops: f64) -> Run {
    let mut histogram = hdrhistogram::Histogram::new(3).unwrap();
    histogram.record(1000).unwrap();
    Run {
        id: step.ordinal.to_string(),
        execution: "e".to_owned(),
        ordinal: step.ordinal,
        label: step.label.clone(),
        phase: step.phase(),
        settings: step.settings.clone(),
        store_version: String::new(),
        threads: 1,
        pacing: LoopKind::Closed { think_s: 0.0 },
        started_at: String::new(),
        seconds: 1.0,
        operations: ops as u64,
        verified: 0,
        misses: 0,
        failures: Vec::new(),
        invalid_because: Vec::new(),
        warnings: Vec::new(),
        latencies: vec![model::RunLatency {
            op: Op::Read.into(),
            clock: LatencyClock::Service,
            histogram: histogram.into(),
        }]
        .into(),
        series: Vec::new(),
        readings: Vec::new(),
        samples: Vec::new(),
        profile: None,
        tax: None,
        stream: BTreeMap::new(),
    }
}

fn repeats(done: &[(u32, u32)]) -> Vec<u32> {
    let all = done.iter().map(|(repeat, _)| *repeat).collect::<BTreeSet<_>>();
    all.into_iter().map(|r| done.iter().filter(|(repeat, _)| *repeat == r).count() as u32).collect()
}

#[test]
fn without_a_budget_all_runs_are_done() {
    let plan = plan(3, "");
    let (done, policy) = executed(&plan, None, 1.0, |_| 100.0);
    assert_eq!(repeats(&done), [4, 4, 4]);
    assert!(policy.notes().is_empty());
}

#[test]
fn a_budget_drops_whole_repeats_before_cells() {
    // Four cells of half a second: two seconds a repeat.
    let plan = plan(5, "");
    for (limit, expected) in [(10.0, 5), (9.9, 4), (7.0, 3), (4.1, 2), (2.0, 1)] {
        let (done, policy) = executed(&plan, Some(limit), 1.0, |_| 100.0);
        assert_eq!(repeats(&done), vec![4; expected], "{limit} s");
        let notes = policy.notes().join("\n");
        match expected {
            5 => assert!(notes.is_empty(), "{notes}"),
            n => assert!(notes.contains(&format!("{n} of 5 repeats of every cell")), "{notes}"),
        }
    }
}

#[test]
fn cells_are_dropped_with_a_note_when_no_repeat_fits() {
    let (done, policy) = executed(&plan(5, ""), Some(1.2), 1.0, |_| 100.0);
    assert_eq!(repeats(&done), [2]);
    let notes = policy.notes().join("\n");
    assert!(notes.contains("2 of 4 cells were not measured"), "{notes}");
    // Something is measured whatever the budget.
    assert_eq!(executed(&plan(5, ""), Some(0.01), 1.0, |_| 100.0).0.len(), 1);
}

#[test]
fn slower_runs_get_fewer_repeats() {
    let plan = plan(5, "");
    assert_eq!(repeats(&executed(&plan, Some(10.0), 1.0, |_| 1.0).0).len(), 5);
    assert_eq!(repeats(&executed(&plan, Some(10.0), 2.0, |_| 1.0).0), [4, 4]);
}

const ADAPTIVE: &str =
    "[design]\nadaptive = { metric = \"throughput_ops_s\", width = 0.05, most = 12 }\n";

#[test]
fn repeats_continue_until_the_interval_is_narrow() {
    let plan = plan(3, ADAPTIVE);
    // Where `a` is 1 every repeat is the same; where it is 2 they scatter by a third.
    let steady = |step: &Step| step.settings["factor.a"] == "1";
    let (done, policy) = executed(&plan, None, 1.0, |step| match steady(step) {
        true => 1000.0,
        false => 1000.0 + f64::from(step.repeat % 3) * 500.0,
    });
    let counts = repeats(&done);
    assert_eq!(counts[..3], [4, 4, 4], "the least");
    assert_eq!(counts[3..], [2; 9], "the two that scatter, up to the most");
    let notes = policy.notes();
    assert!(notes[0].contains("it is in 2 of 4 cells"), "{notes:?}");
    assert_eq!(notes.iter().filter(|note| note.contains("is known to ±")).count(), 2, "{notes:?}");
    assert!(notes[1].contains("null at a=2, b="), "{notes:?}");
}

#[test]
fn a_resumed_execution_decides_like_an_uninterrupted_one() {
    let plan = plan(3, ADAPTIVE);
    let value = |step: &Step| 1000.0 + f64::from((step.repeat * 7 + step.unit) % 5);
    let (whole, _) = executed(&plan, None, 1.0, value);
    let mut kept = Vec::new();
    for (_, step) in plan.steps() {
        let mut policy = RepeatPolicy::new(&plan, &kept, None).unwrap();
        if policy.decide(step) == Decision::Run {
            kept.push(run(step, value(step)));
        }
    }
    assert_eq!(kept.len(), whole.len());
    assert_eq!(kept.len(), 12, "all are narrow after the least");
}

#[test]
fn spare_repeats_replace_invalid_runs_of_their_cell() {
    let plan = plan(2, "[design]\nspare_repeats = 3\n");
    // Unit 0 fails once, unit 1 always.
    let is_valid = |step: &Step| match step.unit {
        0 => step.repeat != 2,
        unit => unit != 1,
    };
    let mut policy = RepeatPolicy::new(&plan, &[], None).unwrap();
    let mut kept: Vec<Run> = Vec::new();
    let mut resumed = Vec::new();
    for (_, step) in plan.steps() {
        let again = RepeatPolicy::new(&plan, &kept, None).unwrap().decide(step);
        let decision = policy.decide(step);
        assert_eq!(decision, again, "a resumed execution decides as the whole one");
        if decision == Decision::Run {
            let mut run = run(step, 100.0);
            if !is_valid(step) {
                run.invalid_because.push("the client was late".to_owned());
            }
            policy.saved(step, &run);
            kept.push(run);
            resumed.push((step.repeat, step.unit));
            assert_eq!(plan.is_spare(step), step.repeat > 2);
        }
    }
    assert_eq!(repeats(&resumed), [4, 4, 2, 1, 1]);
    let notes = policy.notes().join("\n");
    assert!(notes.contains("4 spare repeats were made, of 2 cells"), "{notes}");
    assert!(notes.contains("1 of them still without 2 valid runs"), "{notes}");
}

#[test]
fn a_metric_that_no_run_has_is_reported() {
    let text = ADAPTIVE.replace("throughput_ops_s", "ipc");
    let (done, policy) = executed(&plan(2, &text), None, 1.0, |_| 1.0);
    assert_eq!(repeats(&done), [4, 4], "more of them would be in vain");
    assert!(policy.notes().join("\n").contains("no `ipc` was read"), "{:?}", policy.notes());
}
