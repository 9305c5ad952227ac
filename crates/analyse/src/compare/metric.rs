use std::fmt;

use model::{Op, Origin, Scope, Unit};
use record::Clock;

use crate::efficiency::{JOULES_PER_OP, JOULES_PER_OP_NET, OPS_PER_JOULE, OPS_PER_JOULE_NET};
use crate::per_operation::{CPU_S_PER_MOP, READ_AMPLIFICATION, WRITE_AMPLIFICATION};

/// A figure that two selections are compared in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    /// Operations per second over the window.
    Throughput,
    /// In nanoseconds.
    Latency { op: Op, clock: Clock, statistic: Statistic },
    /// A reading of this signal, all of one unit, boundary and origin.
    Reading { signal: String, unit: Unit, scope: Scope, origin: Origin },
}

/// Which way a figure is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
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

impl Metric {
    pub fn unit(&self) -> Unit {
        match self {
            Metric::Throughput => Unit::OpsPerSecond,
            Metric::Latency { .. } => Unit::Nanoseconds,
            Metric::Reading { unit, .. } => *unit,
        }
    }

    pub fn wish(&self) -> Wish {
        match self {
            Metric::Throughput => Wish::More,
            Metric::Latency { .. } => Wish::Less,
            Metric::Reading { signal, .. } => wish_of(signal).unwrap_or(Wish::Less),
        }
    }

    /// Whether it says what was done, and not how well.
    pub(super) fn is_of_the_work(&self) -> bool {
        matches!(self, Metric::Reading { signal, .. } if signal == HIT_RATIO)
    }

    /// The boundary and how the figure came to be, where it is a reading.
    pub const fn provenance(&self) -> Option<(Scope, Origin)> {
        match self {
            Metric::Reading { scope, origin, .. } => Some((*scope, *origin)),
            Metric::Throughput | Metric::Latency { .. } => None,
        }
    }
}

/// The share of reads that found their record.
pub(super) const HIT_RATIO: &str = "cache.hit_ratio";

/// Figures of microbenchmarks and simulations, and which way they are to go.
const OF_BENCHES: [(&str, Wish); 18] = [
    ("micro.throughput", Wish::More),
    ("micro.copy", Wish::More),
    ("micro.scale", Wish::More),
    ("micro.add", Wish::More),
    ("micro.triad", Wish::More),
    ("micro.cpu_per_byte", Wish::Less),
    ("micro.sender.cpu_per_byte", Wish::Less),
    ("micro.load", Wish::Less),
    ("micro.load_median", Wish::Less),
    ("micro.lost", Wish::Less),
    ("simulated.throughput", Wish::More),
    ("simulated.dropped", Wish::Less),
    ("simulated.llc.miss_ratio", Wish::Less),
    ("simulated.memory.traffic", Wish::Less),
    ("simulated.latency.mean", Wish::Less),
    ("simulated.latency.p50", Wish::Less),
    ("simulated.latency.p99", Wish::Less),
    ("simulated.latency.p99_9", Wish::Less),
];

/// Which way a reading is to go, by its name or the first part of it; None of one that is not compared.
pub(crate) fn wish_of(signal: &str) -> Option<Wish> {
    let family = signal.split('.').next().unwrap_or(signal);
    if let Some((_, wish)) = OF_BENCHES.iter().find(|(known, _)| *known == signal) {
        return Some(*wish);
    }
    if signal == HIT_RATIO {
        return Some(Wish::More);
    }
    match family {
        OPS_PER_JOULE | OPS_PER_JOULE_NET => Some(Wish::More),
        CPU_S_PER_MOP | WRITE_AMPLIFICATION | READ_AMPLIFICATION | JOULES_PER_OP
        | JOULES_PER_OP_NET => Some(Wish::Less),
        "ipc" | "mpki" | "residency" | "frequency" | "simulated" => Some(Wish::Neither),
        _ => None,
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
