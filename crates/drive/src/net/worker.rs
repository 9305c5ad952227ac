//! The loop of one client thread over its connections; the submodules are its steps.

mod cluster;
mod database;
mod failure;
mod issue;
mod join;
mod nodes;
mod receive;
mod ring;
mod send;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use reactor::Reactor;
use store::wire::Protocol;

use self::cluster::ThreadRoutes;
use self::database::Database;
use self::join::JoiningConnection;
use self::nodes::NodeRecorder;
use self::ring::EjectedServers;
use super::Network;
use super::connection::{ServerConnection, ServerConnections};
use super::insert_tracker::InsertTracker;
use super::kernel_clock::KernelClock;
use super::operation::{OperationPool, PendingRequest};
use super::schedule::{NextAction, RequestSchedule};
use crate::clock::Ticks;
use crate::frontier::ThreadProgress;
use crate::outcome::DriveError;
use crate::pace::PaceWait;
use crate::plan::LoadPlan;
use crate::recorder::Recorder;
use crate::source::{OperationSource, SourcedOperation};
use crate::thread_stats::ThreadStats;
use crate::worker_shared::WorkerShared;

/// The longest sleep: how often the stage of the phase and request timeouts are checked.
const LONGEST_SLEEP: Duration = Duration::from_millis(5);
/// How long to wait for the last answers after a stop; request timeouts may end it earlier.
const LAST_WAIT: Duration = Duration::from_secs(10);
pub(super) struct NetworkWorker<'a, A> {
    shared: &'a WorkerShared,
    network: &'a Arc<Network>,
    clock: &'a Ticks,
    progress: &'a ThreadProgress,
    protocol: Protocol,
    depth: usize,
    queue_limit: usize,
    busy_poll: bool,
    source: A,
    /// Operations left in the block that was claimed; None when there are no more blocks.
    block_left: Option<u64>,
    /// Drawn from a source with due instants, and not yet due.
    next_operation: Option<SourcedOperation>,
    /// Since when the trace reader is behind.
    exhausted_since: Option<u64>,
    /// End of the last wait for the trace reader: operations due before it were read late.
    awaited_until: u64,
    needs_frontier: bool,
    may_miss: bool,
    reactor: Reactor,
    connections: Vec<ServerConnection>,
    /// Of each server.
    connections_each: usize,
    joining: Vec<JoiningConnection>,
    /// Servers when the window opened.
    nodes_before: usize,
    servers: Vec<ServerConnections>,
    /// Connections with requests that are not handed to the kernel yet.
    unflushed: Vec<usize>,
    queued: usize,
    pool: OperationPool,
    database: Database,
    inserts: InsertTracker,
    value: Vec<u8>,
    kernel_clock: KernelClock,
    recorder: Recorder,
    stats: ThreadStats,
    waited: PaceWait,
    done: u64,
    in_window: bool,
    next_check: u64,
    /// Answers per read of a connection: a moving mean over some 16 reads.
    answers_per_poll: f32,
    /// No more operations are issued: a server is lost, or every answer is a failure.
    gave_up: bool,
    /// Requests of a multi-get over several servers, by server, or over several slots of a cluster.
    spread: Vec<Option<PendingRequest>>,
    spread_slots: Vec<(u16, PendingRequest)>,
    /// Of a cluster.
    routes: Option<ThreadRoutes>,
    /// Of several servers of which lost ones are ejected.
    ejected: Option<EjectedServers>,
    /// Of several servers.
    nodes: Option<NodeRecorder>,
}

impl<'a, A: OperationSource> NetworkWorker<'a, A> {
    /// Connects, before the phase begins.
    pub(super) fn new(
        network: &'a Arc<Network>,
        shared: &'a WorkerShared,
        thread: usize,
        plan: &LoadPlan,
        source: A,
        recorder: Recorder,
    ) -> Result<Self, DriveError> {
        let config = plan.connections;
        let mut reactor = network.reactor(plan)?;
        let (mut connections, mut joining) = (Vec::new(), Vec::new());
        // A cluster may grow meanwhile.
        let count = network.servers();
        for server in 0..count {
            for opened in 0..config.count {
                let stream = match network.open(server) {
                    // The other nodes of a cluster take over, or a redirect shows that they do not.
                    Err(_) if network.cluster().is_some() => {
                        let rest = opened..config.count;
                        joining.extend(rest.map(|_| JoiningConnection::new(server)));
                        break;
                    }
                    opened => opened?,
                };
                let number = reactor.add(stream).map_err(super::internal)?;
                debug_assert_eq!(number, connections.len());
                connections.push(ServerConnection::new(server, config.depth));
            }
        }
        let mut servers: Vec<ServerConnections> =
            (0..count).map(|_| ServerConnections::default()).collect();
        for (number, connection) in connections.iter_mut().enumerate() {
            connection.listed = true;
            servers[connection.server].with_room.push_back(number);
        }
        let needs_frontier = source.reads_inserted();
        let may_miss = network.may_evict() || source.may_miss() || source.writes_expire();
        let spread = servers.iter().map(|_| None).collect();
        Ok(NetworkWorker {
            shared,
            network,
            clock: &shared.clock,
            progress: shared.frontier.progress(thread),
            protocol: network.protocol(),
            depth: config.depth,
            queue_limit: config.queue,
            busy_poll: config.busy_poll,
            source,
            block_left: Some(0),
            next_operation: None,
            exhausted_since: None,
            awaited_until: 0,
            needs_frontier,
            may_miss,
            reactor,
            connections,
            connections_each: config.count,
            nodes_before: count,
            joining,
            servers,
            unflushed: Vec::new(),
            queued: 0,
            pool: OperationPool::default(),
            database: Database::default(),
            inserts: InsertTracker::default(),
            value: Vec::with_capacity(4096),
            kernel_clock: KernelClock::new(&shared.clock),
            recorder,
            stats: ThreadStats::default(),
            waited: PaceWait::default(),
            done: 0,
            in_window: false,
            next_check: 0,
            answers_per_poll: 0.0,
            gave_up: false,
            spread,
            spread_slots: Vec::new(),
            routes: network.cluster().map(ThreadRoutes::of),
            ejected: EjectedServers::of(network, plan),
            nodes: NodeRecorder::of(network, count, &shared.clock, plan.interval),
        })
    }

    pub(super) fn run(mut self, thread: usize, plan: &LoadPlan) -> Result<ThreadStats, DriveError> {
        let gate = &self.shared.gate;
        gate.wait_for_start();
        let most = self.connections.len() * self.depth;
        let mut schedule =
            RequestSchedule::new(plan, thread, self.clock, self.shared.begun(), most);
        let mut entered = PaceWait::default();
        let mut last_wait = None;
        loop {
            let mut now = self.clock.now();
            if !self.in_window && gate.opened() {
                entered = self.waited;
                self.enter_window(&mut schedule);
                now = self.clock.now();
            }
            if self.gave_up || gate.stopped() {
                // Queued requests are not sent any more; those in flight are waited for.
                let until = *last_wait.get_or_insert_with(|| now + self.clock.ticks_of(LAST_WAIT));
                if now >= until
                    || (self.connections.iter().all(|connection| connection.in_flight.is_empty())
                        && !self.has_retries())
                {
                    break;
                }
            }
            self.take_fetched(&mut schedule, now);
            let next = self.issue_due(&mut schedule, now);
            self.send()?;
            if self.pool.in_flight() == 0 {
                match next {
                    NextAction::Done => break,
                    NextAction::WaitForAnswer if self.gathers() => {
                        gate.wait_if_gathering();
                        continue;
                    }
                    _ => {}
                }
            }
            self.poll(self.database.sooner(next))?;
            let now = self.clock.now();
            while let Some(number) = self.reactor.ready() {
                self.read_answers(number, &mut schedule);
            }
            if now >= self.next_check {
                self.check_connections(now, &mut schedule);
            }
        }
        self.abandon_unfinished();
        if !self.in_window {
            let now = self.clock.now();
            entered = self.waited;
            self.stats.enter_window(now);
            if let Some(nodes) = &mut self.nodes {
                nodes.open_window(now);
            }
        }
        if schedule.is_open() && !self.shared.counted && gate.closes_at() != u64::MAX {
            let end = gate.closes_at();
            self.stats.never_sent += schedule.skipped(end);
            self.stats.never_sent +=
                self.source.due_before(end.saturating_sub(self.shared.begun()));
        }
        self.stats.drawn -= u64::from(self.next_operation.is_some());
        self.progress.retire();
        if A::TRACED {
            self.progress.wait_until(u64::MAX);
        }
        self.stats.ring.servers = self.ejected.as_ref().map_or(0, |_| self.servers.len() as u64);
        self.count_lost_slots();
        if let Some(cluster) = self.network.cluster() {
            self.stats.cluster.nodes = cluster.nodes.found().len() as u64;
            self.stats.cluster.joined = (cluster.nodes.len() - self.nodes_before) as u64;
        }
        if let Some(nodes) = self.nodes.take() {
            self.stats.nodes = nodes.finish(self.network);
        }
        self.recorder.finish(&self.stats.answer_counts);
        self.stats.waited = self.waited - entered;
        self.source.account(&mut self.stats);
        Ok(self.stats)
    }

    /// Operations that began before the window do not count. The queue of a warm-up at another rate
    /// is dropped.
    fn enter_window(&mut self, schedule: &mut RequestSchedule) {
        let gate = &self.shared.gate;
        self.in_window = true;
        self.recorder.open_window(gate.opened_at());
        self.stats.enter_window(gate.opened_at());
        self.nodes_before = self.network.servers();
        self.note_ejected();
        self.forget_lost_nodes();
        if let Some(nodes) = &mut self.nodes {
            nodes.open_window(gate.opened_at());
        }
        if schedule.enter_window(gate.opened_at()) {
            for server in 0..self.servers.len() {
                while let Some(request) = self.servers[server].queue.pop_front() {
                    self.queued -= 1;
                    if let Some(pending) = self.abandon(request) {
                        self.finish_insert(pending.sourced.operation, false);
                    }
                }
            }
        }
    }
}
