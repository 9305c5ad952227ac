//! What can be asked: an embedded store, or servers behind a network.

use std::time::Duration;

use store::{Capabilities, Statistic, Store, StoreError};

use crate::asks::{LoadSource, MixSource, OperationSource};
use crate::outcome::DriveError;
use crate::pace::{ClosedLoop, OpenLoop, Pacing, Scheduled};
use crate::plan::{LoadPlan, PhaseKind};
use crate::recorder::Recorder;
use crate::replay::ReplaySource;
use crate::worker::{ThreadStats, WorkerShared, work};

/// Something that [`drive`](crate::drive) can ask: every [`Store`], and
/// [`Network`](crate::Network).
pub trait Target: OpExecutor {
    fn capabilities(&self) -> Capabilities;

    /// What is really running, as it says itself.
    fn version(&self) -> String;

    /// The options in force, with the defaults that were not given.
    fn options(&self) -> Vec<(String, String)>;

    /// Waits until background work has ended, at most for `limit`.
    fn settle(&self, limit: Duration) -> Result<(), StoreError>;

    /// What it says of itself; monotonic where the name ends in `.total`.
    fn statistics(&self) -> Vec<Statistic>;
}

/// How one thread asks.
pub trait OpExecutor: Send + Sync + Sized + 'static {
    /// The kernel may say when an answer arrived.
    const SEES_ARRIVALS: bool = false;

    /// Requests that the threads of a plan can have under way together.
    fn slots(&self, plan: &LoadPlan) -> usize {
        plan.threads
    }

    /// Runs in thread `thread` from before the phase begins until it has ended.
    fn ask(
        shared: &WorkerShared<Self>,
        thread: usize,
        plan: &LoadPlan,
        recorder: Recorder,
    ) -> Result<ThreadStats, DriveError>;
}

impl<S: Store> Target for S {
    fn capabilities(&self) -> Capabilities {
        Store::capabilities(self)
    }
    fn version(&self) -> String {
        Store::version(self)
    }
    fn options(&self) -> Vec<(String, String)> {
        Store::options(self)
    }
    fn settle(&self, limit: Duration) -> Result<(), StoreError> {
        Store::settle(self, limit)
    }
    fn statistics(&self) -> Vec<Statistic> {
        Store::statistics(self)
    }
}

impl<S: Store> OpExecutor for S {
    fn ask(
        shared: &WorkerShared<S>,
        thread: usize,
        plan: &LoadPlan,
        recorder: Recorder,
    ) -> Result<ThreadStats, DriveError> {
        let workload = &shared.workload;
        match plan.what {
            PhaseKind::Load => paced(shared, thread, plan, recorder, LoadSource::new(workload)),
            PhaseKind::Mix => match &plan.trace {
                None => paced(shared, thread, plan, recorder, MixSource::new(workload)),
                Some(replay) => {
                    let feed = shared.feed(thread)?;
                    let asks = ReplaySource::new(replay, feed, plan, &shared.clock);
                    scheduled(shared, thread, plan, recorder, asks)
                }
            },
        }
    }
}

fn paced<S: Store, A: OperationSource>(
    shared: &WorkerShared<S>,
    thread: usize,
    plan: &LoadPlan,
    recorder: Recorder,
    asks: A,
) -> Result<ThreadStats, DriveError> {
    match plan.pacing {
        Pacing::Closed { think } => work(shared, thread, asks, || ClosedLoop::new(think), recorder),
        Pacing::Open { .. } | Pacing::Recorded { .. } => {
            // Made when the threads are let go: all count their arrivals from that tick.
            let pacer = || OpenLoop::of(plan, thread, &shared.clock, shared.begun());
            work(shared, thread, asks, pacer, recorder)
        }
    }
}

/// The source itself says when its operations are due, unless the loop is closed.
fn scheduled<S: Store, A: OperationSource>(
    shared: &WorkerShared<S>,
    thread: usize,
    plan: &LoadPlan,
    recorder: Recorder,
    asks: A,
) -> Result<ThreadStats, DriveError> {
    match plan.pacing {
        Pacing::Closed { think } => work(shared, thread, asks, || ClosedLoop::new(think), recorder),
        _ => work(shared, thread, asks, || Scheduled::new(shared.begun()), recorder),
    }
}
