//! One connection: what is under way on it, and what became of it.

use std::collections::VecDeque;

use super::operation::PendingRequest;

#[derive(Debug)]
pub(super) struct ServerConnection {
    pub(super) server: usize,
    /// Written and not answered, oldest first.
    pub(super) under_way: VecDeque<PendingRequest>,
    /// The newest of them that the socket has not been given.
    pub(super) unsent: usize,
    /// It stands in its server's list of those with room.
    pub(super) listed: bool,
    /// When each slot that is free would have become so for a client that costs nothing and is
    /// never late, in the order in which they did. Open loop only.
    free_at: VecDeque<u64>,
    /// Bytes that the answer to the oldest takes, as far as that is known.
    pub(super) needs: usize,
    pub(super) down: Option<Reconnect>,
    /// Something was answered since it was connected.
    pub(super) proved: bool,
    /// Losses in a row before anything was answered.
    pub(super) tries: u32,
}

/// A connection that was lost: since when, and when it is tried again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reconnect {
    pub(super) since: u64,
    pub(super) retry_at: u64,
}

impl ServerConnection {
    pub(super) fn new(server: usize, depth: usize) -> ServerConnection {
        ServerConnection {
            server,
            under_way: VecDeque::with_capacity(depth),
            unsent: 0,
            listed: false,
            free_at: std::iter::repeat_n(0, depth).collect(),
            needs: 0,
            down: None,
            proved: false,
            tries: 0,
        }
    }
}

impl ServerConnection {
    /// Takes the slot that has been free for longest; since when it is.
    pub(super) fn take_slot(&mut self) -> u64 {
        self.free_at.pop_front().unwrap_or(0)
    }

    pub(super) fn free_slot(&mut self, at: u64) {
        self.free_at.push_back(at);
    }

    /// It is connected anew, which is not the client's doing.
    pub(super) fn free_all_slots(&mut self, depth: usize, at: u64) {
        self.free_at.clear();
        self.free_at.resize(depth, at);
    }
}

/// A server as one thread sees it.
#[derive(Debug, Default)]
pub(super) struct ServerConnections {
    /// Connections that take another request, the one that has waited longest first: load is
    /// spread over all of them, and with it over the server's threads.
    pub(super) with_room: VecDeque<usize>,
    /// Requests that wait for one of them.
    pub(super) queue: VecDeque<PendingRequest>,
}
