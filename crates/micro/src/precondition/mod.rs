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
mod held_device;
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
pub use content::FoundContent;
pub use device::DeviceSystem;
pub use error::{PreconditionError, WriteError};
pub use job::{JobEnd, PreconditionJob, PreconditionRequest, JobPhase, JobProgress, Purge, RandomReport, JobReport};
pub use random::SteadyRule;
pub use target::{TargetKind, Target};
