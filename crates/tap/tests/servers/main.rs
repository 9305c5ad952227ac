//! The preloaded library in real, unmodified servers: what it counts is what
//! was asked.

#[path = "../../examples/support/mod.rs"]
mod support;

mod memcached;
mod plain;
mod redis;
