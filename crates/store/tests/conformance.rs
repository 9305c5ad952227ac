//! What every store promises, asked of each one in the list: a store that is added is asked too.

// Clippy knows only functions marked `#[test]` as tests, not what they call.
#![allow(clippy::unwrap_used)]

mod conformance {
    pub mod contract;
    pub mod crash;
    pub mod full_disk;
    pub mod support;
    pub mod use_of_directory;
}
