//! Executes a plan: opens each store once a segment, loads data, runs the load, saves the runs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drive::{Network, PhaseProgress, Ticks};
use model::{Execution, Machine, Phase, Reading, Run, RunSettings};
use store::{Directory, DirectoryState, StoreUrl};
use study::{KnobLevels, Plan, ProbesConfig, Segment, Step};

use crate::calibration_agenda::{CalibrationAgenda, KnownMaxima};
use crate::dataset_marker::MarkerLocation;
use crate::distributed::AgentPool;
use crate::error::ExecuteError;
use crate::execution_cache::ExecutionCache;
use crate::idle_power::measure_idle;
use crate::knobs::{KnobControl, KnobEffects};
use crate::repeat_policy::{Decision, ExecutionEnd, RepeatPolicy};
use crate::required::check_required;
use crate::server_side::ServerSide;
use crate::session::{ClosedStore, EmbeddedSession, Session, StepAgenda};
use crate::started_server;

/// Events of an execution, for progress display.
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
    /// The data of an earlier invocation is reused.
    Reusing {
        step: &'a Step,
    },
    /// The data was restored from a copy of what was loaded earlier.
    Restored {
        step: &'a Step,
    },
    /// The loaded data was copied, or there was no space for a copy.
    Copied {
        done: bool,
    },
    /// The power of the idle machine is measured.
    Idling {
        seconds: f64,
    },
    /// The workload runs under a simulator, which is slow.
    Simulating {
        step: &'a Step,
    },
    RunStarts {
        step: &'a Step,
    },
    Progress {
        step: &'a Step,
        progress: &'a PhaseProgress,
    },
    /// The store completes its background work.
    Settling {
        step: &'a Step,
    },
    /// The knobs cannot be turned to these levels; their runs are skipped.
    KnobsUnavailable {
        levels: &'a KnobLevels,
        why: &'a ExecuteError,
    },
    /// The run is in the file.
    Saved {
        step: &'a Step,
        run: &'a Run,
    },
}

pub trait Listener {
    fn on_event(&mut self, event: Event<'_>);
}

/// Now, as it is written in results files.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The execution record that begins a results file, with the current state of the machine and the
/// effects of its knobs.
pub fn execution(plan: &Plan, command: Vec<String>, knobs: &KnobEffects) -> Execution {
    let command = command.iter().map(|word| model::masked(word).into_owned()).collect();
    let root = &plan.probes.root;
    let mut machine: Machine = host::facts(root);
    machine.facts.extend(knobs.facts());
    let mut paths = BTreeSet::new();
    for segment in plan.segments.iter().filter(|s| !s.store.path.as_os_str().is_empty()) {
        if paths.insert(segment.store.path.clone()) {
            machine.facts.extend(host::storage(root, existing(&segment.store.path)));
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
        design: plan.design.clone(),
        notes: Vec::new(),
    }
}

/// The longest prefix of a path that exists.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|part| part.exists()).unwrap_or(Path::new("."))
}

/// Arguments of [`execute`].
pub struct ExecuteArgs<'a> {
    /// Decides which of the planned runs are done.
    pub policy: &'a mut RepeatPolicy,
    /// The calibrated maxima known so far.
    pub maxima: &'a mut KnownMaxima,
    /// Turns the knobs.
    pub turn: &'a mut dyn KnobControl,
    pub keep: &'a mut dyn FnMut(&Run) -> Result<(), ExecuteError>,
    pub listener: &'a mut dyn Listener,
    /// When set, the current step ends early and is not saved, and no other begins.
    pub stop: &'a Arc<AtomicBool>,
}

/// Runs every step that is not `done` and that the policy selects, in order and under the knobs of
/// its block, after measuring the idle machine for each set of levels; saves each run as it ends.
///
/// # Errors
/// The error of a run; all runs before it are saved.
pub fn execute(
    plan: &Plan,
    execution: &Execution,
    done: &BTreeSet<u32>,
    args: ExecuteArgs<'_>,
) -> Result<ExecutionEnd, ExecuteError> {
    let ExecuteArgs { policy, maxima, turn, keep, listener, stop } = args;
    let clock = Ticks::new();
    let mut agent_pool = plan.agents.clone().map(AgentPool::new);
    check_required(&plan.probes)?;
    let cache = ExecutionCache::default();
    let mut idle: Vec<(KnobLevels, Vec<Reading>)> = Vec::new();
    let mut not_run = Vec::new();
    let mut kept_any = false;
    for block in plan.segments.chunk_by(|a, b| a.knobs == b.knobs) {
        let left = |segment: &&Segment| segment.steps.iter().any(|s| !done.contains(&s.ordinal));
        let Some(levels) = block.iter().find(left).map(|segment| &segment.knobs) else { continue };
        let has_runs = block
            .iter()
            .flat_map(|segment| &segment.steps)
            .any(|step| !done.contains(&step.ordinal) && policy.decide(step) == Decision::Run);
        if !has_runs {
            continue;
        }
        let mut ended = ExecutionEnd::Whole;
        let mut begun = false;
        let turned = turn.turn(levels, &mut |knob_effects| {
            begun = true;
            // Idle power depends on idle states and frequencies, so it is measured for each set of
            // levels.
            if !idle.iter().any(|(known, _)| known == levels) {
                idle.push((levels.clone(), measure_idle(&plan.probes, &mut *listener, stop)));
            }
            let idle = idle.iter().find(|(known, _)| known == levels).map(|(_, read)| read);
            for segment in block {
                let steps = RemainingSteps::new(segment, done, policy);
                let mut agenda = CalibrationAgenda::new(steps, maxima);
                let Some(first) = agenda.first() else {
                    agenda.fault().map_or(Ok(()), Err)?;
                    continue;
                };
                let mut context = RunContext {
                    clock: &clock,
                    execution,
                    stop,
                    agent_pool: agent_pool.as_mut(),
                    probes: &plan.probes,
                    idle: idle.map_or(&[], Vec::as_slice),
                    knob_effects,
                    cache: &cache,
                };
                kept_any = true;
                if !context.run_segment(segment, first, &mut agenda, &mut *keep, &mut *listener)? {
                    ended = ExecutionEnd::Stopped;
                    break;
                }
                agenda.fault().map_or(Ok(()), Err)?;
            }
            Ok(())
        });
        match turned {
            Ok(()) => {}
            // Nothing was begun: these levels are unavailable, others may not be.
            Err(error) if !begun && !levels.is_empty() => {
                listener.on_event(Event::KnobsUnavailable { levels, why: &error });
                policy.not_run(levels, &error);
                not_run.push(error);
            }
            Err(error) => return Err(error),
        }
        if ended == ExecutionEnd::Stopped {
            return Ok(ended);
        }
    }
    match not_run.pop() {
        Some(error) if !kept_any && done.is_empty() => return Err(error),
        _ => {}
    }
    for segment in &plan.segments {
        if segment.temporary {
            remove_temporary(&segment.store.path)?;
        } else if segment.copies {
            Directory::claim(&segment.store, 0)?.drop_prepared()?;
        }
    }
    Ok(ExecutionEnd::Whole)
}

/// The remaining selected steps of a segment.
pub(crate) struct RemainingSteps<'a> {
    left: Vec<&'a Step>,
    next: usize,
    preloads: bool,
    pub(crate) policy: &'a mut RepeatPolicy,
}

impl<'a> RemainingSteps<'a> {
    fn new(
        segment: &'a Segment,
        done: &BTreeSet<u32>,
        policy: &'a mut RepeatPolicy,
    ) -> RemainingSteps<'a> {
        let preloads = segment
            .steps
            .iter()
            .any(|step| step.load_config.server_timing.preloads(step.load_config.is_open()));
        let left = segment.steps.iter().filter(|step| !done.contains(&step.ordinal)).collect();
        RemainingSteps { left, next: 0, preloads, policy }
    }

    pub(crate) fn first(&mut self) -> Option<Step> {
        while let Some(step) = self.left.get(self.next) {
            self.next += 1;
            if self.policy.decide(step) == Decision::Run {
                return Some((*step).clone());
            }
        }
        None
    }

    /// A run of these steps has ended.
    pub(crate) fn saved(&mut self, run: &Run) {
        let step = self.left[..self.next].iter().rfind(|step| step.ordinal == run.ordinal);
        if let Some(step) = step {
            self.policy.saved(step, run);
        }
    }

    pub(crate) fn preloads(&self) -> bool {
        self.preloads
    }
}

/// State shared by all segments of an execution.
pub(crate) struct RunContext<'a> {
    pub(crate) clock: &'a Ticks,
    pub(crate) execution: &'a Execution,
    pub(crate) stop: &'a Arc<AtomicBool>,
    /// The machines that generate the load instead of this one.
    pub(crate) agent_pool: Option<&'a mut AgentPool>,
    pub(crate) probes: &'a ProbesConfig,
    /// The power of the idle machine.
    pub(crate) idle: &'a [Reading],
    /// The effects of the knobs during these runs.
    pub(crate) knob_effects: &'a KnobEffects,
    /// Results cached for the execution.
    pub(crate) cache: &'a ExecutionCache,
}

impl RunContext<'_> {
    /// A session on a store that is not open yet.
    pub(crate) fn session<'s>(
        &'s mut self,
        segment: &'s Segment,
        agenda: &'s mut dyn StepAgenda,
        keep: &'s mut dyn FnMut(&Run) -> Result<(), ExecuteError>,
        listener: &'s mut dyn Listener,
    ) -> Session<'s> {
        let mut facts = RunSettings::new();
        self.knob_effects.settings(&mut facts);
        Session {
            clock: self.clock,
            segment,
            store_url: segment.store.clone(),
            other_stores: Vec::new(),
            agenda,
            marker: MarkerLocation::Nowhere,
            load_first: None,
            reuses_data: false,
            may_copy: false,
            execution: self.execution,
            keep,
            listener,
            stop: self.stop,
            agent_pool: self.agent_pool.as_deref_mut(),
            records: 0,
            changed: false,
            name: None,
            warnings: Vec::new(),
            servers: ServerSide::default(),
            facts,
            probes: self.probes,
            idle: self.idle,
            cache: self.cache,
            simulated: None,
        }
    }

    /// Runs a step and those that follow in the agenda, on one open store as long as its data suits
    /// them; returns whether it reached the agenda's end.
    pub(crate) fn run_segment(
        &mut self,
        segment: &Segment,
        first: Step,
        agenda: &mut dyn StepAgenda,
        keep: &mut dyn FnMut(&Run) -> Result<(), ExecuteError>,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecuteError> {
        if first.activity.is_some() {
            return self.run_activities(first, agenda, keep, listener);
        }
        let preload = agenda.preloads();
        if let Some(agent_pool) = &mut self.agent_pool {
            // Checks that they can be used before anything is loaded or measured.
            agent_pool.reach()?;
        }
        let (mut next, mut may_copy) = (Some(first), true);
        while let Some(first) = next {
            let mut session = self.session(segment, agenda, keep, listener);
            session.may_copy = may_copy;
            let ClosedStore { mut marker, name, next: after, copy } =
                match segment.store.remote()? {
                    Some(mut remote) => {
                        let started = match &segment.server {
                            None => None,
                            Some(server) => {
                                let started = started_server::start(server, preload)?;
                                remote.servers = started.addresses();
                                session.store_url.servers.clone_from(&remote.servers);
                                Some(started)
                            }
                        };
                        let explain = |error| match &started {
                            Some(started) => started.explain(error),
                            None => error,
                        };
                        let network = Network::connect(remote).map_err(ExecuteError::from);
                        let network = Arc::new(network.map_err(explain)?);
                        session.marker = MarkerLocation::Servers(Arc::clone(&network));
                        if let Some(started) = &started {
                            started.settings(&mut session.facts);
                        }
                        let tap =
                            |address| started.as_ref().and_then(|started| started.tap_at(address));
                        let addresses = network.remote().servers.iter();
                        session.servers =
                            ServerSide::of(addresses.map(|address| (address, tap(address))));
                        session.find_data(&first).map_err(explain)?;
                        let closed = session.run_steps(&network, first).map_err(explain)?;
                        drop(network);
                        if let Some(started) = started {
                            started.end()?;
                        }
                        closed
                    }
                    None => {
                        if on_disk(segment) {
                            let directory =
                                Directory::claim(&segment.store, room(segment, &first))?;
                            check_store_owner(&directory, &segment.store)?;
                            session.marker = MarkerLocation::Directories(vec![directory]);
                            session.find_data(&first)?;
                        }
                        store::open(&segment.store, EmbeddedSession(session, first))??
                    }
                };
            // The store is closed, so all writes are in its files.
            if let Some(name) = name {
                marker.set(&name)?;
            }
            if copy {
                may_copy = marker.keep_prepared()?;
                listener.on_event(Event::Copied { done: may_copy });
            }
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            next = after;
        }
        Ok(true)
    }
}

fn on_disk(segment: &Segment) -> bool {
    !segment.store.path.as_os_str().is_empty()
}

/// Checks that all directories can be used, before anything is measured or written.
pub fn check_directories(plan: &Plan) -> Result<(), ExecuteError> {
    for segment in plan.segments.iter().filter(|segment| on_disk(segment)) {
        if let Some(first) = segment.steps.first() {
            Directory::check(&segment.store, room(segment, first))?;
        }
    }
    Ok(())
}

/// Refuses to overwrite the data of another store: it may have taken hours to load.
pub(crate) fn check_store_owner(
    directory: &Directory,
    store: &StoreUrl,
) -> Result<(), ExecuteError> {
    let marker = directory.marker();
    if marker.scheme == store.scheme || marker.dataset.is_none() {
        return Ok(());
    }
    Err(ExecuteError::Request(format!(
        "{}: holds data of `{}`; name another directory, or delete this one",
        directory.path().display(),
        marker.scheme
    )))
}

/// Required disk space in bytes: none for data that exists; otherwise the data and half as much
/// for compactions of a log-structured store.
pub(crate) fn room(segment: &Segment, first: &Step) -> u64 {
    let there = match Directory::inspect(&segment.store.path) {
        Ok(DirectoryState::Ours(marker)) => {
            marker.dataset == Some(first.workload.dataset().to_string())
        }
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
fn remove_temporary(path: &Path) -> Result<(), ExecuteError> {
    if !path.exists() {
        return Ok(());
    }
    let failed = |error: std::io::Error| {
        ExecuteError::Failed(format!("{}: cannot be removed: {error}", path.display()))
    };
    Directory::delete(path).map_err(failed)?;
    if let Some(parent) = path.parent() {
        // Fails while another store's data is in it.
        let _ = std::fs::remove_dir(parent);
    }
    Ok(())
}
