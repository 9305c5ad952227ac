use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reactor::Engine;
use serde::{Deserialize, Serialize};

use crate::pace::Pacing;
use crate::replay::Replay;
use crate::share::LoadShare;

/// What the threads ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseKind {
    /// Insert every record once.
    Load,
    /// The workload's own stream of operations, or the plan's trace.
    Mix,
}

/// When the measured window ends. With both, whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StopCondition {
    pub operations: Option<u64>,
    pub time: Option<Duration>,
}

impl StopCondition {
    /// The same end for this pacing: in an open loop a number of operations is the time in
    /// which so many are due, because threads that each keep their share of a rate do not end
    /// a common count together.
    pub(crate) fn of(self, pacing: Pacing) -> StopCondition {
        match (pacing, self.operations) {
            (Pacing::Open { rate, .. }, Some(operations)) => {
                let due = Duration::try_from_secs_f64(operations as f64 / rate);
                let due = due.unwrap_or(Duration::MAX);
                StopCondition {
                    operations: None,
                    time: Some(self.time.map_or(due, |time| time.min(due))),
                }
            }
            _ => self,
        }
    }
}

/// Waiting for a steady state before the window opens.
#[derive(Clone, Copy)]
pub struct SteadyCriteria {
    pub round: Duration,
    /// Rounds that the rule looks back on.
    pub window: usize,
    pub most_rounds: usize,
    /// Whether the throughputs of these rounds are steady.
    pub rule: fn(&[f64]) -> bool,
}

/// How a thread talks to servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionConfig {
    /// To each server.
    pub count: usize,
    /// Requests that may be under way on one connection.
    pub depth: usize,
    /// Requests of an open loop that are due and wait, in each thread, for a connection that is
    /// not full; more are not sent, and counted.
    pub queue: usize,
    /// Never sleeps while it waits for answers.
    pub busy_poll: bool,
    /// None: the faster one that the kernel has.
    #[serde(with = "engine_name")]
    pub engine: Option<Engine>,
}

/// An engine by the name that it shows.
mod engine_name {
    use reactor::Engine;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        engine: &Option<Engine>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        engine.map(|engine| engine.to_string()).serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Engine>, D::Error> {
        let Some(name) = Option::<String>::deserialize(from)? else { return Ok(None) };
        let engine = Engine::ALL.into_iter().find(|engine| engine.to_string() == name);
        let unknown = || D::Error::custom(format!("there is no engine `{name}`"));
        engine.map(Some).ok_or_else(unknown)
    }
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        // One is answered before the next is sent, so it takes some for a rate to be held.
        ConnectionConfig { count: 16, depth: 1, queue: 100_000, busy_poll: false, engine: None }
    }
}

/// Runs first in every thread, given its number.
pub type OnStart = Arc<dyn Fn(usize) + Send + Sync>;

/// The CPU time that the threads may have together.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuBudget {
    /// CPUs' worth of it.
    pub count: f64,
    /// What allows no more: `1 CPU by the mask`.
    pub words: String,
}

/// How to ask.
#[derive(Clone)]
pub struct LoadPlan {
    pub what: PhaseKind,
    /// What a mix asks instead of the workload, which then only gives its name.
    pub trace: Option<Arc<Replay>>,
    pub threads: usize,
    pub pacing: Pacing,
    pub seed: u64,
    pub warm_up: Option<Duration>,
    /// Of all threads together, where the warm-up of an open loop has a rate of its own.
    pub warm_up_rate: Option<f64>,
    pub steady: Option<SteadyCriteria>,
    pub until: StopCondition,
    /// Length of an interval of the time series.
    pub interval: Duration,
    /// Runs first in every thread, given its number: pinning.
    pub on_start: OnStart,
    /// What the threads can really have, where that is known.
    pub cpus: Option<CpuBudget>,
    /// Raised to end the phase early and cleanly.
    pub stop: Arc<AtomicBool>,
    /// Of each thread to servers; an embedded store has none.
    pub connections: ConnectionConfig,
    /// Ends the phase with an error when no operation has ended for so long.
    pub patience: Duration,
    /// This client's part, where several ask together; threads, rates and connections are its
    /// own, operations those of all.
    pub share: Option<LoadShare>,
    /// Every interval's histograms are kept beside its percentiles, so that those of several
    /// clients can be added.
    pub keep_intervals: bool,
}

impl LoadPlan {
    /// As fast as so many threads can, with nothing before the window and no end of its own.
    pub fn closed(what: PhaseKind, threads: usize) -> LoadPlan {
        LoadPlan {
            what,
            trace: None,
            threads,
            pacing: Pacing::Closed { think: Duration::ZERO },
            seed: 1,
            warm_up: None,
            warm_up_rate: None,
            connections: ConnectionConfig::default(),
            steady: None,
            until: StopCondition { operations: None, time: None },
            interval: Duration::from_secs(1),
            on_start: Arc::new(|_| {}),
            cpus: None,
            stop: Arc::new(AtomicBool::new(false)),
            patience: Duration::from_secs(60),
            share: None,
            keep_intervals: false,
        }
    }

    /// Client `client` of `clients`' part of what this plan asks. There are at least as many
    /// threads as clients.
    pub fn part(&self, client: usize, clients: usize) -> LoadPlan {
        let (share, threads) = LoadShare::of(client, clients, self.threads);
        // Each thread bears the same rate, on whichever client it is.
        let own = |rate: f64| rate * threads as f64 / self.threads as f64;
        LoadPlan {
            threads,
            pacing: match self.pacing {
                Pacing::Open { rate, arrivals } => Pacing::Open { rate: own(rate), arrivals },
                closed => closed,
            },
            warm_up_rate: self.warm_up_rate.map(own),
            until: match self.what {
                PhaseKind::Load => self.until,
                PhaseKind::Mix => self.until.of(self.pacing),
            },
            share: Some(share),
            keep_intervals: true,
            ..self.clone()
        }
    }
}
