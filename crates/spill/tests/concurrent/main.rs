//! Many threads at once, while the store merges and collects all the time: what each saw must
//! have been so at some moment, and nothing may take long.
#![allow(clippy::unwrap_used)]

mod checker;
mod load;
mod registers;
mod snapshots;
mod watchdog;
mod write_order;
