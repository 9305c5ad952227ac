//! The preloaded library in real, unmodified servers: what it counts is what
//! was asked.

// Helpers beside the tests unwrap as they do.
#![allow(clippy::unwrap_used)]

#[path = "../../examples/support/mod.rs"]
mod support;

mod memcached;
mod plain;
mod redis;
