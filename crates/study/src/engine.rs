//! Runs a plan: opens each store once a segment, loads what a step needs, drives, keeps.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drive::{Network, Progress, Ticks};
use model::{Machine, Reading};
use record::{Execution, Phase, Run, Settings};
use store::{Directory, State, StoreUrl};

use crate::error::StudyError;
use crate::fleet::Crew;
use crate::keeper::Keeper;
use crate::knobs::Seen;
use crate::plan::{Plan, Segment, Step};
use crate::probes::{Probes, measure_idle};
use crate::server_side::ServerSide;
use crate::session::{Agenda, Closed, Embedded, Session};

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

/// The description of this invocation, to begin a results file with; the machine as it is now,
/// and what was seen of its knobs.
pub fn execution(plan: &Plan, command: Vec<String>, knobs: &Seen) -> Execution {
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

/// Measures the idle machine, then runs every step that is not done, in its order, and keeps each
/// run when it ends; `knobs` tells under which they run. When
/// `stop` is raised the step under way ends early, is not kept, and the rest does not begin;
/// the answer says whether all was done.
pub fn execute(
    plan: &Plan,
    execution: &Execution,
    done: &BTreeSet<u32>,
    keep: &mut dyn FnMut(&Run) -> Result<(), StudyError>,
    listener: &mut dyn Listener,
    stop: &Arc<AtomicBool>,
    knobs: &Seen,
) -> Result<bool, StudyError> {
    let clock = Ticks::new();
    let mut crew = plan.agents.clone().map(Crew::new);
    plan.probes.check_required()?;
    let idle = match plan.steps().all(|(_, step)| done.contains(&step.ordinal)) {
        true => Vec::new(),
        false => measure_idle(&plan.probes, listener, stop),
    };
    for segment in &plan.segments {
        let mut left = segment.steps.iter().filter(|step| !done.contains(&step.ordinal)).cloned();
        let Some(first) = left.next() else { continue };
        let preloads =
            segment.steps.iter().any(|step| step.manner.insight.preloads(step.manner.is_open()));
        let mut scene = Scene {
            clock: &clock,
            execution,
            stop,
            crew: crew.as_mut(),
            probes: &plan.probes,
            idle: &idle,
            seen: knobs,
        };
        if !scene.play(segment, first, &mut InOrder { left, preloads }, keep, listener)? {
            return Ok(false);
        }
    }
    for segment in plan.segments.iter().filter(|segment| segment.temporary) {
        remove_temporary(&segment.store.path)?;
    }
    Ok(true)
}

/// Steps that were planned.
struct InOrder<I> {
    left: I,
    preloads: bool,
}

impl<I: Iterator<Item = Step>> Agenda for InOrder<I> {
    fn next(&mut self, _: &Run) -> Option<Step> {
        self.left.next()
    }

    fn preloads(&self) -> bool {
        self.preloads
    }
}

/// What all segments of an execution have in common.
pub(crate) struct Scene<'a> {
    pub(crate) clock: &'a Ticks,
    pub(crate) execution: &'a Execution,
    pub(crate) stop: &'a Arc<AtomicBool>,
    /// The machines that ask instead of this one.
    pub(crate) crew: Option<&'a mut Crew>,
    pub(crate) probes: &'a Probes,
    /// The power of the idle machine.
    pub(crate) idle: &'a [Reading],
    /// What was seen of the knobs under which it all runs.
    pub(crate) seen: &'a Seen,
}

impl Scene<'_> {
    /// Runs a step and what the agenda has after it, on one open store as long as its data
    /// suits them; the answer says whether it came to the agenda's end.
    pub(crate) fn play(
        &mut self,
        segment: &Segment,
        first: Step,
        agenda: &mut dyn Agenda,
        keep: &mut dyn FnMut(&Run) -> Result<(), StudyError>,
        listener: &mut dyn Listener,
    ) -> Result<bool, StudyError> {
        let preload = agenda.preloads();
        if let Some(crew) = &mut self.crew {
            // Before anything is loaded or measured: whether they can be used.
            crew.reach()?;
        }
        let mut next = Some(first);
        while let Some(first) = next {
            let mut session = Session {
                clock: self.clock,
                segment,
                agenda: &mut *agenda,
                keeper: Keeper::Nobody,
                load_first: None,
                found: false,
                execution: self.execution,
                keep: &mut *keep,
                listener: &mut *listener,
                stop: self.stop,
                crew: self.crew.as_deref_mut(),
                records: 0,
                changed: false,
                name: None,
                warnings: Vec::new(),
                servers: ServerSide::default(),
                facts: Settings::new(),
                probes: self.probes,
                idle: self.idle,
                simulated: None,
            };
            self.seen.settings(&mut session.facts);
            let Closed { mut keeper, name, next: after } = match segment.store.remote()? {
                Some(mut remote) => {
                    let started = match &segment.server {
                        None => None,
                        Some(order) => {
                            let started = order.start(preload)?;
                            remote.servers = started.launched.addresses.clone();
                            Some(started)
                        }
                    };
                    let network = Arc::new(Network::connect(remote)?);
                    session.keeper = Keeper::Servers(Arc::clone(&network));
                    if let Some(started) = &started {
                        started.settings(&mut session.facts);
                    }
                    let tap = started.as_ref().and_then(|started| started.tap.clone());
                    let addresses = network.remote().servers.iter();
                    session.servers =
                        ServerSide::of(addresses.map(|address| (address, tap.clone())));
                    session.find_data(&first)?;
                    let closed = session.ask(&network, first)?;
                    drop(network);
                    if let Some(started) = started {
                        started.end()?;
                    }
                    closed
                }
                None => {
                    if on_disk(segment) {
                        let directory = Directory::claim(&segment.store, room(segment, &first))?;
                        not_anothers(&directory, &segment.store)?;
                        session.keeper = Keeper::Directory(Box::new(directory));
                        session.find_data(&first)?;
                    }
                    store::open(&segment.store, Embedded(session, first))??
                }
            };
            // The store is closed, so all that it was given is in its files.
            if let Some(name) = name {
                keeper.set(&name)?;
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
fn not_anothers(directory: &Directory, store: &StoreUrl) -> Result<(), StudyError> {
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
