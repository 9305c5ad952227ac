//! Runs a plan: opens each store once a segment, loads what a step needs, drives, keeps.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use analyse::STEADY_ROUNDS;
use drive::{Changes, OnStart, Outcome, Progress, Ticks, What};
use host::{Context, Root, Watch};
use model::{Machine, Op, Reading};
use record::{Execution, Phase, Run};
use store::{Directory, State, Statistic, Store, StoreError, Visit};
use workload::Workload;

use crate::asking::Manner;
use crate::assemble::{Measured, assemble};
use crate::error::StudyError;
use crate::plan::{Plan, Segment, Step};

/// How long a store may take to write out what it holds after a phase that wrote.
const SETTLE_LIMIT: Duration = Duration::from_secs(300);
/// How long one look at that takes.
const SETTLE_SLICE: Duration = Duration::from_secs(1);
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
        let mut session = Session {
            clock: &clock,
            segment,
            steps: steps.clone(),
            directory: None,
            load_first: None,
            found: false,
            execution,
            keep,
            listener,
            stop,
            warnings: Vec::new(),
        };
        if on_disk(segment) {
            let mut directory = Directory::claim(&segment.store, room(segment, first))?;
            session.load_first = must_load(&directory, first);
            session.found = session.load_first.is_none() && first.phase == Phase::Measure;
            if let Some(why) = session.load_first {
                session.listener.hear(Event::Preparing { step: first, why });
            }
            if !session.found {
                directory.clear()?;
            }
            session.directory = Some(directory);
        }
        let Closed { directory, name } = store::open(&segment.store, session)??;
        // The store is closed, so all that it was given is in its files.
        if let (Some(mut directory), Some(name)) = (directory, name) {
            directory.set_dataset(&name.dataset, name.records, &name.version)?;
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
    }
    for segment in plan.segments.iter().filter(|segment| segment.temporary) {
        remove_temporary(&segment.store.path)?;
    }
    Ok(true)
}

fn on_disk(segment: &Segment) -> bool {
    !segment.store.path.as_os_str().is_empty()
}

/// Refuses, before anything is measured or written, a directory that could not be used.
pub fn check_directories(plan: &Plan) -> Result<(), StudyError> {
    for segment in plan.segments.iter().filter(|segment| on_disk(segment)) {
        if let Some(first) = segment.steps.first() {
            Directory::check(&segment.store, room(segment, first))?;
        }
    }
    Ok(())
}

/// Bytes that must be there: none for data that is there already; else the data, and half as
/// much for what a log-structured store merges beside it.
fn room(segment: &Segment, first: &Step) -> u64 {
    let there = match Directory::inspect(&segment.store.path) {
        Ok(State::Ours(marker)) => marker.dataset == Some(first.workload.dataset().to_string()),
        _ => false,
    };
    if there && first.phase == Phase::Measure {
        return 0;
    }
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
    load_first: Option<&'static str>,
    /// The data of an earlier invocation is used.
    found: bool,
    execution: &'a Execution,
    keep: &'a mut dyn FnMut(&Run) -> Result<(), StudyError>,
    listener: &'a mut dyn Listener,
    stop: &'a Arc<AtomicBool>,
    /// For the next run that is kept.
    warnings: Vec<String>,
}

/// What is left when a store is closed.
struct Closed {
    directory: Option<Directory>,
    /// What the data is, where that was not certain while the store was open.
    name: Option<Name>,
}

/// What a directory's data is.
struct Name {
    dataset: String,
    records: u64,
    version: String,
}

impl Visit for Session<'_> {
    type Output = Result<Closed, StudyError>;

    fn visit<S: Store>(mut self, store: S) -> Self::Output {
        let store = Arc::new(store);
        let mut name = None;
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
            if self.load_first.take().is_some() {
                name = self.prepare(&store, &workload, step)?;
                if self.stopped() {
                    break;
                }
            } else if std::mem::take(&mut self.found) {
                self.listener.hear(Event::Reusing { step });
            }
            name = self.run(&store, &workload, step)?.or(name);
        }
        Ok(Closed { directory: self.directory, name })
    }
}

impl Session<'_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Loads the data that a step needs, without measuring it. Answers the data's name, if it
    /// can be given to it only when the store is closed.
    fn prepare<S: Store>(
        &mut self,
        store: &Arc<S>,
        workload: &Arc<Workload>,
        step: &Step,
    ) -> Result<Option<Name>, StudyError> {
        let begun = Instant::now();
        let plan = self.plan(What::Load, &self.segment.preparing, step);
        let mut observer = Showing { step, listener: &mut *self.listener };
        let outcome = drive::drive(self.clock, store, workload, &plan, &mut observer)?;
        if let Some(failure) = outcome.failures.first() {
            let words = format!("{}: the load failed: {}", step.label, failure.first);
            return Err(StudyError::Failed(words));
        }
        if outcome.changes.inserted < step.workload.records.0 {
            return Ok(None);
        }
        let settled = self.let_settle(store)?;
        self.listener.hear(Event::Prepared { seconds: begun.elapsed().as_secs_f64() });
        self.give(self.name(store, step, step.workload.records.0), settled)
    }

    /// Runs one step and keeps it, unless it was stopped. Answers as [`Session::prepare`].
    fn run<S: Store>(
        &mut self,
        store: &Arc<S>,
        workload: &Arc<Workload>,
        step: &Step,
    ) -> Result<Option<Name>, StudyError> {
        let what = match step.phase {
            Phase::Load => What::Load,
            Phase::Measure => What::Mix,
        };
        let plan = self.plan(what, &step.manner, step);
        let tax = drive::tax(self.clock, workload, what, &plan.on_start)?;
        let records_before = self.directory.as_ref().map_or(0, |d| d.marker().records);
        let mix = &step.workload.mix;
        let writes =
            what == What::Load || Op::ALL.into_iter().any(|op| op.writes() && mix.asks(op));
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
        let records = match step.phase {
            Phase::Load => outcome.changes.inserted,
            Phase::Measure => records_before + outcome.changes.inserted,
        };
        let name = whole(step, &outcome).then(|| self.name(store, step, records));
        if outcome.stopped {
            return Ok(name.filter(|_| writes));
        }
        let (settled, settling) = self.settle(store, step, writes)?;
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
            settling,
            statistics: (before, after),
            tax,
            skew,
            warnings: std::mem::take(&mut self.warnings),
            disk_bytes: self.directory.as_ref().map(|d| d.disk_bytes()).transpose()?,
            records,
        });
        // The data has its name again only when the run that changed it is kept: a kill in
        // between repeats nothing, it only loads the data anew for what follows.
        (self.keep)(&run)?;
        self.listener.hear(Event::Kept { step, run: &run });
        match name.filter(|_| writes) {
            Some(name) => self.give(name, settled),
            None => Ok(None),
        }
    }

    /// After a phase that wrote: lets the store settle, with the same probes around it.
    /// Answers whether it has, and what was read.
    fn settle<S: Store>(
        &mut self,
        store: &Arc<S>,
        step: &Step,
        writes: bool,
    ) -> Result<(bool, Option<Vec<Reading>>), StudyError> {
        if !writes || self.directory.is_none() {
            return Ok((true, None));
        }
        self.listener.hear(Event::Settling { step });
        let watch = Watch::begin(&Root::live(), &context(self.segment));
        let settled = self.let_settle(store)?;
        Ok((settled, Some(watch.end())))
    }

    /// Waits in slices, so that a stop is seen. A store that is not settled in time goes on;
    /// the next run carries the warning.
    fn let_settle<S: Store>(&mut self, store: &Arc<S>) -> Result<bool, StudyError> {
        let limit = Instant::now() + SETTLE_LIMIT;
        loop {
            match store.settle(SETTLE_SLICE) {
                Err(StoreError::Unsettled(_)) if self.stopped() => return Ok(false),
                Err(StoreError::Unsettled(words)) if Instant::now() > limit => {
                    self.warnings.push(words);
                    return Ok(false);
                }
                Err(StoreError::Unsettled(_)) => {}
                other => return Ok(other.map(|()| true)?),
            }
        }
    }

    fn name<S: Store>(&self, store: &Arc<S>, step: &Step, records: u64) -> Name {
        let dataset = step.workload.dataset().to_string();
        Name { dataset, records, version: store.version() }
    }

    /// Names the data, if all of it is in the store's files; else hands the name back.
    fn give(&mut self, name: Name, settled: bool) -> Result<Option<Name>, StudyError> {
        match &mut self.directory {
            Some(directory) if settled => {
                directory.set_dataset(&name.dataset, name.records, &name.version)?;
                Ok(None)
            }
            _ => Ok(Some(name)),
        }
    }

    fn plan(&self, what: What, manner: &Manner, step: &Step) -> drive::Plan {
        let slowest_gap = match manner.pacing {
            drive::Pacing::Open { rate, .. } => {
                Duration::try_from_secs_f64(20.0 / rate).unwrap_or(Duration::MAX)
            }
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
            on_start: first_of_all(manner),
            stop: Arc::clone(self.stop),
            patience: PATIENCE.saturating_add(slowest_gap),
        }
    }
}

/// Whether the data is still what its name says, but for records that were added.
fn whole(step: &Step, outcome: &Outcome) -> bool {
    let Changes { inserted, deleted, refused } = outcome.changes;
    let complete = step.phase == Phase::Measure || inserted == step.workload.records.0;
    complete && deleted == 0 && refused == 0
}

/// What each thread does first: to a CPU of its own, and no slack in its sleeps. Either may be
/// refused; the scheduler then decides, and lateness is measured anyway.
fn first_of_all(manner: &Manner) -> OnStart {
    let cpus = match manner.pin {
        true => host::cpus(&Root::live()).map(|order| order.cpus).unwrap_or_default(),
        false => Vec::new(),
    };
    Arc::new(move |thread| {
        if let Some(cpu) = cpus.get(thread) {
            let _ = host::pin_current(*cpu);
        }
        let _ = host::wake_promptly();
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
