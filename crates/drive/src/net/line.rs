//! One connection: what is under way on it, and what became of it.

use std::collections::VecDeque;

use super::operation::Request;

#[derive(Debug)]
pub(super) struct Line {
    pub(super) server: usize,
    /// Written and not answered, oldest first.
    pub(super) under_way: VecDeque<Request>,
    /// The newest of them that the socket has not been given.
    pub(super) unsent: usize,
    /// It stands in its server's list of those with room.
    pub(super) listed: bool,
    /// Bytes that the answer to the oldest takes, as far as that is known.
    pub(super) needs: usize,
    pub(super) down: Option<Down>,
}

/// A connection that was lost: since when, and when it is tried again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Down {
    pub(super) since: u64,
    pub(super) retry_at: u64,
    pub(super) tries: u32,
}

impl Line {
    pub(super) fn new(server: usize, depth: usize) -> Line {
        Line {
            server,
            under_way: VecDeque::with_capacity(depth),
            unsent: 0,
            listed: false,
            needs: 0,
            down: None,
        }
    }
}

/// A server as one thread sees it.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// Connections that take another request, the one that has waited longest first: load is
    /// spread over all of them, and with it over the server's threads.
    pub(super) with_room: VecDeque<usize>,
    /// Requests that wait for one of them.
    pub(super) queue: VecDeque<Request>,
}
