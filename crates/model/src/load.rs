//! What load is: when requests are sent, over which connections, until when.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::RateProfile;

/// The distribution of the time between two requests of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Arrivals {
    /// Evenly spaced.
    Constant,
    /// Exponential gaps: independent users.
    Poisson,
    /// Generalised Pareto gaps of this shape, scaled to the rate. `facebook` is the shape that
    /// was seen at Facebook's ETC pool (Atikoglu et al., SIGMETRICS 2012).
    Pareto { shape: f64 },
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arrivals::Constant => f.write_str("constant"),
            Arrivals::Poisson => f.write_str("poisson"),
            Arrivals::Pareto { shape } if *shape == Arrivals::ETC_SHAPE => f.write_str("facebook"),
            Arrivals::Pareto { shape } if *shape == Arrivals::PARETO_SHAPE => f.write_str("pareto"),
            Arrivals::Pareto { shape } => write!(f, "pareto:{shape}"),
        }
    }
}

impl Arrivals {
    pub const ETC_SHAPE: f64 = 0.154971;
    /// The shape of `pareto` without a number: gaps whose variance is finite, but large.
    pub const PARETO_SHAPE: f64 = 0.4;
    pub const NAMES: [&str; 4] = ["constant", "poisson", "pareto", "facebook"];

    /// Reads a name; `pareto:0.3` gives a shape, which is above 0 and below 1, for a mean to be.
    pub fn parse(text: &str) -> Option<Arrivals> {
        match text {
            "constant" => Some(Arrivals::Constant),
            "poisson" => Some(Arrivals::Poisson),
            "pareto" => Some(Arrivals::Pareto { shape: Arrivals::PARETO_SHAPE }),
            "facebook" => Some(Arrivals::Pareto { shape: Arrivals::ETC_SHAPE }),
            _ => {
                let shape: f64 = text.strip_prefix("pareto:")?.parse().ok()?;
                (shape > 0.0 && shape < 1.0).then_some(Arrivals::Pareto { shape })
            }
        }
    }
}

/// When the next request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Pacing {
    /// When the previous one was answered, after a think time.
    Closed { think: Duration },
    /// When it is due, independent of answers. The rate is that of all threads together.
    Open { rate: f64, arrivals: Arrivals },
    /// When it was recorded, in a trace replayed at this multiple of its speed.
    Recorded { speed: f64 },
}

impl Pacing {
    /// Whether due instants are independent of answers.
    pub fn is_open(self) -> bool {
        !matches!(self, Pacing::Closed { .. })
    }
}

/// When the measured window ends. With both, whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StopCondition {
    pub operations: Option<u64>,
    pub time: Option<Duration>,
}

impl StopCondition {
    /// The same end for this pacing: in an open loop a number of operations becomes the time in
    /// which so many are due, because threads with a share of the rate each do not finish a
    /// common count together.
    pub fn of(self, pacing: Pacing) -> StopCondition {
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

/// How the load of a phase runs over time: the warm-up, then the measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadShape {
    pub pacing: Pacing,
    /// Multiples of an open loop's rate over the window, where it moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<RateProfile>,
    pub warm_up: Option<Duration>,
    /// Operations per second of an open loop's warm-up, of all threads together, where it differs.
    pub warm_up_rate: Option<f64>,
    pub until: StopCondition,
}

impl Default for LoadShape {
    /// A closed loop without think time, warm-up or end.
    fn default() -> Self {
        LoadShape {
            pacing: Pacing::Closed { think: Duration::ZERO },
            profile: None,
            warm_up: None,
            warm_up_rate: None,
            until: StopCondition { operations: None, time: None },
        }
    }
}

/// Connections of a thread to servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionConfig {
    /// To each server.
    pub count: usize,
    /// Requests that may be in flight on one connection.
    pub depth: usize,
    /// Requests of an open loop that may wait, in each thread, for a connection with a free slot;
    /// more are dropped and counted.
    pub queue: usize,
    /// Polls for answers without sleeping.
    pub busy_poll: bool,
    /// None: the fastest that the kernel supports.
    pub engine: Option<Engine>,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        // With a depth of 1, a rate needs several connections.
        ConnectionConfig { count: 16, depth: 1, queue: 100_000, busy_poll: false, engine: None }
    }
}

/// The kernel interface for many sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// `epoll`, one system call a send and one a receive; every Linux has it.
    Epoll,
    /// `io_uring`: all sends, receives and the wait in one system call. Linux 6.1
    /// or later, where it is not forbidden.
    IoUring,
}

impl Engine {
    /// Every engine, for tests and for lists of choices.
    pub const ALL: [Engine; 2] = [Engine::Epoll, Engine::IoUring];
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::Epoll => "epoll",
            Engine::IoUring => "io_uring",
        })
    }
}
