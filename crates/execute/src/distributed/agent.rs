//! The agent's side: runs its share of a load for a coordinator.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agents::{AgentTask, PreparedTask, TaskProgress};
use drive::{Network, Observer, PhaseOutcome, PhaseStage, Ticks};
use host::knob::TurnedKnobs;
use host::{Context, PreparedWatch, ProbeChoice, Root, RunWatch};
use model::{Reading, RunSettings};
use study::KnobLevels;
use workload::Workload;

use super::intervals::AgentInterval;
use super::{AgentPermissions, AgentReport, Assignment, pack};
use crate::knobs::{Supervisor, turned};

/// How often flags are checked during waits.
const LOOK: Duration = Duration::from_millis(20);
/// How long a phase may take to end after a stop.
const WIND_DOWN: Duration = Duration::from_secs(10);

/// The task of an agent: load on a networked store.
pub struct AgentWork {
    permissions: AgentPermissions,
    machine: AgentMachine,
    last: Mutex<String>,
}

/// The machine of an agent.
pub struct AgentMachine {
    pub root: Root,
    /// Puts the knobs back if the agent is killed.
    pub supervisor: Supervisor,
}

impl AgentWork {
    /// With the permissions of coordinators on this machine.
    pub fn new(permissions: AgentPermissions, machine: AgentMachine) -> AgentWork {
        AgentWork { permissions, machine, last: Mutex::default() }
    }

    /// The latest assignment, in one line.
    pub fn last(&self) -> String {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl AgentTask for AgentWork {
    fn prepare(
        &self,
        assignment: &[u8],
        stop: &Arc<AtomicBool>,
    ) -> Result<Box<dyn PreparedTask>, String> {
        let assignment: Assignment = serde_json::from_slice(assignment)
            .map_err(|error| format!("the assignment cannot be read: {error}"))?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = assignment.describe();
        self.permissions.check(&assignment.store).map_err(|refused| refused.to_string())?;
        self.permissions.check_machine(&assignment.machine).map_err(|no| no.to_string())?;
        let watch = probes(&assignment.machine.probes).map_err(|error| error.to_string())?;
        // Threads of the load inherit what a knob does to this one.
        let turned = self.turn(&assignment.machine.knobs).map_err(|error| error.to_string())?;
        let watch = (self.machine.root.clone(), watch);
        let mut phase =
            AgentPhase::prepare(&assignment, watch, stop).map_err(|error| error.to_string())?;
        if let Some((turned, settings)) = turned {
            (phase.turned, phase.report.knobs) = (Some(turned), settings);
        }
        phase.wait_until_ready()?;
        Ok(Box::new(phase))
    }
}

impl AgentWork {
    /// Turns the knobs of this machine, with their levels and effects as settings.
    fn turn(
        &self,
        knobs: &[(String, String)],
    ) -> Result<Option<(TurnedKnobs, RunSettings)>, host::knob::KnobError> {
        let levels = KnobLevels(knobs.to_vec());
        if levels.is_empty() {
            return Ok(None);
        }
        let (turned, effects) = turned(&self.machine.root, &levels, &self.machine.supervisor)?;
        let mut settings = RunSettings::new();
        levels.settings(&mut settings);
        effects.settings(&mut settings);
        Ok(Some((turned, settings)))
    }
}

/// A phase in a thread of its own.
struct AgentPhase {
    /// Dropped, the phase does not begin.
    begin: Option<Sender<Instant>>,
    news: Receiver<AgentNews>,
    report: AgentReport,
    stop: Arc<AtomicBool>,
    /// Put back at the latest when this is dropped, however the session ends.
    turned: Option<TurnedKnobs>,
}

enum AgentNews {
    Ready,
    Progress(TaskProgress),
    Ended(Box<Result<(PhaseOutcome, Vec<Reading>), String>>),
}

impl AgentPhase {
    fn prepare(
        assignment: &Assignment,
        (root, context): (Root, Context),
        stop: &Arc<AtomicBool>,
    ) -> Result<AgentPhase, crate::ExecuteError> {
        let remote = assignment.store.remote()?.ok_or_else(|| {
            crate::ExecuteError::Request(format!(
                "an agent loads only servers, and `{}` is not one",
                assignment.store.scheme
            ))
        })?;
        let network = Arc::new(Network::connect(remote)?);
        let workload = Arc::new(Workload::new(&assignment.workload)?);
        let cpus = host::cpus(&Root::live()).map(|order| order.cpus).unwrap_or_default();
        let plan = assignment.plan(&cpus, stop);
        let clock = Ticks::new();
        let tax = drive::tax(&clock, &workload, plan.phase, &plan.on_start)?;
        let (begin, begins) = channel();
        let (sender, news) = channel();
        let stopping = Arc::clone(stop);
        let body = move || {
            let mut observer = ProgressReporter {
                sender: &sender,
                begins,
                stop: stopping,
                prepared: Some(RunWatch::prepare(&root, &context)),
                watch: None,
                readings: Vec::new(),
                newest_interval: Arc::default(),
            };
            let ended = drive::drive(&clock, network.clone(), &workload, &plan, &mut observer);
            let readings = std::mem::take(&mut observer.readings);
            let ended = ended.map(|outcome| (outcome, readings));
            // The receiver is gone where the task was dropped.
            let _ =
                sender.send(AgentNews::Ended(Box::new(ended.map_err(|error| error.to_string()))));
        };
        std::thread::Builder::new()
            .name("agent-phase".to_owned())
            .spawn(body)
            .map_err(|error| crate::ExecuteError::Failed(format!("no thread: {error}")))?;
        let report = AgentReport { tax, readings: Vec::new(), knobs: RunSettings::new() };
        Ok(AgentPhase { begin: Some(begin), news, report, stop: Arc::clone(stop), turned: None })
    }

    fn wait_until_ready(&self) -> Result<(), String> {
        loop {
            match self.news.recv_timeout(LOOK) {
                Ok(AgentNews::Ready) => return Ok(()),
                Ok(AgentNews::Ended(ended)) => {
                    let early = || "the phase ended before it began".to_owned();
                    return Err(ended.err().unwrap_or_else(early));
                }
                Err(RecvTimeoutError::Timeout) if !self.stop.load(Ordering::Relaxed) => {}
                Err(RecvTimeoutError::Timeout) => return Err("stopped".to_owned()),
                Ok(AgentNews::Progress(_)) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the phase ended without a result".to_owned());
                }
            }
        }
    }
}

impl PreparedTask for AgentPhase {
    fn run(
        mut self: Box<Self>,
        begin: Instant,
        progress: &mut dyn FnMut(TaskProgress),
        _stop: &Arc<AtomicBool>,
    ) -> Result<Vec<u8>, String> {
        if let Some(sender) = &self.begin {
            // A phase that has ended has reported why.
            let _ = sender.send(begin);
        }
        loop {
            match self.news.recv() {
                Ok(AgentNews::Ready) => {}
                Ok(AgentNews::Progress(now)) => progress(now),
                Ok(AgentNews::Ended(ended)) => {
                    let (outcome, readings) = (*ended)?;
                    self.report.readings = readings;
                    if let Some(turned) = self.turned.take() {
                        turned.restore().map_err(|error| error.to_string())?;
                    }
                    return pack(&self.report, &outcome);
                }
                Err(_) => return Err("the phase ended without a result".to_owned()),
            }
        }
    }
}

impl Drop for AgentPhase {
    /// The agent is free only when the load has ended.
    fn drop(&mut self) {
        self.begin = None;
        let limit = Instant::now() + WIND_DOWN;
        while let Some(left) = limit.checked_duration_since(Instant::now()) {
            // The channel closes with the thread at the latest.
            match self.news.recv_timeout(left) {
                Ok(AgentNews::Ended(_)) | Err(_) => break,
                Ok(_) => {}
            }
        }
    }
}

/// Waits for the common start, and reports progress.
struct ProgressReporter<'a> {
    sender: &'a Sender<AgentNews>,
    begins: Receiver<Instant>,
    stop: Arc<AtomicBool>,
    prepared: Option<PreparedWatch>,
    watch: Option<RunWatch>,
    readings: Vec<Reading>,
    /// The newest complete interval, encoded.
    newest_interval: Arc<[u8]>,
}

impl Observer for ProgressReporter<'_> {
    fn ready(&mut self) -> bool {
        if self.sender.send(AgentNews::Ready).is_err() {
            return false;
        }
        let begin = loop {
            match self.begins.recv_timeout(LOOK) {
                Ok(begin) => break begin,
                Err(RecvTimeoutError::Timeout) if !self.stop.load(Ordering::Relaxed) => {}
                Err(_) => return false,
            }
        };
        sleep_until(begin, &self.stop)
    }

    fn window_opens(&mut self) {
        self.watch = self.prepared.take().map(PreparedWatch::begin);
    }

    fn window_closes(&mut self) {
        self.readings = self.watch.take().map(|watch| watch.end().readings).unwrap_or_default();
    }

    fn interval(&mut self, interval: &drive::CompleteInterval<'_>) {
        // Without it the coordinator shows no percentiles; the result does not depend on it.
        self.newest_interval = AgentInterval::encode(interval).unwrap_or_default().into();
    }

    fn progress(&mut self, progress: &drive::PhaseProgress) {
        let stage = match progress.stage {
            PhaseStage::WarmUp => "warm-up",
            PhaseStage::Steadying { .. } => "steadying",
            PhaseStage::Measure => "measure",
        };
        let now = TaskProgress {
            stage: stage.to_owned(),
            operations: progress.operations,
            elapsed_s: progress.elapsed.as_secs_f64(),
            done: progress.done,
            live_ops_s: progress.live.operations_s,
            live_p99_ns: progress.live.p99_ns,
            newest_interval: Arc::clone(&self.newest_interval),
        };
        // The receiver is gone where the task was dropped.
        let _ = self.sender.send(AgentNews::Progress(now));
    }
}

/// CPU time and the like, and the requested probes: without them the energy of an agent's
/// machine is not the store's.
fn probes(names: &[String]) -> Result<Context, host::UnknownProbe> {
    let mut choice = ProbeChoice::Off;
    names.iter().try_for_each(|name| choice.take(name))?;
    Ok(Context { choice, ..Context::default() })
}

/// Returns false after a stop.
pub(super) fn sleep_until(instant: Instant, stop: &AtomicBool) -> bool {
    while let Some(left) = instant.checked_duration_since(Instant::now()) {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(left.min(LOOK));
    }
    !stop.load(Ordering::Relaxed)
}
