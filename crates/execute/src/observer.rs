//! Observers of a phase: progress display, and probes around the window.

use std::time::{Duration, Instant};

use drive::Target;
use drive::{CompleteInterval, PhaseProgress};
use host::{PreparedWatch, RunWatch, WatchReadings};
use model::Reading;
use store::Statistic;
use study::Step;

use crate::co_runner::RunningHog;
use crate::event::{Event, Listener};
use crate::server_side::{ServerSide, ServersSummary};

/// How often a listener that watches gets readings.
const PEEK_INTERVAL: Duration = Duration::from_secs(1);

/// Shows progress only.
pub(crate) struct ProgressOnly<'a> {
    pub(crate) step: &'a Step,
    pub(crate) listener: &'a mut dyn Listener,
}

impl drive::Observer for ProgressOnly<'_> {
    fn progress(&mut self, progress: &PhaseProgress) {
        self.listener.on_event(Event::Progress { step: self.step, progress });
    }
}

/// Shows progress and puts the probes around the window.
pub(crate) struct ProbedObserver<'a> {
    pub(crate) step: &'a Step,
    pub(crate) listener: &'a mut dyn Listener,
    pub(crate) store: &'a dyn Target,
    /// Probes that are prepared before the load begins, because some take a while.
    pub(crate) prepared: Option<PreparedWatch>,
    pub(crate) watch: Option<RunWatch>,
    pub(crate) servers: &'a mut ServerSide,
    /// The co-runner, and its readings.
    pub(crate) co_runner: Option<RunningHog>,
    pub(crate) co_runner_readings: Vec<Reading>,
    /// Readings of the servers.
    pub(crate) servers_summary: ServersSummary,
    pub(crate) before: Vec<Statistic>,
    pub(crate) after: Vec<Statistic>,
    pub(crate) observed: WatchReadings,
    /// When the listener last got readings.
    pub(crate) peeked: Option<Instant>,
}

impl drive::Observer for ProbedObserver<'_> {
    fn window_opens(&mut self) {
        self.before = self.store.statistics();
        self.servers.begin();
        if let Some(co_runner) = &mut self.co_runner {
            co_runner.window_opens();
        }
        self.watch = self.prepared.take().map(PreparedWatch::begin);
    }

    fn window_closes(&mut self) {
        self.observed = self.watch.take().map(RunWatch::end).unwrap_or_default();
        self.co_runner_readings =
            self.co_runner.as_mut().map(RunningHog::window_closes).unwrap_or_default();
        self.servers_summary = self.servers.end();
        self.after = self.store.statistics();
    }

    fn progress(&mut self, progress: &PhaseProgress) {
        self.listener.on_event(Event::Progress { step: self.step, progress });
        self.peek();
    }

    fn interval(&mut self, interval: &CompleteInterval<'_>) {
        if self.listener.watches() {
            self.listener.on_event(Event::Interval { step: self.step, interval });
        }
    }
}

impl ProbedObserver<'_> {
    /// Shows what the probes read until now, to a listener that watches.
    fn peek(&mut self) {
        let due = self.peeked.is_none_or(|last| last.elapsed() >= PEEK_INTERVAL);
        let Some(watch) = self.watch.as_mut().filter(|_| due && self.listener.watches()) else {
            return;
        };
        self.peeked = Some(Instant::now());
        let mut readings = watch.peek();
        readings.extend(self.servers.peek());
        self.listener.on_event(Event::Readings { step: self.step, readings: &readings });
    }
}
