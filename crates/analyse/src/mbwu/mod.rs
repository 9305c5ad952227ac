//! Media-based work units (Liu, Kufeldt, Maltzahn, HPC-IODC 2019): the highest steady throughput of
//! a workload on one storage device that no resource of the platform throttles, and how many of
//! them a platform generates with 1, 2, ... n such devices.
//!
//! A pure procedure over the rounds so far: [`next`] says what to measure, [`UnitEvaluation`] is
//! the result. The caller measures, and a results file holds all state.

mod count;
mod evaluation;
pub mod keys;
mod load;
mod procedure;
mod request;
mod resource;
mod round;
mod sentence;
mod unit;

pub use count::{GrowthEnd, UnitCount};
pub use evaluation::{UnitEvaluation, in_units};
pub use load::DeviceLoad;
pub use procedure::{NextRound, next};
pub use request::{EvaluationError, EvaluationRequest};
pub use resource::{Bottleneck, LIMITS, Resource, ResourceUse};
pub use round::{EvaluationRound, RoundPurpose};
pub use unit::{GrowthStep, WorkUnit};
