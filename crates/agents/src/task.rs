use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The task of an agent. Payloads are opaque here.
pub trait AgentTask: Send + Sync + 'static {
    /// Checks an assignment, connects, and becomes ready. May block; must return soon after `stop`
    /// is set.
    ///
    /// # Errors
    /// Why it cannot be done, for the coordinator's user.
    fn prepare(
        &self,
        assignment: &[u8],
        stop: &Arc<AtomicBool>,
    ) -> Result<Box<dyn PreparedTask>, String>;
}

/// An assignment that is ready to start.
pub trait PreparedTask: Send {
    /// Waits for `begin`, does the work and returns the outcome's payload. `progress` never blocks
    /// and may be called at any rate. Must return soon after `stop` is raised, whatever it returns.
    ///
    /// # Errors
    /// What went wrong, for the coordinator's user.
    fn run(
        self: Box<Self>,
        begin: Instant,
        progress: &mut dyn FnMut(TaskProgress),
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<u8>, String>;
}

/// Progress of one agent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskProgress {
    /// The stage, as named by the [`AgentTask`].
    pub stage: String,
    /// Operations that ended in this stage.
    pub operations: u64,
    /// Seconds since the stage began.
    pub elapsed_s: f64,
    /// Share of the stage that is done, 0 to 1, where the end is known.
    pub done: Option<f64>,
    /// Operations per second, lately.
    pub live_ops_s: f64,
    /// The 99th percentile of latency, lately, in nanoseconds.
    pub live_p99_ns: u64,
    /// The newest complete interval, opaque here; empty before the first. Reports that come too fast
    /// replace each other, so all have it until the next interval is complete.
    pub newest_interval: Arc<[u8]>,
}

impl TaskProgress {
    /// Combines agents: sums of operations and rates, the minimum share done, the longest time. The p99
    /// is the largest of theirs, an upper bound on that of all requests. The stage is that of the
    /// agent that is furthest behind; it has no newest interval. None without agents.
    pub fn sum<'a>(each: impl IntoIterator<Item = &'a TaskProgress>) -> Option<TaskProgress> {
        each.into_iter().fold(None, |sum: Option<TaskProgress>, one| {
            let Some(sum) = sum else { return Some(one.clone()) };
            let behind = match (one.done, sum.done) {
                (Some(one), Some(sum)) => one < sum,
                _ => false,
            };
            Some(TaskProgress {
                stage: if behind { one.stage.clone() } else { sum.stage },
                operations: sum.operations + one.operations,
                elapsed_s: sum.elapsed_s.max(one.elapsed_s),
                done: sum.done.zip(one.done).map(|(a, b)| a.min(b)),
                live_ops_s: sum.live_ops_s + one.live_ops_s,
                live_p99_ns: sum.live_p99_ns.max(one.live_p99_ns),
                newest_interval: Arc::default(),
            })
        })
    }
}

/// Heartbeats and timeouts of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatTiming {
    pub beat: Duration,
    /// Without a message for so long, the other side is lost.
    pub silence: Duration,
    /// How long a connection may take to authenticate, TLS and token included.
    pub greeting: Duration,
    /// How long a task may take to end after a stop.
    pub wind_down: Duration,
}

impl Default for HeartbeatTiming {
    fn default() -> HeartbeatTiming {
        HeartbeatTiming {
            beat: Duration::from_secs(1),
            silence: Duration::from_secs(5),
            greeting: Duration::from_secs(10),
            wind_down: Duration::from_secs(10),
        }
    }
}

/// A coordinator needs one; the others are unauthenticated or find the agent busy.
pub const DEFAULT_CONNECTIONS: u16 = 64;

/// Version, self-description and timeouts of one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerOptions {
    /// Both sides must be of the same: the payloads have no other version.
    pub version: String,
    /// An agent's self-description for coordinators: JSON, at most 1 MiB. A coordinator's is not sent.
    pub about: Vec<u8>,
    pub timing: HeartbeatTiming,
    /// Maximum connections of an agent, unauthenticated ones included.
    pub connections: u16,
}

impl Default for PeerOptions {
    fn default() -> PeerOptions {
        PeerOptions {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            about: Vec::new(),
            timing: HeartbeatTiming::default(),
            connections: DEFAULT_CONNECTIONS,
        }
    }
}

/// The machine's own name.
pub(crate) fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "unknown".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combined_progress_is_the_sum_and_the_slowest() {
        let one = |stage: &str, operations, done, p99| TaskProgress {
            stage: stage.to_owned(),
            operations,
            elapsed_s: operations as f64,
            done,
            live_ops_s: 10.0,
            live_p99_ns: p99,
            newest_interval: Arc::default(),
        };
        let (a, b) = (one("measure", 3, Some(0.5), 70), one("warm-up", 4, Some(0.2), 50));
        let both = TaskProgress {
            stage: "warm-up".to_owned(),
            operations: 7,
            elapsed_s: 4.0,
            done: Some(0.2),
            live_ops_s: 20.0,
            live_p99_ns: 70,
            newest_interval: Arc::default(),
        };
        assert_eq!(TaskProgress::sum([&a, &b]), Some(both));
        assert_eq!(TaskProgress::sum([]), None);
        let unknown = one("measure", 1, None, 1);
        assert_eq!(TaskProgress::sum([&a, &unknown]).and_then(|p| p.done), None);
    }
}
