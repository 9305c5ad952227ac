//! Bringing a device to a known state before it is measured, after the SNIA Solid State Storage
//! Performance Test Specification 2.0.1: purge, workload-independent preconditioning (sequential
//! writes of 128 KiB, twice the capacity), and random writes until the steady state.
//!
//! It destroys data: [`Target::inspect`] refuses devices in use and lists a device's content, and
//! [`PreconditionJob::new`] requires that the device and its content are named once more.

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
mod request;
mod ring;
mod sequential;
mod target;
pub mod volume;

pub use consent::Consent;
pub use content::FoundContent;
pub use device::DeviceSystem;
pub use error::{PreconditionError, WriteError};
pub use job::{JobEnd, JobPhase, JobProgress, JobReport, PreconditionJob, RandomReport};
pub use random::SteadyRule;
pub use request::{PreconditionRequest, Purge};
pub use target::{Target, TargetKind};
