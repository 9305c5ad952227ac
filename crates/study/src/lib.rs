//! Experiments as text and as plans: which runs there are, in which order, on which store, under
//! which load. Nothing is executed here, and no load is generated.
#![forbid(unsafe_code)]

mod agents_config;
mod error;
mod knobs;
mod load;
mod plan;
mod platform_file;
mod probes;
mod profiling;
mod rate_spec;
mod replay_speed;
mod server_flag;
mod server_spec;
mod server_timing;
pub mod signals;
mod simulation;
mod text;
mod trace_reading;
mod workload_file;
mod ycsb_file;

pub use agents_config::{AgentsConfig, CredentialFiles, MeasuringClient};
pub use error::StudyError;
pub use knobs::KnobLevels;
pub use load::{
    Flag, FlagGroup, FlagValue, InvalidOption, LOAD_OPTIONS, LoadConfig, LoadOption, LoadOptions,
    MovingRate, SteadyTable, unplaced,
};
pub use plan::{
    Activity, Bench, Calibration, CoRunner, DcaJob, Estimate, Estimates, Maximum, Plan,
    PlannedMicro, SIMULATOR, Segment, Step, StoreLoad, TraceSource, check_store, mbwu,
    missing_operation, placeholder_workload, replay_step, step,
};
pub use platform_file::open_platform;
pub use probes::{IDLE_TIME, ProbesConfig};
pub use profiling::Profiling;
pub use rate_spec::RateSpec;
pub use replay_speed::ReplaySpeed;
pub use server_spec::{ServerHosts, ServerSpec};
pub use server_timing::ServerTiming;
pub use simulation::Simulation;
pub use text::{BUILT_IN, BuiltInStudy, MbwuTable, StudySpec, StudyText, note_run_properties_of};
pub use trace_reading::TraceReading;
pub use workload_file::{is_workload_file, open_workload, workload_text};
pub use ycsb_file::{RunPlace, is_ycsb_file, note_run_properties};
