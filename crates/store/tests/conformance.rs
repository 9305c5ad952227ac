//! The contract of every store, checked for each one in the list.

// Clippy knows only functions marked `#[test]` as tests, not what they call.
#![allow(clippy::unwrap_used)]

mod conformance {
    pub mod contract;
    pub mod crash;
    pub mod full_disk;
    pub mod support;
    pub mod use_of_directory;
}
