//! Targets of a load: an embedded store, or servers behind a network.

use std::sync::Arc;
use std::time::Duration;

use model::Pacing;
use store::{
    Capabilities, Distribution, ServedData, Statistic, Store, StoreError, StoreUrl, StoreVisitor,
};

use crate::outcome::DriveError;
use crate::pace::{ClosedLoop, OpenLoop, Scheduled};
use crate::plan::{LoadPlan, PhaseKind};
use crate::recorder::Recorder;
use crate::replay_source::ReplaySource;
use crate::source::{LoadSource, MixSource, OperationSource};
use crate::thread_stats::ThreadStats;
use crate::worker::work;
use crate::worker_shared::WorkerShared;

/// A target of [`drive`](crate::drive): every [`Store`], and [`Network`](crate::Network). Only what
/// a thread does once in a phase is called through it: [`Target::run`] has the loop for its kind of
/// store within it.
pub trait Target: Send + Sync + 'static {
    fn capabilities(&self) -> Capabilities;

    /// The version that it reports.
    fn version(&self) -> String;

    /// The options in force, defaults included.
    fn options(&self) -> Vec<(String, String)>;

    /// Waits until background work has ended, at most for `limit`.
    fn settle(&self, limit: Duration) -> Result<(), StoreError>;

    /// Its own statistics; monotonic where the name ends in `.total`.
    fn statistics(&self) -> Vec<Statistic>;

    /// The data of a [`Store`] as it lies in servers.
    fn served(&self) -> Option<Arc<dyn ServedData>> {
        None
    }

    /// The kernel may timestamp the arrival of answers.
    fn sees_arrivals(&self) -> bool {
        false
    }

    /// Requests that all threads of a plan can have in flight.
    fn slots(&self, plan: &LoadPlan) -> usize {
        plan.threads
    }

    /// Runs client thread `thread` from before the phase begins until it has ended.
    fn run(
        self: Arc<Self>,
        shared: &WorkerShared,
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
    fn served(&self) -> Option<Arc<dyn ServedData>> {
        Store::served(self)
    }
    fn run(
        self: Arc<Self>,
        shared: &WorkerShared,
        thread: usize,
        plan: &LoadPlan,
        recorder: Recorder,
    ) -> Result<ThreadStats, DriveError> {
        let workload = &shared.workload;
        let client = ClientThread { store: &*self, shared, thread, plan, recorder };
        match plan.phase {
            PhaseKind::Load => client.paced(LoadSource::new(workload)),
            PhaseKind::Mix => match &plan.trace {
                None => client.paced(MixSource::new(workload)),
                Some(replay) => {
                    let feed = shared.feed(thread)?;
                    client.scheduled(ReplaySource::new(replay, feed, plan, &shared.clock))
                }
            },
        }
    }
}

/// One thread of a phase on an embedded store.
struct ClientThread<'a, S> {
    store: &'a S,
    shared: &'a WorkerShared,
    thread: usize,
    plan: &'a LoadPlan,
    recorder: Recorder,
}

impl<S: Store> ClientThread<'_, S> {
    fn paced<A: OperationSource>(self, source: A) -> Result<ThreadStats, DriveError> {
        let ClientThread { store, shared, thread, plan, recorder } = self;
        match plan.shape.pacing {
            Pacing::Closed { think } => {
                work(store, shared, thread, source, || ClosedLoop::new(think), recorder)
            }
            Pacing::Open { .. } | Pacing::Recorded { .. } => {
                // Made when the phase begins: all threads count their arrivals from that tick.
                let pacer = || OpenLoop::of(plan, thread, &shared.clock, shared.begun());
                work(store, shared, thread, source, pacer, recorder)
            }
        }
    }

    /// The source has the due instants of its operations, unless the loop is closed.
    fn scheduled<A: OperationSource>(self, source: A) -> Result<ThreadStats, DriveError> {
        let ClientThread { store, shared, thread, plan, recorder } = self;
        match plan.shape.pacing {
            Pacing::Closed { think } => {
                work(store, shared, thread, source, || ClosedLoop::new(think), recorder)
            }
            _ => work(store, shared, thread, source, || Scheduled::new(shared.begun()), recorder),
        }
    }
}

/// Opens the store that the URL names, as [`store::open`] does. The loops for each kind of store are
/// compiled here, once.
///
/// # Errors
/// Those of [`store::open`].
pub fn open(url: &StoreUrl) -> Result<Arc<dyn Target>, StoreError> {
    store::open(url, AsTarget)
}

/// Opens several stores of one kind as one, as [`store::open_group`] does.
///
/// # Errors
/// Those of [`store::open_group`].
pub fn open_group(
    urls: &[StoreUrl],
    distribution: Distribution,
) -> Result<Arc<dyn Target>, StoreError> {
    store::open_group(urls, distribution, AsTarget)?
}

struct AsTarget;

impl StoreVisitor for AsTarget {
    type Output = Arc<dyn Target>;

    fn visit<S: Store>(self, store: S) -> Self::Output {
        Arc::new(store)
    }
}
