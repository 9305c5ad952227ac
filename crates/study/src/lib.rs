//! Experiments as text and as plans: which runs there are, in which order, on which store, under
//! which load. Nothing is executed here, and no load is generated.
#![forbid(unsafe_code)]

mod agents_config;
mod bench;
mod calibrate;
mod co_runner;
mod error;
mod factors;
mod knobs;
mod known_names;
mod load;
mod machine_sized;
pub mod mbwu;
mod plan;
mod platform_file;
mod probes;
mod server_flag;
mod server_spec;
mod server_timing;
mod settings;
pub mod signals;
mod simulation;
mod spec;
mod study_text;
mod trace;

pub use agents_config::{AgentsConfig, CredentialFiles};
pub use bench::{Bench, DcaJob, MicroJob, SIMULATOR};
pub use calibrate::{Calibration, Maximum, RateSpec, missing_operation};
pub use co_runner::{CoRunner, HogDemand};
pub use error::StudyError;
pub use knobs::KnobLevels;
pub use load::{
    Flag, FlagGroup, FlagValue, InvalidOption, LOAD_OPTIONS, LoadConfig, LoadOption, LoadOptions,
    MAX_RATE, SteadyTable, unplaced,
};
pub use plan::{Activity, Estimate, Estimates, Plan, Segment, Step, StoreLoad, check_store, step};
pub use platform_file::open_platform;
pub use probes::{IDLE_TIME, ProbesConfig};
pub use server_spec::ServerSpec;
pub use server_timing::ServerTiming;
pub use simulation::Simulation;
pub use spec::StudySpec;
pub use study_text::{BUILT_IN, BuiltInStudy, StudyText};
pub use trace::{ReplaySpeed, TraceSource, placeholder_workload};
