//! One file for each verb: its arguments and output. The work is done by the other crates.

pub mod agent;
pub mod bench;
pub mod compare;
pub mod completions;
pub mod cost;
pub mod doctor;
pub mod export;
pub mod history;
pub mod knob;
pub mod leased;
pub mod man;
pub mod mbwu;
pub mod merge;
pub mod micro;
pub mod plan;
#[cfg(feature = "kubernetes")]
pub mod pod_shell;
pub mod precondition;
pub mod report;
pub mod run;
pub mod search;
pub mod server;
pub mod simulate;
pub mod simulated_pass;
pub mod workload;
