//! What is kept: one SQLite file with a versioned schema, written when each run ends.
#![forbid(unsafe_code)]

mod run;
mod summary;

pub use run::{
    Clock, Execution, Failures, Latency, Loop, Phase, Planned, Point, Run, Settings, Tax,
};
