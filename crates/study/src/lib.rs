//! Experiments: a study's text becomes a plan, a plan becomes runs, each kept when it ends.
#![forbid(unsafe_code)]

mod asking;
mod assemble;
mod beside;
mod course;
mod engine;
mod error;
mod factors;
mod findings;
mod fleet;
mod insight;
mod keeper;
pub mod knobs;
mod machine_lock;
mod mbwu;
mod names;
mod observe;
mod plan;
mod probes;
mod replayed;
mod search;
mod server_side;
mod session;
mod settings;
mod simulated;
mod sized;
mod source;
mod spec;
mod started;
mod trace;

pub use asking::{Manner, Senseless, Wish};
pub use course::{Course, Ended};
pub use engine::{Doing, Event, Listener, check_directories, execute, execution, now};
pub use error::StudyError;
pub use fleet::{AgentWork, Agents, Secrets};
pub use insight::Insight;
pub use machine_lock::MachineLock;
pub use mbwu::{Mbwu, MbwuTable, PreconditionTable};
pub use plan::{Estimate, Estimates, Plan, Segment, Step};
pub use probes::{IDLE_TIME, Probes, Watts};
pub use search::{Found, Search, Tried};
pub use simulated::{Pass, Simulation, run_pass};
pub use source::{BUILT_IN, BuiltIn, Source};
pub use spec::Steady;
pub use started::ServerOrder;
pub use trace::{Recording, Speed};
