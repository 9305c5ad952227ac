//! One open store and the steps that are run on it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use drive::{DataChanges, PhaseKind, PhaseOutcome, Target, Ticks};
use host::{Choice, Context, Observed, Watch};
use model::{Op, Reading};
use record::{Execution, Phase, Run, RunSettings};
use store::{Store, StoreError, StoreUrl, StoreVisitor};
use workload::{Workload, WorkloadSpec};

use crate::asking::{LoadConfig, cpus_of_load, first_of_all};
use crate::assemble::{MeasuredRun, assemble};
use crate::engine::{Event, Listener, now};
use crate::error::StudyError;
use crate::findings::findings;
use crate::fleet::{AgentPool, AgentRun, AgentRunResult};
use crate::keeper::{DatasetName, MarkerLocation};
use crate::observe::{ProbedObserver, ProgressOnly};
use crate::once::{CachedTax, ExecutionCache, TaxSetting};
use crate::plan::{Segment, Step};
use crate::probes::{CheckTime, ProbesConfig, check, missing};
use crate::server_side::{ServerSide, ServersSummary};
use crate::simulated::simulate;

/// How long a store may take to write out what it holds after a phase that wrote.
const SETTLE_LIMIT: Duration = Duration::from_secs(300);
/// How long one look at that takes.
const SETTLE_SLICE: Duration = Duration::from_secs(1);

/// Which run is next.
pub(crate) trait StepAgenda {
    /// After the run that was kept last.
    fn next(&mut self, run: &Run) -> Option<Step>;
    /// Whether a server that is started for them is to be timed from inside.
    fn preloads(&self) -> bool;
}

pub(crate) struct Session<'a> {
    pub(crate) clock: &'a Ticks,
    pub(crate) segment: &'a Segment,
    /// Its store, with the address of a server that was started for it.
    pub(crate) asked: StoreUrl,
    /// The folders of further stores that are asked at the same time.
    pub(crate) beside: Vec<PathBuf>,
    pub(crate) agenda: &'a mut dyn StepAgenda,
    pub(crate) keeper: MarkerLocation,
    /// Why data must be loaded before the first step.
    pub(crate) load_first: Option<&'static str>,
    /// The data of an earlier invocation is used.
    pub(crate) found: bool,
    /// Data that is loaded may be copied; not where there was no room for it.
    pub(crate) may_copy: bool,
    pub(crate) execution: &'a Execution,
    pub(crate) keep: &'a mut dyn FnMut(&Run) -> Result<(), StudyError>,
    pub(crate) listener: &'a mut dyn Listener,
    pub(crate) stop: &'a Arc<AtomicBool>,
    /// The machines that ask instead of this one.
    pub(crate) crew: Option<&'a mut AgentPool>,
    /// Records that the store holds, as far as they were not deleted.
    pub(crate) records: u64,
    /// A run has added or deleted records.
    pub(crate) changed: bool,
    /// What the data is, to be said of it when the store is closed.
    pub(crate) name: Option<DatasetName>,
    /// For the next run that is kept.
    pub(crate) warnings: Vec<String>,
    /// The servers behind a networked store, as far as they can be watched from here.
    pub(crate) servers: ServerSide,
    /// What the runs depend on besides what was asked for: the server that was started.
    pub(crate) facts: RunSettings,
    pub(crate) probes: &'a ProbesConfig,
    /// The power of the idle machine, measured before.
    pub(crate) idle: &'a [Reading],
    /// What was found out for all runs of the execution.
    pub(crate) once: &'a ExecutionCache,
    /// The figures of the simulator, and of which workload they are.
    pub(crate) simulated: Option<(WorkloadSpec, Vec<Reading>)>,
}

/// How a phase was asked, and what was seen.
struct DrivenPhase {
    outcome: PhaseOutcome,
    manner: LoadConfig,
    tax: Option<CachedTax>,
    /// Where agents asked.
    borne: Option<AgentRunResult>,
}

/// What is left when a store is closed.
pub(crate) struct ClosedStore {
    pub(crate) keeper: MarkerLocation,
    /// What the data is, where that was not certain while the store was open.
    pub(crate) name: Option<DatasetName>,
    /// A run that wants the data as it was loaded, which it no longer is; or that waits until
    /// the data was copied.
    pub(crate) next: Option<Step>,
    /// The data was loaded just now and is wanted again later.
    pub(crate) copy: bool,
}

/// A session on a store in this process, and its first step.
pub(crate) struct EmbeddedSession<'a>(pub(crate) Session<'a>, pub(crate) Step);

impl StoreVisitor for EmbeddedSession<'_> {
    type Output = Result<ClosedStore, StudyError>;

    fn visit<S: Store>(self, store: S) -> Self::Output {
        self.0.ask(&Arc::new(store), self.1)
    }
}

impl Session<'_> {
    /// Looks at the data that is there: whether the first step can use it, or must load its own.
    pub(crate) fn find_data(&mut self, first: &Step) -> Result<(), StudyError> {
        if first.trace.is_some() {
            // It begins with nothing, as far as we may take away what is there.
            return Ok(self.keeper.clear()?);
        }
        if first.phase == Phase::Measure {
            self.load_first = self.keeper.must_load(first)?;
            if self.load_first.is_some() && self.keeper.bring_back(first)? {
                self.load_first = None;
                self.listener.hear(Event::BroughtBack { step: first });
            }
            self.found = self.load_first.is_none();
        }
        if let Some(why) = self.load_first {
            self.listener.hear(Event::Preparing { step: first, why });
        }
        if !self.found {
            self.keeper.clear()?;
        }
        self.records = match self.found {
            true => self.keeper.name()?.map_or(0, |name| name.records),
            false => 0,
        };
        Ok(())
    }

    /// Runs steps on a store that is open, from the first on, as long as its data suits them.
    pub(crate) fn ask<T: Target>(
        mut self,
        store: &Arc<T>,
        first: Step,
    ) -> Result<ClosedStore, StudyError> {
        let mut next = Some(first);
        while let Some(step) = next.take_if(|_| !self.stopped() && !self.changed) {
            if step.workload.mix.contains(Op::Scan) && !store.capabilities().scan {
                return Err(StudyError::Request(format!(
                    "{}: the store cannot scan, and the workload does",
                    step.label
                )));
            }
            let workload = Arc::new(Workload::new(&step.workload)?);
            if self.load_first.take().is_some() {
                self.prepare(store, &workload, &step)?;
                if self.stopped() {
                    break;
                }
                if self.segment.copies && self.may_copy && self.keeper.on_disk() {
                    // Only the files of a closed store can be copied; then it goes on.
                    let Session { keeper, name, .. } = self;
                    return Ok(ClosedStore { keeper, name, next: Some(step), copy: true });
                }
            } else if std::mem::take(&mut self.found) {
                self.listener.hear(Event::Reusing { step: &step });
            }
            if let Some(run) = self.run(store, &workload, &step)? {
                next = self.agenda.next(&run);
            }
        }
        Ok(ClosedStore { keeper: self.keeper, name: self.name, next, copy: false })
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Loads the data that a step needs, without measuring it.
    pub(crate) fn prepare<T: Target>(
        &mut self,
        store: &Arc<T>,
        workload: &Arc<Workload>,
        step: &Step,
    ) -> Result<(), StudyError> {
        let begun = Instant::now();
        let plan = self.segment.preparing.plan(PhaseKind::Load, step.workload.seed, self.stop);
        let mut observer = ProgressOnly { step, listener: &mut *self.listener };
        let outcome = drive::drive(self.clock, store, workload, &plan, &mut observer)?;
        if let Some(failure) = outcome.failures.first() {
            // That a server is gone says more than what that did to the first request.
            let why = match &outcome.gave_up {
                Some(gave_up) => format!("{gave_up} (the first failure: {})", failure.first),
                None => failure.first.clone(),
            };
            return Err(StudyError::Failed(format!("{}: the load failed: {why}", step.label)));
        }
        self.records = outcome.changes.inserted;
        if self.records < step.workload.records.0 {
            return Ok(());
        }
        let settled = self.let_settle(store)?;
        self.listener.hear(Event::Prepared { seconds: begun.elapsed().as_secs_f64() });
        self.give(self.name_of(store, step), settled)
    }

    /// Runs one step and keeps it, unless it was stopped.
    fn run<T: Target>(
        &mut self,
        store: &Arc<T>,
        workload: &Arc<Workload>,
        step: &Step,
    ) -> Result<Option<Run>, StudyError> {
        let what = match step.phase {
            Phase::Load => PhaseKind::Load,
            Phase::Measure | Phase::Simulate => PhaseKind::Mix,
        };
        let mix = &step.workload.mix;
        let writes = what == PhaseKind::Load
            || step.trace.is_some()
            || Op::ALL.into_iter().any(|op| op.writes() && mix.contains(op));
        if writes {
            self.warnings.extend(self.keeper.overwrites(step, workload));
            self.keeper.unset()?;
            self.name = None;
        }
        self.listener.hear(Event::Begins { step });
        self.servers.prepare(step.manner.insight, step.manner.is_open());
        let servers = self.servers.cpus();
        let context = self.context(step, &servers);
        let (probes, knobs) = (self.probes, &self.segment.knobs);
        let checked = &self.once.checked;
        checked.unless_known(&context, knobs, || check(probes, &context, CheckTime::Run))?;
        let simulated = self.simulated(step);
        if self.stopped() {
            return Ok(None);
        }
        let started_at = now();
        // Before the load begins, so that it warms up under it too.
        let program = self.probes.pass.first();
        let beside = step.beside.as_ref().map(|beside| beside.start(program)).transpose()?;
        let mut watching = ProbedObserver {
            step,
            listener: &mut *self.listener,
            store: &**store,
            prepared: Some(Watch::prepare(&self.probes.root, &context)),
            watch: None,
            beside,
            taken: Vec::new(),
            servers: &mut self.servers,
            seen: ServersSummary::default(),
            before: Vec::new(),
            after: Vec::new(),
            observed: Observed::default(),
        };
        let DrivenPhase { outcome, manner, tax, borne } = match &mut self.crew {
            None => {
                let (seed, manner) = (step.workload.seed, step.manner.clone());
                let mut plan = manner.plan(what, seed, self.stop);
                plan.on_start = first_of_all(&manner, &servers);
                if let Some(trace) = &step.trace {
                    plan.trace = Some(trace.replay(&manner, seed)?);
                }
                let (clock, first) = (self.clock, &plan.on_start);
                let replayed = plan.trace.as_ref().map(|replay| replay.most);
                let setting = TaxSetting {
                    trace: step.trace.clone().zip(replayed),
                    cpus: cpus_of_load(&manner, &servers),
                    knobs: self.segment.knobs.clone(),
                    beside: step.beside.clone(),
                    ..TaxSetting::of(what, &step.workload)
                };
                let tax = self.once.taxes.of(setting, step.ordinal, || match &plan.trace {
                    Some(replay) => Ok(drive::replay_tax(clock, replay, workload, first)?),
                    None => Ok(Some(drive::tax(clock, workload, what, first)?)),
                })?;
                let outcome = drive::drive(clock, store, workload, &plan, &mut watching)?;
                DrivenPhase { outcome, manner, tax, borne: None }
            }
            Some(crew) => {
                let task = AgentRun {
                    clock: self.clock,
                    target: store,
                    store: &self.asked,
                    workload,
                    step,
                    stop: self.stop,
                };
                let mut borne = crew.run(&task, &mut watching)?;
                let outcome = std::mem::take(&mut borne.outcome);
                let manner = borne.manner.clone();
                // Each agent measures its own before each run.
                let tax = borne.tax.map(|tax| CachedTax { tax, run: step.ordinal });
                DrivenPhase { outcome, manner, tax, borne: Some(borne) }
            }
        };
        let ProbedObserver {
            observed: Observed { readings, series },
            before,
            after,
            seen,
            taken,
            ..
        } = watching;
        let mut readings = match &borne {
            Some(borne) => borne.readings(readings),
            None => readings,
        };
        readings.extend(simulated);
        readings.extend(taken);
        // What was measured until then is kept as an invalid run; nothing is not.
        if let Some(why) = outcome.gave_up.as_ref().filter(|_| outcome.operations == 0) {
            return Err(StudyError::Failed(format!("{}: ended early, {why}", step.label)));
        }
        let DataChanges { inserted, deleted, .. } = outcome.changes;
        self.records += inserted;
        let traced = step.trace.is_some();
        self.changed = step.phase == Phase::Measure && (traced || inserted + deleted > 0);
        let named = writes && !traced && whole(step, &outcome);
        let name = named.then(|| self.name_of(store, step));
        if outcome.stopped {
            self.name = name.or(self.name.take());
            return Ok(None);
        }
        let (settled, settling) = self.settle(store, step, writes)?;
        let skew = match step.phase {
            Phase::Measure if step.trace.is_none() => workload.skew(outcome.drawn),
            _ => None,
        };
        let mut run = assemble(MeasuredRun {
            execution: self.execution,
            step,
            manner: &manner,
            started_at,
            version: store.version(),
            options: store.options(),
            outcome: &outcome,
            readings,
            samples: series,
            idle: self.idle,
            here: self.servers.are_here(),
            settling,
            statistics: (before, after, store.statistics()),
            tax,
            skew,
            warnings: std::mem::take(&mut self.warnings),
            disk_bytes: self.keeper.disk_bytes()?,
            networked: !self.servers.is_empty(),
            servers: seen.finish(outcome.operations),
            facts: &self.facts,
            records: self.records * (1 + self.beside.len() as u64),
        });
        let missing = missing(&self.probes.require, &run.readings);
        run.invalid_because.extend(missing.clone());
        // A rate that is too high is what a trial looks for.
        if !step.is_trial() {
            run.warnings.extend(findings(&self.execution.design.checks, &run));
        }
        // The data has its name again only when the run that changed it is kept: a kill in
        // between repeats nothing, it only loads the data anew for what follows.
        (self.keep)(&run)?;
        self.listener.hear(Event::Kept { step, run: &run });
        if let Some(words) = missing {
            return Err(StudyError::Failed(format!("{}: {words}", step.label)));
        }
        if let Some(error) = outcome.replayed.as_ref().and_then(|replayed| replayed.error.clone()) {
            return Err(StudyError::Request(error));
        }
        if let Some(name) = name {
            self.give(name, settled)?;
        }
        Ok(Some(run))
    }

    /// After a phase that wrote: lets the store settle, with the same probes around it.
    /// Answers whether it has, and what was read.
    fn settle<T: Target>(
        &mut self,
        store: &Arc<T>,
        step: &Step,
        writes: bool,
    ) -> Result<(bool, Option<Vec<Reading>>), StudyError> {
        if !writes || !self.keeper.on_disk() {
            return Ok((true, None));
        }
        self.listener.hear(Event::Settling { step });
        // CPU time and I/O: the rest says nothing of a store that puts its things in order.
        let context = Context { choice: Choice::Off, ..self.context(step, &[]) };
        let watch = Watch::begin(&self.probes.root, &context);
        let settled = self.let_settle(store)?;
        Ok((settled, Some(watch.end().readings)))
    }

    /// What the probes of a run are told.
    fn context(&self, step: &Step, servers: &[u32]) -> Context {
        let own = std::iter::once(&self.segment.store.path);
        let paths: Vec<PathBuf> =
            own.filter(|path| !path.as_os_str().is_empty()).chain(&self.beside).cloned().collect();
        // Where agents ask, the load does not run here.
        let cpus = match self.crew {
            None => cpus_of_load(&step.manner, servers),
            Some(_) => Vec::new(),
        };
        self.probes.context(&paths, cpus, self.servers.pids())
    }

    /// The counters in software of a step's workload; made once for all its runs in a row.
    fn simulated(&mut self, step: &Step) -> Vec<Reading> {
        let Some(simulation) = &self.probes.simulation else { return Vec::new() };
        if let Some((workload, readings)) = &self.simulated
            && *workload == step.workload
        {
            return readings.clone();
        }
        self.listener.hear(Event::Simulating { step });
        let (root, program) = (&self.probes.root, &self.probes.pass);
        let readings = simulate(simulation, root, program, self.segment, step, self.stop);
        self.simulated = Some((step.workload.clone(), readings.clone()));
        readings
    }

    /// Waits in slices, so that a stop is seen. A store that is not settled in time goes on;
    /// the next run carries the warning.
    fn let_settle<T: Target>(&mut self, store: &Arc<T>) -> Result<bool, StudyError> {
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

    fn name_of<T: Target>(&self, store: &Arc<T>, step: &Step) -> DatasetName {
        let dataset = step.workload.dataset().to_string();
        DatasetName { dataset, records: self.records, version: store.version() }
    }

    /// Names the data, if all of it is in the store's files; else that waits until the store
    /// is closed.
    fn give(&mut self, name: DatasetName, settled: bool) -> Result<(), StudyError> {
        match settled {
            true => self.keeper.set(&name),
            false => {
                self.name = Some(name);
                Ok(())
            }
        }
    }
}

/// Whether the data is still what its name says, but for records that were added.
fn whole(step: &Step, outcome: &PhaseOutcome) -> bool {
    let DataChanges { inserted, deleted, refused } = outcome.changes;
    let complete = step.phase == Phase::Measure || inserted == step.workload.records.0;
    complete && deleted == 0 && refused == 0
}
