//! One connection: its requests in flight and its state.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};

use reactor::Stream;
use store::StoreError;

use super::Network;
use super::operation::PendingRequest;

#[derive(Debug)]
pub(super) struct ServerConnection {
    pub(super) server: usize,
    /// Written and not answered, oldest first.
    pub(super) in_flight: VecDeque<PendingRequest>,
    /// How many of the newest have not been handed to the socket.
    pub(super) unsent: usize,
    /// Whether it is in its server's `with_room`.
    pub(super) listed: bool,
    /// When each free slot would have become free for a client without cost or lateness, in the
    /// order in which they did. Open loop only.
    free_at: VecDeque<u64>,
    /// Bytes that the answer to the oldest needs, as far as known.
    pub(super) needs: usize,
    pub(super) down: Option<Reconnect>,
    /// Its successor.
    pub(super) opening: Opening,
    /// A request was answered since it was connected.
    pub(super) has_answered: bool,
    /// Consecutive failed connects or connections lost before an answer.
    pub(super) attempts: u32,
}

/// A connection that another thread opens while this one goes on.
#[derive(Debug, Default)]
pub(super) struct Opening(Option<Receiver<Result<Stream, StoreError>>>);

impl Opening {
    /// What became of it; `None` while it is being opened, which begins here.
    pub(super) fn poll(
        &mut self,
        network: &Arc<Network>,
        server: usize,
    ) -> Option<Result<Stream, StoreError>> {
        let Some(opening) = &self.0 else {
            let (sender, opening) = mpsc::channel();
            let network = Arc::clone(network);
            let open = move || {
                // The worker may have ended.
                let _ = sender.send(network.open(server));
            };
            let started = std::thread::Builder::new().name("reconnect".to_owned()).spawn(open);
            self.0 = started.is_ok().then_some(opening);
            return None;
        };
        let opened = match opening.try_recv() {
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => {
                Err(StoreError::Failed("it could not be opened again".to_owned()))
            }
            Ok(opened) => opened,
        };
        self.0 = None;
        Some(opened)
    }
}

/// A lost connection: since when, and when it is retried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reconnect {
    pub(super) since: u64,
    pub(super) retry_at: u64,
}

impl ServerConnection {
    pub(super) fn new(server: usize, depth: usize) -> ServerConnection {
        ServerConnection {
            server,
            in_flight: VecDeque::with_capacity(depth),
            unsent: 0,
            listed: false,
            free_at: std::iter::repeat_n(0, depth).collect(),
            needs: 0,
            down: None,
            opening: Opening::default(),
            has_answered: false,
            attempts: 0,
        }
    }
}

impl ServerConnection {
    /// Takes the slot that has been free for longest; returns since when.
    pub(super) fn take_slot(&mut self) -> u64 {
        self.free_at.pop_front().unwrap_or(0)
    }

    pub(super) fn free_slot(&mut self, at: u64) {
        self.free_at.push_back(at);
    }

    /// Frees all slots after a reconnect, which does not count as the client's lateness.
    pub(super) fn free_all_slots(&mut self, depth: usize, at: u64) {
        self.free_at.clear();
        self.free_at.resize(depth, at);
    }
}

/// One thread's view of a server.
#[derive(Debug, Default)]
pub(super) struct ServerConnections {
    /// Connections with a free slot, longest waiting first, so that load is spread over all
    /// connections and the server's threads.
    pub(super) with_room: VecDeque<usize>,
    /// Requests that wait for one of them.
    pub(super) queue: VecDeque<PendingRequest>,
}
