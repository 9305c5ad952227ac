//! A simulator of the last-level cache with direct cache access.
#![forbid(unsafe_code)]

pub mod cache;
pub mod describe;
pub mod engine;
mod error;
pub mod memory;
pub mod policy;
mod pool;
mod recorded;

pub use error::SimError;
