use std::fmt;

use model::signal::{
    CACHE_HIT_RATIO, CPU_S_PER_MOP, JOULES_PER_OP, JOULES_PER_OP_AT, JOULES_PER_OP_NET,
    JOULES_PER_OP_NET_AT, MICRO_ADD, MICRO_COPY, MICRO_CPU_PER_BYTE, MICRO_LOAD, MICRO_LOAD_MEDIAN,
    MICRO_LOST, MICRO_SCALE, MICRO_SENDER_CPU_PER_BYTE, MICRO_THROUGHPUT, MICRO_TRIAD,
    MODELLED_ENERGY_DELAY, MODELLED_ENERGY_PER_PACKET, OPS_PER_JOULE, OPS_PER_JOULE_AT,
    OPS_PER_JOULE_NET, OPS_PER_JOULE_NET_AT, READ_AMPLIFICATION, SIMULATED_DROPPED,
    SIMULATED_LATENCY, SIMULATED_LLC_MISS_RATIO, SIMULATED_MEMORY_TRAFFIC, SIMULATED_THROUGHPUT,
    Signal, USD_PER_GOP, WRITE_AMPLIFICATION,
};
use model::{LatencyClock, Op, Origin, Scope, Unit};

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
pub(super) const HIT_RATIO: &str = CACHE_HIT_RATIO.name;

/// The figures that a store, a microbenchmark or a simulation is compared in, and which way they
/// are to go.
const COMPARED: [(Signal, BetterDirection); 27] = {
    use BetterDirection::{Less, More};
    [
        (CACHE_HIT_RATIO, More),
        (OPS_PER_JOULE, More),
        (OPS_PER_JOULE_AT, More),
        (OPS_PER_JOULE_NET, More),
        (OPS_PER_JOULE_NET_AT, More),
        (JOULES_PER_OP, Less),
        (JOULES_PER_OP_AT, Less),
        (JOULES_PER_OP_NET, Less),
        (JOULES_PER_OP_NET_AT, Less),
        (USD_PER_GOP, Less),
        (MICRO_THROUGHPUT, More),
        (MICRO_COPY, More),
        (MICRO_SCALE, More),
        (MICRO_ADD, More),
        (MICRO_TRIAD, More),
        (MICRO_CPU_PER_BYTE, Less),
        (MICRO_SENDER_CPU_PER_BYTE, Less),
        (MICRO_LOAD, Less),
        (MICRO_LOAD_MEDIAN, Less),
        (MICRO_LOST, Less),
        (SIMULATED_THROUGHPUT, More),
        (SIMULATED_DROPPED, Less),
        (SIMULATED_LLC_MISS_RATIO, Less),
        (SIMULATED_MEMORY_TRAFFIC, Less),
        (SIMULATED_LATENCY, Less),
        (MODELLED_ENERGY_PER_PACKET, Less),
        (MODELLED_ENERGY_DELAY, Less),
    ]
};

/// Signals that are better the lower they are, at whichever boundary.
const LESS: [Signal; 3] = [CPU_S_PER_MOP, WRITE_AMPLIFICATION, READ_AMPLIFICATION];

/// Which way a reading is to go, by its name or the first part of it; None of one that is not compared.
pub(crate) fn direction_of(signal: &str) -> Option<BetterDirection> {
    if let Some((_, wish)) = COMPARED.iter().find(|(known, _)| known.is_named(signal)) {
        return Some(*wish);
    }
    match signal.split('.').next().unwrap_or(signal) {
        family if LESS.iter().any(|known| known.name == family) => Some(BetterDirection::Less),
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
