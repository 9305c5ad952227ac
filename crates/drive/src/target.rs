//! Targets of a load: an embedded store, or servers behind a network.

use std::time::Duration;

use model::Pacing;
use store::{Capabilities, Statistic, Store, StoreError};

use crate::outcome::DriveError;
use crate::pace::{ClosedLoop, OpenLoop, Scheduled};
use crate::plan::{LoadPlan, PhaseKind};
use crate::recorder::Recorder;
use crate::replay_source::ReplaySource;
use crate::source::{LoadSource, MixSource, OperationSource};
use crate::thread_stats::ThreadStats;
use crate::worker::work;
use crate::worker_shared::WorkerShared;

/// A target of [`drive`](crate::drive): every [`Store`], and [`Network`](crate::Network).
pub trait Target: ClientThread {
    fn capabilities(&self) -> Capabilities;

    /// The version that it reports.
    fn version(&self) -> String;

    /// The options in force, defaults included.
    fn options(&self) -> Vec<(String, String)>;

    /// Waits until background work has ended, at most for `limit`.
    fn settle(&self, limit: Duration) -> Result<(), StoreError>;

    /// Its own statistics; monotonic where the name ends in `.total`.
    fn statistics(&self) -> Vec<Statistic>;
}

/// Runs one client thread.
pub trait ClientThread: Send + Sync + Sized + 'static {
    /// The kernel may timestamp the arrival of answers.
    const SEES_ARRIVALS: bool = false;

    /// Requests that all threads of a plan can have in flight.
    fn slots(&self, plan: &LoadPlan) -> usize {
        plan.threads
    }

    /// Runs thread `thread` from before the phase begins until it has ended.
    fn run(
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

impl<S: Store> ClientThread for S {
    fn run(
        shared: &WorkerShared<S>,
        thread: usize,
        plan: &LoadPlan,
        recorder: Recorder,
    ) -> Result<ThreadStats, DriveError> {
        let workload = &shared.workload;
        match plan.phase {
            PhaseKind::Load => paced(shared, thread, plan, recorder, LoadSource::new(workload)),
            PhaseKind::Mix => match &plan.trace {
                None => paced(shared, thread, plan, recorder, MixSource::new(workload)),
                Some(replay) => {
                    let feed = shared.feed(thread)?;
                    let source = ReplaySource::new(replay, feed, plan, &shared.clock);
                    scheduled(shared, thread, plan, recorder, source)
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
    source: A,
) -> Result<ThreadStats, DriveError> {
    match plan.shape.pacing {
        Pacing::Closed { think } => {
            work(shared, thread, source, || ClosedLoop::new(think), recorder)
        }
        Pacing::Open { .. } | Pacing::Recorded { .. } => {
            // Made when the phase begins: all threads count their arrivals from that tick.
            let pacer = || OpenLoop::of(plan, thread, &shared.clock, shared.begun());
            work(shared, thread, source, pacer, recorder)
        }
    }
}

/// The source has the due instants of its operations, unless the loop is closed.
fn scheduled<S: Store, A: OperationSource>(
    shared: &WorkerShared<S>,
    thread: usize,
    plan: &LoadPlan,
    recorder: Recorder,
    source: A,
) -> Result<ThreadStats, DriveError> {
    match plan.shape.pacing {
        Pacing::Closed { think } => {
            work(shared, thread, source, || ClosedLoop::new(think), recorder)
        }
        _ => work(shared, thread, source, || Scheduled::new(shared.begun()), recorder),
    }
}
