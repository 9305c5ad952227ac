//! The segments of an execution, each on its open store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drive::{Network, Target, Ticks};
use model::{Execution, Reading, Run, RunSettings};
use store::{Directory, Remote};
use study::{Activity, ProbesConfig, Segment, Step};

use crate::dataset_marker::MarkerLocation;
use crate::directories::{check_store_owner, on_disk, room};
use crate::distributed::AgentPool;
use crate::error::ExecuteError;
use crate::event::{Event, Listener};
use crate::execution_cache::ExecutionCache;
use crate::knobs::KnobEffects;
use crate::load_step::LoadStep;
use crate::server_side::ServerSide;
use crate::session::{ClosedStore, Session, StepAgenda};
use crate::started_server;

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
        if matches!(first.activity, Activity::Bench(_)) {
            return self.run_benches(first, agenda, keep, listener);
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
            let closed = match segment.store.remote()? {
                Some(remote) => over_network(session, remote, first, preload)?,
                None => embedded(session, first)?,
            };
            let ClosedStore { mut marker, name, next: after, copy } = closed;
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

/// A session with servers, which are started for it where the segment says so.
fn over_network(
    mut session: Session<'_>,
    mut remote: Remote,
    first: Step,
    preload: bool,
) -> Result<ClosedStore, ExecuteError> {
    let started = match &session.segment.server {
        None => None,
        Some(server) => {
            let started = started_server::start(server, preload, session.stop)?;
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
    let mut network = network.map_err(explain)?;
    if let Some(started) = &started {
        network.set_names(started.names());
    }
    let network = Arc::new(network);
    let target: Arc<dyn Target> = network.clone();
    session.marker = MarkerLocation::Servers(Arc::clone(&network) as _);
    if let Some(started) = &started {
        started.settings(&mut session.facts);
    }
    let tap = |address| started.as_ref().and_then(|started| started.tap_at(address));
    let nodes = network.nodes().iter().enumerate();
    let nodes = nodes.map(|(at, address)| (network.name(at), address, tap(address)));
    session.servers = ServerSide::of(nodes);
    session.find_data(LoadStep::of(&first)?).map_err(explain)?;
    let closed = session.run_steps(&target, first).map_err(explain)?;
    drop((network, target));
    if let Some(started) = started {
        started.end()?;
    }
    Ok(closed)
}

/// A session with a store whose threads have a session each: in this process, or servers.
fn embedded(mut session: Session<'_>, first: Step) -> Result<ClosedStore, ExecuteError> {
    let segment = session.segment;
    if on_disk(segment) {
        let directory = Directory::claim(&segment.store, room(segment, LoadStep::of(&first)?))?;
        check_store_owner(&directory, &segment.store)?;
        session.marker = MarkerLocation::Directories(vec![directory]);
        session.find_data(LoadStep::of(&first)?)?;
    }
    session.run_on_store(drive::open(&segment.store)?, first)
}
