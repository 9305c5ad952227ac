//! The operation loop on embedded stores, compiled for each store, source and pacing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{Op, PerOp};
use store::{Session, Store};
use workload::Workload;
use workload::trace::TraceFeed;

use crate::answer_counts::AnswerCounts;
use crate::clock::Ticks;
use crate::frontier::{Frontier, PhaseGate, ThreadProgress};
use crate::load_share::LoadShare;
use crate::op_executor::OpExecutor;
use crate::outcome::{DataChanges, DriveError};
use crate::pace::{PaceWait, Pacer};
use crate::recorder::Recorder;
use crate::replay::ReplaySummary;
use crate::source::{Exhausted, OperationSource, SourcedOperation};

/// State shared by the threads of a phase.
pub struct WorkerShared<T> {
    pub(crate) target: Arc<T>,
    pub(crate) workload: Arc<Workload>,
    pub(crate) clock: Ticks,
    pub(crate) gate: PhaseGate,
    pub(crate) frontier: Frontier,
    /// The loop is open: latency counts from the due instant too.
    pub(crate) open: bool,
    /// It is a load phase.
    pub(crate) loads: bool,
    /// The window ends by a number of operations, not by the clock.
    pub(crate) counted: bool,
    /// This client's share, where several generate the load.
    pub(crate) share: Option<LoadShare>,
    /// The first of this client's operations after the window; set before the window opens.
    pub(crate) end_operation: AtomicU64,
    /// Each thread's part of the trace, until the thread takes it.
    pub(crate) feeds: Mutex<Vec<Option<TraceFeed>>>,
    /// Tick at which the phase began: zero of all arrivals.
    pub(crate) begun_at: AtomicU64,
}

/// Statistics of one thread in the window, and its changes to the data in the whole phase.
#[derive(Debug, Default)]
pub struct ThreadStats {
    pub(crate) operations: u64,
    pub(crate) counts: PerOp<u64>,
    pub(crate) answer_counts: AnswerCounts,
    pub(crate) bytes_written: u64,
    /// Ticks inside the store.
    pub(crate) in_store: u64,
    /// Time spent waiting, from the window's first operation to the end of the last.
    pub(crate) waited: PaceWait,
    /// Tick at which this thread's part of the window began, and its last operation ended.
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) answered_in_time: u64,
    /// Ticks by which answers came later than the store's service times alone explain: late sending,
    /// the harness's work, and the queueing that both caused.
    pub(crate) late: u64,
    pub(crate) never_sent: u64,
    /// Of an open loop to servers: requests dropped because the queue was full, those that were
    /// queued, their total wait, and the maximum queue length.
    pub(crate) dropped: u64,
    pub(crate) queued: u64,
    pub(crate) queue_ticks: u64,
    pub(crate) most_queued: u64,
    /// Answers with a kernel timestamp, and the total time from that to this thread.
    pub(crate) woken: u64,
    pub(crate) wake_ns: u64,
    /// Refilled misses, and reconnects.
    pub(crate) refills: u64,
    pub(crate) reconnected: u64,
    /// Why this thread ended the phase early.
    pub(crate) gave_up: Option<String>,
    pub(crate) fingerprint: u64,
    pub(crate) redirected: u64,
    pub(crate) drawn: u64,
    pub(crate) changes: DataChanges,
    /// Summary of a replayed trace.
    pub(crate) replayed: ReplaySummary,
}

/// How long a thread sleeps while its part of a trace is being read.
pub(crate) const READING: Duration = Duration::from_micros(200);

pub(crate) fn work<S: Store, A: OperationSource, P: Pacer>(
    shared: &WorkerShared<S>,
    thread: usize,
    mut source: A,
    pacer: impl FnOnce() -> P,
    mut recorder: Recorder,
) -> Result<ThreadStats, DriveError> {
    let WorkerShared { target: store, clock, gate, frontier, .. } = shared;
    let progress = frontier.progress(thread);
    let mut session = store.session()?;
    let mut executor = OpExecutor::new(clock, store.capabilities().stores_values, &source);
    let needs_frontier = source.reads_inserted();
    let known = || if needs_frontier { frontier.acknowledged() } else { u64::MAX };
    let mut stats = ThreadStats::default();
    let mut in_window = false;
    let mut done = 0;
    gate.wait_for_start();
    let mut pacer = pacer();
    let mut entered = PaceWait::default();
    let second = clock.ticks(1e9);
    // End of the last wait for the trace reader: operations due before it were read late.
    let mut awaited_until = 0;
    // When a client without cost or lateness would have had its last answer.
    let mut ideal_end = 0;

    'blocks: loop {
        gate.wait_if_gathering();
        let turn = frontier.claim();
        let length = shared.length_of(turn);
        if length == 0 {
            progress.retire();
            break;
        }
        source.seek(shared.block(turn));
        progress.advance(source.next_insert());
        let mut acknowledged = known();
        for _ in 0..length {
            let Some(sourced) = source.next(acknowledged) else {
                match source.exhausted() {
                    Exhausted::Block => break,
                    Exhausted::NotYet if !gate.closed() => {
                        stats.replayed.starved += wait_for_reader(clock, progress);
                        continue 'blocks;
                    }
                    Exhausted::NotYet | Exhausted::End => break 'blocks,
                }
            };
            let operation = sourced.operation;
            stats.drawn += 1;
            executor.prepare(&source, &sourced);
            if A::TRACED {
                let due = shared.begun().saturating_add(sourced.at);
                progress.wait_until(due);
                awaited_until = if sourced.awaited { clock.now() } else { awaited_until };
                stats.replayed.read_late += u64::from(P::OPEN && due < awaited_until);
            }
            // Some of the block's inserts are not done: the floor stays.
            let Some(due) = pacer.wait(sourced.at, clock, gate) else {
                stats.drawn -= u64::from(A::TRACED);
                break 'blocks;
            };
            if !in_window && gate.opened() {
                in_window = true;
                recorder.open_window(gate.opened_at());
                entered = pacer.waited();
                stats = stats.entering(clock.now());
            }
            let begin = clock.now();
            let answer =
                executor.execute(&mut session, &source, operation, &mut stats.answer_counts);
            let end = match answer {
                Ok(answered) => {
                    if operation.op.writes() {
                        stats.bytes_written += executor.written();
                    }
                    answered
                }
                Err(error) => {
                    stats.changes.refused += u64::from(operation.op.writes());
                    stats.answer_counts.store_failed(operation.op, error)?;
                    clock.now()
                }
            };
            recorder.record(P::OPEN, clock, operation.op, due, begin, end);
            match operation.op {
                Op::Insert => {
                    progress.advance(operation.record + 1);
                    stats.changes.inserted += 1;
                    acknowledged = known();
                }
                Op::Delete => stats.changes.deleted += 1,
                _ => {}
            }
            done += 1;
            progress.count(done);
            stats.operations += 1;
            stats.counts[operation.op] += 1;
            stats.in_store += end - begin;
            stats.ended = end;
            if P::OPEN {
                stats.waited = pacer.waited();
                ideal_end = due.max(ideal_end) + (end - begin);
                stats.late += end.saturating_sub(ideal_end);
                stats.answered_in_time += u64::from(end <= gate.closes_at());
                if A::TRACED && in_window && due >= gate.opened_at() {
                    let (after, took) = (due - gate.opened_at(), end.saturating_sub(due));
                    stats.replayed.count(after, second, took <= second);
                }
            }
            if executor.missed() && source.refills(&sourced) && !gate.closed() {
                refill(&mut executor, &mut session, &source, &sourced, &mut stats)?;
            }
        }
    }
    recorder.finish();
    if !in_window {
        stats = stats.entering(clock.now());
        entered = pacer.waited();
    }
    if P::OPEN && !shared.counted {
        let end = gate.closes_at();
        stats.never_sent = pacer.count_skipped(end);
        if end != u64::MAX {
            stats.never_sent += source.due_before(end.saturating_sub(shared.begun()));
        }
    } else if !P::OPEN {
        stats.waited = pacer.waited();
    }
    if A::TRACED {
        progress.wait_until(u64::MAX);
    }
    stats.waited = stats.waited - entered;
    stats.waited.idle += stats.replayed.starved;
    source.account(&mut stats);
    Ok(stats)
}

/// Sleeps while a trace is read; returns the ticks slept.
#[cold]
fn wait_for_reader(clock: &Ticks, progress: &ThreadProgress) -> u64 {
    let begin = clock.now();
    // A slow reader, such as standard input, is not the store's fault.
    progress.wait_until(begin + clock.ticks(1e9));
    std::thread::sleep(READING);
    clock.now() - begin
}

/// Cache-aside: sets a missed key, as the application would. Counted apart from the workload's
/// operations.
#[cold]
fn refill<S: Session, A: OperationSource>(
    executor: &mut OpExecutor<'_>,
    session: &mut S,
    source: &A,
    sourced: &SourcedOperation,
    stats: &mut ThreadStats,
) -> Result<(), DriveError> {
    match executor.refill(session, source, sourced) {
        Ok(()) => {
            stats.refills += 1;
            stats.bytes_written += executor.written();
            Ok(())
        }
        Err(error) => {
            stats.changes.refused += 1;
            stats.answer_counts.store_failed(Op::Update, error)
        }
    }
}

impl ThreadStats {
    /// The window begins: earlier statistics are dropped, except changes to the data and failures.
    pub(crate) fn entering(self, now: u64) -> ThreadStats {
        ThreadStats {
            began: now,
            ended: now,
            drawn: self.drawn,
            changes: self.changes,
            answer_counts: self.answer_counts.failures_only(),
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

    /// Tick at which the phase began.
    pub(crate) fn begun(&self) -> u64 {
        self.begun_at.load(Ordering::Acquire)
    }

    /// The block of the stream at this client's `turn`.
    pub(crate) fn block(&self, turn: u64) -> u64 {
        self.share.map_or(turn, |share| share.block(turn))
    }

    /// Number of operations to issue of a block: all of it, except for the last block of a counted
    /// window. Such a window opens only while all threads wait between two blocks, so its first
    /// block is whole and its end is known by then.
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
