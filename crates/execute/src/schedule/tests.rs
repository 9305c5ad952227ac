//! The order of runs, with a stand-in that runs nothing: milliseconds for whole studies.

use host::Root;
use model::{LatencyClock, LoopKind, Op, Pacing, Run, RunLatency};
use study::{LoadConfig, StudyText};

use super::*;

/// What the stand-in was told to do, and what it did.
struct StandIn<'a> {
    run: &'a dyn Fn(&Step) -> Result<Run, ExecuteError>,
    /// It is stopped after so many runs.
    most: usize,
    saved: Vec<Run>,
    segments: usize,
    unavailable: Vec<KnobLevels>,
}

impl<'a> StandIn<'a> {
    fn new(run: &'a dyn Fn(&Step) -> Result<Run, ExecuteError>) -> StandIn<'a> {
        StandIn { run, most: usize::MAX, saved: Vec::new(), segments: 0, unavailable: Vec::new() }
    }

    fn ordinals(&self) -> Vec<u32> {
        self.saved.iter().map(|run| run.ordinal).collect()
    }
}

impl SegmentExecutor for StandIn<'_> {
    fn knobs_turned(&mut self, _: &KnobLevels) {}

    fn knobs_unavailable(&mut self, levels: &KnobLevels, _: &ExecuteError) {
        self.unavailable.push(levels.clone());
    }

    fn run_segment(
        &mut self,
        _: &Segment,
        first: Step,
        agenda: &mut dyn StepAgenda,
        _: &KnobEffects,
    ) -> Result<bool, ExecuteError> {
        self.segments += 1;
        let mut next = Some(first);
        while let Some(step) = next {
            if self.saved.len() == self.most {
                return Ok(false);
            }
            let run = (self.run)(&step)?;
            self.saved.push(run.clone());
            next = agenda.next(&run);
        }
        Ok(true)
    }
}

/// Knobs of which one level cannot be set.
struct Refuses(&'static str);

impl KnobControl for Refuses {
    fn turn(
        &mut self,
        levels: &KnobLevels,
        work: &mut dyn FnMut(&KnobEffects) -> Result<(), ExecuteError>,
    ) -> Result<(), ExecuteError> {
        match levels.0.iter().any(|(_, level)| level == self.0) {
            true => Err(ExecuteError::Failed(format!("no level {}", self.0))),
            false => work(&KnobEffects::default()),
        }
    }
}

/// Two threads' levels on the null store, `repeats` times, with more lines of the study.
fn plan(repeats: u32, more: &str) -> Plan {
    let text = format!(
        "name = \"x\"\nrepeats = {repeats}\nsequence = [\"ycsb-c\"]\n[store.null]\n\
         [data]\nrecords = 1000\n\
         [factors.threads]\nset = \"measure.threads\"\nlevels = [1, 2]\n{more}"
    );
    Plan::of(&StudyText::new("x.toml", &text), "data".as_ref(), &Root::live()).unwrap()
}

fn load_config(step: &Step) -> &LoadConfig {
    &step.activity.load().unwrap().load_config
}

/// A valid run of a step at its own rate, with 1,000 answers of `ns` nanoseconds.
fn run(step: &Step, ns: u64) -> Run {
    let mut histogram = hdrhistogram::Histogram::new(3).unwrap();
    histogram.record_n(ns, 1000).unwrap();
    let (pacing, clock) = match load_config(step).shape.pacing {
        Pacing::Open { rate, arrivals } => (
            LoopKind::Open { rate_ops_s: rate, arrivals: arrivals.to_string() },
            LatencyClock::Response,
        ),
        _ => (LoopKind::Closed { think_s: 0.0 }, LatencyClock::Service),
    };
    let latency = RunLatency { op: Op::Read.into(), clock, histogram: histogram.into() };
    Run {
        ordinal: step.ordinal,
        label: step.label.clone(),
        settings: step.settings.clone(),
        pacing,
        seconds: 1.0,
        operations: 1000,
        latencies: vec![latency].into(),
        ..crate::repeat_policy::tests::run(step, 1000.0)
    }
}

fn scheduled(
    plan: &Plan,
    kept: &[Run],
    turn: &mut dyn KnobControl,
    executor: &mut StandIn<'_>,
) -> Result<ExecutionEnd, ExecuteError> {
    let done = kept.iter().filter(|run| !run.is_trial()).map(|run| run.ordinal).collect();
    let mut policy = RepeatPolicy::new(plan, kept, None).unwrap();
    let mut maxima = KnownMaxima::of(plan, kept);
    schedule(plan, &done, &mut policy, &mut maxima, turn, executor)
}

fn any() -> Refuses {
    Refuses("no such level")
}

#[test]
fn every_step_runs_once_in_the_order_of_the_plan() {
    let plan = plan(3, "");
    let valid = |step: &Step| Ok(run(step, 1000));
    let mut executor = StandIn::new(&valid);
    assert_eq!(scheduled(&plan, &[], &mut any(), &mut executor).unwrap(), ExecutionEnd::Whole);
    let planned: Vec<u32> = plan.steps().map(|(_, step)| step.ordinal).collect();
    assert_eq!((executor.ordinals(), planned.len()), (planned, 6));
}

#[test]
fn a_stopped_study_resumes_where_it_stopped() {
    let plan = plan(3, "");
    let valid = |step: &Step| Ok(run(step, 1000));
    let mut first = StandIn { most: 4, ..StandIn::new(&valid) };
    assert_eq!(scheduled(&plan, &[], &mut any(), &mut first).unwrap(), ExecutionEnd::Stopped);
    let mut second = StandIn::new(&valid);
    let end = scheduled(&plan, &first.saved, &mut any(), &mut second).unwrap();
    assert_eq!(end, ExecutionEnd::Whole);
    let planned: Vec<u32> = plan.steps().map(|(_, step)| step.ordinal).collect();
    assert_eq!([first.ordinals(), second.ordinals()].concat(), planned);
    let mut third = StandIn::new(&valid);
    let kept = [first.saved, second.saved].concat();
    scheduled(&plan, &kept, &mut any(), &mut third).unwrap();
    assert_eq!(third.segments, 0, "nothing is opened where nothing is left");
}

#[test]
fn a_failed_run_ends_the_study_and_loses_none_before_it() {
    let plan = plan(2, "");
    let third = plan.steps().nth(2).unwrap().1.ordinal;
    let fails = |step: &Step| match step.ordinal == third {
        true => Err(ExecuteError::Failed("the server ended".to_owned())),
        false => Ok(run(step, 1000)),
    };
    let mut executor = StandIn::new(&fails);
    let error = scheduled(&plan, &[], &mut any(), &mut executor).unwrap_err();
    assert_eq!((error.to_string().as_str(), executor.saved.len()), ("the server ended", 2));
}

#[test]
fn spare_repeats_replace_invalid_runs() {
    let plan = plan(2, "[design]\nspare_repeats = 2\n");
    let invalid = |step: &Step| {
        let disturbed = step.repeat == 1 && load_config(step).threads == 2;
        let because = disturbed.then(|| "another program ran".to_owned());
        Ok(Run { invalid_because: because.into_iter().collect(), ..run(step, 1000) })
    };
    let mut executor = StandIn::new(&invalid);
    scheduled(&plan, &[], &mut any(), &mut executor).unwrap();
    let of = |threads: &str| {
        let own = executor.saved.iter().filter(|run| run.settings["threads"] == threads);
        own.map(Run::valid).collect::<Vec<_>>()
    };
    assert_eq!(of("1"), [true, true], "a cell without an invalid run needs no spare one");
    assert_eq!(of("2").iter().filter(|valid| **valid).count(), 2);
    assert_eq!(of("2").len(), 3);
}

#[test]
fn levels_that_cannot_be_set_skip_their_runs_alone() {
    let mut plan = plan(2, "");
    let half = plan.segments.len() / 2;
    for (at, segment) in plan.segments.iter_mut().enumerate() {
        let level = if at < half { "off" } else { "on" };
        segment.knobs = KnobLevels(vec![("smt".to_owned(), level.to_owned())]);
    }
    let valid = |step: &Step| Ok(run(step, 1000));
    let mut executor = StandIn::new(&valid);
    let end = scheduled(&plan, &[], &mut Refuses("off"), &mut executor).unwrap();
    assert_eq!((end, executor.unavailable.len()), (ExecutionEnd::Whole, 1));
    let on = plan.segments[half..].iter().flat_map(|segment| &segment.steps);
    assert_eq!(executor.ordinals(), on.map(|step| step.ordinal).collect::<Vec<_>>());
    // Where no level can be set, nothing was measured, and that is an error.
    plan.segments.truncate(half);
    let mut none = StandIn::new(&valid);
    let error = scheduled(&plan, &[], &mut Refuses("off"), &mut none).unwrap_err();
    assert!(error.to_string().contains("no level off") && none.saved.is_empty());
}

#[test]
fn a_share_of_the_maximum_is_calibrated_first_and_once() {
    const MAXIMUM: f64 = 10_000.0;
    let plan = plan(
        2,
        "[measure]\nrate = \"50%\"\narrivals = \"constant\"\ntime = \"1s\"\n\
         [calibrate]\nslo = \"p99<1ms\"\nresolution = 0.1\n",
    );
    // Up to the maximum answers come at once, above it late.
    let answers = |step: &Step| {
        let rate = match load_config(step).shape.pacing {
            Pacing::Open { rate, .. } => rate,
            _ => 1.5 * MAXIMUM,
        };
        let fits = rate <= MAXIMUM;
        let operations = rate.min(MAXIMUM) as u64;
        let mut run = run(step, if fits { 100_000 } else { 20_000_000 });
        run.operations = operations;
        Ok(run)
    };
    let mut executor = StandIn::new(&answers);
    scheduled(&plan, &[], &mut any(), &mut executor).unwrap();
    let (trials, results): (Vec<&Run>, Vec<&Run>) =
        executor.saved.iter().partition(|run| run.is_trial());
    assert!(!trials.is_empty());
    assert_eq!(results.len(), 4);
    for run in results {
        let rate = run.target_rate().unwrap();
        assert!((0.4..=0.5).contains(&(rate / MAXIMUM)), "{rate}");
    }
    // Each number of threads is calibrated before its first run, and not again.
    let last_trial = executor.saved.iter().rposition(Run::is_trial).unwrap();
    let results_before = executor.saved[..last_trial].iter().filter(|run| !run.is_trial()).count();
    assert!(results_before <= 1, "{results_before}");
}
