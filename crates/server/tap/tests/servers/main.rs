//! The preloaded library in real, unmodified servers: its counts match the requests.

// Helpers of the tests unwrap too.
#![allow(clippy::unwrap_used)]

#[path = "../../../../model/tests/shared/ports.rs"]
mod ports;
#[path = "../../examples/support/mod.rs"]
mod support;

mod memcached;
mod plain;
mod redis;
