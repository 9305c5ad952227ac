//! The coordinator's side: assigns shares of the load to agents and joins their outcomes.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use agents::{AgentError, AgentGroup, PeerOptions, Started, TaskProgress};
use drive::{LiveInterval, MeasuredTax, Observer, PhaseOutcome, PhaseStage, Target, Ticks};
use host::ProbeChoice;
use model::{Phase, Reading, RunSettings, Scope};
use store::StoreUrl;
use study::{AgentsConfig, KnobLevels, LoadConfig};
use workload::Workload;

use super::agent::sleep_until;
use super::intervals::IntervalMerger;
use super::readings::{
    AgentReadings, knobs_of_agents, of_clients, of_each, of_load, sum_of_agents,
};
use super::{Assignment, MachineAssignment, measuring, unpack};
use crate::error::ExecuteError;
use crate::load_plan::load_plan;
use crate::load_step::LoadStep;

/// How long an agent may take to answer the first call.
const REACH: Duration = Duration::from_secs(10);
/// How long agents may take to connect to the servers and to make their buffers.
const PREPARE: Duration = Duration::from_secs(120);
/// How long agents may take beyond their window to end what is in flight.
const BEYOND: Duration = Duration::from_secs(300);
/// Limit of a window that ends by a number of operations; hung agents report themselves.
const ENDLESS: Duration = Duration::from_secs(365 * 86_400);
/// How long before a start without warm-up the servers' counters are read.
const AHEAD: Duration = Duration::from_millis(50);
/// How often flags are checked.
const LOOK: Duration = Duration::from_millis(20);

/// The agents of a plan, connected when they are needed.
pub(crate) struct AgentPool {
    agents: AgentsConfig,
    group: Option<AgentGroup>,
}

/// One run for the agents.
pub(crate) struct AgentRun<'a> {
    pub(crate) clock: &'a Ticks,
    pub(crate) target: &'a Arc<dyn Target>,
    pub(crate) store: &'a StoreUrl,
    pub(crate) workload: &'a Arc<Workload>,
    pub(crate) step: LoadStep<'a>,
    /// The levels of this machine's knobs.
    pub(crate) knobs: &'a KnobLevels,
    pub(crate) stop: &'a Arc<AtomicBool>,
}

/// The result of a run on agents.
pub(crate) struct AgentRunResult {
    /// The joined outcome of the agents, or that of the client that measured beside them.
    pub(crate) outcome: PhaseOutcome,
    /// The load configuration of that outcome.
    pub(crate) load_config: LoadConfig,
    /// The highest tax of the client machines; None where none reported one.
    pub(crate) tax: Option<MeasuredTax>,
    agents: Vec<AgentReadings>,
    /// The agent that measured, where one did.
    measuring: Option<AgentReadings>,
    bound: Option<Duration>,
    /// The joined outcome of the agents where another client measured.
    load: Option<PhaseOutcome>,
    /// The probes that were read on the agents' machines.
    probes: ProbeChoice,
}

impl AgentRunResult {
    /// The levels and effects of the agents' knobs: `agents.knob.NAME`.
    pub(crate) fn settings(&self) -> RunSettings {
        knobs_of_agents(&self.agents)
    }

    /// The readings of the run: those of the client machines instead of this one's.
    pub(crate) fn readings(&self, own: Vec<Reading>) -> Vec<Reading> {
        let mut all = own;
        let of_servers = |reading: &Reading| {
            matches!(reading.scope, Scope::Server | Scope::Store | Scope::Device)
        };
        match &self.load {
            Some(load) => {
                if let Some(measuring) = &self.measuring {
                    all.retain(of_servers);
                    all.extend(sum_of_agents(std::slice::from_ref(measuring), &self.probes));
                }
                all.extend(of_load(load));
                let sums = sum_of_agents(&self.agents, &self.probes);
                all.extend(sums.into_iter().map(|reading| Reading {
                    signal: format!("load.{}", reading.signal),
                    ..reading
                }));
            }
            None => {
                all.retain(of_servers);
                all.extend(sum_of_agents(&self.agents, &self.probes));
            }
        }
        all.extend(of_clients(&self.agents, &self.probes));
        all.extend(of_each(&self.agents, self.bound, &self.probes));
        all
    }
}

/// Events of a run on agents.
enum RunNews {
    Started(Started),
    /// Of all agents together, and of each its operations and newest interval.
    Progress(TaskProgress, Vec<(u64, Arc<[u8]>)>),
    Ended(Result<Vec<Vec<u8>>, AgentError>),
}

fn request_error(error: AgentError) -> ExecuteError {
    ExecuteError::Request(error.to_string())
}

impl AgentPool {
    pub(crate) fn new(agents: AgentsConfig) -> AgentPool {
        AgentPool { agents, group: None }
    }

    /// Connects the agents, unless they are connected.
    pub(crate) fn reach(&mut self) -> Result<&mut AgentGroup, ExecuteError> {
        if self.group.is_none() {
            let credentials = self.agents.secrets.load().map_err(request_error)?;
            let options = PeerOptions::default();
            let hosts = self.agents.all_hosts();
            self.group = Some(
                AgentGroup::connect(&hosts, &credentials, options, REACH).map_err(request_error)?,
            );
        }
        self.group.as_mut().ok_or_else(|| ExecuteError::Failed("the agents are gone".to_owned()))
    }

    /// What the agents' machines do besides, while something is measured.
    fn machine(&self, task: &AgentRun<'_>) -> MachineAssignment {
        if task.step.phase() != Phase::Measure {
            return MachineAssignment::default();
        }
        let AgentsConfig { knobs, probes, .. } = &self.agents;
        let levels = task.knobs.0.iter().filter(|(knob, _)| knobs.contains(knob));
        MachineAssignment { knobs: levels.cloned().collect(), probes: probes.clone() }
    }

    /// Runs a step on the agents; with a measure rate, this machine or one of theirs measures at the
    /// same time.
    pub(crate) fn run(
        &mut self,
        task: &AgentRun<'_>,
        observer: &mut dyn Observer,
    ) -> Result<AgentRunResult, ExecuteError> {
        let AgentRun { step, stop, .. } = *task;
        let measure = self.agents.measure.clone().filter(|_| step.phase() == Phase::Measure);
        let all = self.agents.all_hosts().len();
        // Beside those that load, the last one may measure.
        let host = measure.as_ref().and_then(|client| client.host.as_ref());
        let count = all - usize::from(host.is_some());
        let machine = self.machine(task);
        let mut probes = ProbeChoice::Off;
        let known = machine.probes.iter().try_for_each(|name| probes.take(name));
        known.map_err(|error| ExecuteError::Request(error.to_string()))?;
        let assignment = |agent| Assignment {
            machine: machine.clone(),
            measure_rate: measure.as_ref().map(|client| client.rate).filter(|_| agent == count),
            ..task.assignment(agent, count, measure.is_some())
        };
        let assignments = (0..all)
            .map(|agent| serde_json::to_vec(&assignment(agent)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| ExecuteError::Failed(error.to_string()))?;
        let group = self.reach()?;
        let mut result = AgentRunResult {
            outcome: PhaseOutcome { stopped: true, ..PhaseOutcome::default() },
            load_config: step.load.load_config.clone(),
            tax: None,
            agents: group.infos().iter().map(AgentReadings::of).collect(),
            bound: None,
            measuring: None,
            load: None,
            probes,
        };
        match group.prepare(assignments, PREPARE, stop) {
            Ok(()) => {}
            Err(AgentError::Stopped) => return Ok(result),
            Err(error) => {
                self.group = None;
                return Err(ExecuteError::Failed(error.to_string()));
            }
        }
        if let Some(client) = &measure {
            result.load_config = measuring::load_config(&step.load.load_config, client.rate);
        }
        let clients = match (&measure, host) {
            (None, _) => 0..all,
            (Some(_), Some(_)) => count..all,
            (Some(_), None) => 0..0,
        };
        let began = Instant::now();
        let AgentRunEnd { ended, bound, operations, own } =
            watch(group, task, &result.load_config, all, clients, observer)?;
        result.bound = bound;
        for (agent, operations) in result.agents.iter_mut().zip(operations) {
            agent.operations = operations;
        }
        let payloads = match ended {
            Ok(payloads) => payloads,
            Err(AgentError::Stopped) if stop.load(Ordering::Relaxed) => return Ok(result),
            Err(error) => {
                // The next run connects them again.
                self.group = None;
                result.outcome = PhaseOutcome {
                    threads: step.load.load_config.threads as usize,
                    seconds: began.elapsed().as_secs_f64(),
                    invalid_because: vec![format!(
                        "{error}; the other agents were stopped, and the results of all are lost"
                    )],
                    ..PhaseOutcome::default()
                };
                return Ok(result);
            }
        };
        take_results(&mut result.agents, payloads)?;
        let of_agents = &step.load.load_config;
        if let Some(host) = host {
            let last = result.agents.split_off(count);
            let own = task.joined(&last, &result.load_config)?;
            result.tax = highest_tax(&last);
            let load = task.joined(&result.agents, of_agents)?;
            result.outcome = measuring::with_load(&host.to_string(), own, &load);
            (result.load, result.measuring) = (Some(load), last.into_iter().next());
            return Ok(result);
        }
        let joined = task.joined(&result.agents, of_agents)?;
        match own {
            None => {
                result.outcome = joined;
                result.tax = highest_tax(&result.agents);
            }
            Some(own) => {
                result.outcome = measuring::with_load("the coordinator", own, &joined);
                result.load = Some(joined);
            }
        }
        Ok(result)
    }
}

impl AgentRun<'_> {
    /// What one of so many agents is to do; `measured`: this machine takes a part too.
    fn assignment(&self, agent: usize, agents: usize, measured: bool) -> Assignment {
        Assignment {
            store: self.store.clone(),
            workload: self.step.load.workload.clone(),
            loads: self.step.phase() == Phase::Load,
            load_config: self.step.load.load_config.clone(),
            agent,
            agents,
            measured,
            measure_rate: None,
            machine: MachineAssignment::default(),
        }
    }

    /// The outcomes of these agents as one, under the load configuration of them all.
    fn joined(
        &self,
        agents: &[AgentReadings],
        load_config: &LoadConfig,
    ) -> Result<PhaseOutcome, ExecuteError> {
        let outcome = |agent: &AgentReadings| {
            let (_, outcome) = agent.result.as_ref()?;
            Some((agent.address.to_string(), outcome.clone()))
        };
        let parts: Vec<(String, PhaseOutcome)> = agents.iter().filter_map(outcome).collect();
        let what = self.assignment(0, agents.len(), false).phase();
        let whole = load_plan(load_config, what, self.step.load.workload.seed, self.stop);
        let stores_values = self.target.capabilities().stores_values;
        Ok(drive::join(&parts, &whole, self.target.slots(&whole), stores_values)?)
    }
}

/// Each agent keeps what it sent.
fn take_results(agents: &mut [AgentReadings], payloads: Vec<Vec<u8>>) -> Result<(), ExecuteError> {
    for (agent, payload) in agents.iter_mut().zip(payloads) {
        let result = unpack(&payload).map_err(|why| {
            ExecuteError::Failed(format!("agent {} sent no outcome: {why}", agent.address))
        })?;
        agent.result = Some(result);
    }
    Ok(())
}

fn highest_tax(agents: &[AgentReadings]) -> Option<MeasuredTax> {
    let taxes =
        agents.iter().filter_map(|agent| agent.result.as_ref()).map(|(result, _)| result.tax);
    taxes.max_by(|a, b| a.ns_per_op.total_cmp(&b.ns_per_op))
}

/// The end of a run on agents.
struct AgentRunEnd {
    ended: Result<Vec<Vec<u8>>, AgentError>,
    bound: Option<Duration>,
    /// Operations of each agent in its last progress report.
    operations: Vec<u64>,
    /// This machine's own, where it measured.
    own: Option<PhaseOutcome>,
}

/// Starts the agents and follows them to the end: this thread drives the observer, another one
/// communicates with them.
fn watch(
    group: &mut AgentGroup,
    task: &AgentRun<'_>,
    load_config: &LoadConfig,
    agents: usize,
    clients: Range<usize>,
    observer: &mut dyn Observer,
) -> Result<AgentRunEnd, ExecuteError> {
    let abort = Arc::new(AtomicBool::new(false));
    let (sender, news) = channel();
    let (start_sender, start_receiver) = channel();
    let limit = load_config.length().map_or(ENDLESS, |length| {
        length.saturating_add(load_config.shape.warm_up.unwrap_or_default()).saturating_add(BEYOND)
    });
    let mut talk = |sender: Sender<RunNews>, start_receiver: Receiver<()>| {
        let ended = match start_receiver.recv() {
            Ok(()) => talk(group, limit, &sender, &abort),
            Err(_) => Err(AgentError::Stopped),
        };
        if ended.is_err() {
            abort.store(true, Ordering::Relaxed);
        }
        // The watching thread receives it before it leaves the scope.
        let _ = sender.send(RunNews::Ended(ended));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| talk(sender, start_receiver));
        let mut agent_observer = AgentObserver {
            news,
            start_sender: Some(start_sender),
            abort: &abort,
            stop: task.stop,
            warm_up: load_config.shape.warm_up.unwrap_or_default(),
            began: None,
            bound: None,
            operations: vec![0; agents],
            intervals: IntervalMerger::new(clients.len()),
            clients: clients.clone(),
            load: LiveInterval::default(),
            ended: None,
            observer,
        };
        let own = match clients.is_empty() {
            false => {
                agent_observer.follow_to_end();
                None
            }
            true => {
                let mut plan = load_plan(
                    load_config,
                    drive::PhaseKind::Mix,
                    task.step.load.workload.seed,
                    &abort,
                );
                plan.share = Some(measuring::share(&task.step.load.load_config, agents));
                let AgentRun { clock, target, workload, .. } = *task;
                let own =
                    drive::drive(clock, Arc::clone(target), workload, &plan, &mut agent_observer);
                if own.is_err() {
                    abort.store(true, Ordering::Relaxed);
                }
                agent_observer.start_sender = None;
                while agent_observer.ended.is_none() {
                    agent_observer.look(LOOK);
                }
                match own {
                    Ok(own) => Some(own),
                    // The agents report why.
                    Err(drive::DriveError::NotBegun) => None,
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let AgentObserver { bound, operations, ended, .. } = agent_observer;
        let ended = ended.unwrap_or(Err(AgentError::Stopped));
        Ok(AgentRunEnd { ended, bound, operations, own })
    })
}

/// Starts the agents and waits for their outcomes.
fn talk(
    group: &mut AgentGroup,
    limit: Duration,
    sender: &Sender<RunNews>,
    abort: &AtomicBool,
) -> Result<Vec<Vec<u8>>, AgentError> {
    let started = group.start(Duration::ZERO, abort)?;
    let _ = sender.send(RunNews::Started(started));
    let mut progress = |all: &TaskProgress, each: &[Option<TaskProgress>]| {
        let of = |one: &TaskProgress| (one.operations, Arc::clone(&one.newest_interval));
        let each = each.iter().map(|one| one.as_ref().map(of).unwrap_or_default()).collect();
        let _ = sender.send(RunNews::Progress(all.clone(), each));
    };
    group.run(limit, &mut progress, abort)
}

/// This thread's view of the agents.
struct AgentObserver<'a> {
    news: Receiver<RunNews>,
    /// Lets the other thread start the agents.
    start_sender: Option<Sender<()>>,
    abort: &'a AtomicBool,
    stop: &'a AtomicBool,
    warm_up: Duration,
    began: Option<Instant>,
    bound: Option<Duration>,
    operations: Vec<u64>,
    /// The agents whose latencies are those of the run; none where this machine measures.
    clients: Range<usize>,
    intervals: IntervalMerger,
    load: LiveInterval,
    ended: Option<Result<Vec<Vec<u8>>, AgentError>>,
    observer: &'a mut dyn Observer,
}

impl AgentObserver<'_> {
    /// Receives one event, waiting at most `wait`; returns progress.
    fn look(&mut self, wait: Duration) -> Option<TaskProgress> {
        if self.stop.load(Ordering::Relaxed) {
            self.abort.store(true, Ordering::Relaxed);
        }
        match self.news.recv_timeout(wait) {
            Ok(RunNews::Started(started)) => {
                self.began = Some(started.begin);
                self.bound = Some(started.bound);
                None
            }
            Ok(RunNews::Progress(all, each)) => {
                self.load = LiveInterval { operations_s: all.live_ops_s, p99_ns: all.live_p99_ns };
                let newest: Vec<Arc<[u8]>>;
                (self.operations, newest) = each.into_iter().unzip();
                let newest = newest.get(self.clients.clone()).unwrap_or_default();
                for interval in self.intervals.take(newest) {
                    self.observer.interval(&interval.shown());
                }
                Some(all)
            }
            Ok(RunNews::Ended(ended)) => {
                self.ended = Some(ended);
                None
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                self.ended.get_or_insert(Err(AgentError::Stopped));
                None
            }
        }
    }

    /// Where this machine only watches: the observer's window is the agents'.
    fn follow_to_end(&mut self) {
        if let Some(start_sender) = self.start_sender.take() {
            let _ = start_sender.send(());
        }
        let mut open = false;
        while self.ended.is_none() {
            let opens = self.began.map(|began| match self.warm_up.is_zero() {
                // No requests before: the servers' counters are those of the window.
                true => began - AHEAD,
                false => began + self.warm_up,
            });
            let left = opens.map(|opens| opens.saturating_duration_since(Instant::now()));
            if !open && left.is_some_and(|left| left.is_zero()) {
                self.observer.window_opens();
                open = true;
            }
            let wait = left.filter(|_| !open).map_or(LOOK, |left| left.min(LOOK));
            if let Some(all) = self.look(wait) {
                let stage = if open { PhaseStage::Measure } else { PhaseStage::WarmUp };
                self.observer.progress(&drive::PhaseProgress {
                    stage,
                    operations: all.operations,
                    elapsed: Duration::try_from_secs_f64(all.elapsed_s).unwrap_or_default(),
                    done: all.done,
                    live: self.load,
                });
            }
        }
        if open {
            self.observer.window_closes();
        }
    }
}

/// Where this machine measures: its phase begins with the agents'.
impl Observer for AgentObserver<'_> {
    fn ready(&mut self) -> bool {
        if let Some(start_sender) = self.start_sender.take() {
            let _ = start_sender.send(());
        }
        loop {
            self.look(LOOK);
            match (self.began, &self.ended) {
                (_, Some(_)) => return false,
                (Some(began), None) => return sleep_until(began, self.abort),
                (None, None) => {}
            }
        }
    }

    fn window_opens(&mut self) {
        self.observer.window_opens();
    }

    fn window_closes(&mut self) {
        self.observer.window_closes();
    }

    fn interval(&mut self, interval: &drive::CompleteInterval<'_>) {
        self.observer.interval(interval);
    }

    fn progress(&mut self, progress: &drive::PhaseProgress) {
        // Agents report progress ten times a second.
        while self.look(Duration::ZERO).is_some() {}
        let rate = progress.live.operations_s + self.load.operations_s;
        let live = LiveInterval { operations_s: rate, p99_ns: progress.live.p99_ns };
        let operations = progress.operations + self.operations.iter().sum::<u64>();
        self.observer.progress(&drive::PhaseProgress { live, operations, ..*progress });
    }
}
