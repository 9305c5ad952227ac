//! Server-side latency of an unmodified server.
//!
//! A library is preloaded (`LD_PRELOAD`) into memcached, Redis or another
//! server of their protocols. It times each request from the read that brought
//! it to the write that answered it and counts into a file of shared memory.
//!
//! - [`preload`] builds the library: one call of rustc, for a build script.
//! - [`reader`] makes the file and reads it while the server runs.
//! - [`layout`] is what the two agree on.
//!
//! `docs/server-latency.md` defines the intervals.

pub mod layout;
pub mod preload;
pub mod reader;
mod sys;

// The preloaded library's own parts that touch no foreign function are tested
// from here; its root is `preload/root.rs`.
#[cfg(test)]
#[path = "preload/connection.rs"]
mod connection;
#[cfg(test)]
#[path = "preload/parse/mod.rs"]
mod parse;
