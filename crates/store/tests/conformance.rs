//! The contract of every store, checked for each one in the list.

// Clippy exempts only functions marked `#[test]`, not their helpers.
#![allow(clippy::unwrap_used)]

#[cfg(feature = "etcd")]
#[path = "shared/etcd.rs"]
#[allow(dead_code)]
mod etcd;
#[path = "shared/plugins.rs"]
mod plugins;
#[cfg(feature = "etcd")]
#[path = "../../model/tests/shared/ports.rs"]
mod ports;

mod conformance {
    pub mod contract;
    pub mod crash;
    pub mod full_disk;
    pub mod support;
    pub mod use_of_directory;
}
