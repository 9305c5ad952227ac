//! Microbenchmarks: what the machine itself can do, without a store.

#![deny(unsafe_code)]

pub mod net;
