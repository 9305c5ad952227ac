//! Statistics and verdicts: pure functions over runs, histograms and numbers. No I/O.
//!
//! `docs/statistics.md` says which interval is shown when, and what none of them covers.
#![forbid(unsafe_code)]

pub mod answer;
mod bootstrap;
mod busy_time;
mod change_points;
pub mod check;
mod compare;
pub mod cost;
mod describe;
pub mod effect;
mod efficiency;
mod energy_split;
pub mod fleet_plan;
mod foreign_load;
pub mod gate;
mod holm;
mod interval;
pub mod mbwu;
pub mod meter_checks;
mod metric;
mod moments;
mod moving_load;
mod outliers;
mod pareto;
mod per_operation;
mod percentile;
mod proportionality;
mod quantile;
mod runs;
pub mod search;
mod series;
pub mod side_checks;
pub mod slo;
mod steady;
mod trimmed;
mod welch;
pub mod why;

pub use change_points::{CHANGES_FROM, ChangePoint, change_points};
pub use compare::{
    BetterDirection, CompareError, ComparedCell, ComparedMetric, Comparison, ComparisonSide,
    Contrast, ExcludedMetric, OverallContrast, RunWork, SettingDifference, Statistic, Unmatched,
    Verdict, WorkDifference, compare, compare_with_machines, work_differences,
};
pub use describe::{
    BOOTSTRAP_FROM, DescribeError, Description, describe, describe_by_median, median,
};
pub use efficiency::{IdleContext, efficiency, net, widest_first};
pub use energy_split::energy_split;
pub use foreign_load::{foreign_load_share, other_programs_share};
pub use holm::holm;
pub use interval::{Interval, IntervalMethod, LEVEL, NoInterval};
pub use metric::{DistributionPoint, Metric, MetricError, RunField, field_names, metric_value};
pub use moving_load::{AfterBurst, LoadMeans, MovingLoad, RiseAndFall, moving_load, offered_rate};
pub use outliers::{OUTLIERS_FROM, outliers};
pub use pareto::{ParetoError, ParetoStanding, pareto};
pub use per_operation::{
    cpu_s_per_mop, management_traffic, per_mop, read_amplification, write_amplification,
};
pub use percentile::{percentile_interval, samples_needed};
pub use proportionality::{
    MeasuredLevel, PowerLevel, Proportionality, ProportionalityError, proportionality,
};
pub use runs::CellRuns;
pub use steady::{STEADY_FIT_RANGE, STEADY_RANGE, STEADY_ROUNDS, SteadyRounds, steady};
