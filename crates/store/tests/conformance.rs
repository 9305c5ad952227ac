//! What every store promises, asked of each one in the list: a store that is added is asked too.

// Without a store that keeps anything there is nothing to ask.
#![cfg(any(feature = "rocksdb", feature = "lmdb", feature = "fjall"))]
// Clippy knows only functions marked `#[test]` as tests, not what they call.
#![allow(clippy::unwrap_used)]

mod conformance {
    pub mod contract;
    pub mod crash;
    pub mod full_disk;
    pub mod support;
    pub mod use_of_directory;
}
