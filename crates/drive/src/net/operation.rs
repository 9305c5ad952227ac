//! Operations in flight, and their requests.

use std::time::Duration;

use store::wire::{KeyList, Kind};

use crate::source::SourcedOperation;

/// The step that follows when the request in flight is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    End,
    /// The second half of a read-modify-write.
    Write,
}

/// A read that missed, and waits for a modelled database.
#[derive(Debug, Clone, Copy)]
pub(super) struct MissedRead {
    /// When it was due, or sent in a closed loop.
    pub(super) since: u64,
    /// What the database takes.
    pub(super) latency: Duration,
}

/// One operation, from its due instant to its last answer. All instants are ticks.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingOperation {
    pub(super) sourced: SourcedOperation,
    pub(super) due: u64,
    /// When its first request went out; 0 before.
    pub(super) sent: u64,
    /// The longest wait of one of its requests for a connection with a free slot.
    pub(super) queued: u64,
    /// When a client without cost or lateness would have had its last answer; the due instant as
    /// long as there is none. Open loop only.
    pub(super) ideal: u64,
    /// Requests that are not answered.
    pub(super) unanswered: u32,
    pub(super) next_step: NextStep,
    /// It began in the window.
    pub(super) counts: bool,
    pub(super) failed: bool,
    /// The client's own traffic rather than the workload's: the refill after a miss.
    pub(super) refill: bool,
    /// Of a refill: the read that it ends, where the database behind the cache is modelled.
    pub(super) missed: Option<MissedRead>,
}

impl PendingOperation {
    /// A new operation, not sent yet.
    pub(super) fn new(sourced: SourcedOperation, due: u64, counts: bool) -> PendingOperation {
        PendingOperation {
            sourced,
            due,
            sent: 0,
            queued: 0,
            ideal: due,
            unanswered: 0,
            next_step: NextStep::End,
            counts,
            failed: false,
            refill: false,
            missed: None,
        }
    }

    /// Whether it occupied a slot of the closed loop until its end.
    pub(super) fn holds_slot(&self) -> bool {
        !self.refill || self.missed.is_some()
    }
}

/// One request to one server: an operation has several where a multi-get is spread over servers.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) operation: u32,
    pub(super) kind: Kind,
    pub(super) tag: u32,
    pub(super) keys: KeyList,
    /// When it was sent; before that, since when it waits.
    pub(super) since: u64,
    /// When a client without cost or lateness would have sent it.
    pub(super) ideal: u64,
    /// When it was sent for the first time; 0 before.
    pub(super) begun: u64,
    /// To a node of a cluster that imports its slot.
    pub(super) asking: bool,
    /// It was repeated after a loss or a refusal.
    pub(super) is_repeated: bool,
}

/// Operations by number, and recycled requests: after a warm-up nothing is allocated.
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

    /// Operations in flight, including queued ones.
    pub(super) fn in_flight(&self) -> usize {
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
                let (begun, asking, is_repeated) = (0, false, false);
                let keys = request.keys;
                PendingRequest {
                    operation,
                    kind,
                    tag,
                    keys,
                    since,
                    ideal,
                    begun,
                    asking,
                    is_repeated,
                }
            }
            None => PendingRequest {
                operation,
                kind,
                tag,
                keys: KeyList::default(),
                since,
                ideal,
                begun: 0,
                asking: false,
                is_repeated: false,
            },
        }
    }

    pub(super) fn recycle(&mut self, request: PendingRequest) {
        self.requests.push(request);
    }
}
