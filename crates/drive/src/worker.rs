//! The operation loop on embedded stores, compiled for each store, source and pacing.

use std::time::Duration;

use model::Op;
use store::{Store, StoreError};
use workload::Operation;

use crate::frontier::ThreadProgress;
use crate::op_executor::OpExecutor;
use crate::outcome::DriveError;
use crate::pace::{PaceWait, Pacer};
use crate::recorder::Recorder;
use crate::source::{Exhausted, OperationSource, SourcedOperation};
use crate::thread_stats::ThreadStats;
use crate::worker_shared::WorkerShared;

/// How long a thread sleeps while its part of a trace is being read.
pub(crate) const READER_WAIT: Duration = Duration::from_micros(200);

/// Runs client thread `thread` from before the phase begins until it has ended.
pub(crate) fn work<S: Store, A: OperationSource, P: Pacer>(
    store: &S,
    shared: &WorkerShared,
    thread: usize,
    source: A,
    pacer: impl FnOnce() -> P,
    recorder: Recorder,
) -> Result<ThreadStats, DriveError> {
    let stores_values = store.capabilities().stores_values;
    let session = store.session()?;
    let executor = OpExecutor::new(&shared.clock, stores_values, &source);
    shared.gate.wait_for_start();
    let mut worker: Worker<'_, S, A, P> = Worker {
        shared,
        progress: shared.frontier.progress(thread),
        reads_inserted: source.reads_inserted(),
        second: shared.clock.ticks(1e9),
        session,
        executor,
        source,
        pacer: pacer(),
        recorder,
        stats: ThreadStats::default(),
        done: 0,
        in_window: false,
        waited_before: PaceWait::default(),
        awaited_until: 0,
        ideal_end: 0,
    };
    while worker.run_block()? {}
    Ok(worker.finish())
}

/// One client thread of an embedded store.
struct Worker<'a, S: Store + 'a, A, P> {
    shared: &'a WorkerShared,
    progress: &'a ThreadProgress,
    session: S::Session<'a>,
    executor: OpExecutor<'a>,
    source: A,
    pacer: P,
    recorder: Recorder,
    stats: ThreadStats,
    /// The source reads records that are inserted meanwhile.
    reads_inserted: bool,
    /// Ticks of a second.
    second: u64,
    /// Operations that have ended in the whole phase.
    done: u64,
    in_window: bool,
    /// What the thread had waited when the window opened.
    waited_before: PaceWait,
    /// End of the last wait for the trace reader: operations due before it were read late.
    awaited_until: u64,
    /// When a client without cost or lateness would have had its last answer.
    ideal_end: u64,
}

impl<S: Store, A: OperationSource, P: Pacer> Worker<'_, S, A, P> {
    /// Issues the operations of one block; returns whether there may be another one.
    #[inline(always)]
    fn run_block(&mut self) -> Result<bool, DriveError> {
        let WorkerShared { clock, gate, frontier, .. } = self.shared;
        gate.wait_if_gathering();
        let turn = frontier.claim();
        let length = self.shared.length_of(turn);
        if length == 0 {
            self.progress.retire();
            return Ok(false);
        }
        self.source.seek(self.shared.block(turn));
        self.progress.advance(self.source.next_insert());
        let mut acknowledged = self.acknowledged();
        for _ in 0..length {
            let Some(sourced) = self.source.next(acknowledged) else {
                return Ok(self.wait_for_source());
            };
            self.stats.drawn += 1;
            self.executor.prepare(&self.source, &sourced);
            if A::TRACED {
                self.note_reader_lateness(&sourced);
            }
            // Some of the block's inserts are not done: the floor stays.
            let Some(due) = self.pacer.wait(sourced.at, clock, gate) else {
                self.stats.drawn -= u64::from(A::TRACED);
                return Ok(false);
            };
            if !self.in_window && gate.opened() {
                self.recorder.open_window(gate.opened_at());
                self.enter_window();
            }
            self.issue(&sourced.operation, due)?;
            if sourced.operation.op == Op::Insert {
                self.progress.advance(sourced.operation.record + 1);
                acknowledged = self.acknowledged();
            }
            if self.executor.missed() && self.source.refills(&sourced) && !gate.closed() {
                self.refill(&sourced)?;
            }
        }
        Ok(true)
    }

    /// All records below this number may be read.
    #[inline(always)]
    fn acknowledged(&self) -> u64 {
        if self.reads_inserted { self.shared.frontier.acknowledged() } else { u64::MAX }
    }

    /// The source has no operation now: returns whether it may have another one, after a sleep if
    /// its trace is still being read.
    #[cold]
    fn wait_for_source(&mut self) -> bool {
        match self.source.exhausted() {
            Exhausted::Block => true,
            Exhausted::NotYet if !self.shared.gate.closed() => {
                let clock = &self.shared.clock;
                let begin = clock.now();
                // A slow reader, such as standard input, is not the store's fault.
                self.progress.wait_until(begin + self.second);
                std::thread::sleep(READER_WAIT);
                self.stats.replayed.starved += clock.now() - begin;
                true
            }
            Exhausted::NotYet | Exhausted::End => false,
        }
    }

    /// Until a traced operation is due, idling is no stall; one that the reader had not read by
    /// then is late.
    #[inline(always)]
    fn note_reader_lateness(&mut self, sourced: &SourcedOperation) {
        let due = self.shared.begun().saturating_add(sourced.at);
        self.progress.wait_until(due);
        if sourced.awaited {
            self.awaited_until = self.shared.clock.now();
        }
        self.stats.replayed.read_late += u64::from(P::OPEN && due < self.awaited_until);
    }

    /// What was counted and waited before the window does not count.
    fn enter_window(&mut self) {
        self.in_window = true;
        self.waited_before = self.pacer.waited();
        self.stats.enter_window(self.shared.clock.now());
    }

    /// Executes the prepared operation, records its latency and counts it.
    #[inline(always)]
    fn issue(&mut self, operation: &Operation, due: u64) -> Result<(), DriveError> {
        let clock = &self.shared.clock;
        let begin = clock.now();
        let answered = self.executor.execute(
            &mut self.session,
            &self.source,
            *operation,
            &mut self.stats.answer_counts,
        );
        let end = match answered {
            Ok(end) => {
                if operation.op.writes() {
                    self.stats.bytes_written += self.executor.written();
                }
                end
            }
            Err(error) => {
                self.stats.changes.refused += u64::from(operation.op.writes());
                self.failed(operation.op, error)?;
                clock.now()
            }
        };
        let counts = &self.stats.answer_counts;
        self.recorder.record(P::OPEN, clock, operation.op, due, begin, end, counts);
        match operation.op {
            Op::Insert => self.stats.changes.inserted += 1,
            Op::Delete => self.stats.changes.deleted += 1,
            _ => {}
        }
        self.done += 1;
        self.progress.count(self.done);
        self.stats.operations += 1;
        self.stats.counts[operation.op] += 1;
        self.stats.in_store += end - begin;
        self.stats.ended = end;
        if P::OPEN {
            self.count_lateness(due, begin, end);
        }
        Ok(())
    }

    /// Counts a failure. Where the servers are lost, the window closes and what was measured stays.
    #[cold]
    fn failed(&mut self, op: Op, error: StoreError) -> Result<(), DriveError> {
        if let StoreError::Lost(words) = &error {
            self.stats.gave_up.get_or_insert_with(|| words.clone());
            self.shared.gate.close(self.shared.clock.now());
        }
        self.stats.answer_counts.store_failed(op, error)
    }

    /// Counts by how much an operation of an open loop was late.
    #[inline(always)]
    fn count_lateness(&mut self, due: u64, begin: u64, end: u64) {
        let gate = &self.shared.gate;
        self.stats.waited = self.pacer.waited();
        self.ideal_end = due.max(self.ideal_end) + (end - begin);
        self.stats.late += end.saturating_sub(self.ideal_end);
        self.stats.answered_in_time += u64::from(end <= gate.closes_at());
        if A::TRACED && self.in_window && due >= gate.opened_at() {
            let (after, took) = (due - gate.opened_at(), end.saturating_sub(due));
            self.stats.replayed.count(after, self.second, took <= self.second);
        }
    }

    /// Cache-aside: sets a missed key, as the application would. Counted apart from the workload's
    /// operations.
    #[cold]
    fn refill(&mut self, sourced: &SourcedOperation) -> Result<(), DriveError> {
        match self.executor.refill(&mut self.session, &self.source, sourced) {
            Ok(()) => {
                self.stats.refills += 1;
                self.stats.bytes_written += self.executor.written();
                Ok(())
            }
            Err(error) => {
                self.stats.changes.refused += 1;
                self.failed(Op::Update, error)
            }
        }
    }

    /// The thread's statistics, when it issues no more operations.
    fn finish(mut self) -> ThreadStats {
        if !self.in_window {
            self.enter_window();
        }
        if P::OPEN && !self.shared.counted {
            self.count_unsent();
        } else if !P::OPEN {
            self.stats.waited = self.pacer.waited();
        }
        if A::TRACED {
            self.progress.wait_until(u64::MAX);
        }
        self.stats.waited = self.stats.waited - self.waited_before;
        self.stats.waited.idle += self.stats.replayed.starved;
        self.source.account(&mut self.stats);
        self.recorder.finish(&self.stats.answer_counts);
        self.stats
    }

    /// Counts the operations that were due in the window and are not issued any more.
    fn count_unsent(&mut self) {
        let end = self.shared.gate.closes_at();
        self.stats.never_sent = self.pacer.count_skipped(end);
        if end != u64::MAX {
            self.stats.never_sent +=
                self.source.due_before(end.saturating_sub(self.shared.begun()));
        }
    }
}
