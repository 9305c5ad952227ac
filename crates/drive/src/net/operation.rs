//! Operations under way, and the requests that they are made of.

use store::wire::{KeyList, Kind};

use crate::asks::SourcedOperation;

/// What an operation still has to do when the request under way is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    End,
    /// The second half of a read-modify-write.
    Write,
}

/// One operation, from the instant at which it was due to its last answer. Ticks throughout.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingOperation {
    pub(super) asked: SourcedOperation,
    pub(super) due: u64,
    /// When its first request went out; 0 before.
    pub(super) sent: u64,
    /// How long a request of it waited for a connection that was not full, at the longest.
    pub(super) queued: u64,
    /// When a client that costs nothing and is never late would have had its last answer; when
    /// it was due, as long as there is none. Open loop only.
    pub(super) ideal: u64,
    /// Requests that are not answered.
    pub(super) left: u32,
    pub(super) then: NextStep,
    /// It began in the window.
    pub(super) counts: bool,
    pub(super) failed: bool,
    /// Its own traffic of the client, not asked for by the workload: the refill after a miss.
    pub(super) refill: bool,
}

impl PendingOperation {
    /// One that was due then and of which nothing has gone out.
    pub(super) fn new(asked: SourcedOperation, due: u64, counts: bool) -> PendingOperation {
        PendingOperation {
            asked,
            due,
            sent: 0,
            queued: 0,
            ideal: due,
            left: 0,
            then: NextStep::End,
            counts,
            failed: false,
            refill: false,
        }
    }
}

/// One request to one server: an operation has several where a multi-get is spread over servers.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) operation: u32,
    pub(super) kind: Kind,
    pub(super) tag: u32,
    pub(super) keys: KeyList,
    /// When it went out; before that, since when it waits.
    pub(super) since: u64,
    /// When a client that costs nothing and is never late would have sent it.
    pub(super) ideal: u64,
}

/// Operations by number, and requests to be used again: nothing is allocated once as many are
/// there as are under way at the most.
#[derive(Debug, Default)]
pub(super) struct OperationPool {
    operations: Vec<PendingOperation>,
    free: Vec<u32>,
    requests: Vec<PendingRequest>,
    tag: u32,
}

impl OperationPool {
    pub(super) fn begin(&mut self, operation: PendingOperation) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.operations[number as usize] = operation;
                number
            }
            None => {
                self.operations.push(operation);
                (self.operations.len() - 1) as u32
            }
        }
    }

    pub(super) fn operation(&mut self, number: u32) -> &mut PendingOperation {
        &mut self.operations[number as usize]
    }

    pub(super) fn end(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Operations under way, queued ones too.
    pub(super) fn under_way(&self) -> usize {
        self.operations.len() - self.free.len()
    }

    /// A request without keys.
    pub(super) fn request(&mut self, operation: u32, kind: Kind, since: u64) -> PendingRequest {
        self.tag = self.tag.wrapping_add(1);
        let tag = self.tag;
        let ideal = self.operations[operation as usize].ideal;
        match self.requests.pop() {
            Some(mut request) => {
                request.keys.clear();
                PendingRequest { operation, kind, tag, since, ideal, ..request }
            }
            None => PendingRequest { operation, kind, tag, keys: KeyList::default(), since, ideal },
        }
    }

    pub(super) fn give_back(&mut self, request: PendingRequest) {
        self.requests.push(request);
    }
}
