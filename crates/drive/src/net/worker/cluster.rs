//! One thread's view of a cluster: routes, redirects and requests that are repeated.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use store::ReplicaReads;
use store::wire::{ClusterMap, Kind, Refusal, Response, slot_of};

use super::super::cluster::{Cluster, Routes};
use super::super::connection::ServerConnection;
use super::super::operation::PendingRequest;
use super::super::schedule::RequestSchedule;
use super::{NetworkWorker, ring};
use crate::outcome::FailureKind;
use crate::source::OperationSource;

/// The least time before a request is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(2);

/// A node that has not answered for so long may have been replaced.
const DOUBTFUL_AFTER: Duration = Duration::from_millis(500);

/// Routes that this thread follows, and what waits to be repeated.
pub(super) struct ThreadRoutes {
    cluster: Arc<Cluster>,
    version: u64,
    owners: Vec<u16>,
    replicas: Vec<Vec<u16>>,
    /// Takes the replicas of a primary in turn.
    reads: usize,
    /// Requests to repeat, and when; in that order.
    retries: VecDeque<(u64, PendingRequest)>,
    /// The node from which a replica took over a slot, else [`ClusterMap::NOBODY`]: writes that it
    /// had not got are gone.
    taken_from: Vec<u16>,
    /// Nodes of which the last connection was lost.
    lost: BTreeSet<usize>,
}

impl ThreadRoutes {
    pub(super) fn of(cluster: &Arc<Cluster>) -> ThreadRoutes {
        let (version, routes) = cluster.routes();
        let Routes { owners, replicas } = Routes::clone(&routes);
        ThreadRoutes {
            cluster: Arc::clone(cluster),
            version,
            taken_from: vec![ClusterMap::NOBODY; owners.len()],
            lost: BTreeSet::new(),
            owners,
            replicas,
            reads: 0,
            retries: VecDeque::new(),
        }
    }

    /// The node for a request. Without a known one any answers where to go.
    #[inline]
    fn node_of(&mut self, key: &[u8], kind: Kind) -> usize {
        let owner = match self.owners[usize::from(slot_of(key))] {
            ClusterMap::NOBODY => 0,
            owner => usize::from(owner),
        };
        if kind == Kind::Get && self.cluster.reads != ReplicaReads::Never {
            let replicas = &self.replicas[owner];
            if !replicas.is_empty() {
                self.reads = self.reads.wrapping_add(1);
                return usize::from(replicas[self.reads % replicas.len()]);
            }
        }
        owner
    }

    /// Takes renewed routes; returns whether there were any.
    fn update(&mut self) -> bool {
        if self.cluster.version() == self.version {
            return false;
        }
        let (version, routes) = self.cluster.routes();
        self.version = version;
        for (slot, owner) in routes.owners.iter().enumerate() {
            self.move_slot(slot, *owner);
        }
        self.replicas.clone_from(&routes.replicas);
        true
    }

    /// A slot is another node's now: a replica has taken it over, or its node has given it away.
    fn move_slot(&mut self, slot: usize, to: u16) {
        let from = std::mem::replace(&mut self.owners[slot], to);
        if self.replicas.get(usize::from(from)).is_some_and(|own| own.contains(&to)) {
            self.taken_from[slot] = from;
        }
    }

    fn slots_of(&self, node: usize) -> u64 {
        self.owners.iter().filter(|owner| usize::from(**owner) == node).count() as u64
    }

    /// Slots that are lost with a node. Its successor may have them already.
    fn slots_lost_with(&self, node: usize) -> u64 {
        let own = |at: &u16| usize::from(*at) == node;
        self.owners.iter().zip(&self.taken_from).filter(|(now, was)| own(now) || own(was)).count()
            as u64
    }
}

/// Whether a node has no connection.
pub(super) fn is_down(connections: &[ServerConnection], node: usize) -> bool {
    let mut own = connections.iter().filter(|connection| connection.server == node);
    own.all(|connection| connection.down.is_some())
}

impl<A: OperationSource> NetworkWorker<'_, A> {
    /// The server for a request about a key.
    #[inline]
    pub(super) fn server_of(&mut self, key: &[u8], kind: Kind) -> usize {
        match &mut self.routes {
            None => ring::server_of(self.network, self.ejected.as_ref(), key),
            Some(routes) => routes.node_of(key, kind),
        }
    }

    /// Whether keys of a multi-get must be of one slot, and the slot of this one.
    #[inline]
    pub(super) fn slot_of(&self, key: &[u8]) -> Option<u16> {
        self.routes.is_some().then(|| slot_of(key))
    }

    /// Sends a request elsewhere, or again later, where the answer says so. Returns it otherwise.
    #[cold]
    pub(super) fn reroute(
        &mut self,
        mut request: PendingRequest,
        answer: &Response,
        server: usize,
        now: u64,
    ) -> Option<PendingRequest> {
        let limit = self.clock.ticks_of(self.network.timeout());
        self.admit_nodes();
        let Some(routes) = &mut self.routes else { return Some(request) };
        if now.saturating_sub(request.begun) > limit {
            return Some(request);
        }
        match answer {
            Response::Redirected(redirect) => {
                let Some(target) = routes.cluster.target(&redirect.to, server) else {
                    // A node that joined since the map was read.
                    routes.cluster.renew(None);
                    self.retry_later(request, now);
                    return None;
                };
                let target_node = usize::from(target);
                // The node that answered may not know yet that the other one is lost.
                if is_down(&self.connections, target_node) {
                    routes.cluster.renew(Some(target_node));
                    self.retry_later(request, now);
                    return None;
                }
                if redirect.asks {
                    self.stats.cluster.asked += 1;
                } else {
                    self.stats.cluster.moved += 1;
                    routes.move_slot(usize::from(redirect.slot), target);
                    routes.cluster.renew(None);
                }
                request.asking = redirect.asks;
                // What the cluster takes is not the client's lateness.
                request.ideal = now;
                self.place(request, target_node);
                None
            }
            Response::Refused { why: Refusal::Busy | Refusal::ReadOnly, .. } => {
                routes.cluster.renew(None);
                self.retry_later(request, now);
                None
            }
            _ => Some(request),
        }
    }

    /// Repeats a request soon, on the node that then serves its slot.
    pub(super) fn retry_later(&mut self, mut request: PendingRequest, now: u64) {
        request.asking = false;
        request.is_repeated = true;
        if request.begun == 0 {
            request.begun = request.since;
        }
        let at = now + self.clock.ticks_of(RETRY_PAUSE);
        if let Some(routes) = &mut self.routes {
            self.stats.cluster.retried += 1;
            routes.retries.push_back((at, request));
        }
    }

    /// Whether the node of a connection has not answered for `waited` ticks and serves no slots any
    /// more. A node that is cut off closes no connection.
    pub(super) fn was_replaced(&mut self, number: usize, waited: u64) -> bool {
        let doubtful = waited > self.clock.ticks_of(DOUBTFUL_AFTER);
        let Some(routes) = self.routes.as_ref().filter(|_| doubtful) else { return false };
        let server = self.connections[number].server;
        routes.cluster.renew(Some(server));
        let is_replica = routes.replicas.iter().flatten().any(|own| usize::from(*own) == server);
        !is_replica && routes.slots_of(server) == 0
    }

    /// A connection to a node was lost; with the last one the node is.
    pub(super) fn note_lost(&mut self, server: usize) {
        let is_down = is_down(&self.connections, server);
        if let Some(routes) = &mut self.routes
            && is_down
        {
            routes.cluster.renew(Some(server));
            routes.lost.insert(server);
        }
    }

    /// What was lost before the window does not count in it.
    pub(super) fn forget_lost_nodes(&mut self) {
        if let Some(routes) = &mut self.routes {
            routes.lost.clear();
        }
    }

    /// Counts the slots of lost nodes by the map as it is known now: a node may have given its slots
    /// away before it ended.
    pub(super) fn count_lost_slots(&mut self) {
        let Some(routes) = &self.routes else { return };
        let slots = routes.lost.iter().map(|node| routes.slots_lost_with(*node)).max();
        self.stats.cluster.lost_slots = self.stats.cluster.lost_slots.max(slots.unwrap_or(0));
    }

    /// What a lost connection had in flight is repeated if there is a cluster and time left;
    /// the rest is returned.
    pub(super) fn retry_lost(
        &mut self,
        lost: Vec<PendingRequest>,
        now: u64,
    ) -> Vec<PendingRequest> {
        let limit = self.clock.ticks_of(self.network.timeout());
        if self.routes.is_none() {
            return lost;
        }
        let (again, rest): (Vec<_>, Vec<_>) =
            lost.into_iter().partition(|request| now.saturating_sub(request.begun) <= limit);
        again.into_iter().for_each(|request| self.retry_later(request, now));
        rest
    }

    /// Takes renewed routes and repeats what is due.
    pub(super) fn follow_cluster(&mut self, now: u64, schedule: &mut RequestSchedule) {
        let limit = self.clock.ticks_of(self.network.timeout());
        let Some(routes) = &mut self.routes else { return };
        let changed = routes.update();
        if changed {
            self.count_lost_slots();
        }
        self.admit_nodes();
        let Some(routes) = &mut self.routes else { return };
        let mut due = Vec::new();
        while let Some((_, request)) = routes.retries.pop_front_if(|(at, _)| *at <= now) {
            due.push(request);
        }
        let mut held = Vec::new();
        for (number, server) in self.servers.iter_mut().enumerate() {
            let waits = !server.queue.is_empty() && is_down(&self.connections, number);
            let has_successor = waits && (changed || routes.slots_of(number) == 0);
            if waits && !has_successor {
                // Nodes may differ about it for a while.
                routes.cluster.renew(Some(number));
            }
            // What waits for a lost node goes to its successor, or has waited too long.
            let goes_on = |request: &mut PendingRequest| {
                has_successor || now.saturating_sub(request.since) > limit
            };
            while let Some(request) = server.queue.pop_front_if(goes_on) {
                self.queued -= 1;
                held.push(request);
            }
        }
        for mut request in held {
            request.is_repeated = true;
            if request.begun == 0 {
                request.begun = request.since;
            }
            due.push(request);
        }
        for mut request in due {
            request.ideal = now;
            let server = self.server_of(request.keys.get(0), request.kind);
            if now.saturating_sub(request.begun) > limit {
                if let Some(nodes) = &mut self.nodes {
                    nodes.fail(server, 1);
                }
                let timeout = model::Span(self.network.timeout());
                let address = self.network.address(server);
                let words = format!("{address}: no node served it within {timeout}");
                self.fail_request(request, FailureKind::Timeout, &words, now, schedule);
                continue;
            }
            self.place(request, server);
        }
    }

    /// Whether something that was sent waits to be repeated.
    pub(super) fn has_retries(&self) -> bool {
        let Some(routes) = &self.routes else { return false };
        let queued = self.servers.iter().flat_map(|server| &server.queue);
        !routes.retries.is_empty() || queued.into_iter().any(|request| request.begun != 0)
    }

    /// What still waits to be repeated at the end of the phase.
    pub(super) fn take_retries(&mut self) -> Vec<PendingRequest> {
        let retries = self.routes.as_mut().map(|routes| std::mem::take(&mut routes.retries));
        retries.into_iter().flatten().map(|(_, request)| request).collect()
    }

    /// Counts an answer that was accepted; `missed` of its keys were not found.
    #[inline]
    pub(super) fn count_node(
        &mut self,
        request: &PendingRequest,
        missed: usize,
        server: usize,
        now: u64,
    ) {
        let Some(nodes) = &mut self.nodes else { return };
        let keys = match request.kind {
            Kind::Get => (request.keys.len(), request.keys.len() - missed),
            _ => (0, 0),
        };
        nodes.count(server, keys, self.clock.nanos(request.since, now), now);
        if request.is_repeated {
            let took = self.clock.seconds(request.begun, now);
            self.stats.cluster.served_late += 1;
            self.stats.cluster.longest_s = self.stats.cluster.longest_s.max(took);
        }
    }

    /// Whether a key that is missing was acknowledged by a node that a replica has replaced.
    pub(super) fn was_taken_over(&self, key: &[u8]) -> bool {
        let slot = usize::from(slot_of(key));
        self.routes.as_ref().is_some_and(|routes| routes.taken_from[slot] != ClusterMap::NOBODY)
    }
}
