//! A simulator of the last-level cache with direct cache access: a card that writes packets into
//! the cache, cores that take them from it, and neighbours that want it for themselves.
//!
//! [`describe`] reads machines and traffic, [`simulate`] runs one simulation, [`sweep`] many,
//! [`validate`] compares with published measurements, [`trace`] runs a memory trace through the
//! caches alone. [`cache`] and [`memory`] are the caches themselves. Whatever comes out is
//! simulated and says so.
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
