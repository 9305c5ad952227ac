//! Searches the highest rate that meets an objective, with runs on one open store. [`analyse::search`]
//! decides the next rate; each trial is measured and saved like any run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use analyse::search::{
    ClientHealth, RateTrial, Search as Procedure, SearchConclusion, SearchCut, SearchRequest,
    SearchStep as Decision,
};
use analyse::slo::Objective;
use drive::Ticks;
use model::{Execution, LatencyClock, LoadShape, MAX_RATE, Op, Pacing, Phase, Run, StopCondition};
use store::StoreUrl;
use study::{
    Activity, AgentsConfig, Calibration, KnobLevels, LoadConfig, Plan, ProbesConfig, Segment,
    ServerSpec, Step, StoreLoad, TraceSource, check_store, replay_step, step,
};
use workload::WorkloadSpec;

use crate::distributed::AgentPool;
use crate::error::ExecuteError;
use crate::event::Listener;
use crate::execution_cache::ExecutionCache;
use crate::idle_power::measure_idle;
use crate::knobs::KnobEffects;
use crate::load_step::LoadStep;
use crate::required::check_required;
use crate::run_context::RunContext;
use crate::session::StepAgenda;

/// Maximum length of the closed loop that gives the starting rate.
const CALIBRATION: Duration = Duration::from_secs(2);
/// A shorter part of a trial's time is no trial: the trace has ended.
const MIN_TRIAL_SHARE: f64 = 0.9;
/// The settings for the role of a run and for the objective.
const ROLE_KEY: &str = "search";
const OBJECTIVE_KEY: &str = "slo";

/// A search and its trials' configuration.
#[derive(Debug, Clone)]
pub struct RateSearch {
    pub store: StoreUrl,
    /// The server to be started for the search.
    pub server: Option<ServerSpec>,
    /// The workload's name and what it asks.
    pub name: String,
    pub workload: WorkloadSpec,
    /// Replayed in each trial from its beginning, instead of the workload's operations.
    pub trace: Option<TraceSource>,
    /// An open loop; its rate and length do not matter.
    pub load_config: LoadConfig,
    pub objective: Objective,
    /// Its hint is measured here.
    pub request: SearchRequest,
    /// Of a trial that need not be longer.
    pub time: Duration,
    /// The machines that generate the load instead of this one.
    pub agents: Option<AgentsConfig>,
    pub probes: ProbesConfig,
    pub knobs: KnobLevels,
    /// No trial begins that would not end within this time; loading does not count.
    pub most_time: Option<Duration>,
}

/// A trial and the run that it was.
#[derive(Debug, Clone)]
pub struct TrialRun {
    pub trial: RateTrial,
    pub run: Run,
}

/// The result of a search.
#[derive(Debug)]
pub struct SearchResult {
    pub conclusion: SearchConclusion,
    /// In their order.
    pub tried: Vec<TrialRun>,
    /// What the closed loop reached at the beginning, in operations per second.
    pub calibration: Option<f64>,
    /// What ended the search before it had an answer.
    pub fault: Option<ExecuteError>,
}

impl RateSearch {
    /// The plan of what is certain to run, to begin a results file with.
    pub fn plan(&self) -> Result<Plan, ExecuteError> {
        let template = self.template()?;
        template.procedure(None)?;
        self.store.check()?;
        match &self.trace {
            Some(trace) if trace.is_stdin() => {
                let words = "--trace -: standard input can be read once, and a search replays the \
                             trace in each trial; name a file";
                return Err(ExecuteError::Request(words.to_owned()));
            }
            Some(_) => {}
            None => check_store(&self.store, &self.workload)?,
        }
        let segments = vec![Segment {
            store: self.store.clone(),
            server: self.server.clone(),
            temporary: false,
            steps: vec![template.closed(1)],
            preparing: self.load_config.preparing(),
            knobs: KnobLevels::default(),
            copies: false,
        }];
        let plan = Plan {
            seed: self.workload.seed,
            probes: self.probes.clone(),
            ..Plan::new("search", segments)
        };
        let plan = plan.with_knobs(self.knobs.clone());
        match self.agents.clone() {
            Some(agents) => plan.with_agents(agents).map_err(|invalid| {
                ExecuteError::Request(format!("--{} {}", invalid.flag(), invalid.why))
            }),
            None => Ok(plan),
        }
    }

    /// The trial of a run; None for a closed loop.
    pub fn trial(&self, run: &Run) -> Option<RateTrial> {
        RateTrial::of(run, &self.objective, ClientHealth::of(run))
    }

    /// Searches, and saves each trial as it ends. After a stop or an error of the store, the result is
    /// that of the trials so far, with the reason.
    pub fn run(
        &self,
        execution: &Execution,
        keep: &mut dyn FnMut(&Run) -> Result<(), ExecuteError>,
        listener: &mut dyn Listener,
        stop: &Arc<AtomicBool>,
        knob_effects: &KnobEffects,
    ) -> Result<SearchResult, ExecuteError> {
        let plan = self.plan()?;
        let clock = Ticks::new();
        let mut agent_pool = self.agents.clone().map(AgentPool::new);
        check_required(&self.probes)?;
        let idle = measure_idle(&self.probes, listener, stop);
        let cache = ExecutionCache::default();
        let mut context = RunContext {
            clock: &clock,
            execution,
            stop,
            agent_pool: agent_pool.as_mut(),
            probes: &self.probes,
            idle: &idle,
            knob_effects,
            cache: &cache,
        };
        let mut trials = TrialAgenda::new(self.template()?, 1, &[])?;
        let first = trials.template.closed(1);
        let mut unkept = None;
        let mut keep = |run: &Run| keep(run).inspect_err(|_| unkept = Some(run.clone()));
        let ended = context.run_segment(&plan.segments[0], first, &mut trials, &mut keep, listener);
        // A measured trial counts even if it could not be saved.
        let last_run = unkept.map_or(Ok(()), |run| trials.take(&run));
        if !matches!(ended, Ok(true)) {
            trials.cut = Some(SearchCut::Stopped);
        }
        let conclusion = trials.conclusion();
        let fault = ended.err().or(last_run.err()).or(trials.fault);
        Ok(SearchResult { conclusion, tried: trials.tried, calibration: trials.calibration, fault })
    }

    fn template(&self) -> Result<TrialTemplate, ExecuteError> {
        let target = (&self.store, self.server.as_ref());
        let mut load_config = self.load_config.clone();
        load_config.shape.until = StopCondition { operations: None, time: Some(self.time) };
        let first = (1, 0, 1);
        let mut template = match &self.trace {
            Some(trace) => {
                let trace = trace.for_store(&self.store)?;
                replay_step(target, &trace, self.workload.seed, &load_config, first)?
            }
            None => step(target, &self.name, &self.workload, Phase::Measure, &load_config, first)?,
        };
        self.knobs.settings(&mut template.settings);
        if let Some(agents) = &self.agents {
            agents.settings(&mut template.settings);
        }
        let load = LoadStep::of(&template)?.load.clone();
        Ok(TrialTemplate {
            template,
            load,
            objective: self.objective.clone(),
            request: self.request,
            time: self.time,
            most_time: self.most_time,
        })
    }
}

/// The trials of a search without their rate.
pub(crate) struct TrialTemplate {
    template: Step,
    /// An open loop; its rate does not matter.
    load: StoreLoad,
    objective: Objective,
    request: SearchRequest,
    /// Of a trial that need not be longer.
    time: Duration,
    most_time: Option<Duration>,
}

/// Settings of a run that depend on its pacing.
const OF_PACE: [&str; 6] = ["loop", "rate", "rate_profile", "arrivals", "warm_up_rate", "time"];

impl TrialTemplate {
    /// To find the maximum of which a step's rate is a share.
    pub(crate) fn of_step(step: LoadStep<'_>, calibrate: &Calibration) -> TrialTemplate {
        let Calibration { objective, request, time, most_time, key } = calibrate;
        let mut settings = key.clone();
        settings.insert(Run::TRIAL_FOR.to_owned(), step.ordinal.to_string());
        TrialTemplate {
            template: Step { settings, repeat: 1, ..step.step.clone() },
            load: StoreLoad { calibrate: None, ..step.load.clone() },
            objective: objective.clone(),
            request: *request,
            time: *time,
            most_time: *most_time,
        }
    }

    fn procedure(&self, hint: Option<f64>) -> Result<Procedure, ExecuteError> {
        let highest = Some(self.request.highest.unwrap_or(MAX_RATE));
        Procedure::new(SearchRequest { hint, highest, ..self.request })
            .map_err(|error| ExecuteError::Request(error.to_string()))
    }

    /// A closed loop with the same connections, which gives the starting rate.
    fn closed(&self, ordinal: u32) -> Step {
        let replays = self.template.activity.trace().is_some();
        let closed = LoadConfig {
            shape: LoadShape {
                pacing: Pacing::Closed { think: Duration::ZERO },
                profile: None,
                // As fast as the store answers, a warm-up could use up the trace.
                warm_up: self.load.load_config.shape.warm_up.filter(|_| !replays),
                warm_up_rate: None,
                until: StopCondition { operations: None, time: Some(self.time.min(CALIBRATION)) },
            },
            of_maximum: false,
            ..self.load.load_config.clone()
        };
        self.step(closed, ordinal, "calibration")
    }

    fn trial(&self, rate: f64, time: Duration, ordinal: u32) -> Step {
        self.step(self.load.load_config.at(rate, time), ordinal, "trial")
    }

    fn step(&self, load_config: LoadConfig, ordinal: u32, role: &str) -> Step {
        let mut settings = self.template.settings.clone();
        settings.retain(|name, _| !OF_PACE.contains(&name.as_str()));
        load_config.settings(settings.contains_key("connections"), &mut settings);
        settings.insert(ROLE_KEY.to_owned(), role.to_owned());
        settings.insert(OBJECTIVE_KEY.to_owned(), self.objective.to_string());
        let load = StoreLoad { load_config, ..self.load.clone() };
        let activity = match self.template.activity.trace() {
            Some(trace) => {
                trace.settings(&load.load_config, &mut settings);
                Activity::Replay(Box::new(load), trace.clone())
            }
            None => Activity::Measure(Box::new(load)),
        };
        Step { ordinal, activity, settings, ..self.template.clone() }
    }
}

/// Decides after each run which is the next.
pub(crate) struct TrialAgenda {
    template: TrialTemplate,
    procedure: Procedure,
    /// Of the next step.
    ordinal: u32,
    /// When the first run began.
    began: Option<Instant>,
    /// Length of the trial under way.
    trial_time: Duration,
    /// The closed loop was run.
    hinted: bool,
    calibration: Option<f64>,
    tried: Vec<TrialRun>,
    conclusion: Option<SearchConclusion>,
    cut: Option<SearchCut>,
    fault: Option<ExecuteError>,
}

impl TrialAgenda {
    /// The steps are counted from `ordinal` on; `made` are the runs of an earlier invocation.
    pub(crate) fn new(
        template: TrialTemplate,
        ordinal: u32,
        made: &[Run],
    ) -> Result<TrialAgenda, ExecuteError> {
        let mut trials = TrialAgenda {
            procedure: template.procedure(None)?,
            template,
            ordinal,
            began: None,
            trial_time: Duration::ZERO,
            hinted: false,
            calibration: None,
            tried: Vec::new(),
            conclusion: None,
            cut: None,
            fault: None,
        };
        made.iter().try_for_each(|run| trials.on_run(run))?;
        Ok(trials)
    }

    /// Takes a run of this invocation.
    pub(crate) fn take(&mut self, run: &Run) -> Result<(), ExecuteError> {
        let this = Duration::from_secs_f64(run.seconds);
        self.began
            .get_or_insert_with(|| Instant::now().checked_sub(this).unwrap_or_else(Instant::now));
        self.ordinal = run.ordinal + 1;
        self.on_run(run)
    }

    /// Takes a run: the starting rate, or a trial.
    fn on_run(&mut self, run: &Run) -> Result<(), ExecuteError> {
        self.check_length(run)?;
        self.hinted = true;
        match RateTrial::of(run, &self.template.objective, ClientHealth::of(run)) {
            Some(trial) => self.tried.push(TrialRun { trial, run: run.clone() }),
            None => {
                self.check_operations(run)?;
                self.calibration = Some(run.throughput()).filter(|rate| *rate > 0.0);
                self.procedure = self.template.procedure(self.calibration)?;
            }
        }
        Ok(())
    }

    /// An objective of an operation that is not in the trace could never be judged.
    fn check_operations(&self, run: &Run) -> Result<(), ExecuteError> {
        let objective = &self.template.objective;
        if self.template.template.activity.trace().is_none() || run.operations == 0 {
            return Ok(());
        }
        let has = |op: Op| run.latency(op, LatencyClock::Service).is_some();
        let ops = objective.conditions().iter().filter_map(|condition| condition.op);
        match ops.into_iter().find(|op| !has(*op)) {
            Some(op) => Err(ExecuteError::Request(format!(
                "--slo {objective}: the first {} requests of the trace have no `{op}`",
                run.operations
            ))),
            None => Ok(()),
        }
    }

    /// A trace that ends before a trial does says nothing about the rate.
    fn check_length(&self, run: &Run) -> Result<(), ExecuteError> {
        let Some(rate) = run.target_rate() else { return Ok(()) };
        let requested = self.trial_time.as_secs_f64();
        if self.template.template.activity.trace().is_none()
            || run.seconds >= MIN_TRIAL_SHARE * requested
            || run.errors() > 0
        {
            return Ok(());
        }
        Err(ExecuteError::Request(format!(
            "at {rate:.0} requests a second the trace ended after {:.2} s of a trial of \
             {requested} s: replay it with more keys (--trace-copies), search below that rate \
             (--to), or give a shorter --time",
            run.seconds
        )))
    }

    /// The next trial; None when the search has ended.
    pub(crate) fn next_step(&mut self) -> Result<Option<Step>, ExecuteError> {
        if !self.hinted {
            return Ok(Some(self.template.closed(self.ordinal)));
        }
        let (rate, longer) = match self.procedure.next(&self.judged()) {
            Decision::Try { rate_ops_s, longer, .. } => (rate_ops_s, longer),
            Decision::Done(conclusion) => {
                self.conclusion = Some(conclusion);
                return Ok(None);
            }
        };
        let time = self.template.time.mul_f64(longer);
        let whole = time + self.template.load.load_config.shape.warm_up.unwrap_or_default();
        let elapsed = self.began.map_or(Duration::ZERO, |began| began.elapsed());
        if self.template.most_time.is_some_and(|most| elapsed + whole > most) {
            self.cut = Some(SearchCut::Time);
            return Ok(None);
        }
        self.trial_time = time;
        Ok(Some(self.template.trial(rate, time, self.ordinal)))
    }

    fn judged(&self) -> Vec<RateTrial> {
        self.tried.iter().map(|tried| tried.trial.clone()).collect()
    }

    /// What the trials come to, at their end or where they were cut short.
    pub(crate) fn conclusion(&self) -> SearchConclusion {
        let cut = self.cut.unwrap_or(SearchCut::Stopped);
        let so_far = || self.procedure.cut_short(&self.judged(), cut);
        self.conclusion.clone().unwrap_or_else(so_far)
    }
}

impl StepAgenda for TrialAgenda {
    fn next(&mut self, run: &Run) -> Option<Step> {
        self.take(run).and_then(|()| self.next_step()).unwrap_or_else(|fault| {
            self.fault = Some(fault);
            None
        })
    }

    fn preloads(&self) -> bool {
        self.template.load.load_config.server_timing.preloads(true)
    }
}
