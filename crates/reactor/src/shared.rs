use std::collections::VecDeque;

use crate::connection::{Connection, ConnectionFailure, ConnectionState};
use crate::counters::Counters;
use crate::engine::EngineOptions;

/// State that the engines share: the connections and those that are ready.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: EngineOptions,
    pub(crate) connections: Vec<Connection>,
    pub(crate) counters: Counters,
    pub(crate) ready: VecDeque<u32>,
}

impl Shared {
    pub(crate) fn make_ready(&mut self, number: u32) {
        let connection = &mut self.connections[number as usize];
        if !connection.queued {
            connection.queued = true;
            self.ready.push_back(number);
        }
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Only the first reason of an end counts.
    pub(crate) fn end(&mut self, number: u32, state: ConnectionState) {
        let connection = &mut self.connections[number as usize];
        if connection.is_open() {
            connection.state = state;
            self.make_ready(number);
        }
    }

    pub(crate) fn fail(&mut self, number: u32, failure: ConnectionFailure) {
        if self.connections[number as usize].is_open() {
            // Stops the peer, and the kernel's receiving.
            self.connections[number as usize].socket().abort();
            self.end(number, ConnectionState::Failed(failure));
        }
    }
}
