//! One operation asked and its answer checked, with the clock around the store alone.

use model::Op;
use store::{Session, StoreError};
use workload::Operation;

use crate::asks::{OperationSource, SourcedOperation};
use crate::clock::Ticks;
use crate::outcome::FailureKind;
use crate::verdict::{AnswerCounts, shown};

/// A thread's buffers and its way to ask one operation.
pub(crate) struct StoreExecutor<'a> {
    clock: &'a Ticks,
    may_miss: bool,
    keeps: bool,
    /// The key is one that nobody ever writes.
    absent: bool,
    /// A key that is written at some time is not there now.
    missed: bool,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> StoreExecutor<'a> {
    /// `keeps`: the store gives back what it was given.
    pub(crate) fn new(clock: &'a Ticks, keeps: bool, asks: &impl OperationSource) -> Self {
        StoreExecutor {
            clock,
            may_miss: asks.may_miss(),
            keeps,
            absent: false,
            missed: false,
            key: Vec::with_capacity(256),
            value: Vec::with_capacity(4096),
        }
    }

    /// Writes the key and the value, before the clock starts.
    #[inline(always)]
    pub(crate) fn prepare<A: OperationSource>(&mut self, asks: &A, asked: &SourcedOperation) {
        self.absent = asks.key(&asked.ask, 0, &mut self.key);
        self.missed = false;
        if matches!(asked.ask.op, Op::Insert | Op::Update | Op::ReadModifyWrite) {
            asks.value(asked, &self.key, &mut self.value);
        } else {
            self.value.clear();
        }
    }

    /// The last operation was a read of one key that was not there, and might have been.
    #[inline(always)]
    pub(crate) fn missed(&self) -> bool {
        self.missed
    }

    /// Writes the key that was missed.
    pub(crate) fn refill<S: Session, A: OperationSource>(
        &mut self,
        session: &mut S,
        asks: &A,
        asked: &SourcedOperation,
    ) -> Result<(), StoreError> {
        asks.value(asked, &self.key, &mut self.value);
        session.update(&self.key, &self.value)
    }

    /// Bytes of key and value that the prepared write gives to the store.
    #[inline(always)]
    pub(crate) fn written(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }

    /// Asks and answers the tick at which the answer was in hand. A read's value is verified
    /// after that tick; a scan's values and a read-modify-write's before it, for the store
    /// lends them only until it goes on.
    #[inline(always)]
    pub(crate) fn ask<S: Session, A: OperationSource>(
        &mut self,
        session: &mut S,
        asks: &A,
        ask: Operation,
        verdicts: &mut AnswerCounts,
    ) -> Result<u64, StoreError> {
        if ask.keys > 1 {
            return self.ask_for_many(session, asks, ask, verdicts);
        }
        let StoreExecutor { clock, key, value, .. } = self;
        let key = key.as_slice();
        let end = match ask.op {
            Op::Read => {
                let mut answered = 0;
                let found = session.read(key, |value| {
                    answered = clock.now();
                    verdicts.check(asks, key, value);
                })?;
                let end = if answered == 0 { clock.now() } else { answered };
                self.missed = !found && !self.absent;
                looked_up(found, self.absent, self.may_miss, key, verdicts);
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
                let found = session.read(key, |value| verdicts.check(asks, key, value))?;
                looked_up(found, self.absent, self.may_miss, key, verdicts);
                session.update(key, value)?;
                clock.now()
            }
            Op::Delete => {
                session.delete(key)?;
                clock.now()
            }
            Op::Scan => {
                let limit = ask.scan as usize;
                let mut previous = ScanOrder::new(key, &mut self.value);
                let found = session.scan(key, limit, |key, value| {
                    previous.see(key, verdicts);
                    verdicts.check(asks, key, value);
                })?;
                let end = clock.now();
                verdicts.scanned += found as u64;
                // The scan starts at a record that was loaded, so at least that one is there.
                // Where records are deleted it may be gone; a scan is no hit and no miss of a key.
                if found == 0 && limit > 0 && self.keeps && !self.may_miss {
                    verdicts.not_there(key);
                }
                if found > limit {
                    verdicts.fail(FailureKind::Disorder, || {
                        format!("{}: {found} records for a limit of {limit}", shown(key))
                    });
                }
                end
            }
        };
        verdicts.answered();
        Ok(end)
    }

    /// A multi-get: one read after the other, for the stores here have no such operation.
    fn ask_for_many<S: Session, A: OperationSource>(
        &mut self,
        session: &mut S,
        asks: &A,
        ask: Operation,
        verdicts: &mut AnswerCounts,
    ) -> Result<u64, StoreError> {
        for n in 0..ask.keys {
            let absent = asks.key(&ask, n, &mut self.key);
            let key = self.key.as_slice();
            let found = session.read(key, |value| verdicts.check(asks, key, value))?;
            looked_up(found, absent, self.may_miss, key, verdicts);
        }
        verdicts.answered();
        Ok(self.clock.now())
    }
}

/// Judges whether a key was there: one that was never written must not be. A miss is a failure
/// unless the workload deletes or asks for what was never written.
#[inline(always)]
fn looked_up(found: bool, absent: bool, may_miss: bool, key: &[u8], verdicts: &mut AnswerCounts) {
    match (found, absent) {
        (true, false) => verdicts.hits += 1,
        (true, true) => verdicts.invented(key),
        (false, absent) if may_miss || absent => verdicts.misses += 1,
        (false, _) => {
            verdicts.missing += 1;
            verdicts.not_there(key);
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
    fn see(&mut self, key: &[u8], verdicts: &mut AnswerCounts) {
        let ascends = if self.first {
            key >= self.previous.as_slice()
        } else {
            key > self.previous.as_slice()
        };
        if !ascends {
            verdicts.fail(FailureKind::Disorder, || {
                format!("{} after {}", shown(key), shown(self.previous))
            });
        }
        self.first = false;
        self.previous.clear();
        self.previous.extend_from_slice(key);
    }
}
