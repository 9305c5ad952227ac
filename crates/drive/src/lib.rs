//! Asking: closed and open loops over a store, latency recording, validity.
//!
//! One phase of a run is one call of [`drive`]: it starts the threads, opens the measured
//! window when warm-up and steady state allow, collects whole histograms once a second and
//! says what was seen. It never judges a store, only whether the asking itself was sound.
#![forbid(unsafe_code)]

mod asker;
mod asks;
mod clock;
mod collect;
mod control;
mod frontier;
mod join;
mod merge;
mod net;
mod outcome;
mod pace;
mod plan;
mod recorder;
mod replay;
mod share;
mod shortfall;
mod target;
mod tax;
mod verdict;
mod wire_form;
mod worker;

pub use clock::Ticks;
pub use collect::LiveInterval;
pub use control::{NoObserver, Observer, PhaseProgress, PhaseStage, drive};
pub use join::join;
pub use merge::QUIETEN;
pub use net::Network;
pub use outcome::{
    AnswerFailure, DataChanges, DriveError, FailureKind, IntervalStats, PhaseOutcome, SteadyReport,
};
pub use pace::{Arrivals, Pacing};
pub use plan::{
    ConnectionConfig, CpuBudget, LoadPlan, OnStart, PhaseKind, SteadyCriteria, StopCondition,
};
pub use reactor::Engine;
pub use replay::{Replay, ReplaySummary};
pub use share::LoadShare;
pub use target::Target;
pub use tax::{MeasuredTax, replay_tax, tax};
pub use wire_form::OutcomeDecodeError;
