//! The results file from outside: one binary, because each one links SQLite.
// The helpers of tests are tests too.
#![allow(clippy::unwrap_used)]

mod bad_files;
mod crash;
mod example;
mod export;
mod full_disk;
mod merge;
mod round_trip;
mod sql;
mod summary;
