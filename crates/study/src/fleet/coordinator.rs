//! The coordinator's side: it gives the agents their parts and puts together what they saw.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use agents::{AgentError, AgentGroup, PeerOptions, Started, TaskProgress};
use drive::{
    Arrivals, LiveInterval, LoadShare, MeasuredTax, Observer, Pacing, PhaseOutcome, PhaseStage,
    Target, Ticks,
};
use model::{Reading, Scope};
use record::Phase;
use store::StoreUrl;
use workload::Workload;

use super::agent::sleep_until;
use super::readings::{AgentReadings, of_each, of_load, together};
use super::{AgentsConfig, Assignment, unpack};
use crate::asking::LoadConfig;
use crate::error::StudyError;
use crate::plan::Step;

/// How long an agent may take to answer the first call.
const REACH: Duration = Duration::from_secs(10);
/// How long agents may take to connect to the servers and to make their buffers.
const PREPARE: Duration = Duration::from_secs(120);
/// How long agents may take beyond their window: what is under way ends, or is given up.
const BEYOND: Duration = Duration::from_secs(300);
/// A window without an end of its own ends by its count; agents that hang say so themselves.
const ENDLESS: Duration = Duration::from_secs(365 * 86_400);
/// So long before agents that do not warm up begin, the servers are looked at.
const AHEAD: Duration = Duration::from_millis(50);
/// How often flags are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The agents of a plan, called when they are needed.
pub(crate) struct AgentPool {
    agents: AgentsConfig,
    fleet: Option<AgentGroup>,
}

/// What is asked of the crew: one run.
pub(crate) struct AgentRun<'a, T> {
    pub(crate) clock: &'a Ticks,
    pub(crate) target: &'a Arc<T>,
    pub(crate) store: &'a StoreUrl,
    pub(crate) workload: &'a Arc<Workload>,
    pub(crate) step: &'a Step,
    pub(crate) stop: &'a Arc<AtomicBool>,
}

/// What a run that agents bore came to.
pub(crate) struct AgentRunResult {
    /// The agents' together, or the coordinator's own where it measured.
    pub(crate) outcome: PhaseOutcome,
    /// How it was asked: the agents' manner, or the coordinator's.
    pub(crate) manner: LoadConfig,
    /// The dearest of the machines that asked; None where none told.
    pub(crate) tax: Option<MeasuredTax>,
    agents: Vec<AgentReadings>,
    bound: Option<Duration>,
    /// The agents' together, beside a coordinator that measured.
    load: Option<PhaseOutcome>,
}

impl AgentRunResult {
    /// The readings of the run: those of the machines that asked instead of this one's.
    pub(crate) fn readings(&self, own: Vec<Reading>) -> Vec<Reading> {
        let mut all = own;
        match &self.load {
            Some(load) => {
                all.extend(of_load(load));
                all.extend(together(&self.agents).into_iter().map(|reading| Reading {
                    signal: format!("load.{}", reading.signal),
                    ..reading
                }));
            }
            None => {
                all.retain(|reading| {
                    matches!(reading.scope, Scope::Server | Scope::Store | Scope::Device)
                });
                all.extend(together(&self.agents));
            }
        }
        all.extend(of_each(&self.agents, self.bound));
        all
    }
}

/// How a run at the agents goes.
enum RunNews {
    Started(Started),
    Progress(TaskProgress, Vec<u64>),
    Ended(Result<Vec<Vec<u8>>, AgentError>),
}

fn wrong(error: AgentError) -> StudyError {
    StudyError::Request(error.to_string())
}

impl AgentPool {
    pub(crate) fn new(agents: AgentsConfig) -> AgentPool {
        AgentPool { agents, fleet: None }
    }

    /// Calls the agents, unless they are held already.
    pub(crate) fn reach(&mut self) -> Result<&mut AgentGroup, StudyError> {
        if self.fleet.is_none() {
            let credentials = self.agents.secrets.load().map_err(wrong)?;
            let options = PeerOptions::default();
            let hosts = &self.agents.hosts;
            self.fleet =
                Some(AgentGroup::connect(hosts, &credentials, options, REACH).map_err(wrong)?);
        }
        self.fleet.as_mut().ok_or_else(|| StudyError::Failed("the agents are gone".to_owned()))
    }

    /// Runs a step on the agents; with a rate of its own, this machine measures beside them.
    pub(crate) fn run<T: Target>(
        &mut self,
        task: &AgentRun<'_, T>,
        observer: &mut dyn Observer,
    ) -> Result<AgentRunResult, StudyError> {
        let AgentRun { store, step, stop, .. } = *task;
        let measure = self.agents.measure.filter(|_| step.phase == Phase::Measure);
        let hosts = self.agents.hosts.clone();
        let assignment = |agent: usize| Assignment {
            store: store.clone(),
            workload: step.workload.clone(),
            loads: step.phase == Phase::Load,
            manner: step.manner.clone(),
            agent,
            agents: hosts.len(),
            measured: measure.is_some(),
        };
        let assignments = (0..hosts.len())
            .map(|agent| serde_json::to_vec(&assignment(agent)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| StudyError::Failed(error.to_string()))?;
        let fleet = self.reach()?;
        let mut agents: Vec<AgentReadings> = fleet
            .hello()
            .iter()
            .map(|hello| AgentReadings {
                address: hello.address.clone(),
                machine: hello.machine.clone(),
                operations: 0,
                gave: None,
            })
            .collect();
        let prepared = fleet.prepare(assignments, PREPARE, stop);
        let whole = step.manner.plan(assignment(0).what(), step.workload.seed, stop);
        let outcome_of_a_stop = PhaseOutcome { stopped: true, ..PhaseOutcome::default() };
        if let Err(error) = prepared {
            if error != AgentError::Stopped {
                self.fleet = None;
                return Err(StudyError::Failed(error.to_string()));
            }
            let manner = step.manner.clone();
            let (outcome, tax) = (outcome_of_a_stop, None);
            return Ok(AgentRunResult { outcome, manner, tax, agents, bound: None, load: None });
        }
        let manner = match measure {
            Some(rate) => measuring(&step.manner, rate),
            None => step.manner.clone(),
        };
        let began = Instant::now();
        let AgentRunEnd { ended, bound, operations, own } =
            watch(fleet, task, &manner, measure.is_some(), hosts.len(), observer)?;
        for (agent, operations) in agents.iter_mut().zip(operations) {
            agent.operations = operations;
        }
        let payloads = match ended {
            Ok(payloads) => payloads,
            Err(AgentError::Stopped) if stop.load(Ordering::Relaxed) => {
                let (outcome, tax) = (outcome_of_a_stop, None);
                return Ok(AgentRunResult { outcome, manner, tax, agents, bound, load: None });
            }
            Err(error) => {
                // The next run calls them anew.
                self.fleet = None;
                let outcome = PhaseOutcome {
                    threads: step.manner.threads as usize,
                    seconds: began.elapsed().as_secs_f64(),
                    invalid_because: vec![format!(
                        "{error}; the others were stopped, and what all had recorded is lost"
                    )],
                    ..PhaseOutcome::default()
                };
                return Ok(AgentRunResult {
                    outcome,
                    manner,
                    tax: None,
                    agents,
                    bound,
                    load: None,
                });
            }
        };
        let mut parts = Vec::new();
        for (agent, payload) in agents.iter_mut().zip(payloads) {
            let name = agent.address.to_string();
            let gave = unpack(&payload).map_err(|why| {
                StudyError::Failed(format!("agent {name} gave no outcome: {why}"))
            })?;
            parts.push((name, gave.1.clone()));
            agent.gave = Some(gave);
        }
        let keeps = task.target.capabilities().stores_values;
        let slots = task.target.slots(&whole);
        let joined = drive::join(&parts, &whole, slots, keeps)?;
        let tax = dearest(&agents);
        Ok(match own {
            None => AgentRunResult { outcome: joined, manner, tax, agents, bound, load: None },
            Some(own) => {
                let outcome = beside(own, &joined);
                AgentRunResult { outcome, manner, tax: None, agents, bound, load: Some(joined) }
            }
        })
    }
}

/// The coordinator's own requests: few, over one connection, one at a time unless they must
/// wait for one another.
fn measuring(manner: &LoadConfig, rate: f64) -> LoadConfig {
    let arrivals = match manner.pacing {
        Pacing::Open { arrivals, .. } => arrivals,
        Pacing::Closed { .. } | Pacing::Recorded { .. } => Arrivals::Poisson,
    };
    let mut connections = manner.connections;
    (connections.count, connections.depth) = (1, 1);
    LoadConfig {
        threads: 1,
        pacing: Pacing::Open { rate, arrivals },
        warm_up_rate: None,
        connections,
        until: drive::StopCondition { operations: None, time: manner.length() },
        ..manner.clone()
    }
}

/// The coordinator's outcome, with what the load beside it makes of it.
fn beside(mut own: PhaseOutcome, load: &PhaseOutcome) -> PhaseOutcome {
    let invalid = load.invalid_because.iter().map(|reason| format!("load: {reason}"));
    own.invalid_because.extend(invalid);
    own.warnings.extend(load.warnings.iter().map(|reason| format!("load: {reason}")));
    own.warnings.push(format!(
        "latency and throughput are of the coordinator's own connection; the agents' load of \
         {:.1} operations a second beside it is in load.*",
        load.operations as f64 / load.seconds.max(1e-9)
    ));
    own.stopped |= load.stopped;
    // Both changed the data.
    own.changes.inserted += load.changes.inserted;
    own.changes.deleted += load.changes.deleted;
    own.changes.refused += load.changes.refused;
    own
}

fn dearest(agents: &[AgentReadings]) -> Option<MeasuredTax> {
    let taxes = agents.iter().filter_map(|agent| agent.gave.as_ref()).map(|(gave, _)| gave.tax);
    taxes.max_by(|a, b| a.ns_per_op.total_cmp(&b.ns_per_op))
}

/// What became of a run at the agents.
struct AgentRunEnd {
    ended: Result<Vec<Vec<u8>>, AgentError>,
    bound: Option<Duration>,
    /// Operations of each agent when it was last heard of.
    operations: Vec<u64>,
    /// This machine's own, where it measured.
    own: Option<PhaseOutcome>,
}

/// Starts the agents and follows them to the end, in this thread with the observer, while
/// another talks to them.
fn watch<T: Target>(
    fleet: &mut AgentGroup,
    task: &AgentRun<'_, T>,
    manner: &LoadConfig,
    measures: bool,
    agents: usize,
    observer: &mut dyn Observer,
) -> Result<AgentRunEnd, StudyError> {
    let over = Arc::new(AtomicBool::new(false));
    let (tell, told) = channel();
    let (go, goes) = channel();
    let limit = manner.length().map_or(ENDLESS, |length| {
        length.saturating_add(manner.warm_up.unwrap_or_default()).saturating_add(BEYOND)
    });
    let mut talk = |tell: Sender<RunNews>, goes: Receiver<()>| {
        let ended = match goes.recv() {
            Ok(()) => talk(fleet, limit, &tell, &over),
            Err(_) => Err(AgentError::Stopped),
        };
        if ended.is_err() {
            over.store(true, Ordering::Relaxed);
        }
        // The watching thread takes it before it leaves the scope.
        let _ = tell.send(RunNews::Ended(ended));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| talk(tell, goes));
        let mut following = AgentObserver {
            told,
            go: Some(go),
            over: &over,
            stop: task.stop,
            warm_up: manner.warm_up.unwrap_or_default(),
            began: None,
            bound: None,
            operations: vec![0; agents],
            load: LiveInterval::default(),
            ended: None,
            observer,
        };
        let own = match measures {
            false => {
                following.follow_to_the_end();
                None
            }
            true => {
                let mut plan = manner.plan(drive::PhaseKind::Mix, task.step.workload.seed, &over);
                let threads = task.step.manner.threads as usize;
                plan.share = Some(LoadShare {
                    client: agents,
                    clients: agents + 1,
                    first_thread: threads,
                    threads: threads + 1,
                });
                let AgentRun { clock, target, workload, .. } = *task;
                let own = drive::drive(clock, target, workload, &plan, &mut following);
                if own.is_err() {
                    over.store(true, Ordering::Relaxed);
                }
                following.go = None;
                while following.ended.is_none() {
                    following.look(LOOK);
                }
                match own {
                    Ok(own) => Some(own),
                    // The agents say why.
                    Err(drive::DriveError::NotBegun) => None,
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let AgentObserver { bound, operations, ended, .. } = following;
        let ended = ended.unwrap_or(Err(AgentError::Stopped));
        Ok(AgentRunEnd { ended, bound, operations, own })
    })
}

/// Starts the agents and waits for what they give.
fn talk(
    fleet: &mut AgentGroup,
    limit: Duration,
    tell: &Sender<RunNews>,
    over: &AtomicBool,
) -> Result<Vec<Vec<u8>>, AgentError> {
    let started = fleet.start(Duration::ZERO, over)?;
    let _ = tell.send(RunNews::Started(started));
    let mut progress = |all: &TaskProgress, each: &[Option<TaskProgress>]| {
        let operations = each.iter().map(|one| one.as_ref().map_or(0, |one| one.operations));
        let _ = tell.send(RunNews::Progress(all.clone(), operations.collect()));
    };
    fleet.run(limit, &mut progress, over)
}

/// This thread's view of the agents.
struct AgentObserver<'a> {
    told: Receiver<RunNews>,
    /// Lets the other thread start the agents.
    go: Option<Sender<()>>,
    over: &'a AtomicBool,
    stop: &'a AtomicBool,
    warm_up: Duration,
    began: Option<Instant>,
    bound: Option<Duration>,
    operations: Vec<u64>,
    load: LiveInterval,
    ended: Option<Result<Vec<Vec<u8>>, AgentError>>,
    observer: &'a mut dyn Observer,
}

impl AgentObserver<'_> {
    /// Takes what was told, for at most `wait`; what is progress goes to the caller.
    fn look(&mut self, wait: Duration) -> Option<TaskProgress> {
        if self.stop.load(Ordering::Relaxed) {
            self.over.store(true, Ordering::Relaxed);
        }
        match self.told.recv_timeout(wait) {
            Ok(RunNews::Started(started)) => {
                self.began = Some(started.begin);
                self.bound = Some(started.bound);
                None
            }
            Ok(RunNews::Progress(all, operations)) => {
                self.load = LiveInterval { operations_s: all.live_ops_s, p99_ns: all.live_p99_ns };
                self.operations = operations;
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
    fn follow_to_the_end(&mut self) {
        if let Some(go) = self.go.take() {
            let _ = go.send(());
        }
        let mut open = false;
        while self.ended.is_none() {
            let opens = self.began.map(|began| match self.warm_up.is_zero() {
                // Nothing is asked before: the servers' counts are those of the window.
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
        if let Some(go) = self.go.take() {
            let _ = go.send(());
        }
        loop {
            self.look(LOOK);
            match (self.began, &self.ended) {
                (_, Some(_)) => return false,
                (Some(began), None) => return sleep_until(began, self.over),
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

    fn progress(&mut self, progress: &drive::PhaseProgress) {
        // What the agents did since the last look is one message each tenth of a second.
        while self.look(Duration::ZERO).is_some() {}
        let rate = progress.live.operations_s + self.load.operations_s;
        let live = LiveInterval { operations_s: rate, p99_ns: progress.live.p99_ns };
        let operations = progress.operations + self.operations.iter().sum::<u64>();
        self.observer.progress(&drive::PhaseProgress { live, operations, ..*progress });
    }
}
