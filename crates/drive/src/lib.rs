//! The load generator: closed and open loops over a store, latency recording, validity.
//!
//! One phase of a run is one call of [`drive`]: it starts the client threads, opens the measured
//! window after warm-up and steady state, collects whole histograms once a second and returns the
//! outcome. It judges whether the measurement is valid, never the store.
#![forbid(unsafe_code)]

mod answer_counts;
mod clients;
mod clock;
mod cluster_counts;
mod collect;
mod controller;
mod encoding;
mod frontier;
mod load_share;
mod net;
mod node_counts;
mod op_executor;
mod outcome;
mod pace;
mod plan;
mod recorder;
mod replay;
mod replay_source;
mod ring_counts;
mod shortfall;
mod source;
mod summary;
mod target;
mod tax;
mod thread_stats;
mod validity;
mod worker;
mod worker_shared;

pub use answer_counts::RunningCounts;
pub use clients::join;
pub use clock::Ticks;
pub use cluster_counts::ClusterCounts;
pub use collect::{CompleteInterval, LiveInterval};
pub use controller::{NoObserver, Observer, PhaseProgress, PhaseStage, drive};
pub use encoding::OutcomeDecodeError;
pub use load_share::LoadShare;
pub use net::Network;
pub use node_counts::{NodeCounts, NodeInterval, imbalance};
pub use outcome::{
    AnswerFailure, DataChanges, DriveError, FailureKind, PhaseOutcome, SteadyReport,
};
pub use plan::{CpuBudget, LoadPlan, OnStart, PhaseKind, SteadyCriteria};
pub use reactor::available as engine_available;
pub use replay::{Replay, ReplaySummary};
pub use ring_counts::RingCounts;
pub use target::{Target, open, open_group};
pub use tax::{MeasuredTax, replay_tax, tax};
pub use validity::QUIETEN;
