//! Runs as one stream of events, about one a second: lines of JSON and the page are made of it.

use std::time::{Duration, Instant};

use drive::{CompleteInterval, PhaseProgress, PhaseStage, RunningCounts};
use execute::Event;
use hdrhistogram::Histogram;
use live::{LatencyNow, OpLatencies, RunEnd, RunEvent, RunProgress};
use model::{Pacing, Phase, Run};
use study::Step;

use super::present::Present;

/// How often progress is an event.
const EVERY: Duration = Duration::from_secs(1);
/// The least time for a rate of answers.
const MIN_RATE_S: f64 = 0.3;
const LOADS: &str = "loads data";
const PROFILES: &str = "a pass that samples where the time goes";

/// Makes events of what happens in an execution.
#[derive(Debug, Default)]
pub struct EventSource {
    /// The expected time of each step; empty where their number is not known.
    expected: Vec<Duration>,
    /// The run, counted from 1, without trials.
    pub step: usize,
    /// Data is loaded, not measured.
    loading: bool,
    /// When progress was last an event.
    written: Option<Instant>,
    /// Operations and time of the last progress of this stage.
    last_look: Option<(bool, u64, Duration)>,
    latency: Option<LatencyNow>,
    counts: RunningCounts,
    recorded: Vec<OpLatencies>,
    present: Present,
}

impl EventSource {
    pub fn new(expected: Vec<Duration>) -> EventSource {
        EventSource { expected, ..EventSource::default() }
    }

    /// The number of runs; 0 where it is not known.
    pub fn runs(&self) -> usize {
        self.expected.len()
    }

    /// The event, if it is one.
    pub fn take(&mut self, event: &Event<'_>) -> Option<RunEvent> {
        let stage = |step: &Step, stage: &str| {
            Some(RunEvent::Stage { label: step.label.clone(), stage: stage.to_owned() })
        };
        match event {
            Event::Preparing { step, .. } => {
                (self.loading, self.last_look) = (true, None);
                stage(step, LOADS)
            }
            Event::Restored { step } => stage(step, "restores loaded data"),
            Event::Settling { step } => stage(step, "the store settles"),
            Event::Simulating { step } => stage(step, "a pass under cachegrind"),
            Event::Profiling { step } => stage(step, PROFILES),
            Event::CountingSlots { step } => stage(step, "a pass that counts pipeline slots"),
            Event::Idling { .. } => Some(RunEvent::Stage {
                label: String::new(),
                stage: "measures the power of the idle machine".to_owned(),
            }),
            Event::RunStarts { step } => Some(self.begins(step)),
            Event::Interval { interval, .. } => {
                self.take_interval(interval);
                None
            }
            Event::Readings { readings, .. } => {
                self.present.take(readings);
                None
            }
            Event::Progress { step, progress } => self.progress(step, progress),
            Event::Saved { step, run } => Some(self.ended(step, run)),
            Event::Prepared { .. } => {
                self.loading = false;
                None
            }
            Event::Reusing { .. }
            | Event::Copied { .. }
            | Event::Placed { .. }
            | Event::Unprofiled { .. }
            | Event::KnobsUnavailable { .. } => None,
        }
    }

    fn begins(&mut self, step: &Step) -> RunEvent {
        self.step += usize::from(!step.is_trial());
        let (expected, step_number) = (std::mem::take(&mut self.expected), self.step);
        *self = EventSource { expected, step: step_number, ..EventSource::default() };
        let mut settings = step.settings.clone();
        settings.retain(|_, value| !value.is_empty());
        let phase = match step.phase() {
            Phase::Load => "load",
            Phase::Measure => "measure",
            Phase::Simulate => "simulate",
        };
        RunEvent::Begins {
            run: self.step,
            runs: self.runs(),
            label: match step.is_trial() {
                true => format!("calibrating {}", step.label),
                false => step.label.clone(),
            },
            phase: phase.to_owned(),
            settings,
        }
    }

    fn take_interval(&mut self, interval: &CompleteInterval<'_>) {
        let mut all: Option<Histogram<u64>> = None;
        for (op, histogram) in interval.ops.iter().zip(interval.latencies) {
            let part = of_histogram(op.name(), histogram);
            match self.recorded.iter_mut().find(|own| own.op == part.op) {
                Some(own) => own.add(&part),
                None => self.recorded.push(part),
            }
            match &mut all {
                // Of the same range, so it cannot fail.
                Some(all) => drop(all.add(histogram)),
                None => all = Some(histogram.clone()),
            }
        }
        self.counts = interval.counts;
        let us =
            |all: &Histogram<u64>, percentile| all.value_at_percentile(percentile) as f64 / 1e3;
        self.latency = all.filter(|all| !all.is_empty()).map(|all| LatencyNow {
            at_s: (interval.index + 1) as f64 * interval.seconds,
            p50_us: us(&all, 50.0),
            p90_us: us(&all, 90.0),
            p99_us: us(&all, 99.0),
            p99_9_us: us(&all, 99.9),
            max_us: all.max() as f64 / 1e3,
        });
    }

    fn progress(&mut self, step: &Step, progress: &PhaseProgress) -> Option<RunEvent> {
        if self.written.is_some_and(|at| at.elapsed() < EVERY) {
            return None;
        }
        let warming_up = self.loading || !matches!(progress.stage, PhaseStage::Measure);
        let answered_ops_s = self.answered(warming_up, progress);
        self.written = Some(Instant::now());
        let left = self.seconds_left(step, progress);
        Some(RunEvent::Progress(Box::new(RunProgress {
            warming_up,
            rate_ops_s: progress.live.operations_s,
            p99_us: progress.live.p99_ns as f64 / 1e3,
            left_s: left.map(|(run, rest)| run + rest.as_secs()),
            stage: match self.loading {
                true => LOADS.to_owned(),
                false => stage_words(progress.stage),
            },
            run_left_s: left.map(|(run, _)| run),
            done: progress.done,
            elapsed_s: progress.elapsed.as_secs_f64(),
            operations: progress.operations,
            answered_ops_s,
            offered_ops_s: offered(step, progress).filter(|_| !self.loading),
            latency: self.latency.filter(|_| !warming_up),
            errors: self.counts.failures,
            hits: self.counts.hits,
            misses: self.counts.misses,
            readings: self.present.readings().to_vec(),
            recorded: std::mem::take(&mut self.recorded),
        })))
    }

    /// Operations per second since the last event of this stage, or since its beginning.
    fn answered(&mut self, warming_up: bool, progress: &PhaseProgress) -> Option<f64> {
        let (operations, elapsed) = match self.last_look {
            Some((of, operations, elapsed))
                if of == warming_up && operations <= progress.operations =>
            {
                (operations, elapsed)
            }
            _ => (0, Duration::ZERO),
        };
        let since = progress.elapsed.saturating_sub(elapsed).as_secs_f64();
        if since < MIN_RATE_S {
            return None;
        }
        self.last_look = Some((warming_up, progress.operations, progress.elapsed));
        Some((progress.operations - operations) as f64 / since)
    }

    /// The remaining seconds of this run at the current pace, and those of the runs after it.
    pub fn seconds_left(&self, step: &Step, progress: &PhaseProgress) -> Option<(u64, Duration)> {
        let done = progress.done.filter(|share| *share > 0.01)?;
        let elapsed = progress.elapsed.as_secs_f64();
        let stage = (elapsed / done - elapsed).max(0.0);
        let window = match progress.stage {
            PhaseStage::Measure => 0.0,
            _ => {
                let time = step.activity.load().and_then(|load| load.load_config.shape.until.time);
                time.map_or(0.0, |time| time.as_secs_f64())
            }
        };
        let rest: Duration = self.expected.iter().skip(self.step).sum();
        Some((Duration::from_secs_f64(stage + window).as_secs(), rest))
    }

    fn ended(&mut self, step: &Step, run: &Run) -> RunEvent {
        let clock = run.clock();
        let own = run.latencies.iter().filter(|latency| latency.clock == clock);
        let recorded = own.map(|one| {
            let buckets = one.histogram.buckets();
            OpLatencies::of(one.op.name(), buckets.map(|bucket| (bucket.highest(), bucket.count)))
        });
        let recorded = recorded.collect();
        let all = run.latency_of_all(clock);
        RunEvent::Ended(Box::new(RunEnd {
            run: self.step,
            runs: self.runs(),
            label: step.label.clone(),
            rate_ops_s: run.throughput(),
            seconds: run.seconds,
            valid: run.valid(),
            p99_us: all.map(|all| all.value_at_percentile(99.0) as f64 / 1e3),
            errors: run.errors(),
            hits: self.counts.hits,
            misses: self.counts.misses,
            hit_ratio: run.hit_ratio(),
            invalid_because: run.invalid_because.clone(),
            recorded,
        }))
    }
}

fn of_histogram(op: &'static str, histogram: &Histogram<u64>) -> OpLatencies {
    let values = histogram.iter_recorded();
    OpLatencies::of(op, values.map(|at| (at.value_iterated_to(), at.count_since_last_iteration())))
}

fn stage_words(stage: PhaseStage) -> String {
    match stage {
        PhaseStage::WarmUp => "warm-up".to_owned(),
        PhaseStage::Steadying { round, most } => {
            format!("steady-state round {round} of at most {most}")
        }
        PhaseStage::Measure => "measures".to_owned(),
    }
}

/// Operations per second that are due now; none in a closed loop, or where a trace says when.
fn offered(step: &Step, progress: &PhaseProgress) -> Option<f64> {
    let shape = &step.activity.load()?.load_config.shape;
    let Pacing::Open { rate, .. } = shape.pacing else { return None };
    match &shape.profile {
        Some(profile) if progress.stage == PhaseStage::Measure => {
            let to = progress.elapsed.as_secs_f64().max(1.0);
            Some(rate * (profile.integral(to) - profile.integral(to - 1.0)))
        }
        Some(profile) => Some(rate * profile.first()),
        None => Some(rate),
    }
}
