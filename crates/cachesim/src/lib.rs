//! A simulator of the last-level cache with direct cache access: a card writes packets into the
//! cache, workers read them from it, and co-runners compete for it.
//!
//! [`describe`] reads machines and traffic, [`simulate`] runs one simulation, [`sweep`] many,
//! [`validate`] compares with published measurements, [`trace`] runs a memory trace through the
//! caches alone. [`cache`] and [`memory`] are the caches themselves. All results are marked as
//! simulated.
#![forbid(unsafe_code)]

pub mod cache;
pub mod describe;
pub mod engine;
mod error;
pub mod memory;
pub mod outcome;
pub mod policy;
mod pool;
mod recorded_arrivals;
pub mod sweep;
pub mod thesis;
pub mod trace;
pub mod validate;

pub use describe::machine::SimulatedMachine;
pub use describe::traffic::Traffic;
pub use error::SimError;
pub use outcome::{SimOutcome, simulate};
pub use policy::Policy;
pub use recorded_arrivals::RecordedArrivals;
