use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use model::{ConnectionConfig, LoadShape, Pacing};

use crate::load_share::LoadShare;
use crate::replay::Replay;

/// The kind of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseKind {
    /// Insert every record once.
    Load,
    /// The workload's own stream of operations, or the plan's trace.
    Mix,
}

/// Waiting for a steady state before the window opens.
#[derive(Clone, Copy)]
pub struct SteadyCriteria {
    pub round: Duration,
    /// Number of rounds that the rule considers.
    pub window: usize,
    pub most_rounds: usize,
    /// Whether the throughputs of these rounds are steady.
    pub rule: fn(&[f64]) -> bool,
}

/// Runs first in every thread, with the thread's number.
pub type OnStart = Arc<dyn Fn(usize) + Send + Sync>;

/// The CPU time that the threads may have together.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuBudget {
    /// Number of CPUs.
    pub count: f64,
    /// What limits it: `1 CPU by the mask`.
    pub words: String,
}

/// The load of one phase.
#[derive(Clone)]
pub struct LoadPlan {
    pub phase: PhaseKind,
    /// Replayed instead of the workload's operations; the workload then only gives its name.
    pub trace: Option<Arc<Replay>>,
    pub threads: usize,
    pub shape: LoadShape,
    pub seed: u64,
    pub steady: Option<SteadyCriteria>,
    /// Length of an interval of the time series.
    pub interval: Duration,
    /// Runs first in every thread: pinning.
    pub on_start: OnStart,
    /// The CPU time available to the threads, where known.
    pub cpus: Option<CpuBudget>,
    /// Raised to end the phase early and cleanly.
    pub stop: Arc<AtomicBool>,
    /// Connections of each thread to servers; an embedded store has none.
    pub connections: ConnectionConfig,
    /// Without the end of an operation for so long, the phase fails.
    pub stall_timeout: Duration,
    /// This client's share, where several generate a load; threads, rates and connections are its
    /// own, operations those of all clients.
    pub share: Option<LoadShare>,
    /// Keeps every interval's histograms, so that those of several clients can be added.
    pub keep_intervals: bool,
}

impl LoadPlan {
    /// A closed loop of so many threads without think time, warm-up or end.
    pub fn closed(phase: PhaseKind, threads: usize) -> LoadPlan {
        LoadPlan {
            phase,
            trace: None,
            threads,
            shape: LoadShape::default(),
            seed: 1,
            connections: ConnectionConfig::default(),
            steady: None,
            interval: Duration::from_secs(1),
            on_start: Arc::new(|_| {}),
            cpus: None,
            stop: Arc::new(AtomicBool::new(false)),
            stall_timeout: Duration::from_secs(60),
            share: None,
            keep_intervals: false,
        }
    }

    /// The mean rate of an open loop over a window of this length; None where the loop is closed or
    /// a trace has its own rate.
    pub(crate) fn mean_rate(&self, window: Option<Duration>) -> Option<f64> {
        let Pacing::Open { rate, .. } = self.shape.pacing else { return None };
        Some(rate * self.shape.profile.as_ref().map_or(1.0, |profile| profile.mean_over(window)))
    }

    /// The share of client `client` of `clients`. There must be at least as many threads as clients.
    pub fn part(&self, client: usize, clients: usize) -> LoadPlan {
        let (share, threads) = LoadShare::of(client, clients, self.threads);
        // Each thread has the same rate, on every client.
        let own = |rate: f64| rate * threads as f64 / self.threads as f64;
        let shape = &self.shape;
        LoadPlan {
            threads,
            shape: LoadShape {
                pacing: match shape.pacing {
                    Pacing::Open { rate, arrivals } => Pacing::Open { rate: own(rate), arrivals },
                    closed => closed,
                },
                warm_up_rate: shape.warm_up_rate.map(own),
                until: match self.phase {
                    PhaseKind::Load => shape.until,
                    PhaseKind::Mix => shape.until.of(shape.pacing),
                },
                ..shape.clone()
            },
            share: Some(share),
            keep_intervals: true,
            ..self.clone()
        }
    }
}
