//! Runs a plan: opens each store once a segment, loads what a step needs, drives, keeps.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use analyse::STEADY_ROUNDS;
use drive::{OnStart, Outcome, Progress, Ticks, What};
use host::{Context, Root, Watch};
use model::{Machine, Op, Reading};
use record::{Execution, Phase, Run};
use store::{Directory, Statistic, Store, StoreError, Visit};
use workload::Workload;

use crate::asking::Manner;
use crate::assemble::{Measured, assemble};
use crate::error::StudyError;
use crate::plan::{Plan, Segment, Step};

/// How long a store may take to write out what it holds after a phase that wrote.
const SETTLE_LIMIT: Duration = Duration::from_secs(300);
/// Without an answer for so long, a store is taken to hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// What happens while a plan runs, for whoever shows it.
#[derive(Debug)]
pub enum Event<'a> {
    /// Data is loaded, not measured, because a step needs it.
    Preparing {
        step: &'a Step,
        why: &'a str,
    },
    Prepared {
        seconds: f64,
    },
    /// The data of an earlier invocation is used as it is.
    Reusing {
        step: &'a Step,
    },
    Begins {
        step: &'a Step,
    },
    Progress {
        step: &'a Step,
        progress: &'a Progress,
    },
    /// The store writes out what it holds.
    Settling {
        step: &'a Step,
    },
    /// The run is in the file.
    Kept {
        step: &'a Step,
        run: &'a Run,
    },
}

pub trait Listener {
    fn hear(&mut self, event: Event<'_>);
}

/// Now, as it is written in results files.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The description of this invocation, to begin a results file with.
pub fn execution(plan: &Plan, command: Vec<String>) -> Execution {
    let root = Root::live();
    let mut machine: Machine = host::facts(&root);
    let mut seen = BTreeSet::new();
    for segment in plan.segments.iter().filter(|s| !s.store.path.as_os_str().is_empty()) {
        if seen.insert(segment.store.path.clone()) {
            machine.facts.extend(host::storage(&root, existing(&segment.store.path)));
        }
    }
    Execution {
        id: uuid::Uuid::new_v4().to_string(),
        study: plan.name.clone(),
        question: plan.question.clone(),
        spec: plan.text.clone(),
        seed: plan.seed,
        command,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: now(),
        finished_at: None,
        machine,
        plan: plan.steps().map(|(_, step)| step.planned()).collect(),
    }
}

/// The nearest part of a path that is there already.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|part| part.exists()).unwrap_or(Path::new("."))
}

/// Runs every step that is not done, in its order, and keeps each run when it ends. When
/// `stop` is raised the step under way ends early, is not kept, and the rest does not begin;
/// the answer says whether all was done.
pub fn execute(
    plan: &Plan,
    execution: &Execution,
    done: &BTreeSet<u32>,
    keep: &mut dyn FnMut(&Run) -> Result<(), StudyError>,
    listener: &mut dyn Listener,
    stop: &Arc<AtomicBool>,
) -> Result<bool, StudyError> {
    let clock = Ticks::new();
    for segment in &plan.segments {
        let steps: Vec<&Step> =
            segment.steps.iter().filter(|step| !done.contains(&step.ordinal)).collect();
        let Some(first) = steps.first() else { continue };
        let mut directory = None;
        let mut why = None;
        if !segment.store.path.as_os_str().is_empty() {
            let mut claimed = Directory::claim(&segment.store, room(segment))?;
            why = must_load(&claimed, first);
            if why.is_some() || first.phase == Phase::Load {
                claimed.clear()?;
            }
            directory = Some(claimed);
        }
        let session = Session {
            clock: &clock,
            segment,
            steps,
            directory,
            why,
            execution,
            keep,
            listener,
            stop,
            warnings: Vec::new(),
        };
        store::open(&segment.store, session)??;
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
    }
    for segment in plan.segments.iter().filter(|segment| segment.temporary) {
        remove_temporary(&segment.store.path)?;
    }
    Ok(true)
}

/// Refuses, before anything is measured, a store's directory that could not be used.
pub fn check_directories(plan: &Plan) -> Result<(), StudyError> {
    for segment in &plan.segments {
        if !segment.store.path.as_os_str().is_empty() {
            Directory::claim(&segment.store, room(segment))?;
        }
    }
    Ok(())
}

/// Bytes for the data, and for what a log-structured store merges beside it.
fn room(segment: &Segment) -> u64 {
    let sizes = segment.steps.iter().map(|step| step.workload.data_bytes());
    let most = sizes.max().unwrap_or(0);
    most.saturating_add(most / 2)
}

/// Deletes a directory that kvmeter made for a study, and its parent if that is empty then.
fn remove_temporary(path: &Path) -> Result<(), StudyError> {
    if !path.exists() {
        return Ok(());
    }
    let failed = |error: std::io::Error| {
        StudyError::Failed(format!("{}: cannot be removed: {error}", path.display()))
    };
    std::fs::remove_dir_all(path).map_err(failed)?;
    if let Some(parent) = path.parent() {
        // It stays where another store's data is still in it.
        let _ = std::fs::remove_dir(parent);
    }
    Ok(())
}

/// Why the step cannot run on what the directory holds; None if it can.
fn must_load(directory: &Directory, step: &Step) -> Option<&'static str> {
    if step.phase == Phase::Load {
        return None;
    }
    let marker = directory.marker();
    if !directory.holds(&step.workload.dataset().to_string()) {
        return Some(match marker.dataset {
            Some(_) => "the directory holds other data",
            None => "the directory holds no complete data",
        });
    }
    (marker.records != step.workload.records.0).then_some("an earlier run has added records")
}

struct Session<'a> {
    clock: &'a Ticks,
    segment: &'a Segment,
    steps: Vec<&'a Step>,
    directory: Option<Directory>,
    /// Why data must be loaded before the first step.
    why: Option<&'static str>,
    execution: &'a Execution,
    keep: &'a mut dyn FnMut(&Run) -> Result<(), StudyError>,
    listener: &'a mut dyn Listener,
    stop: &'a Arc<AtomicBool>,
    /// For the next run that is kept.
    warnings: Vec<String>,
}

impl Visit for Session<'_> {
    type Output = Result<(), StudyError>;

    fn visit<S: Store>(mut self, store: S) -> Self::Output {
        let store = Arc::new(store);
        let keeps = store.capabilities().keeps;
        for step in std::mem::take(&mut self.steps) {
            if self.stopped() {
                break;
            }
            if step.workload.mix.asks(Op::Scan) && !store.capabilities().scan {
                return Err(StudyError::Request(format!(
                    "{}: the store cannot scan, and the workload does",
                    step.label
                )));
            }
            let workload = Arc::new(Workload::new(&step.workload)?);
            match self.why.take() {
                Some(why) if keeps => self.prepare(&store, &workload, step, why)?,
                _ if keeps && step.phase == Phase::Measure && self.execution.study == "bench" => {
                    self.listener.hear(Event::Reusing { step });
                }
                _ => {}
            }
            if self.stopped() {
                break;
            }
            self.run(&store, &workload, step)?;
        }
        Ok(())
    }
}

impl Session<'_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Loads the data that a step needs, without measuring it.
    fn prepare<S: Store>(
        &mut self,
        store: &Arc<S>,
        workload: &Arc<Workload>,
        step: &Step,
        why: &str,
    ) -> Result<(), StudyError> {
        self.listener.hear(Event::Preparing { step, why });
        let begun = Instant::now();
        let plan = self.plan(What::Load, &self.segment.preparing, step);
        let mut observer = Showing { step, listener: &mut *self.listener };
        let outcome = drive::drive(self.clock, store, workload, &plan, &mut observer)?;
        if let Some(failure) = outcome.failures.first() {
            let words = format!("{}: the load failed: {}", step.label, failure.first);
            return Err(StudyError::Failed(words));
        }
        if outcome.stopped {
            return Ok(());
        }
        self.let_settle(store)?;
        self.name_the_data(store, step, step.workload.records.0)?;
        self.listener.hear(Event::Prepared { seconds: begun.elapsed().as_secs_f64() });
        Ok(())
    }

    fn run<S: Store>(
        &mut self,
        store: &Arc<S>,
        workload: &Arc<Workload>,
        step: &Step,
    ) -> Result<(), StudyError> {
        let what = match step.phase {
            Phase::Load => What::Load,
            Phase::Measure => What::Mix,
        };
        let plan = self.plan(what, &step.manner, step);
        let tax = drive::tax(self.clock, workload, what, &plan.on_start)?;
        let records_before = self.directory.as_ref().map_or(0, |d| d.marker().records);
        let writes = step.phase == Phase::Load
            || Op::ALL.into_iter().any(|op| op.writes() && step.workload.mix.asks(op));
        if let Some(directory) = self.directory.as_mut().filter(|_| writes) {
            directory.unset_dataset()?;
        }
        self.listener.hear(Event::Begins { step });
        let started_at = now();
        let mut watching = Watching {
            step,
            listener: &mut *self.listener,
            context: context(self.segment),
            store: &**store,
            watch: None,
            before: Vec::new(),
            after: Vec::new(),
            readings: Vec::new(),
        };
        let outcome = drive::drive(self.clock, store, workload, &plan, &mut watching)?;
        let Watching { readings, before, after, .. } = watching;
        let settled = self.settle(store, step, writes)?;
        if outcome.stopped {
            self.name_after(store, step, &outcome, records_before)?;
            return Ok(());
        }
        let skew = match step.phase {
            Phase::Load => None,
            Phase::Measure => workload.skew(outcome.drawn),
        };
        let run = assemble(Measured {
            execution: self.execution,
            step,
            started_at,
            version: store.version(),
            options: store.options(),
            outcome: &outcome,
            readings,
            settled,
            statistics: (before, after),
            tax,
            skew,
            warnings: std::mem::take(&mut self.warnings),
            disk_bytes: self.directory.as_ref().map(|d| d.disk_bytes()).transpose()?,
        });
        // The data has its name again only when the run that changed it is kept: a kill in
        // between repeats the run on data loaded anew.
        (self.keep)(&run)?;
        self.name_after(store, step, &outcome, records_before)?;
        self.listener.hear(Event::Kept { step, run: &run });
        Ok(())
    }

    /// After a phase that wrote: lets the store settle, with the same probes around it.
    fn settle<S: Store>(
        &mut self,
        store: &Arc<S>,
        step: &Step,
        writes: bool,
    ) -> Result<Option<Vec<Reading>>, StudyError> {
        if !writes || self.directory.is_none() || self.stopped() {
            return Ok(None);
        }
        self.listener.hear(Event::Settling { step });
        let watch = Watch::begin(&Root::live(), &context(self.segment));
        self.let_settle(store)?;
        Ok(Some(watch.end()))
    }

    /// A store that is not settled in time goes on; the next run carries the warning.
    fn let_settle<S: Store>(&mut self, store: &Arc<S>) -> Result<(), StudyError> {
        match store.settle(SETTLE_LIMIT) {
            Err(StoreError::Unsettled(words)) => {
                self.warnings.push(words);
                Ok(())
            }
            other => Ok(other?),
        }
    }

    /// Names the data after a run, if it is still what its name says.
    fn name_after<S: Store>(
        &mut self,
        store: &Arc<S>,
        step: &Step,
        outcome: &Outcome,
        records_before: u64,
    ) -> Result<(), StudyError> {
        let inserted = outcome.counts[Op::Insert];
        match step.phase {
            Phase::Load if outcome.stopped || inserted < step.workload.records.0 => Ok(()),
            Phase::Load => self.name_the_data(store, step, step.workload.records.0),
            // Deleted records are not there for the next run, so the data is no longer itself.
            Phase::Measure if outcome.counts[Op::Delete] > 0 => Ok(()),
            Phase::Measure => self.name_the_data(store, step, records_before + inserted),
        }
    }

    fn name_the_data<S: Store>(
        &mut self,
        store: &Arc<S>,
        step: &Step,
        records: u64,
    ) -> Result<(), StudyError> {
        match &mut self.directory {
            Some(directory) => Ok(directory.set_dataset(
                &step.workload.dataset().to_string(),
                records,
                &store.version(),
            )?),
            None => Ok(()),
        }
    }

    fn plan(&self, what: What, manner: &Manner, step: &Step) -> drive::Plan {
        let slowest_gap = match manner.pacing {
            drive::Pacing::Open { rate, .. } => Duration::from_secs_f64(20.0 / rate),
            drive::Pacing::Closed { think } => think,
        };
        drive::Plan {
            what,
            threads: manner.threads as usize,
            pacing: manner.pacing,
            seed: step.workload.seed,
            warm_up: manner.warm_up,
            steady: manner.steady.map(|(round, most)| drive::Steady {
                round,
                window: STEADY_ROUNDS,
                most_rounds: most as usize,
                rule: |rounds| {
                    <&[f64; STEADY_ROUNDS]>::try_from(rounds)
                        .is_ok_and(|rounds| analyse::steady(rounds).steady)
                },
            }),
            until: manner.until,
            interval: Duration::from_secs(1),
            on_start: pinning(manner),
            stop: Arc::clone(self.stop),
            patience: PATIENCE + slowest_gap,
        }
    }
}

/// One CPU a thread where there are as many; else the scheduler's choice.
fn pinning(manner: &Manner) -> OnStart {
    let cpus = host::cpus(&Root::live()).map(|order| order.cpus).unwrap_or_default();
    if !manner.pin || manner.threads as usize > cpus.len() {
        return Arc::new(|_| {});
    }
    Arc::new(move |thread| {
        // A CPU that went away meanwhile leaves the thread to the scheduler.
        let _ = host::pin_current(cpus[thread]);
    })
}

fn context(segment: &Segment) -> Context {
    let path = &segment.store.path;
    Context { store_path: (!path.as_os_str().is_empty()).then(|| path.clone()) }
}

/// Shows progress only.
struct Showing<'a> {
    step: &'a Step,
    listener: &'a mut dyn Listener,
}

impl drive::Observer for Showing<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.listener.hear(Event::Progress { step: self.step, progress });
    }
}

/// Shows progress and puts the probes around the window.
struct Watching<'a, S> {
    step: &'a Step,
    listener: &'a mut dyn Listener,
    context: Context,
    store: &'a S,
    watch: Option<Watch>,
    before: Vec<Statistic>,
    after: Vec<Statistic>,
    readings: Vec<Reading>,
}

impl<S: Store> drive::Observer for Watching<'_, S> {
    fn window_opens(&mut self) {
        self.before = self.store.statistics();
        self.watch = Some(Watch::begin(&Root::live(), &self.context));
    }

    fn window_closes(&mut self) {
        self.readings = self.watch.take().map(Watch::end).unwrap_or_default();
        self.after = self.store.statistics();
    }

    fn progress(&mut self, progress: &Progress) {
        self.listener.hear(Event::Progress { step: self.step, progress });
    }
}
