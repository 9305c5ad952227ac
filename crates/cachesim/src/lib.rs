#![forbid(unsafe_code)]
pub mod cache;
pub mod error;
pub mod memory;
