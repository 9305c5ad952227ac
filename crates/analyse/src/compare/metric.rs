use std::fmt;

use model::{Op, Unit};
use record::Clock;

/// A figure that two selections are compared in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    /// Operations per second over the window.
    Throughput,
    /// In nanoseconds.
    Latency { op: Op, clock: Clock, statistic: Statistic },
    /// A reading of this signal, in this unit; less is better.
    Reading { signal: String, unit: Unit },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    Mean,
    P50,
    P99,
    P999,
}

impl Statistic {
    pub(super) const ALL: [Statistic; 4] =
        [Statistic::Mean, Statistic::P50, Statistic::P99, Statistic::P999];

    /// The percentile, where it is one.
    pub const fn percentile(self) -> Option<f64> {
        match self {
            Statistic::Mean => None,
            Statistic::P50 => Some(50.0),
            Statistic::P99 => Some(99.0),
            Statistic::P999 => Some(99.9),
        }
    }

    /// As in files and in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            Statistic::Mean => "mean",
            Statistic::P50 => "p50",
            Statistic::P99 => "p99",
            Statistic::P999 => "p99_9",
        }
    }
}

impl Metric {
    pub fn unit(&self) -> Unit {
        match self {
            Metric::Throughput => Unit::OpsPerSecond,
            Metric::Latency { .. } => Unit::Nanoseconds,
            Metric::Reading { unit, .. } => *unit,
        }
    }

    pub const fn more_is_better(&self) -> bool {
        matches!(self, Metric::Throughput)
    }
}

/// Dotted: `throughput`, `latency.read.p99`, `cpu_s_per_mop`.
impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Throughput => f.write_str("throughput"),
            Metric::Latency { op, statistic, .. } => write!(f, "latency.{op}.{}", statistic.name()),
            Metric::Reading { signal, .. } => f.write_str(signal),
        }
    }
}
