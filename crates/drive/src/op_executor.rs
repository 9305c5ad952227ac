//! Issues one operation and checks its answer; the clock runs around the store's call alone.

use model::Op;
use store::{KeyBatch, Session, StoreError};
use workload::Operation;

use crate::answer_counts::{AnswerCounts, shown};
use crate::clock::Ticks;
use crate::outcome::FailureKind;
use crate::source::{OperationSource, SourcedOperation};

/// Issues single operations on a session of an embedded store. Owns the thread's buffers.
pub(crate) struct OpExecutor<'a> {
    clock: &'a Ticks,
    may_miss: bool,
    stores_values: bool,
    /// The key belongs to no record: no operation writes it.
    absent: bool,
    /// The last read missed a key that may have been written.
    missed: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    batch: Batch,
}

/// The keys of a multi-get, and what is known of each.
#[derive(Default)]
struct Batch {
    keys: KeyBatch,
    /// Belongs to no record.
    absent: Vec<bool>,
    found: Vec<bool>,
}

impl<'a> OpExecutor<'a> {
    /// `stores_values`: the store returns what was written to it.
    pub(crate) fn new(
        clock: &'a Ticks,
        stores_values: bool,
        source: &impl OperationSource,
    ) -> Self {
        OpExecutor {
            clock,
            may_miss: source.may_miss(),
            stores_values,
            absent: false,
            missed: false,
            key: Vec::with_capacity(256),
            value: Vec::with_capacity(4096),
            batch: Batch::default(),
        }
    }

    /// Writes the key and the value, before the clock starts.
    #[inline(always)]
    pub(crate) fn prepare<A: OperationSource>(&mut self, source: &A, sourced: &SourcedOperation) {
        self.absent = source.key(&sourced.operation, 0, &mut self.key);
        self.missed = false;
        if sourced.operation.keys > 1 {
            self.batch.prepare(source, &sourced.operation, &mut self.key);
        }
        if matches!(sourced.operation.op, Op::Insert | Op::Update | Op::ReadModifyWrite) {
            source.value(sourced, &self.key, &mut self.value);
        } else {
            self.value.clear();
        }
    }

    /// Whether the last operation was a single read that missed a key that may have been written.
    #[inline(always)]
    pub(crate) fn missed(&self) -> bool {
        self.missed
    }

    /// Writes the key that was missed.
    pub(crate) fn refill<S: Session, A: OperationSource>(
        &mut self,
        session: &mut S,
        source: &A,
        sourced: &SourcedOperation,
    ) -> Result<(), StoreError> {
        source.value(sourced, &self.key, &mut self.value);
        session.update(&self.key, &self.value)
    }

    /// Bytes of key and value of the prepared write.
    #[inline(always)]
    pub(crate) fn written(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }

    /// Issues the operation; returns the tick at which its answer was complete. A read's value is
    /// verified after that tick. Values of scans and read-modify-writes are verified before it,
    /// because the store lends them only during the call.
    #[inline(always)]
    pub(crate) fn execute<S: Session, A: OperationSource>(
        &mut self,
        session: &mut S,
        source: &A,
        operation: Operation,
        answer_counts: &mut AnswerCounts,
    ) -> Result<u64, StoreError> {
        if operation.keys > 1 {
            return self.execute_multi_get(session, source, answer_counts);
        }
        let OpExecutor { clock, key, value, .. } = self;
        let key = key.as_slice();
        let end = match operation.op {
            Op::Read => {
                let mut answered = 0;
                let found = session.read(key, |value| {
                    answered = clock.now();
                    answer_counts.count_value(key, value, source.verify(key, value));
                })?;
                let end = if answered == 0 { clock.now() } else { answered };
                self.missed = !found && !self.absent;
                looked_up(found, self.absent, self.may_miss, key, answer_counts);
                end
            }
            Op::Update => {
                session.update(key, value)?;
                clock.now()
            }
            Op::Insert => {
                session.insert(key, value)?;
                clock.now()
            }
            Op::ReadModifyWrite => {
                let found = session.read(key, |value| {
                    answer_counts.count_value(key, value, source.verify(key, value))
                })?;
                looked_up(found, self.absent, self.may_miss, key, answer_counts);
                session.update(key, value)?;
                clock.now()
            }
            Op::Delete => {
                session.delete(key)?;
                clock.now()
            }
            Op::Scan => {
                let limit = operation.scan as usize;
                let mut previous = ScanOrder::new(key, &mut self.value);
                let found = session.scan(key, limit, |key, value| {
                    previous.see(key, answer_counts);
                    answer_counts.count_value(key, value, source.verify(key, value));
                })?;
                let end = clock.now();
                answer_counts.scanned += found as u64;
                // The scan starts at a record that was loaded, so at least that one is there.
                // Deletes may have removed it. A scan counts as neither hit nor miss.
                if found == 0 && limit > 0 && self.stores_values && !self.may_miss {
                    answer_counts.count_missing(key);
                }
                if found > limit {
                    answer_counts.fail(FailureKind::Disorder, || {
                        format!("{}: {found} records for a limit of {limit}", shown(key))
                    });
                }
                end
            }
        };
        answer_counts.answered();
        Ok(end)
    }

    /// Values are verified before the end, because the store lends them only during the call.
    fn execute_multi_get<S: Session, A: OperationSource>(
        &mut self,
        session: &mut S,
        source: &A,
        answer_counts: &mut AnswerCounts,
    ) -> Result<u64, StoreError> {
        let Batch { keys, absent, found } = &mut self.batch;
        session.multi_get(keys, |index, value| {
            let key = keys.key(index);
            found[index] = true;
            answer_counts.count_value(key, value, source.verify(key, value));
        })?;
        let end = self.clock.now();
        for (index, key) in keys.iter().enumerate() {
            looked_up(found[index], absent[index], self.may_miss, key, answer_counts);
        }
        answer_counts.answered();
        Ok(end)
    }
}

impl Batch {
    /// Writes all keys, before the clock starts.
    fn prepare<A: OperationSource>(
        &mut self,
        source: &A,
        operation: &Operation,
        key: &mut Vec<u8>,
    ) {
        self.keys.clear();
        self.absent.clear();
        for n in 0..operation.keys {
            self.absent.push(source.key(operation, n, key));
            self.keys.push(key);
        }
        self.found.clear();
        self.found.resize(self.keys.len(), false);
    }
}

/// Counts a lookup. Finding a key that was never written is a failure; so is a miss, unless the
/// workload deletes records or reads absent keys.
#[inline(always)]
fn looked_up(
    found: bool,
    absent: bool,
    may_miss: bool,
    key: &[u8],
    answer_counts: &mut AnswerCounts,
) {
    match (found, absent) {
        (true, false) => answer_counts.hits += 1,
        (true, true) => answer_counts.count_unexpected(key),
        (false, absent) if may_miss || absent => answer_counts.misses += 1,
        (false, _) => {
            answer_counts.missing += 1;
            answer_counts.count_missing(key);
        }
    }
}

/// Checks that a scan's keys ascend from its start. The previous key lives in the value
/// buffer, which a scan does not need.
struct ScanOrder<'a> {
    previous: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> ScanOrder<'a> {
    fn new(from: &[u8], previous: &'a mut Vec<u8>) -> Self {
        previous.clear();
        previous.extend_from_slice(from);
        ScanOrder { previous, first: true }
    }

    #[inline]
    fn see(&mut self, key: &[u8], answer_counts: &mut AnswerCounts) {
        let ascends = if self.first {
            key >= self.previous.as_slice()
        } else {
            key > self.previous.as_slice()
        };
        if !ascends {
            answer_counts.fail(FailureKind::Disorder, || {
                format!("{} after {}", shown(key), shown(self.previous))
            });
        }
        self.first = false;
        self.previous.clear();
        self.previous.extend_from_slice(key);
    }
}
