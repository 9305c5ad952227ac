//! What is done while a phase is driven: progress is shown, probes stand around the window.

use drive::PhaseProgress;
use drive::Target;
use host::{Observed, Prepared, Watch};
use model::Reading;
use store::Statistic;

use crate::beside::RunningHog;
use crate::engine::{Event, Listener};
use crate::plan::Step;
use crate::server_side::{ServerSide, ServersSummary};

/// Shows progress only.
pub(crate) struct ProgressOnly<'a> {
    pub(crate) step: &'a Step,
    pub(crate) listener: &'a mut dyn Listener,
}

impl drive::Observer for ProgressOnly<'_> {
    fn progress(&mut self, progress: &PhaseProgress) {
        self.listener.hear(Event::Progress { step: self.step, progress });
    }
}

/// Shows progress and puts the probes around the window.
pub(crate) struct ProbedObserver<'a, T> {
    pub(crate) step: &'a Step,
    pub(crate) listener: &'a mut dyn Listener,
    pub(crate) store: &'a T,
    /// Probes that are made before the load begins: some take a while for that.
    pub(crate) prepared: Option<Prepared>,
    pub(crate) watch: Option<Watch>,
    pub(crate) servers: &'a mut ServerSide,
    /// What else keeps the machine busy, and what it said of itself.
    pub(crate) beside: Option<RunningHog>,
    pub(crate) taken: Vec<Reading>,
    /// What was seen of the servers.
    pub(crate) seen: ServersSummary,
    pub(crate) before: Vec<Statistic>,
    pub(crate) after: Vec<Statistic>,
    pub(crate) observed: Observed,
}

impl<T: Target> drive::Observer for ProbedObserver<'_, T> {
    fn window_opens(&mut self) {
        self.before = self.store.statistics();
        self.servers.begin();
        if let Some(beside) = &mut self.beside {
            beside.window_opens();
        }
        self.watch = self.prepared.take().map(Prepared::begin);
    }

    fn window_closes(&mut self) {
        self.observed = self.watch.take().map(Watch::end).unwrap_or_default();
        self.taken = self.beside.as_mut().map(RunningHog::window_closes).unwrap_or_default();
        self.seen = self.servers.end();
        self.after = self.store.statistics();
    }

    fn progress(&mut self, progress: &PhaseProgress) {
        self.listener.hear(Event::Progress { step: self.step, progress });
    }
}
