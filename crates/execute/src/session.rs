//! A session: one open store and the steps that run on it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use drive::{DataChanges, Observer, PhaseKind, PhaseOutcome, Target, Ticks};
use host::{Context, ProbeChoice, RunWatch, WatchReadings};
use model::{Execution, Op, Phase, Reading, Run, RunProfile, RunSettings, Series, TopDownPass};
use store::{Statistic, StoreError, StoreUrl};
use study::{ProbesConfig, Profiling, Segment, ServerTiming, Step};
use workload::{Workload, WorkloadSpec};

use crate::check_findings::findings;
use crate::co_runner::{self, RunningHog};
use crate::dataset_marker::{DatasetName, MarkerLocation};
use crate::distributed::{AgentPool, AgentRun, AgentRunResult};
use crate::driven_phase::{DrivenPhase, LocalDriver, on_agents};
use crate::error::ExecuteError;
use crate::event::{Event, Listener};
use crate::execution::now;
use crate::execution_cache::ExecutionCache;
use crate::load_plan::{cpus_of_load, load_plan};
use crate::load_step::LoadStep;
use crate::observer::{ProbedObserver, ProgressOnly};
use crate::profiled_pass::{self, ProfilingObserver, is_last_of_cell};
use crate::required::{CheckTime, check, missing};
use crate::run_record::{MeasuredRun, assemble};
use crate::server_side::{ServerSide, ServersSummary, WindowReadings};
use crate::simulated_pass::simulate;
use crate::top_down_pass::{self, CountingObserver};

/// How long a store may take to settle after a phase that wrote.
const SETTLE_LIMIT: Duration = Duration::from_secs(300);
/// How long one wait for that takes.
const SETTLE_SLICE: Duration = Duration::from_secs(1);

/// Decides which step is next.
pub(crate) trait StepAgenda {
    /// The step after the run that was saved last.
    fn next(&mut self, run: &Run) -> Option<Step>;
    /// Whether servers that are started get the preloaded library that times requests.
    fn preloads(&self) -> bool;
}

pub(crate) struct Session<'a> {
    pub(crate) clock: &'a Ticks,
    pub(crate) segment: &'a Segment,
    /// The segment's store, with the address of a server that was started.
    pub(crate) store_url: StoreUrl,
    /// Folders of further stores that are loaded at the same time.
    pub(crate) other_stores: Vec<PathBuf>,
    pub(crate) agenda: &'a mut dyn StepAgenda,
    pub(crate) marker: MarkerLocation,
    /// Why data must be loaded before the first step.
    pub(crate) load_first: Option<&'static str>,
    /// The data of an earlier invocation is used.
    pub(crate) reuses_data: bool,
    /// Loaded data may be copied; false after a copy failed for lack of space.
    pub(crate) may_copy: bool,
    pub(crate) execution: &'a Execution,
    pub(crate) keep: &'a mut dyn FnMut(&Run) -> Result<(), ExecuteError>,
    pub(crate) listener: &'a mut dyn Listener,
    pub(crate) stop: &'a Arc<AtomicBool>,
    /// The machines that generate the load instead of this one.
    pub(crate) agent_pool: Option<&'a mut AgentPool>,
    /// Records that the store holds, as far as they were not deleted.
    pub(crate) records: u64,
    /// A run has added or deleted records.
    pub(crate) changed: bool,
    /// The dataset name to be stored in the marker when the store is closed.
    pub(crate) name: Option<DatasetName>,
    /// Warnings for the next saved run.
    pub(crate) warnings: Vec<String>,
    /// The servers behind a networked store, as far as they can be watched from here.
    pub(crate) servers: ServerSide,
    /// Further settings of the runs: the server that was started.
    pub(crate) facts: RunSettings,
    pub(crate) probes: &'a ProbesConfig,
    /// The power of the idle machine.
    pub(crate) idle: &'a [Reading],
    /// Results cached for all runs of the execution.
    pub(crate) cache: &'a ExecutionCache,
    /// The figures of the simulator with their workload.
    pub(crate) simulated: Option<(WorkloadSpec, Vec<Reading>)>,
}

/// What remains when a store is closed.
pub(crate) struct ClosedStore {
    pub(crate) marker: MarkerLocation,
    /// The dataset name, where the store was not settled while it was open.
    pub(crate) name: Option<DatasetName>,
    /// The next step, which needs freshly loaded data or waits until the data was copied.
    pub(crate) next: Option<Step>,
    /// The data was just loaded and is to be copied for later.
    pub(crate) copy: bool,
}

impl Session<'_> {
    /// Checks whether the first step can use the existing data or must load its own.
    pub(crate) fn find_data(&mut self, first: LoadStep<'_>) -> Result<(), ExecuteError> {
        if first.activity.trace().is_some() {
            // A replay begins with an empty store, as far as it may be cleared.
            return Ok(self.marker.clear()?);
        }
        if first.phase() == Phase::Measure {
            self.load_first = self.marker.must_load(first)?;
            if self.load_first.is_some() && self.marker.bring_back(first)? {
                self.load_first = None;
                self.listener.on_event(Event::Restored { step: first.step });
            }
            self.reuses_data = self.load_first.is_none();
        }
        if let Some(why) = self.load_first {
            self.listener.on_event(Event::Preparing { step: first.step, why });
        }
        if !self.reuses_data {
            self.marker.clear()?;
        }
        self.records = match self.reuses_data {
            true => self.marker.name()?.map_or(0, |name| name.records),
            false => 0,
        };
        Ok(())
    }

    /// Loads before a first step that measures: data in memory is gone when a store is closed.
    fn load_into_memory(&mut self, first: LoadStep<'_>) {
        if first.phase() == Phase::Measure && first.activity.trace().is_none() {
            let why = "the store keeps its data in memory";
            self.load_first = Some(why);
            self.listener.on_event(Event::Preparing { step: first.step, why });
        }
    }

    /// Runs steps on a store whose threads have a session each, in this process or over a network,
    /// and closes it.
    pub(crate) fn run_on_store(
        mut self,
        store: Arc<dyn Target>,
        first: Step,
    ) -> Result<ClosedStore, ExecuteError> {
        match store.served() {
            Some(data) => {
                let addresses = data.addresses().iter();
                self.servers =
                    ServerSide::of(addresses.map(|address| (address.to_string(), address, None)));
                self.marker = MarkerLocation::Servers(data);
                self.find_data(LoadStep::of(&first)?)?;
            }
            None if store.capabilities().stores_values
                && matches!(self.marker, MarkerLocation::Nowhere) =>
            {
                self.load_into_memory(LoadStep::of(&first)?);
            }
            None => {}
        }
        self.run_steps(&store, first)
    }

    /// Runs steps on an open store, as long as its data suits them.
    pub(crate) fn run_steps(
        mut self,
        store: &Arc<dyn Target>,
        first: Step,
    ) -> Result<ClosedStore, ExecuteError> {
        let mut next = Some(first);
        while let Some(step) = next.take_if(|_| !self.stopped() && !self.changed) {
            let load_step = LoadStep::of(&step)?;
            if load_step.load.workload.mix.contains(Op::Scan) && !store.capabilities().scan {
                return Err(ExecuteError::Request(format!(
                    "{}: the store cannot scan, but the workload does",
                    step.label
                )));
            }
            let workload = Arc::new(Workload::new(&load_step.load.workload)?);
            if self.load_first.take().is_some() {
                self.prepare(store, &workload, load_step)?;
                if self.stopped() {
                    break;
                }
                if self.segment.copies && self.may_copy && self.marker.on_disk() {
                    // Only the files of a closed store can be copied; then the step continues.
                    let Session { marker, name, .. } = self;
                    return Ok(ClosedStore { marker, name, next: Some(step), copy: true });
                }
            } else if std::mem::take(&mut self.reuses_data) {
                self.listener.on_event(Event::Reusing { step: &step });
            }
            if let Some(run) = self.run(store, &workload, load_step)? {
                next = self.agenda.next(&run);
            }
        }
        Ok(ClosedStore { marker: self.marker, name: self.name, next, copy: false })
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Loads the data of a step without measuring it.
    pub(crate) fn prepare(
        &mut self,
        store: &Arc<dyn Target>,
        workload: &Arc<Workload>,
        step: LoadStep<'_>,
    ) -> Result<(), ExecuteError> {
        let begun = Instant::now();
        let plan =
            load_plan(&self.segment.preparing, PhaseKind::Load, step.load.workload.seed, self.stop);
        let mut observer = ProgressOnly { step: step.step, listener: &mut *self.listener };
        let outcome = drive::drive(self.clock, Arc::clone(store), workload, &plan, &mut observer)?;
        if let Some(failure) = outcome.failures.first() {
            // The loss of a server says more than its effect on the first request.
            let why = match &outcome.gave_up {
                Some(gave_up) => format!("{gave_up} (the first failure: {})", failure.first),
                None => failure.first.clone(),
            };
            return Err(ExecuteError::Failed(format!("{}: the load failed: {why}", step.label)));
        }
        self.records = outcome.changes.inserted;
        if self.records < step.load.workload.records.0 {
            return Ok(());
        }
        let settled = self.wait_until_settled(store)?;
        self.listener.on_event(Event::Prepared { seconds: begun.elapsed().as_secs_f64() });
        self.set_marker(self.name_of(store, step), settled)
    }

    /// Runs one step and saves it, unless it was stopped.
    fn run(
        &mut self,
        store: &Arc<dyn Target>,
        workload: &Arc<Workload>,
        step: LoadStep<'_>,
    ) -> Result<Option<Run>, ExecuteError> {
        let what = match step.phase() {
            Phase::Load => PhaseKind::Load,
            Phase::Measure | Phase::Simulate => PhaseKind::Mix,
        };
        let writes = writes(step, what);
        if writes {
            self.warnings.extend(self.marker.overwrites(step, workload));
            self.marker.unset()?;
            self.name = None;
        }
        self.listener.on_event(Event::RunStarts { step: step.step });
        let Some(window) = self.measure(store, workload, step, what)? else { return Ok(None) };
        let outcome = &window.driven.outcome;
        // A partial measurement is saved as an invalid run, an empty one is not.
        if let Some(why) = outcome.gave_up.as_ref().filter(|_| outcome.operations == 0) {
            return Err(ExecuteError::Failed(format!("{}: ended early, {why}", step.label)));
        }
        let DataChanges { inserted, deleted, .. } = outcome.changes;
        self.records += inserted;
        let traced = step.activity.trace().is_some();
        self.changed = step.phase() == Phase::Measure && (traced || inserted + deleted > 0);
        let named = writes && !traced && data_is_whole(step, outcome);
        let name = named.then(|| self.name_of(store, step));
        if outcome.stopped {
            self.name = name.or(self.name.take());
            return Ok(None);
        }
        let (settled, settling) = self.settle(store, step, writes)?;
        let replay_error = outcome.replayed.as_ref().and_then(|replayed| replayed.error.clone());
        if let Some(why) = self.profiling(step).and_then(|_| self.unprofiled(step)) {
            self.warnings.push(format!("no profile was made: {why}"));
        }
        let mut run = self.assembled(store, workload, step, window, settling)?;
        self.keep_run(step, &mut run)?;
        if let Some(error) = replay_error {
            return Err(ExecuteError::Request(error));
        }
        let profiled = self.profile(store, workload, step, &mut run)?;
        if let Some(name) = name.filter(|_| profiled != ProfiledPass::LeftChanges) {
            let settled = match profiled {
                ProfiledPass::Ended => self.settle(store, step, writes)?.0,
                ProfiledPass::None | ProfiledPass::LeftChanges => settled,
            };
            self.set_marker(name, settled)?;
        }
        Ok(Some(run))
    }

    /// The profile that is wanted after this step, if any.
    fn profiling(&self, step: LoadStep<'_>) -> Option<&Profiling> {
        self.probes.profiling.as_ref().filter(|profiling| {
            step.phase() == Phase::Measure
                && !step.is_trial()
                && profiling.includes(&step.settings)
                && is_last_of_cell(self.execution, step.step)
        })
    }

    /// Why a step's load cannot run again.
    fn unprofiled(&self, step: LoadStep<'_>) -> Option<&'static str> {
        let mix = &step.load.workload.mix;
        if self.agent_pool.is_some() {
            Some("its load comes from other machines")
        } else if step.activity.trace().is_some() {
            Some("a trace that is replayed again finds other data")
        } else if mix.contains(Op::Insert) || mix.contains(Op::Delete) {
            Some("it adds or deletes records, so that a second pass finds other data")
        } else {
            None
        }
    }

    /// After the last run of a cell, runs its load again to see where its time goes, and adds that
    /// to the saved run.
    fn profile(
        &mut self,
        store: &Arc<dyn Target>,
        workload: &Arc<Workload>,
        step: LoadStep<'_>,
        run: &mut Run,
    ) -> Result<ProfiledPass, ExecuteError> {
        let Some(profiling) = self.profiling(step).filter(|_| self.unprofiled(step).is_none())
        else {
            return Ok(ProfiledPass::None);
        };
        let frequency = profiling.frequency;
        self.listener.on_event(Event::Profiling { step: step.step });
        let targets = profiled_pass::targets(self.servers.pids());
        let mut observer = ProfilingObserver::new(targets, frequency, self.hog(step)?);
        let outcome = self.again(store, workload, step, &mut observer)?;
        if outcome.stopped {
            return Ok(ProfiledPass::LeftChanges);
        }
        let whole = data_is_whole(step, &outcome);
        let mut end = Ok(if whole { ProfiledPass::Ended } else { ProfiledPass::LeftChanges });
        match (observer.result, outcome.gave_up.clone()) {
            (Ok(profile), None) => {
                let (seconds, operations) = (outcome.seconds, outcome.operations);
                let mut top_down = top_down_pass::missing("the pass before changed the data");
                if whole {
                    (top_down, end) = self.count_slots(store, workload, step);
                }
                let top_down = Some(top_down);
                let profile = RunProfile { seconds, operations, top_down, ..profile };
                run.profile = Some(Box::new(profile));
                (self.keep)(run)?;
            }
            (Err(why), _) | (_, Some(why)) => {
                self.listener.on_event(Event::Unprofiled { step: step.step, why: &why });
            }
        }
        end
    }

    /// Runs the load once more to count the pipeline's slots, where this machine can count them. The
    /// first pass is kept also if this one fails.
    fn count_slots(
        &mut self,
        store: &Arc<dyn Target>,
        workload: &Arc<Workload>,
        step: LoadStep<'_>,
    ) -> (TopDownPass, Result<ProfiledPass, ExecuteError>) {
        let plan = match top_down_pass::plan() {
            Ok(plan) => plan,
            Err(why) => return (top_down_pass::missing(why.to_string()), Ok(ProfiledPass::Ended)),
        };
        self.listener.on_event(Event::CountingSlots { step: step.step });
        let targets = profiled_pass::targets(self.servers.pids());
        let driven = self.hog(step).and_then(|hog| {
            let mut observer = CountingObserver::new(plan, targets, hog);
            let outcome = self.again(store, workload, step, &mut observer)?;
            Ok((observer.pass, outcome))
        });
        let (counted, outcome) = match driven {
            Ok(driven) => driven,
            Err(error) => return (top_down_pass::missing(error.to_string()), Err(error)),
        };
        let pass = match (outcome.stopped, outcome.gave_up.clone()) {
            (true, _) => top_down_pass::missing("the pass was stopped before its end"),
            (false, Some(why)) => top_down_pass::missing(why),
            (false, None) => {
                let (seconds, operations) = (outcome.seconds, outcome.operations);
                TopDownPass { seconds, operations, ..counted }
            }
        };
        let end = match !outcome.stopped && data_is_whole(step, &outcome) {
            true => ProfiledPass::Ended,
            false => ProfiledPass::LeftChanges,
        };
        (pass, Ok(end))
    }

    fn hog(&self, step: LoadStep<'_>) -> Result<Option<RunningHog>, ExecuteError> {
        let hog = step.load.co_runner.as_ref();
        hog.map(|hog| co_runner::start(hog, self.probes.pass.first())).transpose()
    }

    /// Runs the load of a step again on the same store, outside of any run.
    fn again(
        &self,
        store: &Arc<dyn Target>,
        workload: &Arc<Workload>,
        step: LoadStep<'_>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseOutcome, ExecuteError> {
        let driver = LocalDriver {
            clock: self.clock,
            stop: self.stop,
            cache: self.cache,
            knobs: &self.segment.knobs,
            servers: &self.servers.cpus(),
        };
        Ok(driver.drive(store, workload, step, PhaseKind::Mix, observer)?.outcome)
    }

    /// Runs the load of a step with probes around its window; none where it was stopped before.
    fn measure(
        &mut self,
        store: &Arc<dyn Target>,
        workload: &Arc<Workload>,
        step: LoadStep<'_>,
        what: PhaseKind,
    ) -> Result<Option<MeasuredWindow>, ExecuteError> {
        let timing = match self.store_url.multiplexes() {
            true => step.load.load_config.server_timing,
            // Neither way of timing requests knows the protocol.
            false => ServerTiming::Off,
        };
        self.servers.prepare(timing, step.load.load_config.is_open());
        let servers = self.servers.cpus();
        let context = self.context(step, &servers);
        self.listener.on_event(Event::Placed { cpus: &context.cpus });
        let (probes, knobs) = (self.probes, &self.segment.knobs);
        let checked = &self.cache.checked;
        checked.check_once(&context, knobs, || check(probes, &context, CheckTime::Run))?;
        let simulated = self.simulated(step);
        if self.stopped() {
            return Ok(None);
        }
        let started_at = now();
        // Started before the load, so that the warm-up has it too.
        let program = self.probes.pass.first();
        let co_runner = step
            .load
            .co_runner
            .as_ref()
            .map(|co_runner| co_runner::start(co_runner, program))
            .transpose()?;
        let mut observer = ProbedObserver {
            step: step.step,
            listener: &mut *self.listener,
            store: &**store,
            prepared: Some(RunWatch::prepare(&self.probes.root, &context)),
            watch: None,
            co_runner,
            co_runner_readings: Vec::new(),
            servers: &mut self.servers,
            servers_summary: ServersSummary::default(),
            before: Vec::new(),
            after: Vec::new(),
            observed: WatchReadings::default(),
            peeked: None,
        };
        let driven = match &mut self.agent_pool {
            None => {
                let driver = LocalDriver {
                    clock: self.clock,
                    stop: self.stop,
                    cache: self.cache,
                    knobs,
                    servers: &servers,
                };
                driver.drive(store, workload, step, what, &mut observer)?
            }
            Some(agent_pool) => {
                let task = AgentRun {
                    clock: self.clock,
                    target: store,
                    store: &self.store_url,
                    workload,
                    step,
                    knobs,
                    stop: self.stop,
                };
                on_agents(agent_pool, &task, &mut observer)?
            }
        };
        let ProbedObserver { observed, before, after, servers_summary, co_runner_readings, .. } =
            observer;
        let WatchReadings { readings, series } = observed;
        let mut readings = match &driven.agent_run {
            Some(agent_run) => agent_run.readings(readings),
            None => readings,
        };
        readings.extend(simulated);
        readings.extend(co_runner_readings);
        let statistics = (before, after);
        let servers = servers_summary.finish(driven.outcome.operations);
        Ok(Some(MeasuredWindow { started_at, driven, readings, series, statistics, servers }))
    }

    /// The run of a measured window.
    fn assembled(
        &mut self,
        store: &Arc<dyn Target>,
        workload: &Arc<Workload>,
        step: LoadStep<'_>,
        window: MeasuredWindow,
        settling: Option<Vec<Reading>>,
    ) -> Result<Run, ExecuteError> {
        let MeasuredWindow { started_at, driven, readings, series, statistics, servers } = window;
        let DrivenPhase { outcome, load_config, tax, agent_run } = driven;
        let mut facts = self.facts.clone();
        facts.extend(agent_run.iter().flat_map(AgentRunResult::settings));
        let (before, after) = statistics;
        self.warnings.extend(self.marker.warnings());
        let skew = match step.phase() {
            Phase::Measure if step.activity.trace().is_none() => workload.skew(outcome.drawn),
            _ => None,
        };
        Ok(assemble(MeasuredRun {
            execution: self.execution,
            step,
            load_config: &load_config,
            started_at,
            version: store.version(),
            options: store.options(),
            survives: store.capabilities().survives,
            outcome: &outcome,
            readings,
            samples: series,
            idle: self.idle,
            platform: self.cache.platform(&self.execution.design),
            here: self.servers.are_here(),
            settling,
            statistics: (before, after, store.statistics()),
            tax,
            skew,
            warnings: std::mem::take(&mut self.warnings),
            disk_bytes: self.marker.disk_bytes()?,
            networked: self.store_url.multiplexes(),
            in_servers: matches!(self.marker, MarkerLocation::Servers(_)),
            servers,
            facts: &facts,
            records: self.records * (1 + self.other_stores.len() as u64),
        }))
    }

    /// Saves a run with what its study checks.
    ///
    /// # Errors
    /// The file cannot be written; a required signal is missing.
    fn keep_run(&mut self, step: LoadStep<'_>, run: &mut Run) -> Result<(), ExecuteError> {
        let missing = missing(&self.probes.require, &run.readings);
        run.invalid_because.extend(missing.clone());
        // Trials exceed what the store can serve on purpose.
        if !step.is_trial() {
            run.warnings.extend(findings(&self.execution.design.checks, run));
        }
        // The marker is set only after the run was saved: a kill in between repeats no run, it only
        // reloads the data for the next one.
        (self.keep)(run)?;
        self.listener.on_event(Event::Saved { step: step.step, run });
        match missing {
            Some(words) => Err(ExecuteError::Failed(format!("{}: {words}", step.label))),
            None => Ok(()),
        }
    }

    /// After a phase that wrote, waits until the store has settled, with probes around the wait.
    /// Returns whether it has, and the readings.
    fn settle(
        &mut self,
        store: &Arc<dyn Target>,
        step: LoadStep<'_>,
        writes: bool,
    ) -> Result<(bool, Option<Vec<Reading>>), ExecuteError> {
        if !writes || !self.marker.on_disk() {
            return Ok((true, None));
        }
        self.listener.on_event(Event::Settling { step: step.step });
        // Only CPU time and I/O are of interest.
        let context = Context { choice: ProbeChoice::Off, ..self.context(step, &[]) };
        let watch = RunWatch::begin(&self.probes.root, &context);
        let settled = self.wait_until_settled(store)?;
        Ok((settled, Some(watch.end().readings)))
    }

    /// The context of a run's probes.
    fn context(&self, step: LoadStep<'_>, servers: &[u32]) -> Context {
        let own = std::iter::once(&self.segment.store.path);
        let paths: Vec<PathBuf> = own
            .filter(|path| !path.as_os_str().is_empty())
            .chain(&self.other_stores)
            .cloned()
            .collect();
        // With agents the load does not run here.
        let cpus = match self.agent_pool {
            None => cpus_of_load(&step.load.load_config, servers),
            Some(_) => Vec::new(),
        };
        self.probes.context(&paths, cpus, self.servers.pids())
    }

    /// Simulated counters of a step's workload, cached for consecutive runs of it.
    fn simulated(&mut self, step: LoadStep<'_>) -> Vec<Reading> {
        let Some(simulation) = &self.probes.simulation else { return Vec::new() };
        if let Some((workload, readings)) = &self.simulated
            && *workload == step.load.workload
        {
            return readings.clone();
        }
        self.listener.on_event(Event::Simulating { step: step.step });
        let (root, program) = (&self.probes.root, &self.probes.pass);
        let readings = simulate(simulation, root, program, self.segment, step, self.stop);
        self.simulated = Some((step.load.workload.clone(), readings.clone()));
        readings
    }

    /// Waits in slices, so that a stop is noticed. If the store does not settle in time, the next run
    /// gets a warning.
    fn wait_until_settled(&mut self, store: &Arc<dyn Target>) -> Result<bool, ExecuteError> {
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

    fn name_of(&self, store: &Arc<dyn Target>, step: LoadStep<'_>) -> DatasetName {
        let dataset = step.load.workload.dataset().to_string();
        DatasetName { dataset, records: self.records, version: store.version() }
    }

    /// Sets the dataset marker if all data is in the store's files; otherwise when the store is
    /// closed.
    fn set_marker(&mut self, name: DatasetName, settled: bool) -> Result<(), ExecuteError> {
        match settled {
            true => self.marker.set(&name),
            false => {
                self.name = Some(name);
                Ok(())
            }
        }
    }
}

/// What a profiled pass did to the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProfiledPass {
    /// There was none.
    None,
    /// The data matches its name.
    Ended,
    LeftChanges,
}

/// Whether a step writes to the store.
fn writes(step: LoadStep<'_>, what: PhaseKind) -> bool {
    let mix = &step.load.workload.mix;
    what == PhaseKind::Load
        || step.activity.trace().is_some()
        || Op::ALL.into_iter().any(|op| op.writes() && mix.contains(op))
}

/// What a window gave.
struct MeasuredWindow {
    started_at: String,
    driven: DrivenPhase,
    readings: Vec<Reading>,
    series: Vec<Series>,
    /// The store's own, before and after.
    statistics: (Vec<Statistic>, Vec<Statistic>),
    servers: WindowReadings,
}

/// Whether the data still matches its dataset name, except for added records.
fn data_is_whole(step: LoadStep<'_>, outcome: &PhaseOutcome) -> bool {
    let DataChanges { inserted, deleted, refused } = outcome.changes;
    let complete = step.phase() == Phase::Measure || inserted == step.load.workload.records.0;
    complete && deleted == 0 && refused == 0
}
