//! The hardware counters that a study or a flag chooses.

use serde::{Deserialize, Serialize};

/// What the hardware counters count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CounterChoice {
    pub scope: CounterScope,
    /// Raw events besides the table's, as perf writes them:
    /// `cpu/event=0x2e,umask=0x41/`, `r412e`.
    pub events: Vec<String>,
}

/// The scope of the counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CounterScope {
    /// The servers if there are some on this machine, else this process.
    #[default]
    Auto,
    /// This process with all its threads.
    Process,
    /// The processes of [`Context::server_pids`](super::Context::server_pids).
    Servers,
    /// The CPUs of [`Context::cpus`](super::Context::cpus), whatever runs there.
    Cpus,
    /// Every CPU.
    Machine,
}
