//! The controlling thread of a phase.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use model::Op;
use workload::Workload;
use workload::trace::TraceReader;

use crate::clock::Ticks;
use crate::collect::{IntervalCollector, LiveInterval};
use crate::frontier::{Frontier, PhaseGate};
use crate::merge::{MeasuredWindow, Parts, merge};
use crate::outcome::{DriveError, PhaseOutcome, SteadyReport};
use crate::pace::Pacing;
use crate::plan::{CpuBudget, LoadPlan, PhaseKind, StopCondition};
use crate::recorder::{HistogramSlots, IntervalDelivery, Recorder};
use crate::shortfall;
use crate::target::Target;
use crate::worker::{ThreadStats, WorkerShared};

/// How often the controlling thread looks up.
const TICK: Duration = Duration::from_millis(50);
/// How long requests that were due in the window may still be sent after its end.
const MOST_DRAIN: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseStage {
    WarmUp,
    /// Waiting for the steady state: the round, and the most rounds that are waited for.
    Steadying {
        round: usize,
        most: usize,
    },
    Measure,
}

/// Where a phase stands.
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

/// Is told how a phase goes, in the controlling thread.
pub trait Observer {
    /// Every thread is ready; the phase begins when this returns. A start in common with other
    /// clients is waited for here; false where it did not come.
    fn ready(&mut self) -> bool {
        true
    }
    /// The measured window opens now: probes begin here.
    fn window_opens(&mut self) {}
    /// The measured window has closed: probes end here.
    fn window_closes(&mut self) {}
    fn progress(&mut self, _progress: &PhaseProgress) {}
}

/// Looks at nothing.
pub struct NoObserver;
impl Observer for NoObserver {}

type Ended = Result<ThreadStats, DriveError>;

struct WorkerPool<T> {
    shared: Arc<WorkerShared<T>>,
    threads: usize,
    deliveries: Receiver<IntervalDelivery>,
    ended: Receiver<Ended>,
    collector: IntervalCollector,
    /// Threads that have ended, well or not.
    gone: usize,
    seen: Vec<ThreadStats>,
    fault: Option<DriveError>,
    patience: Duration,
    pacing: Pacing,
    traced: bool,
    /// A trace came to its end before the window.
    trace_ended: bool,
    /// Requests that all threads together can have under way.
    slots: usize,
    cpus: Option<CpuBudget>,
    last_done: u64,
    last_progress: Instant,
}

/// Runs one phase and answers what was seen in its window. `on_start` has run in every thread
/// before its first operation. When the store stops answering for longer than the plan's
/// patience, its threads are left behind and the error says so.
pub fn drive<T: Target>(
    clock: &Ticks,
    store: &Arc<T>,
    workload: &Arc<Workload>,
    plan: &LoadPlan,
    observer: &mut dyn Observer,
) -> Result<PhaseOutcome, DriveError> {
    let asked = plan;
    let open = plan.pacing.is_open();
    let replay = plan.trace.as_deref().filter(|_| plan.what == PhaseKind::Mix);
    let ops: Vec<Op> = match plan.what {
        PhaseKind::Load => vec![Op::Insert],
        PhaseKind::Mix if replay.is_some() => vec![Op::Read, Op::Update, Op::Delete],
        PhaseKind::Mix => {
            Op::ALL.into_iter().filter(|op| workload.spec().mix.contains(*op)).collect()
        }
    };
    let records = workload.spec().records.0;
    let (until, first_insert) = match plan.what {
        PhaseKind::Load => {
            let all = plan.until.operations.map_or(records, |most| most.min(records));
            (StopCondition { operations: Some(all), ..plan.until }, 0)
        }
        // A trace ends by itself.
        PhaseKind::Mix if replay.is_some() => (StopCondition { operations: None, ..plan.until }, 0),
        PhaseKind::Mix => (plan.until.of(plan.pacing), records),
    };
    let feeds = match replay {
        Some(replay) => TraceReader::open(&replay.file)?.feed(plan.threads, replay.spread)?,
        None => Vec::new(),
    };
    // Operations are told of all clients together.
    let own = |all| plan.share.map_or(all, |share| share.operations(all));
    let until = StopCondition { operations: until.operations.map(own), ..until };
    let operations = until.operations;
    let plan = &LoadPlan { until, ..plan.clone() };
    let shared = Arc::new(WorkerShared {
        target: Arc::clone(store),
        workload: Arc::clone(workload),
        clock: clock.clone(),
        gate: PhaseGate::new(),
        frontier: Frontier::new(plan.threads, first_insert, plan.share.is_some()),
        share: plan.share,
        open,
        loads: plan.what == PhaseKind::Load,
        feeds: Mutex::new(feeds.into_iter().map(Some).collect()),
        counted: operations.is_some(),
        end_operation: AtomicU64::new(u64::MAX),
        begun_at: AtomicU64::new(u64::MAX),
    });

    let mut crew =
        WorkerPool::start(&shared, plan, HistogramSlots::new(ops.clone(), open, T::SEES_ARRIVALS))?;
    crew.wait_until_ready()?;
    if !observer.ready() {
        shared.gate.stop();
        crew.wait_for_the_others();
        return Err(DriveError::NotBegun);
    }
    crew.last_progress = Instant::now();
    let steady = crew.before_the_window(plan, observer)?;
    crew.open_window(operations, plan, observer)?;
    let stopped = crew.measure(operations, plan, observer)?;
    crew.drain(stopped, plan, observer)?;
    let mut outcome = crew.finish(ops, stopped, steady)?;
    outcome.warnings.extend(shortfall::told(asked, records, &outcome));
    Ok(outcome)
}

impl<T: Target> WorkerPool<T> {
    fn start(
        shared: &Arc<WorkerShared<T>>,
        plan: &LoadPlan,
        slots: HistogramSlots,
    ) -> Result<Self, DriveError> {
        let interval = shared.clock.ticks_of(plan.interval).max(1);
        let (deliver, deliveries) = sync_channel(plan.threads * 2);
        let (end, ended) = channel();
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
            ended,
            collector,
            gone: 0,
            seen: Vec::new(),
            fault: None,
            patience: plan.patience,
            pacing: plan.pacing,
            traced: plan.trace.is_some() && plan.what == PhaseKind::Mix,
            trace_ended: false,
            slots: shared.target.slots(plan),
            cpus: plan.cpus.clone(),
            last_done: 0,
            last_progress: Instant::now(),
        })
    }

    /// Every thread has its session and its buffers, or has failed to get them.
    fn wait_until_ready(&mut self) -> Result<(), DriveError> {
        while self.shared.gate.waiting() + self.gone < self.threads {
            self.look(Duration::from_millis(1))?;
        }
        self.look(Duration::ZERO)
    }

    /// Warm-up and the wait for the steady state, neither of them recorded.
    fn before_the_window(
        &mut self,
        plan: &LoadPlan,
        observer: &mut dyn Observer,
    ) -> Result<Option<SteadyReport>, DriveError> {
        if plan.warm_up.is_none() && plan.steady.is_none() {
            return Ok(None);
        }
        self.shared.begun_at.store(self.shared.clock.now(), Ordering::Release);
        self.shared.gate.warm();
        if let Some(length) = plan.warm_up {
            self.pass(length, PhaseStage::WarmUp, plan, observer)?;
        }
        let Some(steady) = plan.steady else { return Ok(None) };
        let mut rounds: Vec<f64> = Vec::new();
        while rounds.len() < steady.most_rounds && !self.ends(plan) {
            let begun = (self.shared.frontier.done(), Instant::now());
            let stage = PhaseStage::Steadying { round: rounds.len() + 1, most: steady.most_rounds };
            self.pass(steady.round, stage, plan, observer)?;
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

    /// Lets time pass in a stage.
    fn pass(
        &mut self,
        length: Duration,
        stage: PhaseStage,
        plan: &LoadPlan,
        observer: &mut dyn Observer,
    ) -> Result<(), DriveError> {
        let begun = (self.shared.frontier.done(), Instant::now());
        while begun.1.elapsed() < length && !self.ends(plan) && self.seen.len() < self.threads {
            self.look(TICK.min(length.saturating_sub(begun.1.elapsed())))?;
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

    /// Opens the window. Where operations are counted after a warm-up, the threads first come
    /// together between two blocks, so that the window holds nothing but what counts.
    fn open_window(
        &mut self,
        operations: Option<u64>,
        plan: &LoadPlan,
        observer: &mut dyn Observer,
    ) -> Result<(), DriveError> {
        let began = self.shared.begun_at.load(Ordering::Acquire) != u64::MAX;
        if began && operations.is_some() && !self.shared.open {
            self.shared.gate.gather();
            // Told to stop, the window opens only to be closed again.
            while self.shared.gate.waiting() + self.gone < self.threads && !self.ends(plan) {
                self.look(Duration::from_millis(1))?;
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
            plan.until.time.map_or(u64::MAX, |length| now + shared.clock.ticks_of(length));
        shared.gate.open(now, closes_at);
        Ok(())
    }

    /// Waits for the window's end; answers whether it was ended early.
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
            // Threads that give up bring the end forward.
            let closes_at = self.shared.gate.closes_at();
            let left = Duration::from_nanos(self.shared.clock.nanos(now, closes_at));
            // A thread whose next request is due after the window ends early; the window does not.
            let by_count = self.shared.counted || closes_at == u64::MAX;
            let all = self.seen.len() == self.threads;
            self.trace_ended = all && self.seen.iter().all(|seen| seen.replayed.ended);
            let all_ended = all && (by_count || self.trace_ended);
            if all_ended || now >= closes_at {
                return Ok(false);
            }
            if stop_asked(plan) {
                return Ok(true);
            }
            match self.seen.len() == self.threads {
                true => std::thread::sleep(left.min(TICK)),
                false => self.look(left.min(TICK))?,
            }
            let ended = self.shared.frontier.done() - begun;
            let elapsed = Duration::from_nanos(self.shared.clock.nanos(opened_at, now));
            let by_time = plan.until.time.map(|all| elapsed.as_secs_f64() / all.as_secs_f64());
            let by_count = operations.map(|all| ended as f64 / all.max(1) as f64);
            let done = match (by_time, by_count) {
                (Some(time), Some(count)) => Some(time.max(count)),
                (one, other) => one.or(other),
            };
            observer.progress(&PhaseProgress {
                stage: PhaseStage::Measure,
                operations: ended,
                elapsed,
                done: done.map(|share| share.min(1.0)),
                live: self.collector.live,
            });
        }
    }

    /// Ends the window: what is under way ends, and requests that were due in an open loop go
    /// out for a while longer. The probes' window ends with the last answer.
    fn drain(
        &mut self,
        stopped: bool,
        plan: &LoadPlan,
        observer: &mut dyn Observer,
    ) -> Result<(), DriveError> {
        // Stopped, the window ends now; else when it was to end.
        self.shared.gate.close(if stopped { self.shared.clock.now() } else { u64::MAX });
        let closed = Instant::now();
        let limit = plan.until.time.map_or(MOST_DRAIN, |length| length.min(MOST_DRAIN));
        while self.seen.len() < self.threads {
            if closed.elapsed() > limit {
                self.shared.gate.stop();
            }
            self.look(Duration::from_millis(1))?;
        }
        observer.window_closes();
        Ok(())
    }

    /// The phase is to end: from outside, or by a thread that gives up.
    fn ends(&self, plan: &LoadPlan) -> bool {
        stop_asked(plan) || self.shared.gate.closed()
    }

    /// Takes what the threads hand over for at most `wait`. A fault ends the phase.
    fn look(&mut self, wait: Duration) -> Result<(), DriveError> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.deliveries.recv_timeout(left) {
                Ok(delivery) => self.collector.take(delivery)?,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.take_ended();
            if self.gone == self.threads || self.fault.is_some() {
                break;
            }
        }
        self.take_ended();
        let done = self.shared.frontier.done();
        let idle = self.shared.frontier.is_idle(self.shared.clock.now());
        if done != self.last_done || self.seen.len() == self.threads || idle {
            (self.last_done, self.last_progress) = (done, Instant::now());
        }
        if self.last_progress.elapsed() > self.patience {
            self.shared.gate.stop();
            return Err(DriveError::Stalled(self.last_progress.elapsed().as_secs()));
        }
        match self.fault.take() {
            Some(fault) => {
                self.shared.gate.stop();
                self.wait_for_the_others();
                Err(fault)
            }
            None => Ok(()),
        }
    }

    fn take_ended(&mut self) {
        while let Ok(result) = self.ended.try_recv() {
            self.gone += 1;
            match result {
                Ok(seen) => self.seen.push(seen),
                Err(fault) => {
                    self.fault.get_or_insert(fault);
                }
            }
        }
    }

    /// After a fault the others end by themselves; the store is closed only when they have.
    fn wait_for_the_others(&mut self) {
        let limit = Instant::now() + Duration::from_secs(10);
        while self.gone < self.threads && Instant::now() < limit {
            // A thread that hands something over must not wait for us.
            while self.deliveries.try_recv().is_ok() {}
            self.take_ended();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn finish(
        mut self,
        ops: Vec<Op>,
        stopped: bool,
        steady: Option<SteadyReport>,
    ) -> Result<PhaseOutcome, DriveError> {
        while let Ok(delivery) = self.deliveries.try_recv() {
            self.collector.take(delivery)?;
        }
        let window = MeasuredWindow {
            opened_at: self.shared.gate.opened_at(),
            closes_at: match self.trace_ended {
                true => u64::MAX,
                false => self.shared.gate.closes_at(),
            },
            counted: self.shared.counted,
            open: self.shared.open,
            slots: self.slots,
            target: match self.pacing {
                Pacing::Open { rate, .. } => Some(rate),
                Pacing::Closed { .. } | Pacing::Recorded { .. } => None,
            },
            traced: self.traced,
        };
        let last = window.last_end(&self.seen);
        self.collector.close(self.shared.clock.seconds(window.opened_at, last))?;
        let series = std::mem::take(&mut self.collector.series);
        let intervals = std::mem::take(&mut self.collector.histograms);
        let totals = self.collector.totals;
        Ok(merge(
            &self.shared.clock,
            Parts {
                seen: self.seen,
                window,
                ops,
                totals,
                series,
                intervals,
                stopped,
                steady,
                keeps: self.shared.target.capabilities().stores_values,
                cpus: self.cpus,
            },
        ))
    }
}

fn stop_asked(plan: &LoadPlan) -> bool {
    plan.stop.load(Ordering::Relaxed)
}

fn spawn<T: Target>(
    shared: Arc<WorkerShared<T>>,
    plan: &LoadPlan,
    thread: usize,
    recorder: Recorder,
    end: Sender<Ended>,
) -> Result<(), DriveError> {
    let plan = plan.clone();
    let body = move || {
        let result = catch_unwind(AssertUnwindSafe(|| {
            (plan.on_start)(thread);
            T::ask(&shared, thread, &plan, recorder)
        }));
        // The store is released before the end is told, so that it can be closed then.
        drop(shared);
        let panicked = || DriveError::Internal(format!("thread {thread} panicked"));
        // Nobody listens any more when the phase has failed already.
        let _ = end.send(result.unwrap_or_else(|_| Err(panicked())));
    };
    std::thread::Builder::new()
        .name(format!("ask-{thread}"))
        .spawn(body)
        .map(drop)
        .map_err(|error| DriveError::Internal(format!("cannot start thread {thread}: {error}")))
}
