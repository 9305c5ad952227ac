//! The controlling thread of a phase.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use model::{LoadShape, Op, Pacing, StopCondition};
use workload::Workload;

use crate::clock::Ticks;
use crate::collect::{CompleteInterval, IntervalCollector, LiveInterval};
use crate::frontier::{Frontier, PhaseGate};
use crate::outcome::{DriveError, PhaseOutcome, SteadyReport};
use crate::plan::{CpuBudget, LoadPlan, PhaseKind};
use crate::recorder::{HistogramSlots, IntervalDelivery, Recorder};
use crate::replay::Replay;
use crate::shortfall;
use crate::summary::{MeasuredWindow, Parts, merge};
use crate::target::Target;
use crate::thread_stats::ThreadStats;
use crate::worker_shared::WorkerShared;

/// How often the controlling thread polls.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long requests that were due in the window may still be sent after its end.
const MAX_DRAIN: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseStage {
    WarmUp,
    /// Waiting for the steady state: the round, and the maximum number of rounds.
    Steadying {
        round: usize,
        most: usize,
    },
    Measure,
}

/// Progress of a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhaseProgress {
    pub stage: PhaseStage,
    /// Operations that ended in this stage.
    pub operations: u64,
    pub elapsed: Duration,
    /// Share of this stage that is done, 0 to 1; None where the end is not known.
    pub done: Option<f64>,
    pub live: LiveInterval,
}

/// Receives the events of a phase, in the controlling thread.
pub trait Observer {
    /// Every thread is ready; the phase begins when this returns. An agent waits here for the
    /// common start, and returns false if there is none.
    fn ready(&mut self) -> bool {
        true
    }
    /// The measured window opens now: probes begin here.
    fn window_opens(&mut self) {}
    /// The measured window has closed: probes end here.
    fn window_closes(&mut self) {}
    fn progress(&mut self, _progress: &PhaseProgress) {}
    /// Every thread has delivered its part of an interval of the window.
    fn interval(&mut self, _interval: &CompleteInterval<'_>) {}
}

/// Ignores every event.
pub struct NoObserver;
impl Observer for NoObserver {}

type WorkerResult = Result<ThreadStats, DriveError>;

struct WorkerPool {
    shared: Arc<WorkerShared>,
    threads: usize,
    deliveries: Receiver<IntervalDelivery>,
    results: Receiver<WorkerResult>,
    collector: IntervalCollector,
    /// Threads that have ended, with or without an error.
    exited: usize,
    stats: Vec<ThreadStats>,
    fault: Option<DriveError>,
    stall_timeout: Duration,
    /// The rate of an open loop.
    target: Option<f64>,
    traced: bool,
    /// A trace came to its end before the window.
    trace_ended: bool,
    /// Requests that all threads together can have in flight.
    slots: usize,
    cpus: Option<CpuBudget>,
    last_done: u64,
    last_progress: Instant,
}

/// Runs one phase and returns the outcome of its window. `on_start` runs in every thread before
/// its first operation. If no operation ends within the plan's `stall_timeout`, the threads are
/// abandoned and the phase fails with [`DriveError::Stalled`].
pub fn drive(
    clock: &Ticks,
    target: Arc<dyn Target>,
    workload: &Arc<Workload>,
    plan: &LoadPlan,
    observer: &mut dyn Observer,
) -> Result<PhaseOutcome, DriveError> {
    let requested = plan;
    let open = plan.shape.pacing.is_open();
    let replay = plan.trace.as_deref().filter(|_| plan.phase == PhaseKind::Mix);
    let reader = replay.map(Replay::open).transpose()?;
    if let (Some(reader), Pacing::Recorded { .. }) = (&reader, plan.shape.pacing) {
        reader.require_times()?;
    }
    let trace_counts = reader.as_ref().map(|reader| Arc::clone(reader.counts()));
    let ops: Vec<Op> = match (plan.phase, &reader) {
        (PhaseKind::Load, _) => vec![Op::Insert],
        (PhaseKind::Mix, Some(reader)) if reader.format().may_scan() => {
            vec![Op::Read, Op::Update, Op::Scan, Op::Delete]
        }
        (PhaseKind::Mix, Some(_)) => vec![Op::Read, Op::Update, Op::Delete],
        (PhaseKind::Mix, None) => {
            Op::ALL.into_iter().filter(|op| workload.spec().mix.contains(*op)).collect()
        }
    };
    let records = workload.spec().records.0;
    let (until, first_insert) = match plan.phase {
        PhaseKind::Load => {
            let all = plan.shape.until.operations.map_or(records, |most| most.min(records));
            (StopCondition { operations: Some(all), ..plan.shape.until }, 0)
        }
        // A trace ends by itself.
        PhaseKind::Mix if replay.is_some() => {
            (StopCondition { operations: None, ..plan.shape.until }, 0)
        }
        PhaseKind::Mix => (plan.shape.until.of(plan.shape.pacing), records),
    };
    let feeds = match reader.zip(replay) {
        Some((reader, replay)) => reader.feed(plan.threads, replay.spread)?,
        None => Vec::new(),
    };
    // The number of operations is that of all clients together.
    let own = |all| plan.share.map_or(all, |share| share.operations(all));
    let until = StopCondition { operations: until.operations.map(own), ..until };
    let operations = until.operations;
    let plan = &LoadPlan { shape: LoadShape { until, ..plan.shape.clone() }, ..plan.clone() };
    let shared = Arc::new(WorkerShared {
        target,
        workload: Arc::clone(workload),
        clock: clock.clone(),
        gate: PhaseGate::new(),
        frontier: Frontier::new(plan.threads, first_insert, plan.share.is_some()),
        share: plan.share,
        open,
        loads: plan.phase == PhaseKind::Load,
        feeds: Mutex::new(feeds.into_iter().map(Some).collect()),
        counted: operations.is_some(),
        end_operation: AtomicU64::new(u64::MAX),
        begun_at: AtomicU64::new(u64::MAX),
    });

    let fetches = plan.phase == PhaseKind::Mix
        && plan.trace.is_none()
        && workload.spec().miss_latency.is_some();
    let slots =
        HistogramSlots::new(ops.clone(), open, shared.target.sees_arrivals()).with_misses(fetches);
    let mut pool = WorkerPool::start(&shared, plan, slots)?;
    pool.wait_until_ready()?;
    if !observer.ready() {
        shared.gate.stop();
        pool.wait_for_rest();
        return Err(DriveError::NotBegun);
    }
    pool.last_progress = Instant::now();
    let steady = pool.warm_up_and_steady(plan, observer)?;
    pool.open_window(operations, plan, observer)?;
    let stopped = pool.measure(operations, plan, observer)?;
    pool.drain(stopped, plan, observer)?;
    pool.show_rest(observer)?;
    let mut outcome = pool.finish(ops, stopped, steady)?;
    if let (Some(replayed), Some(counts)) = (&mut outcome.replayed, trace_counts) {
        outcome.warnings.extend(replayed.left_out(&counts));
    }
    outcome.warnings.extend(shortfall::warning(requested, records, &outcome));
    Ok(outcome)
}

impl WorkerPool {
    fn start(
        shared: &Arc<WorkerShared>,
        plan: &LoadPlan,
        slots: HistogramSlots,
    ) -> Result<Self, DriveError> {
        let interval = shared.clock.ticks_of(plan.interval).max(1);
        let (deliver, deliveries) = sync_channel(plan.threads * 2);
        let (end, results) = channel();
        let mut back = Vec::with_capacity(plan.threads);
        let origin = shared.clock.now();
        for thread in 0..plan.threads {
            let (give, spare) = sync_channel(2);
            give.send(slots.interval()?)
                .map_err(|error| DriveError::Internal(error.to_string()))?;
            back.push(give);
            let recorder =
                Recorder::new(thread, &slots, (origin, interval), deliver.clone(), spare)?;
            spawn(Arc::clone(shared), plan, thread, recorder, end.clone())?;
        }
        let collector =
            IntervalCollector::new(slots, plan.interval.as_secs_f64(), plan.keep_intervals, back)?;
        Ok(WorkerPool {
            shared: Arc::clone(shared),
            threads: plan.threads,
            deliveries,
            results,
            collector,
            exited: 0,
            stats: Vec::new(),
            fault: None,
            stall_timeout: plan.stall_timeout,
            target: plan.mean_rate(plan.shape.until.time),
            traced: plan.trace.is_some() && plan.phase == PhaseKind::Mix,
            trace_ended: false,
            slots: shared.target.slots(plan),
            cpus: plan.cpus.clone(),
            last_done: 0,
            last_progress: Instant::now(),
        })
    }

    /// Waits until every thread has its session and buffers, or has failed to get them.
    fn wait_until_ready(&mut self) -> Result<(), DriveError> {
        while self.shared.gate.waiting() + self.exited < self.threads {
            self.receive(Duration::from_millis(1))?;
        }
        self.receive(Duration::ZERO)
    }

    /// Warms up and waits for the steady state; neither is recorded.
    fn warm_up_and_steady(
        &mut self,
        plan: &LoadPlan,
        observer: &mut dyn Observer,
    ) -> Result<Option<SteadyReport>, DriveError> {
        if plan.shape.warm_up.is_none() && plan.steady.is_none() {
            return Ok(None);
        }
        self.shared.begun_at.store(self.shared.clock.now(), Ordering::Release);
        self.shared.gate.warm();
        if let Some(length) = plan.shape.warm_up {
            self.run_stage(length, PhaseStage::WarmUp, plan, observer)?;
        }
        let Some(steady) = plan.steady else { return Ok(None) };
        let mut rounds: Vec<f64> = Vec::new();
        while rounds.len() < steady.most_rounds && !self.ends(plan) {
            let begun = (self.shared.frontier.done(), Instant::now());
            let stage = PhaseStage::Steadying { round: rounds.len() + 1, most: steady.most_rounds };
            self.run_stage(steady.round, stage, plan, observer)?;
            let operations = self.shared.frontier.done() - begun.0;
            rounds.push(operations as f64 / begun.1.elapsed().as_secs_f64());
            if rounds.len() >= steady.window
                && (steady.rule)(&rounds[rounds.len() - steady.window..])
            {
                return Ok(Some(SteadyReport { rounds, reached: true }));
            }
        }
        Ok(Some(SteadyReport { rounds, reached: false }))
    }

    /// Runs one stage for a time.
    fn run_stage(
        &mut self,
        length: Duration,
        stage: PhaseStage,
        plan: &LoadPlan,
        observer: &mut dyn Observer,
    ) -> Result<(), DriveError> {
        let begun = (self.shared.frontier.done(), Instant::now());
        while begun.1.elapsed() < length && !self.ends(plan) && self.stats.len() < self.threads {
            self.receive(POLL_INTERVAL.min(length.saturating_sub(begun.1.elapsed())))?;
            let elapsed = begun.1.elapsed();
            observer.progress(&PhaseProgress {
                stage,
                operations: self.shared.frontier.done() - begun.0,
                elapsed,
                done: Some((elapsed.as_secs_f64() / length.as_secs_f64()).min(1.0)),
                live: self.collector.live,
            });
        }
        Ok(())
    }

    /// Opens the window. If it ends by a number of operations and a warm-up came before, the threads
    /// first gather between two blocks, so that exactly that many operations are in the window.
    fn open_window(
        &mut self,
        operations: Option<u64>,
        plan: &LoadPlan,
        observer: &mut dyn Observer,
    ) -> Result<(), DriveError> {
        let began = self.shared.begun_at.load(Ordering::Acquire) != u64::MAX;
        if began && operations.is_some() && !self.shared.open {
            self.shared.gate.gather();
            // After a stop, the window opens only to be closed again.
            while self.shared.gate.waiting() + self.exited < self.threads && !self.ends(plan) {
                self.receive(Duration::from_millis(1))?;
            }
        }
        observer.window_opens();
        let shared = &self.shared;
        if let Some(count) = operations {
            let first = shared.frontier.next_turn() * workload::BLOCK;
            shared.end_operation.store(first + count, Ordering::Release);
        }
        let now = shared.clock.now();
        if !began {
            shared.begun_at.store(now, Ordering::Release);
        }
        let closes_at =
            plan.shape.until.time.map_or(u64::MAX, |length| now + shared.clock.ticks_of(length));
        shared.gate.open(now, closes_at);
        Ok(())
    }

    /// Waits for the end of the window; returns whether it was stopped early.
    fn measure(
        &mut self,
        operations: Option<u64>,
        plan: &LoadPlan,
        observer: &mut dyn Observer,
    ) -> Result<bool, DriveError> {
        let begun = self.shared.frontier.done();
        let opened_at = self.shared.gate.opened_at();
        loop {
            let now = self.shared.clock.now();
            // A thread that gives up closes the window early.
            let closes_at = self.shared.gate.closes_at();
            let left = Duration::from_nanos(self.shared.clock.nanos(now, closes_at));
            // A thread whose next request is due after the window ends early; the window does not.
            let by_count = self.shared.counted || closes_at == u64::MAX;
            let all = self.stats.len() == self.threads;
            self.trace_ended = all && self.stats.iter().all(|stats| stats.replayed.ended);
            let all_ended = all && (by_count || self.trace_ended);
            if all_ended || now >= closes_at {
                return Ok(false);
            }
            if stop_requested(plan) {
                return Ok(true);
            }
            match self.stats.len() == self.threads {
                true => std::thread::sleep(left.min(POLL_INTERVAL)),
                false => self.receive(left.min(POLL_INTERVAL))?,
            }
            let ended = self.shared.frontier.done() - begun;
            // Of the same instant as the operations.
            let now = self.shared.clock.now();
            let elapsed = Duration::from_nanos(self.shared.clock.nanos(opened_at, now));
            let by_time =
                plan.shape.until.time.map(|all| elapsed.as_secs_f64() / all.as_secs_f64());
            let by_count = operations.map(|all| ended as f64 / all.max(1) as f64);
            let done = match (by_time, by_count) {
                (Some(time), Some(count)) => Some(time.max(count)),
                (one, other) => one.or(other),
            };
            self.collector.show_complete(&mut |interval| observer.interval(interval));
            observer.progress(&PhaseProgress {
                stage: PhaseStage::Measure,
                operations: ended,
                elapsed,
                done: done.map(|share| share.min(1.0)),
                live: self.collector.live,
            });
        }
    }

    /// Closes the window: requests in flight end, and those that were due in an open loop are still
    /// sent for a limited time. The probes' window ends with the last answer.
    fn drain(
        &mut self,
        stopped: bool,
        plan: &LoadPlan,
        observer: &mut dyn Observer,
    ) -> Result<(), DriveError> {
        // A stop closes the window now; otherwise it has its own end.
        self.shared.gate.close(if stopped { self.shared.clock.now() } else { u64::MAX });
        let closed = Instant::now();
        let limit = plan.shape.until.time.map_or(MAX_DRAIN, |length| length.min(MAX_DRAIN));
        while self.stats.len() < self.threads {
            if closed.elapsed() > limit {
                self.shared.gate.stop();
            }
            self.receive(Duration::from_millis(1))?;
        }
        observer.window_closes();
        Ok(())
    }

    /// Whether the phase is to end: a stop was requested, or a thread gave up.
    fn ends(&self, plan: &LoadPlan) -> bool {
        stop_requested(plan) || self.shared.gate.closed()
    }

    /// Receives deliveries of the threads for at most `wait`. An error of a thread ends the phase.
    fn receive(&mut self, wait: Duration) -> Result<(), DriveError> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.deliveries.recv_timeout(left) {
                Ok(delivery) => self.collector.take(delivery)?,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.take_results();
            if self.exited == self.threads || self.fault.is_some() {
                break;
            }
        }
        self.take_results();
        let done = self.shared.frontier.done();
        let idle = self.shared.frontier.is_idle(self.shared.clock.now());
        if done != self.last_done || self.stats.len() == self.threads || idle {
            (self.last_done, self.last_progress) = (done, Instant::now());
        }
        if self.last_progress.elapsed() > self.stall_timeout {
            self.shared.gate.stop();
            return Err(DriveError::Stalled(self.last_progress.elapsed().as_secs()));
        }
        match self.fault.take() {
            Some(fault) => {
                self.shared.gate.stop();
                self.wait_for_rest();
                Err(fault)
            }
            None => Ok(()),
        }
    }

    fn take_results(&mut self) {
        while let Ok(result) = self.results.try_recv() {
            self.exited += 1;
            match result {
                Ok(stats) => self.stats.push(stats),
                Err(fault) => {
                    self.fault.get_or_insert(fault);
                }
            }
        }
    }

    /// Waits for the other threads after an error: the store may be closed only when they have ended.
    fn wait_for_rest(&mut self) {
        let limit = Instant::now() + Duration::from_secs(10);
        while self.exited < self.threads && Instant::now() < limit {
            // A full channel would block a thread that delivers an interval.
            while self.deliveries.try_recv().is_ok() {}
            self.take_results();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Shows the last intervals, when every thread has ended.
    fn show_rest(&mut self, observer: &mut dyn Observer) -> Result<(), DriveError> {
        while let Ok(delivery) = self.deliveries.try_recv() {
            self.collector.take(delivery)?;
        }
        self.collector.show_rest(&mut |interval| observer.interval(interval));
        Ok(())
    }

    fn finish(
        mut self,
        ops: Vec<Op>,
        stopped: bool,
        steady: Option<SteadyReport>,
    ) -> Result<PhaseOutcome, DriveError> {
        let window = MeasuredWindow {
            opened_at: self.shared.gate.opened_at(),
            closes_at: match self.trace_ended {
                true => u64::MAX,
                false => self.shared.gate.closes_at(),
            },
            counted: self.shared.counted,
            open: self.shared.open,
            slots: self.slots,
            target: self.target,
            traced: self.traced,
        };
        let last = window.last_end(&self.stats);
        self.collector.close(self.shared.clock.seconds(window.opened_at, last))?;
        let series = std::mem::take(&mut self.collector.series);
        let intervals = std::mem::take(&mut self.collector.histograms);
        let interval_s = self.collector.interval_s;
        let totals = self.collector.totals;
        Ok(merge(
            &self.shared.clock,
            Parts {
                stats: self.stats,
                window,
                ops,
                totals,
                series,
                intervals,
                interval_s,
                stopped,
                steady,
                stores_values: self.shared.target.capabilities().stores_values,
                cpus: self.cpus,
            },
        ))
    }
}

fn stop_requested(plan: &LoadPlan) -> bool {
    plan.stop.load(Ordering::Relaxed)
}

fn spawn(
    shared: Arc<WorkerShared>,
    plan: &LoadPlan,
    thread: usize,
    recorder: Recorder,
    end: Sender<WorkerResult>,
) -> Result<(), DriveError> {
    let plan = plan.clone();
    let body = move || {
        let result = catch_unwind(AssertUnwindSafe(|| {
            (plan.on_start)(thread);
            Arc::clone(&shared.target).run(&shared, thread, &plan, recorder)
        }));
        // Releases the store first: whoever receives the result may close it.
        drop(shared);
        let panicked = || DriveError::Internal(format!("thread {thread} panicked"));
        // The receiver is gone when the phase has failed already.
        let _ = end.send(result.unwrap_or_else(|_| Err(panicked())));
    };
    std::thread::Builder::new()
        .name(format!("client-{thread}"))
        .spawn(body)
        .map(drop)
        .map_err(|error| DriveError::Internal(format!("cannot start thread {thread}: {error}")))
}
