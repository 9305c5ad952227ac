//! The operation loop: compiled once for each store, source of operations and pacing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{Op, PerOp};
use store::{Session, Store};
use workload::Workload;
use workload::trace::TraceFeed;

use crate::asker::StoreExecutor;
use crate::asks::{Exhausted, OperationSource, SourcedOperation};
use crate::clock::Ticks;
use crate::frontier::{Frontier, PhaseGate, ThreadProgress};
use crate::outcome::{DataChanges, DriveError};
use crate::pace::{PaceWait, Pacer};
use crate::recorder::Recorder;
use crate::replay::ReplaySummary;
use crate::share::LoadShare;
use crate::verdict::AnswerCounts;

/// What the threads of a phase share.
pub struct WorkerShared<T> {
    pub(crate) target: Arc<T>,
    pub(crate) workload: Arc<Workload>,
    pub(crate) clock: Ticks,
    pub(crate) gate: PhaseGate,
    pub(crate) frontier: Frontier,
    /// The loop is open: latency counts from the due instant too.
    pub(crate) open: bool,
    /// Records are loaded, and no workload is measured.
    pub(crate) loads: bool,
    /// Operations are counted in a given number, not for a given time.
    pub(crate) counted: bool,
    /// This client's part, where several ask together.
    pub(crate) share: Option<LoadShare>,
    /// The first of this client's operations that does not count any more; set before the
    /// window opens.
    pub(crate) end_operation: AtomicU64,
    /// Each thread's part of the trace, until it takes it.
    pub(crate) feeds: Mutex<Vec<Option<TraceFeed>>>,
    /// Tick at which the threads were let go: the arrivals of all of them count from it.
    pub(crate) begun_at: AtomicU64,
}

/// What one thread saw in the window, and what it did to the data in the whole phase.
#[derive(Debug, Default)]
pub struct ThreadStats {
    pub(crate) operations: u64,
    pub(crate) counts: PerOp<u64>,
    pub(crate) verdicts: AnswerCounts,
    pub(crate) bytes_written: u64,
    /// Ticks inside the store.
    pub(crate) in_store: u64,
    /// From the window's first operation to the end of the last.
    pub(crate) waited: PaceWait,
    /// Tick at which this thread's part of the window began, and its last operation ended.
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) answered_in_time: u64,
    /// Ticks by which answers came later than the store's own times would have had it: late
    /// sending and the harness's work, and the queueing that both caused.
    pub(crate) late: u64,
    pub(crate) never_sent: u64,
    /// Of an open loop to servers: requests that were dropped because the queue was full, those
    /// that waited in it, how long they did together, and the most that waited at once.
    pub(crate) dropped: u64,
    pub(crate) queued: u64,
    pub(crate) queue_ticks: u64,
    pub(crate) most_queued: u64,
    /// Answers of which the kernel said when they arrived, and how long after that this thread
    /// had them, together.
    pub(crate) woken: u64,
    pub(crate) wake_ns: u64,
    /// Misses that were set again, and connections that were made again.
    pub(crate) refills: u64,
    pub(crate) reconnected: u64,
    /// Why this thread ended the phase before its end.
    pub(crate) gave_up: Option<String>,
    pub(crate) fingerprint: u64,
    pub(crate) redirected: u64,
    pub(crate) drawn: u64,
    pub(crate) changes: DataChanges,
    /// Of a trace.
    pub(crate) replayed: ReplaySummary,
}

/// How long a thread sleeps while its part of a trace is not read yet.
pub(crate) const READING: Duration = Duration::from_micros(200);

pub(crate) fn work<S: Store, A: OperationSource, P: Pacer>(
    shared: &WorkerShared<S>,
    thread: usize,
    mut asks: A,
    pacer: impl FnOnce() -> P,
    mut recorder: Recorder,
) -> Result<ThreadStats, DriveError> {
    let WorkerShared { target: store, clock, gate, frontier, .. } = shared;
    let lane = frontier.lane(thread);
    let mut session = store.session()?;
    let mut asker = StoreExecutor::new(clock, store.capabilities().stores_values, &asks);
    let needs_frontier = asks.asks_for_inserted();
    let known = || if needs_frontier { frontier.acknowledged() } else { u64::MAX };
    let mut seen = ThreadStats::default();
    let mut in_window = false;
    let mut done = 0;
    gate.wait_for_the_start();
    let mut pacer = pacer();
    let mut entered = PaceWait::default();
    let second = clock.ticks(1e9);
    // When the trace's reader was waited for the last time: what was due before came too late.
    let mut came_at = 0;
    // When a client that costs nothing and is never late would have had its last answer.
    let mut ideal_end = 0;

    'blocks: loop {
        gate.wait_if_gathering();
        let turn = frontier.claim();
        let length = shared.length_of(turn);
        if length == 0 {
            lane.retire();
            break;
        }
        asks.seek(shared.block(turn));
        lane.advance(asks.next_insert());
        let mut acknowledged = known();
        for _ in 0..length {
            let Some(asked) = asks.next(acknowledged) else {
                match asks.dry() {
                    Exhausted::Block => break,
                    Exhausted::NotYet if !gate.closed() => {
                        seen.replayed.starved += let_it_read(clock, lane);
                        continue 'blocks;
                    }
                    Exhausted::NotYet | Exhausted::End => break 'blocks,
                }
            };
            let ask = asked.ask;
            seen.drawn += 1;
            asker.prepare(&asks, &asked);
            if A::TRACED {
                let due = shared.begun().saturating_add(asked.at);
                lane.wait_until(due);
                came_at = if asked.awaited { clock.now() } else { came_at };
                seen.replayed.read_late += u64::from(P::OPEN && due < came_at);
            }
            // Leaving here, some of the block's inserts are not done: the floor stays.
            let Some(due) = pacer.wait(asked.at, clock, gate) else {
                seen.drawn -= u64::from(A::TRACED);
                break 'blocks;
            };
            if !in_window && gate.opened() {
                in_window = true;
                recorder.open_window(gate.opened_at());
                entered = pacer.waited();
                seen = seen.entering(clock.now());
            }
            let begin = clock.now();
            let answer = asker.ask(&mut session, &asks, ask, &mut seen.verdicts);
            let end = match answer {
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
                if A::TRACED && in_window && due >= gate.opened_at() {
                    let (after, took) = (due - gate.opened_at(), end.saturating_sub(due));
                    seen.replayed.count(after, second, took <= second);
                }
            }
            if asker.missed() && asks.refills(&asked) && !gate.closed() {
                refill(&mut asker, &mut session, &asks, &asked, &mut seen)?;
            }
        }
    }
    recorder.finish();
    if !in_window {
        seen = seen.entering(clock.now());
        entered = pacer.waited();
    }
    if P::OPEN && !shared.counted {
        let end = gate.closes_at();
        seen.never_sent = pacer.skip_to(end);
        if end != u64::MAX {
            seen.never_sent += asks.due_before(end.saturating_sub(shared.begun()));
        }
    } else if !P::OPEN {
        seen.waited = pacer.waited();
    }
    if A::TRACED {
        lane.wait_until(u64::MAX);
    }
    seen.waited = seen.waited - entered;
    seen.waited.idle += seen.replayed.starved;
    asks.account(&mut seen);
    Ok(seen)
}

/// Sleeps while a trace is read; answers the ticks of that.
#[cold]
fn let_it_read(clock: &Ticks, lane: &ThreadProgress) -> u64 {
    let begin = clock.now();
    // A reader may be slow, as standard input is; that is no fault of the store.
    lane.wait_until(begin + clock.ticks(1e9));
    std::thread::sleep(READING);
    clock.now() - begin
}

/// Cache-aside: what was missed is set, as the application behind a cache would. It is the
/// client's own traffic, counted apart.
#[cold]
fn refill<S: Session, A: OperationSource>(
    asker: &mut StoreExecutor<'_>,
    session: &mut S,
    asks: &A,
    asked: &SourcedOperation,
    seen: &mut ThreadStats,
) -> Result<(), DriveError> {
    match asker.refill(session, asks, asked) {
        Ok(()) => {
            seen.refills += 1;
            seen.bytes_written += asker.written();
            Ok(())
        }
        Err(error) => {
            seen.changes.refused += 1;
            seen.verdicts.store_failed(Op::Update, error)
        }
    }
}

impl ThreadStats {
    /// The window begins: what was seen before does not count, but what it did to the data
    /// stays done and what went wrong stays wrong.
    pub(crate) fn entering(self, now: u64) -> ThreadStats {
        ThreadStats {
            began: now,
            ended: now,
            drawn: self.drawn,
            changes: self.changes,
            verdicts: self.verdicts.failures_only(),
            gave_up: self.gave_up,
            ..ThreadStats::default()
        }
    }
}

impl<T> WorkerShared<T> {
    /// This thread's part of the trace.
    pub(crate) fn feed(&self, thread: usize) -> Result<TraceFeed, DriveError> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let feed = feeds.get_mut(thread).and_then(Option::take);
        feed.ok_or_else(|| DriveError::Internal(format!("thread {thread} has no trace")))
    }

    /// Tick at which the threads were let go.
    pub(crate) fn begun(&self) -> u64 {
        self.begun_at.load(Ordering::Acquire)
    }

    /// The block of the stream at this client's `turn`.
    pub(crate) fn block(&self, turn: u64) -> u64 {
        self.share.map_or(turn, |share| share.block(turn))
    }

    /// How many operations of a block are to be asked: all of it, but for the last one of a
    /// window that is counted. Such a window opens only while all threads wait between two
    /// blocks, so its first block is whole and its end is known by then.
    pub(crate) fn length_of(&self, turn: u64) -> u64 {
        if self.gate.stopped() {
            return 0;
        }
        if !(self.counted && self.gate.opened()) {
            return workload::BLOCK;
        }
        let end = self.end_operation.load(Ordering::Acquire);
        end.saturating_sub(turn * workload::BLOCK).min(workload::BLOCK)
    }
}
