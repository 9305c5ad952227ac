//! Nodes of a cluster that this thread has no connection to yet: they joined during the phase, or
//! could not be reached when it began.

use super::super::connection::{Opening, ServerConnection, ServerConnections};
use super::NetworkWorker;
use super::failure::backoff;
use crate::source::OperationSource;

/// A connection that is being opened to a node, and takes its place when it is open.
pub(super) struct JoiningConnection {
    server: usize,
    opening: Opening,
    attempts: u32,
    retry_at: u64,
}

impl JoiningConnection {
    pub(super) fn new(server: usize) -> JoiningConnection {
        JoiningConnection { server, opening: Opening::default(), attempts: 0, retry_at: 0 }
    }
}

impl<A: OperationSource> NetworkWorker<'_, A> {
    /// Gives a place to nodes that joined the cluster, before a request is sent to one of them.
    pub(super) fn admit_nodes(&mut self) {
        let Some(cluster) = self.network.cluster() else { return };
        for server in self.servers.len()..cluster.nodes.len() {
            self.servers.push(ServerConnections::default());
            if let Some(nodes) = &mut self.nodes {
                nodes.add_node();
            }
            let connections = (0..self.connections_each).map(|_| JoiningConnection::new(server));
            self.joining.extend(connections);
        }
    }

    /// Takes connections that other threads have opened.
    pub(super) fn take_joined(&mut self, now: u64) {
        let mut opened = Vec::new();
        self.joining.retain_mut(|joining| {
            if now < joining.retry_at {
                return true;
            }
            match joining.opening.poll(self.network, joining.server) {
                None => true,
                Some(Ok(stream)) => {
                    opened.push((joining.server, stream));
                    false
                }
                Some(Err(_)) => {
                    joining.attempts += 1;
                    joining.retry_at = now + self.clock.ticks_of(backoff(joining.attempts));
                    true
                }
            }
        });
        for (server, stream) in opened {
            // Without a descriptor for it the others go on.
            let Ok(number) = self.reactor.add(stream) else { continue };
            debug_assert_eq!(number, self.connections.len());
            let mut connection = ServerConnection::new(server, self.depth);
            connection.free_all_slots(self.depth, now);
            self.connections.push(connection);
            self.refill_connection(number, now);
        }
    }
}
