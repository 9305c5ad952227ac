//! Sources of operations: the workload's stream, its load phase, or a recorded trace.

use std::time::Duration;

use model::{Expiry, Op};
use workload::{Operation, OperationStream, ValueMismatch, Workload};

use crate::thread_stats::ThreadStats;

/// One operation as drawn from a source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourcedOperation {
    pub(crate) operation: Operation,
    /// When it is due, in ticks after the start of the threads; 0 where the source has no schedule.
    pub(crate) at: u64,
    /// Bytes of its value, where the source determines it.
    pub(crate) length: u32,
    /// Expiry of the value that it writes.
    pub(crate) expiry: Expiry,
    /// The thread had to wait for the trace reader before it could draw this operation.
    pub(crate) awaited: bool,
}

impl From<Operation> for SourcedOperation {
    #[inline(always)]
    fn from(operation: Operation) -> SourcedOperation {
        SourcedOperation { operation, at: 0, length: 0, expiry: Expiry::Never, awaited: false }
    }
}

/// Why a source had no operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// The block has ended.
    Block,
    /// The trace reader has not read the next one yet.
    NotYet,
    /// There are no more.
    End,
}

/// A source of operations, their keys and values. Threads claim its blocks in ascending order.
pub(crate) trait OperationSource {
    /// Its operations have due instants, and each thread has its own part.
    const TRACED: bool = false;

    fn seek(&mut self, block: u64);
    /// Number of the first record that this source would insert from here on.
    fn next_insert(&self) -> u64;
    /// Whether it reads records that are inserted meanwhile, so that `next` must know which.
    fn reads_inserted(&self) -> bool;
    fn next(&mut self, acknowledged: u64) -> Option<SourcedOperation>;
    /// Why `next` returned none.
    fn exhausted(&self) -> Exhausted {
        Exhausted::Block
    }

    /// Replaces `out` by key `n` of an operation; returns whether the key is never written. A trace
    /// knows only the key of the operation that `next` returned last.
    fn key(&self, operation: &Operation, n: u32, out: &mut Vec<u8>) -> bool;
    /// Replaces `out` by the value that an operation writes under `key`.
    fn value(&self, sourced: &SourcedOperation, key: &[u8], out: &mut Vec<u8>);
    /// Whether some operation wrote `value` for `key`.
    fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), ValueMismatch>;
    /// A key that was written may be gone.
    fn may_miss(&self) -> bool;
    /// The same of a server, which gets expiries.
    fn writes_expire(&self) -> bool {
        false
    }
    /// Whether some keys of reads were never written.
    fn reads_absent(&self) -> bool;
    /// Whether a miss of this read is followed by a set.
    fn refills(&self, sourced: &SourcedOperation) -> bool;

    /// How long a modelled database takes after a miss of this read; none where there is none.
    fn miss_latency(&self, _sourced: &SourcedOperation) -> Option<Duration> {
        None
    }

    /// Counts the remaining operations that are due within `ticks` after the start of the threads.
    fn due_before(&mut self, _ticks: u64) -> u64 {
        0
    }
    /// Adds the source's own statistics.
    fn account(&mut self, stats: &mut ThreadStats);
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
    fn reads_inserted(&self) -> bool {
        self.stream.reads_inserted()
    }
    #[inline]
    fn next(&mut self, acknowledged: u64) -> Option<SourcedOperation> {
        self.stream.next(acknowledged).map(|operation| SourcedOperation {
            expiry: self.workload.expiry(operation.salt),
            ..SourcedOperation::from(operation)
        })
    }
    #[inline(always)]
    fn key(&self, operation: &Operation, n: u32, out: &mut Vec<u8>) -> bool {
        let record = self.workload.nth(operation, n);
        self.workload.key(record, out);
        Workload::is_absent(record)
    }
    #[inline(always)]
    fn value(&self, sourced: &SourcedOperation, key: &[u8], out: &mut Vec<u8>) {
        self.workload.value(key, sourced.operation.salt, out);
    }
    #[inline(always)]
    fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), ValueMismatch> {
        self.workload.verify(key, value)
    }
    fn may_miss(&self) -> bool {
        self.workload.spec().mix.contains(Op::Delete)
    }
    fn writes_expire(&self) -> bool {
        self.workload.spec().ttl.is_some()
    }
    fn reads_absent(&self) -> bool {
        self.workload.spec().hit_ratio < 1.0
    }
    fn refills(&self, sourced: &SourcedOperation) -> bool {
        self.workload.spec().refill && !Workload::is_absent(sourced.operation.record)
    }
    fn miss_latency(&self, sourced: &SourcedOperation) -> Option<Duration> {
        self.workload.miss_latency(sourced.operation.salt)
    }
    fn account(&mut self, stats: &mut ThreadStats) {
        stats.fingerprint = self.stream.fingerprint();
        stats.redirected = self.stream.redirected();
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
    fn reads_inserted(&self) -> bool {
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
    fn key(&self, operation: &Operation, _n: u32, out: &mut Vec<u8>) -> bool {
        self.workload.key(operation.record, out);
        false
    }
    #[inline(always)]
    fn value(&self, sourced: &SourcedOperation, key: &[u8], out: &mut Vec<u8>) {
        self.workload.value(key, sourced.operation.salt, out);
    }
    #[inline(always)]
    fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), ValueMismatch> {
        self.workload.verify(key, value)
    }
    fn may_miss(&self) -> bool {
        false
    }
    fn reads_absent(&self) -> bool {
        false
    }
    fn refills(&self, _asked: &SourcedOperation) -> bool {
        false
    }
    fn account(&mut self, _seen: &mut ThreadStats) {}
}
