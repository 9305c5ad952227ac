//! The operation loop: compiled once for each store, source of operations and pacing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{Op, PerOp};
use store::{Session, Store};
use workload::{Ask, Workload};

use crate::asks::Asks;
use crate::clock::Ticks;
use crate::frontier::{Claim, Frontier, Gate};
use crate::outcome::{DriveError, FailureKind};
use crate::pace::{Pacer, Waited};
use crate::recorder::Recorder;
use crate::verdict::{Verdicts, shown};

/// What the threads of a phase share.
pub(crate) struct Shared<S> {
    pub(crate) store: Arc<S>,
    pub(crate) workload: Arc<Workload>,
    pub(crate) clock: Ticks,
    pub(crate) gate: Gate,
    pub(crate) frontier: Frontier,
    /// The loop is open: latency counts from the due instant too.
    pub(crate) open: bool,
    /// Operations are counted in a given number, not for a given time.
    pub(crate) counted: bool,
    /// The first operation that does not count any more; `u64::MAX` while that is not known.
    pub(crate) end_operation: AtomicU64,
    /// Tick at which the threads were let go: the arrivals of all of them count from it.
    pub(crate) begun_at: AtomicU64,
}

/// What one thread saw in the window, and what it did to the data in the whole phase.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) operations: u64,
    pub(crate) counts: PerOp<u64>,
    pub(crate) verdicts: Verdicts,
    pub(crate) bytes_written: u64,
    /// Ticks inside the store.
    pub(crate) in_store: u64,
    /// From the window's first operation to the end of the last.
    pub(crate) waited: Waited,
    /// Tick at which this thread's part of the window began, and its last operation ended.
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) answered_in_time: u64,
    /// Ticks by which answers came later than the store's own times would have had it: late
    /// sending and the harness's work, and the queueing that both caused.
    pub(crate) late: u64,
    pub(crate) never_sent: u64,
    pub(crate) fingerprint: u64,
    pub(crate) redirected: u64,
    pub(crate) drawn: u64,
    pub(crate) changes: Changes,
}

/// What a phase did to the data, warm-up included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Records that were inserted and acknowledged.
    pub inserted: u64,
    pub deleted: u64,
    /// Writes that the store refused: what the data is then is not known.
    pub refused: u64,
}

pub(crate) fn work<S: Store, A: Asks, P: Pacer>(
    shared: &Shared<S>,
    thread: usize,
    mut asks: A,
    pacer: impl FnOnce() -> P,
    mut recorder: Recorder,
) -> Result<Seen, DriveError> {
    let Shared { store, workload, clock, gate, frontier, .. } = shared;
    let lane = frontier.lane(thread);
    let mut session = store.session()?;
    let mut asker = Asker {
        workload,
        clock,
        may_miss: workload.spec().mix.asks(Op::Delete),
        keeps: store.capabilities().keeps,
        key: Vec::with_capacity(256),
        value: Vec::with_capacity(4096),
    };
    let needs_frontier = asks.asks_for_inserted();
    let known = || if needs_frontier { frontier.acknowledged() } else { u64::MAX };
    let mut seen = Seen::default();
    let mut in_window = false;
    let mut done = 0;
    gate.wait_for_the_start();
    let mut pacer = pacer();
    let mut entered = Waited::default();
    // When a client that costs nothing and is never late would have had its last answer.
    let mut ideal_end = 0;

    'blocks: loop {
        gate.wait_if_gathering();
        let claim = frontier.claim();
        let length = shared.length_of(claim);
        if length == 0 {
            lane.retire();
            break;
        }
        asks.seek(claim.block);
        lane.advance(asks.next_insert());
        let mut acknowledged = known();
        for _ in 0..length {
            let Some(ask) = asks.next(acknowledged) else { break };
            seen.drawn += 1;
            asker.prepare(ask);
            // Leaving here, some of the block's inserts are not done: the floor stays.
            let Some(due) = pacer.wait(clock, gate) else { break 'blocks };
            if !in_window && (if shared.counted { claim.counted } else { gate.opened() }) {
                in_window = true;
                recorder.open_window(gate.opened_at());
                entered = pacer.waited();
                seen = seen.entering(clock.now());
            }
            let begin = clock.now();
            let asked = asker.ask(&mut session, ask, &mut seen.verdicts);
            let end = match asked {
                Ok(answered) => {
                    if ask.op.writes() {
                        seen.bytes_written += asker.written();
                    }
                    answered
                }
                Err(error) => {
                    seen.changes.refused += u64::from(ask.op.writes());
                    seen.verdicts.store_failed(ask.op, error)?;
                    clock.now()
                }
            };
            recorder.record(P::OPEN, clock, ask.op, due, begin, end);
            match ask.op {
                Op::Insert => {
                    lane.advance(ask.record + 1);
                    seen.changes.inserted += 1;
                    acknowledged = known();
                }
                Op::Delete => seen.changes.deleted += 1,
                _ => {}
            }
            done += 1;
            lane.count(done);
            seen.operations += 1;
            seen.counts[ask.op] += 1;
            seen.in_store += end - begin;
            seen.ended = end;
            if P::OPEN {
                seen.waited = pacer.waited();
                ideal_end = due.max(ideal_end) + (end - begin);
                seen.late += end.saturating_sub(ideal_end);
                seen.answered_in_time += u64::from(end <= gate.closes_at());
            }
        }
    }
    recorder.finish();
    if !in_window {
        seen = seen.entering(clock.now());
        entered = pacer.waited();
    }
    if P::OPEN && !shared.counted {
        seen.never_sent = pacer.skip_to(gate.closes_at());
    } else if !P::OPEN {
        seen.waited = pacer.waited();
    }
    seen.waited = seen.waited - entered;
    seen.fingerprint = asks.fingerprint();
    seen.redirected = asks.redirected();
    Ok(seen)
}

impl Seen {
    /// The window begins: what was seen before does not count, but what it did to the data
    /// stays done and what went wrong stays wrong.
    fn entering(self, now: u64) -> Seen {
        Seen {
            began: now,
            ended: now,
            drawn: self.drawn,
            changes: self.changes,
            verdicts: self.verdicts.failures_only(),
            ..Seen::default()
        }
    }
}

impl<S> Shared<S> {
    /// How many operations of a block are to be asked: all of it, but for the last one.
    fn length_of(&self, claim: Claim) -> u64 {
        let begin = claim.block * workload::BLOCK;
        if !(self.counted && claim.counted) {
            return if self.gate.stopped() { 0 } else { workload::BLOCK };
        }
        loop {
            let end = self.end_operation.load(Ordering::Acquire);
            if end != u64::MAX {
                return end.saturating_sub(begin).min(workload::BLOCK);
            }
            // The controlling thread is between two instructions.
            if self.gate.stopped() {
                return 0;
            }
            std::thread::sleep(Duration::from_micros(10));
        }
    }
}

/// A thread's buffers and its way to ask one operation.
struct Asker<'a> {
    workload: &'a Workload,
    clock: &'a Ticks,
    may_miss: bool,
    keeps: bool,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Asker<'_> {
    /// Writes the key and the value, before the clock starts.
    #[inline(always)]
    fn prepare(&mut self, ask: Ask) {
        self.workload.key(ask.record, &mut self.key);
        if matches!(ask.op, Op::Insert | Op::Update | Op::ReadModifyWrite) {
            self.workload.value(&self.key, ask.salt, &mut self.value);
        } else {
            self.value.clear();
        }
    }

    /// Bytes of key and value that the prepared write gives to the store.
    #[inline(always)]
    fn written(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }

    /// Asks and answers the tick at which the answer was in hand. A read's value is verified
    /// after that tick; a scan's values and a read-modify-write's before it, for the store
    /// lends them only until it goes on.
    #[inline(always)]
    fn ask<S: Session>(
        &mut self,
        session: &mut S,
        ask: Ask,
        verdicts: &mut Verdicts,
    ) -> Result<u64, store::StoreError> {
        let Asker { workload, clock, key, value, .. } = self;
        let key = key.as_slice();
        let end = match ask.op {
            Op::Read => {
                let mut answered = 0;
                let found = session.read(key, |value| {
                    answered = clock.now();
                    verdicts.check(workload, key, value);
                })?;
                let end = if answered == 0 { clock.now() } else { answered };
                if !found {
                    missing(self.may_miss, key, verdicts);
                }
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
                let found = session.read(key, |value| verdicts.check(workload, key, value))?;
                if !found {
                    missing(self.may_miss, key, verdicts);
                }
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
                    verdicts.check(workload, key, value);
                })?;
                let end = clock.now();
                verdicts.scanned += found as u64;
                // The scan starts at a record that was loaded, so at least that one is there.
                if found == 0 && limit > 0 && self.keeps {
                    missing(self.may_miss, key, verdicts);
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
}

/// A miss is a failure unless the workload deletes.
#[cold]
fn missing(may_miss: bool, key: &[u8], verdicts: &mut Verdicts) {
    if may_miss {
        verdicts.misses += 1;
    } else {
        verdicts.fail(FailureKind::Missing, || format!("{} is not there", shown(key)));
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
    fn see(&mut self, key: &[u8], verdicts: &mut Verdicts) {
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
