//! Bringing a device to a known state before it is measured, after the SNIA Solid State Storage
//! Performance Test Specification 2.0.1: purge, workload-independent preconditioning (sequential
//! writes of 128 KiB, twice the capacity), and random writes until the steady state.
//!
//! What it does destroys data: [`Target::inspect`] refuses what is in use and tells what lies on a
//! device, and [`Job::new`] wants the device named once more, and what lies on it.

mod consent;
mod content;
mod device;
mod error;
mod held;
mod job;
mod journal;
mod nvme;
mod purge;
mod random;
mod ring;
mod sequential;
mod target;
pub mod volume;

pub use consent::Consent;
pub use content::Found;
pub use device::System;
pub use error::{PreconditionError, WriteError};
pub use job::{Ended, Job, Order, Phase, Progress, Purge, RandomReport, Report};
pub use random::Rule;
pub use target::{Kind, Target};
