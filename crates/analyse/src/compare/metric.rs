use std::fmt;

use model::{LatencyClock, Op, Origin, Scope, Unit};

use crate::efficiency::{JOULES_PER_OP, JOULES_PER_OP_NET, OPS_PER_JOULE, OPS_PER_JOULE_NET};
use crate::per_operation::{CPU_S_PER_MOP, READ_AMPLIFICATION, WRITE_AMPLIFICATION};

/// A figure that two selections are compared in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComparedMetric {
    /// Operations per second over the window.
    Throughput,
    /// In nanoseconds.
    Latency { op: Op, clock: LatencyClock, statistic: Statistic },
    /// A reading of this signal, all of one unit, boundary and origin.
    Reading { signal: String, unit: Unit, scope: Scope, origin: Origin },
}

/// Which way a figure is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BetterDirection {
    More,
    Less,
    /// Neither is better by itself: what a CPU did, not what it was for.
    Neither,
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

impl ComparedMetric {
    pub fn unit(&self) -> Unit {
        match self {
            ComparedMetric::Throughput => Unit::OpsPerSecond,
            ComparedMetric::Latency { .. } => Unit::Nanoseconds,
            ComparedMetric::Reading { unit, .. } => *unit,
        }
    }

    pub fn direction(&self) -> BetterDirection {
        match self {
            ComparedMetric::Throughput => BetterDirection::More,
            ComparedMetric::Latency { .. } => BetterDirection::Less,
            ComparedMetric::Reading { signal, .. } => {
                direction_of(signal).unwrap_or(BetterDirection::Less)
            }
        }
    }

    /// Whether it says what was done, and not how well.
    pub(super) fn is_of_the_work(&self) -> bool {
        matches!(self, ComparedMetric::Reading { signal, .. } if signal == HIT_RATIO)
    }

    /// The boundary and how the figure came to be, where it is a reading.
    pub const fn provenance(&self) -> Option<(Scope, Origin)> {
        match self {
            ComparedMetric::Reading { scope, origin, .. } => Some((*scope, *origin)),
            ComparedMetric::Throughput | ComparedMetric::Latency { .. } => None,
        }
    }
}

/// The share of reads that found their record.
pub(super) const HIT_RATIO: &str = "cache.hit_ratio";

/// Figures of microbenchmarks and simulations, and which way they are to go.
const OF_BENCHES: [(&str, BetterDirection); 18] = [
    ("micro.throughput", BetterDirection::More),
    ("micro.copy", BetterDirection::More),
    ("micro.scale", BetterDirection::More),
    ("micro.add", BetterDirection::More),
    ("micro.triad", BetterDirection::More),
    ("micro.cpu_per_byte", BetterDirection::Less),
    ("micro.sender.cpu_per_byte", BetterDirection::Less),
    ("micro.load", BetterDirection::Less),
    ("micro.load_median", BetterDirection::Less),
    ("micro.lost", BetterDirection::Less),
    ("simulated.throughput", BetterDirection::More),
    ("simulated.dropped", BetterDirection::Less),
    ("simulated.llc.miss_ratio", BetterDirection::Less),
    ("simulated.memory.traffic", BetterDirection::Less),
    ("simulated.latency.mean", BetterDirection::Less),
    ("simulated.latency.p50", BetterDirection::Less),
    ("simulated.latency.p99", BetterDirection::Less),
    ("simulated.latency.p99_9", BetterDirection::Less),
];

/// Which way a reading is to go, by its name or the first part of it; None of one that is not compared.
pub(crate) fn direction_of(signal: &str) -> Option<BetterDirection> {
    let family = signal.split('.').next().unwrap_or(signal);
    if let Some((_, wish)) = OF_BENCHES.iter().find(|(known, _)| *known == signal) {
        return Some(*wish);
    }
    if signal == HIT_RATIO {
        return Some(BetterDirection::More);
    }
    match family {
        OPS_PER_JOULE | OPS_PER_JOULE_NET => Some(BetterDirection::More),
        CPU_S_PER_MOP | WRITE_AMPLIFICATION | READ_AMPLIFICATION | JOULES_PER_OP
        | JOULES_PER_OP_NET => Some(BetterDirection::Less),
        "ipc" | "mpki" | "residency" | "frequency" | "simulated" => Some(BetterDirection::Neither),
        _ => None,
    }
}

/// Dotted: `throughput`, `latency.read.p99`, `cpu_s_per_mop`.
impl fmt::Display for ComparedMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ComparedMetric::Throughput => f.write_str("throughput"),
            ComparedMetric::Latency { op, statistic, .. } => {
                write!(f, "latency.{op}.{}", statistic.name())
            }
            ComparedMetric::Reading { signal, .. } => f.write_str(signal),
        }
    }
}
