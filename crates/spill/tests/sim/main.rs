//! What the engine does when the machine, the disk or another hand fails it.
//!
//! More of everything: `SPILL_TEST_EVERY=1`. Another run: `SPILL_TEST_SEED=n`, which each failure
//! names.

// As in any test, a surprise ends it.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod disk;
mod random;
