//! The loop of one thread over its connections; what it does in each turn is in the files below.

mod answering;
mod asking;
mod failing;
mod sending;
mod waiting;

use std::time::Duration;

use reactor::Reactor;
use store::wire::Protocol;

use super::Network;
use super::demand::{NextAction, RequestSchedule};
use super::inserts::InsertTracker;
use super::kernel_clock::KernelClock;
use super::line::{ServerConnection, ServerConnections};
use super::operation::{OperationPool, PendingRequest};
use crate::asks::{OperationSource, SourcedOperation};
use crate::clock::Ticks;
use crate::frontier::ThreadProgress;
use crate::outcome::DriveError;
use crate::pace::PaceWait;
use crate::plan::LoadPlan;
use crate::recorder::Recorder;
use crate::worker::{ThreadStats, WorkerShared};

/// The longest sleep: stages of the phase and limits of requests are looked at that often.
const LONGEST_SLEEP: Duration = Duration::from_millis(5);
/// How long answers are waited for when nothing is asked any more; their own limit may be less.
const LAST_WAIT: Duration = Duration::from_secs(10);
pub(super) struct NetworkWorker<'a, A> {
    shared: &'a WorkerShared<Network>,
    network: &'a Network,
    clock: &'a Ticks,
    lane: &'a ThreadProgress,
    protocol: Protocol,
    depth: usize,
    queue_limit: usize,
    busy_poll: bool,
    asks: A,
    /// Operations left in the block that was claimed; None when there are no more blocks.
    block_left: Option<u64>,
    /// Drawn from a source that says when it is due, which is not yet.
    pending: Option<SourcedOperation>,
    /// Since when the source is asked for an operation that is not there yet.
    dry_since: Option<u64>,
    /// When it was waited for the last time: what was due before that came too late.
    came_at: u64,
    needs_frontier: bool,
    may_miss: bool,
    reactor: Reactor,
    lines: Vec<ServerConnection>,
    servers: Vec<ServerConnections>,
    /// Connections that were given requests since the last time they were sent.
    touched: Vec<usize>,
    queued: usize,
    pool: OperationPool,
    inserts: InsertTracker,
    value: Vec<u8>,
    kernel_clock: KernelClock,
    recorder: Recorder,
    seen: ThreadStats,
    waited: PaceWait,
    done: u64,
    in_window: bool,
    next_look: u64,
    /// Answers that one look at a connection brings: a moving mean over some 16 looks.
    at_once: f32,
    /// Nothing more is asked: a server is gone, or all that comes are failures.
    gave_up: bool,
    /// Of a multi-get over several servers, by server.
    spread: Vec<Option<PendingRequest>>,
}

impl<'a, A: OperationSource> NetworkWorker<'a, A> {
    /// Connects; the phase has not begun.
    pub(super) fn new(
        shared: &'a WorkerShared<Network>,
        thread: usize,
        plan: &LoadPlan,
        asks: A,
        recorder: Recorder,
    ) -> Result<Self, DriveError> {
        let network = &*shared.target;
        let of = plan.connections;
        let mut reactor = network.reactor(plan)?;
        let mut lines = Vec::new();
        for server in 0..network.servers() {
            for _ in 0..of.count {
                let number = reactor.add(network.open(server)?).map_err(super::internal)?;
                debug_assert_eq!(number, lines.len());
                lines.push(ServerConnection::new(server, of.depth));
            }
        }
        let mut servers: Vec<ServerConnections> =
            (0..network.servers()).map(|_| ServerConnections::default()).collect();
        for (number, line) in lines.iter_mut().enumerate() {
            line.listed = true;
            servers[line.server].with_room.push_back(number);
        }
        let needs_frontier = asks.asks_for_inserted();
        let may_miss = network.forgets() || asks.may_miss();
        let spread = servers.iter().map(|_| None).collect();
        Ok(NetworkWorker {
            shared,
            network,
            clock: &shared.clock,
            lane: shared.frontier.lane(thread),
            protocol: network.protocol(),
            depth: of.depth,
            queue_limit: of.queue,
            busy_poll: of.busy_poll,
            asks,
            block_left: Some(0),
            pending: None,
            dry_since: None,
            came_at: 0,
            needs_frontier,
            may_miss,
            reactor,
            lines,
            servers,
            touched: Vec::new(),
            queued: 0,
            pool: OperationPool::default(),
            inserts: InsertTracker::default(),
            value: Vec::with_capacity(4096),
            kernel_clock: KernelClock::new(&shared.clock),
            recorder,
            seen: ThreadStats::default(),
            waited: PaceWait::default(),
            done: 0,
            in_window: false,
            next_look: 0,
            at_once: 0.0,
            gave_up: false,
            spread,
        })
    }

    pub(super) fn run(mut self, thread: usize, plan: &LoadPlan) -> Result<ThreadStats, DriveError> {
        let gate = &self.shared.gate;
        gate.wait_for_the_start();
        let most = self.lines.len() * self.depth;
        let mut demand = RequestSchedule::new(plan, thread, self.clock, self.shared.begun(), most);
        let mut entered = PaceWait::default();
        let mut last_wait = None;
        loop {
            let mut now = self.clock.now();
            if !self.in_window && gate.opened() {
                entered = self.waited;
                self.enter_window(&mut demand);
                now = self.clock.now();
            }
            if self.gave_up || gate.stopped() {
                // Nothing that waits goes out any more; what is out is waited for.
                let until = *last_wait.get_or_insert_with(|| now + self.clock.ticks_of(LAST_WAIT));
                if now >= until || self.lines.iter().all(|line| line.under_way.is_empty()) {
                    break;
                }
            }
            let next = self.admit(&mut demand, now);
            self.send()?;
            if self.pool.under_way() == 0 {
                match next {
                    NextAction::Never => break,
                    NextAction::Answer if self.gathers() => {
                        gate.wait_if_gathering();
                        continue;
                    }
                    _ => {}
                }
            }
            self.poll(next)?;
            let now = self.clock.now();
            while let Some(number) = self.reactor.ready() {
                self.answers(number, &mut demand);
            }
            if now >= self.next_look {
                self.look_after_lines(now, &mut demand);
            }
        }
        self.give_up_the_rest();
        if !self.in_window {
            entered = self.waited;
            self.seen = std::mem::take(&mut self.seen).entering(self.clock.now());
        }
        if demand.is_open() && !self.shared.counted && gate.closes_at() != u64::MAX {
            let end = gate.closes_at();
            self.seen.never_sent += demand.skipped(end);
            self.seen.never_sent += self.asks.due_before(end.saturating_sub(self.shared.begun()));
        }
        self.seen.drawn -= u64::from(self.pending.is_some());
        self.lane.retire();
        if A::TRACED {
            self.lane.wait_until(u64::MAX);
        }
        self.recorder.finish();
        self.seen.waited = self.waited - entered;
        self.asks.account(&mut self.seen);
        Ok(self.seen)
    }

    /// What was begun before the window does not count; what waits unsent from a warm-up of
    /// another rate is dropped.
    fn enter_window(&mut self, demand: &mut RequestSchedule) {
        let gate = &self.shared.gate;
        self.in_window = true;
        self.recorder.open_window(gate.opened_at());
        self.seen = std::mem::take(&mut self.seen).entering(gate.opened_at());
        if demand.enter_window(gate.opened_at()) {
            for server in 0..self.servers.len() {
                while let Some(request) = self.servers[server].queue.pop_front() {
                    self.queued -= 1;
                    if let Some(operation) = self.abandon(request) {
                        self.insert_ended(operation.asked.ask, false);
                    }
                }
            }
        }
    }
}
