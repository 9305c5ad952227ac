//! What measurements say: pure functions over runs, histograms and numbers. No I/O.
//!
//! `docs/statistics.md` says which interval is shown when, and what none of them covers.
#![forbid(unsafe_code)]

mod bootstrap;
pub mod check;
mod compare;
pub mod cost;
mod describe;
mod efficiency;
mod interval;
mod named;
mod per_operation;
mod percentile;
mod quantile;
pub mod search;
mod series;
pub mod sides;
pub mod slo;
mod steady;
mod welch;

pub use compare::{
    Cell, CompareError, Comparison, Contrast, Difference, Lonely, Metric, Selection, Statistic,
    Verdict, Wish, Withheld, compare, compare_with_machines,
};
pub use describe::{BOOTSTRAP_FROM, DescribeError, Description, describe};
pub use efficiency::{
    BOUNDARIES, JOULES_PER_OP, JOULES_PER_OP_NET, OPS_PER_JOULE, OPS_PER_JOULE_NET, Surroundings,
    efficiency, net,
};
pub use interval::{Interval, LEVEL, Method, NoInterval};
pub use named::{Field, Named, NoValue, Point, metric_value};
pub use per_operation::{
    CPU_S_PER_MOP, READ_AMPLIFICATION, WRITE_AMPLIFICATION, cpu_s_per_mop, per_mop,
    read_amplification, write_amplification,
};
pub use percentile::{MergeError, merge, percentile_interval, samples_needed};
pub use steady::{STEADY_FIT_RANGE, STEADY_RANGE, STEADY_ROUNDS, Steady, steady};
