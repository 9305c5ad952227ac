//! Runs a plan: opens each store once a segment, loads what a step needs, drives, keeps.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drive::{Network, PhaseProgress, Ticks};
use model::{Machine, Reading};
use record::{Execution, Phase, Run, RunSettings};
use store::{Directory, DirectoryState, StoreUrl};

use crate::calibrate::{CalibrationAgenda, KnownMaxima};
use crate::course::{Decision, ExecutionEnd, RepeatPolicy};
use crate::error::StudyError;
use crate::fleet::AgentPool;
use crate::keeper::MarkerLocation;
use crate::knobs::{KnobControl, KnobEffects, KnobLevels};
use crate::once::ExecutionCache;
use crate::plan::{Plan, Segment, Step};
use crate::probes::{ProbesConfig, measure_idle};
use crate::server_side::ServerSide;
use crate::session::{ClosedStore, EmbeddedSession, Session, StepAgenda};

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
    /// The data was brought back from a copy of what was loaded earlier.
    BroughtBack {
        step: &'a Step,
    },
    /// The data that was loaded was copied, or there was no room for that.
    Copied {
        done: bool,
    },
    /// The idle machine is measured for so long.
    Idling {
        seconds: f64,
    },
    /// The workload runs under a simulator, which takes its time.
    Simulating {
        step: &'a Step,
    },
    Begins {
        step: &'a Step,
    },
    Progress {
        step: &'a Step,
        progress: &'a PhaseProgress,
    },
    /// The store writes out what it holds.
    Settling {
        step: &'a Step,
    },
    /// The knobs cannot be turned to these levels after all; their runs are left out.
    Unturned {
        levels: &'a KnobLevels,
        why: &'a StudyError,
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

/// The description of this invocation, to begin a results file with; the machine as it is now,
/// and what was seen of its knobs.
pub fn execution(plan: &Plan, command: Vec<String>, knobs: &KnobEffects) -> Execution {
    let command = command.iter().map(|word| model::masked(word).into_owned()).collect();
    let root = &plan.probes.root;
    let mut machine: Machine = host::facts(root);
    machine.facts.extend(knobs.facts());
    let mut seen = BTreeSet::new();
    for segment in plan.segments.iter().filter(|s| !s.store.path.as_os_str().is_empty()) {
        if seen.insert(segment.store.path.clone()) {
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

/// The nearest part of a path that is there already.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|part| part.exists()).unwrap_or(Path::new("."))
}

/// What an execution is done with.
pub struct ExecuteArgs<'a> {
    /// Which of the planned runs are done.
    pub course: &'a mut RepeatPolicy,
    /// The maxima of which rates are shares, as far as they are known.
    pub maxima: &'a mut KnownMaxima,
    /// Who turns the knobs.
    pub turn: &'a mut dyn KnobControl,
    pub keep: &'a mut dyn FnMut(&Run) -> Result<(), StudyError>,
    pub listener: &'a mut dyn Listener,
    /// Raised: the step under way ends early, is not kept, and the rest does not begin.
    pub stop: &'a Arc<AtomicBool>,
}

/// Runs every step that is not `done` and that its course wants, in its order, under the knobs
/// of its block, each block after a look at the idle machine; keeps each run when it ends.
///
/// # Errors
/// What went wrong with a run; every run before it is kept.
pub fn execute(
    plan: &Plan,
    execution: &Execution,
    done: &BTreeSet<u32>,
    doing: ExecuteArgs<'_>,
) -> Result<ExecutionEnd, StudyError> {
    let ExecuteArgs { course, maxima, turn, keep, listener, stop } = doing;
    let clock = Ticks::new();
    let mut crew = plan.agents.clone().map(AgentPool::new);
    plan.probes.check_required()?;
    let once = ExecutionCache::default();
    let mut idle: Vec<(KnobLevels, Vec<Reading>)> = Vec::new();
    let mut unturned = Vec::new();
    let mut kept_any = false;
    for block in plan.segments.chunk_by(|a, b| a.knobs == b.knobs) {
        let left = |segment: &&Segment| segment.steps.iter().any(|s| !done.contains(&s.ordinal));
        let Some(levels) = block.iter().find(left).map(|segment| &segment.knobs) else { continue };
        let wanted = block
            .iter()
            .flat_map(|segment| &segment.steps)
            .any(|step| !done.contains(&step.ordinal) && course.decide(step) == Decision::Run);
        if !wanted {
            continue;
        }
        let mut ended = ExecutionEnd::Whole;
        let mut begun = false;
        let turned = turn.turn(levels, &mut |seen| {
            begun = true;
            // Idle states and frequencies are what the idle machine draws by: each set of levels
            // has its own.
            if !idle.iter().any(|(known, _)| known == levels) {
                idle.push((levels.clone(), measure_idle(&plan.probes, &mut *listener, stop)));
            }
            let idle = idle.iter().find(|(known, _)| known == levels).map(|(_, read)| read);
            for segment in block {
                let steps = RemainingSteps::new(segment, done, course);
                let mut agenda = CalibrationAgenda::new(steps, maxima);
                let Some(first) = agenda.first() else {
                    agenda.fault().map_or(Ok(()), Err)?;
                    continue;
                };
                let mut scene = RunContext {
                    clock: &clock,
                    execution,
                    stop,
                    crew: crew.as_mut(),
                    probes: &plan.probes,
                    idle: idle.map_or(&[], Vec::as_slice),
                    seen,
                    once: &once,
                };
                kept_any = true;
                if !scene.play(segment, first, &mut agenda, &mut *keep, &mut *listener)? {
                    ended = ExecutionEnd::Stopped;
                    break;
                }
                agenda.fault().map_or(Ok(()), Err)?;
            }
            Ok(())
        });
        match turned {
            Ok(()) => {}
            // Nothing was begun: the levels cannot be had after all, and the rest can.
            Err(error) if !begun && !levels.is_empty() => {
                listener.hear(Event::Unturned { levels, why: &error });
                course.unturned(levels, &error);
                unturned.push(error);
            }
            Err(error) => return Err(error),
        }
        if ended == ExecutionEnd::Stopped {
            return Ok(ended);
        }
    }
    match unturned.pop() {
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

/// The steps of a segment that are left and wanted.
pub(crate) struct RemainingSteps<'a> {
    left: Vec<&'a Step>,
    next: usize,
    preloads: bool,
    pub(crate) course: &'a mut RepeatPolicy,
}

impl<'a> RemainingSteps<'a> {
    fn new(
        segment: &'a Segment,
        done: &BTreeSet<u32>,
        course: &'a mut RepeatPolicy,
    ) -> RemainingSteps<'a> {
        let preloads =
            segment.steps.iter().any(|step| step.manner.insight.preloads(step.manner.is_open()));
        let left = segment.steps.iter().filter(|step| !done.contains(&step.ordinal)).collect();
        RemainingSteps { left, next: 0, preloads, course }
    }

    pub(crate) fn first(&mut self) -> Option<Step> {
        while let Some(step) = self.left.get(self.next) {
            self.next += 1;
            if self.course.decide(step) == Decision::Run {
                return Some((*step).clone());
            }
        }
        None
    }

    /// A run of these steps has ended.
    pub(crate) fn kept(&mut self, run: &Run) {
        let step = self.left[..self.next].iter().rfind(|step| step.ordinal == run.ordinal);
        if let Some(step) = step {
            self.course.kept(step, run);
        }
    }

    pub(crate) fn preloads(&self) -> bool {
        self.preloads
    }
}

/// What all segments of an execution have in common.
pub(crate) struct RunContext<'a> {
    pub(crate) clock: &'a Ticks,
    pub(crate) execution: &'a Execution,
    pub(crate) stop: &'a Arc<AtomicBool>,
    /// The machines that ask instead of this one.
    pub(crate) crew: Option<&'a mut AgentPool>,
    pub(crate) probes: &'a ProbesConfig,
    /// The power of the idle machine.
    pub(crate) idle: &'a [Reading],
    /// What was seen of the knobs under which it all runs.
    pub(crate) seen: &'a KnobEffects,
    /// What was found out for all of them.
    pub(crate) once: &'a ExecutionCache,
}

impl RunContext<'_> {
    /// A session on a store of this scene that is not open yet.
    pub(crate) fn session<'s>(
        &'s mut self,
        segment: &'s Segment,
        agenda: &'s mut dyn StepAgenda,
        keep: &'s mut dyn FnMut(&Run) -> Result<(), StudyError>,
        listener: &'s mut dyn Listener,
    ) -> Session<'s> {
        let mut facts = RunSettings::new();
        self.seen.settings(&mut facts);
        Session {
            clock: self.clock,
            segment,
            asked: segment.store.clone(),
            beside: Vec::new(),
            agenda,
            keeper: MarkerLocation::Nobody,
            load_first: None,
            found: false,
            may_copy: false,
            execution: self.execution,
            keep,
            listener,
            stop: self.stop,
            crew: self.crew.as_deref_mut(),
            records: 0,
            changed: false,
            name: None,
            warnings: Vec::new(),
            servers: ServerSide::default(),
            facts,
            probes: self.probes,
            idle: self.idle,
            once: self.once,
            simulated: None,
        }
    }

    /// Runs a step and what the agenda has after it, on one open store as long as its data
    /// suits them; the answer says whether it came to the agenda's end.
    pub(crate) fn play(
        &mut self,
        segment: &Segment,
        first: Step,
        agenda: &mut dyn StepAgenda,
        keep: &mut dyn FnMut(&Run) -> Result<(), StudyError>,
        listener: &mut dyn Listener,
    ) -> Result<bool, StudyError> {
        if first.bench.is_some() {
            return self.play_benches(first, agenda, keep, listener);
        }
        let preload = agenda.preloads();
        if let Some(crew) = &mut self.crew {
            // Before anything is loaded or measured: whether they can be used.
            crew.reach()?;
        }
        let (mut next, mut may_copy) = (Some(first), true);
        while let Some(first) = next {
            let mut session = self.session(segment, agenda, keep, listener);
            session.may_copy = may_copy;
            let ClosedStore { mut keeper, name, next: after, copy } =
                match segment.store.remote()? {
                    Some(mut remote) => {
                        let started = match &segment.server {
                            None => None,
                            Some(order) => {
                                let started = order.start(preload)?;
                                remote.servers = started.addresses();
                                session.asked.servers.clone_from(&remote.servers);
                                Some(started)
                            }
                        };
                        let explain = |error| match &started {
                            Some(started) => started.explain(error),
                            None => error,
                        };
                        let network = Network::connect(remote).map_err(StudyError::from);
                        let network = Arc::new(network.map_err(explain)?);
                        session.keeper = MarkerLocation::Servers(Arc::clone(&network));
                        if let Some(started) = &started {
                            started.settings(&mut session.facts);
                        }
                        let tap =
                            |address| started.as_ref().and_then(|started| started.tap_at(address));
                        let addresses = network.remote().servers.iter();
                        session.servers =
                            ServerSide::of(addresses.map(|address| (address, tap(address))));
                        session.find_data(&first).map_err(explain)?;
                        let closed = session.ask(&network, first).map_err(explain)?;
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
                            not_anothers(&directory, &segment.store)?;
                            session.keeper = MarkerLocation::Directories(vec![directory]);
                            session.find_data(&first)?;
                        }
                        store::open(&segment.store, EmbeddedSession(session, first))??
                    }
                };
            // The store is closed, so all that it was given is in its files.
            if let Some(name) = name {
                keeper.set(&name)?;
            }
            if copy {
                may_copy = keeper.keep_prepared()?;
                listener.hear(Event::Copied { done: may_copy });
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

/// Refuses, before anything is measured or written, a directory that could not be used.
pub fn check_directories(plan: &Plan) -> Result<(), StudyError> {
    for segment in plan.segments.iter().filter(|segment| on_disk(segment)) {
        if let Some(first) = segment.steps.first() {
            Directory::check(&segment.store, room(segment, first))?;
        }
    }
    Ok(())
}

/// Data of another store is not taken for a slip of ours: it may have taken hours to load.
pub(crate) fn not_anothers(directory: &Directory, store: &StoreUrl) -> Result<(), StudyError> {
    let marker = directory.marker();
    if marker.scheme == store.scheme || marker.dataset.is_none() {
        return Ok(());
    }
    Err(StudyError::Request(format!(
        "{}: holds data of `{}`; name another directory, or delete this one",
        directory.path().display(),
        marker.scheme
    )))
}

/// Bytes that must be there: none for data that is there already; else the data, and half as
/// much for what a log-structured store merges beside it.
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
fn remove_temporary(path: &Path) -> Result<(), StudyError> {
    if !path.exists() {
        return Ok(());
    }
    let failed = |error: std::io::Error| {
        StudyError::Failed(format!("{}: cannot be removed: {error}", path.display()))
    };
    Directory::delete(path).map_err(failed)?;
    if let Some(parent) = path.parent() {
        // It stays where another store's data is still in it.
        let _ = std::fs::remove_dir(parent);
    }
    Ok(())
}
