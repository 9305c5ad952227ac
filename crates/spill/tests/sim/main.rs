//! What the engine does when the machine, the disk or another hand fails it.
//!
//! More of everything: `SPILL_TEST_EVERY=1`. The same once more: `SPILL_TEST_SEED=n`, which each
//! failure names.

// As in any test, a surprise ends it.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod checkpoints;
mod crash;
mod damage;
mod disk;
mod disk_full;
mod faults;
mod history;
mod process_kill;
mod random;
mod rejections;
mod session;
mod settings;
mod target;
