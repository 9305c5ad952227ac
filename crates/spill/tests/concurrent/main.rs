//! Many threads at once, while the store compacts and collects all the time. What each thread sees
//! must be explainable, and nothing may take long.
#![allow(clippy::unwrap_used)]

mod checker;
mod load;
mod registers;
mod snapshots;
mod watchdog;
mod write_order;
