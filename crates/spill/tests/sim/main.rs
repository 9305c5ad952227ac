//! The engine when the machine, the disk or an external change fails it.
//!
//! `SPILL_TEST_EVERY=1` tries more of everything. `SPILL_TEST_SEED=n`, named in each failure,
//! repeats a run.

// As in any test, a surprise ends it.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod checkpoints;
mod crash;
mod damage;
mod disk;
mod disk_full;
mod faults;
mod history;
mod power_loss;
mod process_kill;
mod random;
mod rejections;
mod session;
mod settings;
mod target;
