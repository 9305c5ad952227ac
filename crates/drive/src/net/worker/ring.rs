//! Servers that share the keys by hashing: a lost one is ejected until it is connected again.

use store::wire::Kind;

use super::super::Network;
use super::super::operation::PendingRequest;
use super::NetworkWorker;
use super::cluster::is_down;
use crate::plan::{LoadPlan, PhaseKind};
use crate::source::OperationSource;

/// Servers to which this thread has no connection, whose keys the others serve.
pub(super) struct EjectedServers {
    out: Vec<bool>,
    any: bool,
}

impl EjectedServers {
    /// None where a lost server ends the phase; a load is never without one of them.
    pub(super) fn of(network: &Network, plan: &LoadPlan) -> Option<EjectedServers> {
        let ejects = network.ejects() && plan.phase == PhaseKind::Mix;
        ejects.then(|| EjectedServers { out: vec![false; network.servers()], any: false })
    }
}

/// The server of a key.
#[inline]
pub(super) fn server_of(network: &Network, ejected: Option<&EjectedServers>, key: &[u8]) -> usize {
    match ejected {
        Some(ejected) if ejected.any => network.server_among(key, &ejected.out),
        _ => network.server_of(key),
    }
}

impl<A: OperationSource> NetworkWorker<'_, A> {
    /// A connection was lost: with the last one its server is ejected, and what waits for it goes to
    /// the others.
    pub(super) fn eject(&mut self, server: usize) {
        let is_down = is_down(&self.connections, server);
        let Some(ejected) = self.ejected.as_mut().filter(|_| is_down) else { return };
        (ejected.out[server], ejected.any) = (true, true);
        self.note_ejected();
        let waiting = std::mem::take(&mut self.servers[server].queue);
        self.queued -= waiting.len();
        waiting.into_iter().for_each(|request| self.spread_anew(request));
    }

    /// Notes the share of the keys whose servers are out.
    pub(super) fn note_ejected(&mut self) {
        let Some(ejected) = &self.ejected else { return };
        let out = (0..ejected.out.len()).filter(|server| ejected.out[*server]);
        let share: f64 = out.filter_map(|server| self.network.share(server)).sum();
        self.stats.ring.lost_share = self.stats.ring.lost_share.max(share);
    }

    /// A server is connected again.
    pub(super) fn readmit(&mut self, server: usize) {
        if let Some(ejected) = &mut self.ejected {
            ejected.out[server] = false;
            ejected.any = ejected.out.contains(&true);
        }
    }

    /// Whether no other server serves the keys of a lost one.
    pub(super) fn has_no_successor(&self) -> bool {
        self.routes.is_none() && self.ejected.as_ref().is_none_or(|own| !own.out.contains(&false))
    }

    /// Places a request that was not sent, by each of its keys.
    fn spread_anew(&mut self, request: PendingRequest) {
        let mut parts: Vec<(usize, PendingRequest)> = Vec::new();
        for at in 0..request.keys.len() {
            let key = request.keys.get(at);
            let server = self.server_of(key, Kind::Get);
            let known = parts.iter().position(|(other, _)| *other == server);
            let part = known.unwrap_or_else(|| {
                let part = self.pool.request(request.operation, request.kind, request.since);
                parts.push((server, part));
                parts.len() - 1
            });
            parts[part].1.keys.push(key);
        }
        let operation = self.pool.operation(request.operation);
        operation.unanswered += parts.len() as u32 - 1;
        self.pool.recycle(request);
        parts.into_iter().for_each(|(server, part)| self.place(part, server));
    }
}
