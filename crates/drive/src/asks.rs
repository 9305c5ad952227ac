//! Where operations come from: the workload's stream, its load, or a recorded trace.

use model::{Expiry, Op};
use workload::{Operation, OperationStream, ValueMismatch, Workload};

use crate::worker::ThreadStats;

/// One operation as a source hands it out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourcedOperation {
    pub(crate) ask: Operation,
    /// Ticks from the start of the threads to the instant at which it is due, where the source
    /// says so; else 0.
    pub(crate) at: u64,
    /// Bytes of its value, where the source says so.
    pub(crate) length: u32,
    /// When what it writes expires.
    pub(crate) expiry: Expiry,
    /// It was not there yet when it was first asked for.
    pub(crate) awaited: bool,
}

impl From<Operation> for SourcedOperation {
    #[inline(always)]
    fn from(ask: Operation) -> SourcedOperation {
        SourcedOperation { ask, at: 0, length: 0, expiry: Expiry::Never, awaited: false }
    }
}

/// Why a source had no operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// The block has ended.
    Block,
    /// The next one is not there yet.
    NotYet,
    /// There are no more.
    End,
}

/// A source of operations in blocks that threads claim in ascending order, with the keys and the
/// values of each.
pub(crate) trait OperationSource {
    /// It says when its operations are due, and each thread has a part of its own.
    const TRACED: bool = false;

    fn seek(&mut self, block: u64);
    /// Number of the first record that this source would insert from here on.
    fn next_insert(&self) -> u64;
    /// Whether it asks for records that are inserted meanwhile, so that `next` must know which.
    fn asks_for_inserted(&self) -> bool;
    fn next(&mut self, acknowledged: u64) -> Option<SourcedOperation>;
    /// Why `next` gave none.
    fn dry(&self) -> Exhausted {
        Exhausted::Block
    }

    /// Replaces `out` by key `n` of an operation; answers whether it is one that nobody ever
    /// writes. Where operations are recorded, only of the one that `next` gave last.
    fn key(&self, ask: &Operation, n: u32, out: &mut Vec<u8>) -> bool;
    /// Replaces `out` by the value that an operation writes under `key`.
    fn value(&self, asked: &SourcedOperation, key: &[u8], out: &mut Vec<u8>);
    /// Whether `value` was written for `key`, by whatever operation.
    fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), ValueMismatch>;
    /// A key that was written may be gone.
    fn may_miss(&self) -> bool;
    /// Whether some keys of reads were never written.
    fn asks_for_absent(&self) -> bool;
    /// What this read missed is to be set.
    fn refills(&self, asked: &SourcedOperation) -> bool;

    /// Counts what is left that is due before so many ticks after the start of the threads.
    fn due_before(&mut self, _ticks: u64) -> u64 {
        0
    }
    /// Adds what this source knows about itself.
    fn account(&mut self, seen: &mut ThreadStats);
}

/// The measured phase: the workload's own operations.
pub(crate) struct MixSource<'w> {
    workload: &'w Workload,
    stream: OperationStream<'w>,
}

impl<'w> MixSource<'w> {
    pub(crate) fn new(workload: &'w Workload) -> Self {
        MixSource { workload, stream: workload.stream() }
    }
}

impl OperationSource for MixSource<'_> {
    fn seek(&mut self, block: u64) {
        self.stream.seek(block);
    }
    fn next_insert(&self) -> u64 {
        self.stream.next_insert()
    }
    fn asks_for_inserted(&self) -> bool {
        self.stream.reads_inserted()
    }
    #[inline]
    fn next(&mut self, acknowledged: u64) -> Option<SourcedOperation> {
        self.stream.next(acknowledged).map(SourcedOperation::from)
    }
    #[inline(always)]
    fn key(&self, ask: &Operation, n: u32, out: &mut Vec<u8>) -> bool {
        let record = self.workload.nth(ask, n);
        self.workload.key(record, out);
        Workload::is_absent(record)
    }
    #[inline(always)]
    fn value(&self, asked: &SourcedOperation, key: &[u8], out: &mut Vec<u8>) {
        self.workload.value(key, asked.ask.salt, out);
    }
    #[inline(always)]
    fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), ValueMismatch> {
        self.workload.verify(key, value)
    }
    fn may_miss(&self) -> bool {
        self.workload.spec().mix.contains(Op::Delete)
    }
    fn asks_for_absent(&self) -> bool {
        self.workload.spec().hit_ratio < 1.0
    }
    fn refills(&self, asked: &SourcedOperation) -> bool {
        self.workload.spec().refill && !Workload::is_absent(asked.ask.record)
    }
    fn account(&mut self, seen: &mut ThreadStats) {
        seen.fingerprint = self.stream.fingerprint();
        seen.redirected = self.stream.redirected();
    }
}

/// The load phase: record `i` is operation `i`.
pub(crate) struct LoadSource<'w> {
    workload: &'w Workload,
    next: u64,
    end: u64,
}

impl<'w> LoadSource<'w> {
    pub(crate) fn new(workload: &'w Workload) -> Self {
        LoadSource { workload, next: 0, end: 0 }
    }
}

impl OperationSource for LoadSource<'_> {
    fn seek(&mut self, block: u64) {
        self.next = block * workload::BLOCK;
        self.end = self.next + workload::BLOCK;
    }
    fn next_insert(&self) -> u64 {
        self.next
    }
    fn asks_for_inserted(&self) -> bool {
        false
    }
    #[inline]
    fn next(&mut self, _acknowledged: u64) -> Option<SourcedOperation> {
        if self.next >= self.end {
            return None;
        }
        let record = self.next;
        self.next += 1;
        let salt = self.workload.load_salt(record);
        Some(Operation { op: Op::Insert, record, salt, scan: 0, keys: 1 }.into())
    }
    #[inline(always)]
    fn key(&self, ask: &Operation, _n: u32, out: &mut Vec<u8>) -> bool {
        self.workload.key(ask.record, out);
        false
    }
    #[inline(always)]
    fn value(&self, asked: &SourcedOperation, key: &[u8], out: &mut Vec<u8>) {
        self.workload.value(key, asked.ask.salt, out);
    }
    #[inline(always)]
    fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), ValueMismatch> {
        self.workload.verify(key, value)
    }
    fn may_miss(&self) -> bool {
        false
    }
    fn asks_for_absent(&self) -> bool {
        false
    }
    fn refills(&self, _asked: &SourcedOperation) -> bool {
        false
    }
    fn account(&mut self, _seen: &mut ThreadStats) {}
}
