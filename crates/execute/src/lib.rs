//! Executes plans: turns knobs, starts servers, loads data, measures, repeats and resumes. Each run
//! is saved as it ends.
#![forbid(unsafe_code)]

mod bench;
mod calibration_agenda;
mod check_findings;
mod co_runner;
mod dataset_marker;
mod directories;
mod distributed;
mod driven_phase;
mod error;
mod event;
mod execute;
mod execution;
mod execution_cache;
mod hit_ratio;
mod idle_power;
mod idle_watts;
pub mod knobs;
mod load_plan;
mod load_step;
mod machine_lock;
mod mbwu;
mod nodes;
mod observer;
mod offered_rate;
mod profiled_pass;
mod remaining_steps;
mod repeat_policy;
mod replay;
mod replay_notes;
mod required;
mod run_context;
mod run_record;
mod schedule;
mod search;
mod server_log;
mod server_reads;
mod server_side;
mod session;
mod simulated_pass;
mod started_server;
mod top_down_pass;

pub use calibration_agenda::KnownMaxima;
pub use directories::check_directories;
pub use distributed::{
    AgentMachine, AgentPermissions, AgentWork, AllowedKnob, AllowedProbe, AllowedServer,
};
pub use error::ExecuteError;
pub use event::{Event, Listener};
pub use execute::{ExecuteArgs, execute};
pub use execution::{execution, now};
pub use idle_watts::{IdleWatts, watts_now};
pub use machine_lock::MachineLock;
pub use mbwu::MbwuEvaluation;
pub use repeat_policy::{ExecutionEnd, RepeatPolicy};
pub use search::{RateSearch, SearchResult, TrialRun};
pub use server_log::{LogLosses, ServerLog};
pub use server_reads::ServerReads;
pub use simulated_pass::{SimulatedPass, run_pass};
