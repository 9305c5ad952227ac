//! Reports: tables in a terminal and in Markdown, and one self-contained HTML page with figures.
//! Reads finished runs; never touches the machine.
//!
//! [`tables`] turns runs into [`table::Table`]s once; [`terminal`], [`markdown`] and
//! [`html`] only differ in how they write them. `figure` draws SVG and knows nothing of
//! HTML. [`mod@format`] is the only place that turns a number into text.
#![forbid(unsafe_code)]

pub mod benchmarks;
pub mod cells;
mod charts;
pub mod comparison;
pub mod cost;
pub mod curves;
mod figure;
mod flame_graph;
pub mod fleet_plan;
pub mod format;
pub mod gate;
mod glance;
pub mod history;
pub mod html;
pub mod markdown;
pub mod mbwu;
pub mod micro;
mod moving_load;
mod overview;
mod run_names;
pub mod simulation;
pub mod study;
pub mod table;
pub mod tables;
pub mod terminal;
pub mod workload;

pub use overview::{LISTED, SHOWN, overview};
pub use tables::{CheckRow, CheckState, DifferenceRow, PlanRow, RowVerdict};
pub use terminal::Style;
