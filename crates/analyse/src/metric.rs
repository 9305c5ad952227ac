//! A metric of a run by its name in `--json`, as checks, adaptive repeats, questions and figures
//! name it.

use model::signal::{
    CACHE_HIT_RATIO, CLIENT_ACHIEVED_RATE, OPS_PER_JOULE, SERVER_CPU_S_PER_MOP, SERVER_RESIDENT,
    Signal,
};
use model::{
    Distribution, LatencyClock, LatencyScope, Op, Phase, Reading, ReadingValue, Run, Unit,
};
use thiserror::Error;

use crate::compare::{BetterDirection, direction_of};
use crate::efficiency::widest_first;

const NANOS_PER_MICRO: f64 = 1e3;

/// Figures of servers, which two results are not compared in, and of which less is better.
const LESS: [Signal; 2] = [SERVER_CPU_S_PER_MOP, SERVER_RESIDENT];

/// An unknown name, or why a run has no value for it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MetricError {
    #[error("`{name}` names no figure: {why}")]
    Name { name: String, why: String },
    #[error("{0}")]
    Unavailable(String),
}

/// A metric of a run, by its name in `--json`.
#[derive(Debug, Clone, PartialEq)]
pub enum Metric {
    /// `throughput_ops_s`, `errors` and their like: fields of the run itself.
    Field(RunField),
    /// In microseconds.
    Latency {
        /// None: the run's own.
        clock: Option<LatencyClock>,
        /// None: all operations together.
        op: Option<Op>,
        point: DistributionPoint,
    },
    /// `stream.NAME`: a numeric fact about the stream of operations.
    Stream(String),
    /// A reading of this signal.
    Signal(String),
}

/// A point of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DistributionPoint {
    Mean,
    Min,
    Max,
    Count,
    /// In percent.
    Percentile(f64),
}

/// Fields of a run; see `docs/results-file.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunField {
    Throughput,
    AchievedRate,
    TargetRate,
    HitRatio,
    /// Mean watts over the window, at the widest boundary at which energy was read.
    Power,
    Seconds,
    Operations,
    Verified,
    Misses,
    Errors,
    Threads,
    /// `harness.busy`: share of the window in which the harness was busy.
    Busy,
}

const FIELDS: [(&str, RunField); 12] = [
    ("throughput_ops_s", RunField::Throughput),
    ("achieved_rate_ops_s", RunField::AchievedRate),
    ("target_rate_ops_s", RunField::TargetRate),
    ("hit_ratio", RunField::HitRatio),
    ("power_w", RunField::Power),
    ("seconds", RunField::Seconds),
    ("operations", RunField::Operations),
    ("verified", RunField::Verified),
    ("misses", RunField::Misses),
    ("errors", RunField::Errors),
    ("threads", RunField::Threads),
    ("harness.busy", RunField::Busy),
];

/// The tables of latencies in `--json`, and the clock of each.
const TABLES: [(&str, Option<LatencyClock>); 4] = [
    ("latency_us", None),
    ("service_us", Some(LatencyClock::Service)),
    ("arrival_latency_us", Some(LatencyClock::Arrival)),
    ("server_latency_us", Some(LatencyClock::Server)),
];

const CLOCKS: [(&str, LatencyClock); 4] = [
    ("response", LatencyClock::Response),
    ("service", LatencyClock::Service),
    ("arrival", LatencyClock::Arrival),
    ("server", LatencyClock::Server),
];

/// The names of a run's own fields, as `throughput_ops_s`.
pub fn field_names() -> impl Iterator<Item = &'static str> + Clone {
    FIELDS.iter().map(|(name, _)| *name)
}

/// The metric of this name in a run.
///
/// # Errors An unknown name; a metric that this run lacks, with the reason.
pub fn metric_value(run: &Run, name: &str) -> Result<f64, MetricError> {
    Metric::parse(name)?.value(run)
}

impl Metric {
    /// Reads a name:
    /// - a field of `--json`: `throughput_ops_s`, `achieved_rate_ops_s`, `target_rate_ops_s`,
    ///   `hit_ratio`, `power_w`, `seconds`, `operations`, `verified`, `misses`, `errors`,
    ///   `threads`, `harness.busy`;
    /// - `latency_us.POINT`, `latency_us.OP.POINT` by the run's own clock (response in an open
    ///   loop, service in a closed one), `latency_us.CLOCK.POINT` and `latency_us.CLOCK.OP.POINT`
    ///   by another; without OP (or with `any`) of all operations together. POINT is `mean`,
    ///   `min`, `max`, `count` or a percentile: `p99`, `p99_9`. `service_us`,
    ///   `arrival_latency_us` and `server_latency_us` stand for the clocks, as in `--json`;
    /// - `stream.NAME`;
    /// - anything else is a reading's signal: `ipc`, `ops_per_joule`, `residency.C6`.
    ///
    /// # Errors A name of another form.
    pub fn parse(name: &str) -> Result<Metric, MetricError> {
        let wrong = |why: String| MetricError::Name { name: name.to_owned(), why };
        if let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) {
            return Ok(Metric::Field(*field));
        }
        let (first, rest) = name.split_once('.').map_or((name, None), |(a, b)| (a, Some(b)));
        if let Some((_, clock)) = TABLES.iter().find(|(table, _)| *table == first) {
            let rest = rest.ok_or_else(|| {
                wrong(format!("name a point of the distribution, as in `{first}.read.p99`"))
            })?;
            return latency(rest, *clock).map_err(wrong);
        }
        match (first, rest) {
            ("stream", Some(fact)) if !fact.is_empty() => Ok(Metric::Stream(fact.to_owned())),
            _ if is_name(name) => Ok(Metric::Signal(name.to_owned())),
            _ => Err(wrong("a name is made of letters, digits, `_`, `-` and `.`".to_owned())),
        }
    }

    /// Whether a run's value needs the buckets of its own distribution.
    pub fn needs_buckets(&self) -> bool {
        match self {
            Metric::Latency { point: DistributionPoint::Percentile(percentile), .. } => {
                !Distribution::is_kept(*percentile)
            }
            _ => false,
        }
    }

    /// Its value in a run, in the unit of [`Metric::unit`]; latencies in microseconds.
    ///
    /// # Errors The run lacks it, with the reason.
    pub fn value(&self, run: &Run) -> Result<f64, MetricError> {
        let value = match self {
            Metric::Field(_) if run.phase == Phase::Simulate => {
                Err("a simulation issues no operations; its figures are those of `simulated.`"
                    .to_owned())
            }
            Metric::Field(field) => field_of(*field, run),
            Metric::Latency { clock, op, point } => {
                latency_of(run, clock.unwrap_or(run.clock()), *op, *point)
            }
            Metric::Stream(fact) => fact_of(run, fact),
            Metric::Signal(signal) => match run.reading(signal) {
                Some(reading) => reading_value(reading),
                None => Err(format!("no `{signal}` was read in this run")),
            },
        };
        match value {
            Ok(value) if value.is_finite() => Ok(value),
            Ok(value) => {
                Err(MetricError::Unavailable(format!("its value is not a number ({value})")))
            }
            Err(reason) => Err(MetricError::Unavailable(reason)),
        }
    }

    /// The unit's symbol; empty for a bare number, None if it depends on the run.
    pub fn unit(&self, run: Option<&Run>) -> Option<&'static str> {
        match self {
            Metric::Field(field) => Some(match field {
                RunField::Throughput | RunField::AchievedRate | RunField::TargetRate => "ops/s",
                RunField::Power => Unit::Watts.symbol(),
                RunField::Seconds => Unit::Seconds.symbol(),
                _ => "",
            }),
            Metric::Latency { point: DistributionPoint::Count, .. } | Metric::Stream(_) => Some(""),
            Metric::Latency { .. } => Some("us"),
            Metric::Signal(signal) => Some(run?.reading(signal)?.unit.symbol()),
        }
    }

    /// Whether more or less of it is better.
    pub fn direction(&self) -> BetterDirection {
        match self {
            Metric::Field(RunField::Throughput | RunField::AchievedRate | RunField::HitRatio) => {
                BetterDirection::More
            }
            Metric::Field(RunField::Power | RunField::Errors | RunField::Misses) => {
                BetterDirection::Less
            }
            Metric::Latency { point: DistributionPoint::Count, .. } => BetterDirection::Neither,
            Metric::Latency { .. } => BetterDirection::Less,
            Metric::Signal(signal) if LESS.iter().any(|known| known.name == signal) => {
                BetterDirection::Less
            }
            Metric::Signal(signal) => direction_of(signal).unwrap_or(BetterDirection::Neither),
            Metric::Field(_) | Metric::Stream(_) => BetterDirection::Neither,
        }
    }
}

/// `p99`, `read.p99`, `server.p99`, `server.read.p99`.
fn latency(text: &str, table: Option<LatencyClock>) -> Result<Metric, String> {
    let mut parts: Vec<&str> = text.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let point = point(last).ok_or_else(|| {
        format!("`{last}` is not a point of a distribution; write `mean`, `max`, `p99` or `p99_9`")
    })?;
    let mut parts = parts.into_iter().peekable();
    let named = parts.peek().and_then(|part| CLOCKS.iter().find(|(name, _)| name == part));
    let clock = match (table, named) {
        (None, Some((_, clock))) => {
            parts.next();
            Some(*clock)
        }
        (table, _) => table,
    };
    let op = match parts.next() {
        None => None,
        Some(word) => match LatencyScope::from_name(word) {
            Some(scope) => scope.op(),
            None => {
                let known = Op::ALL.iter().map(|op| op.name());
                let known = known.chain(CLOCKS.iter().map(|(name, _)| *name));
                let hint = model::suggest::hint(word, known);
                return Err(format!("`{word}` is neither an operation nor a clock; {hint}"));
            }
        },
    };
    match parts.next() {
        Some(extra) => Err(format!("`{extra}` is one part too many")),
        None => Ok(Metric::Latency { clock, op, point }),
    }
}

/// `mean`, `min`, `max`, `count`, `p99`, `p99_9`.
fn point(text: &str) -> Option<DistributionPoint> {
    Some(match text {
        "mean" => DistributionPoint::Mean,
        "min" => DistributionPoint::Min,
        "max" => DistributionPoint::Max,
        "count" => DistributionPoint::Count,
        _ => {
            let digits = text.strip_prefix('p')?;
            let sound = digits.chars().all(|c| c.is_ascii_digit() || c == '_');
            let percent: f64 = digits.replacen('_', ".", 1).parse().ok().filter(|_| sound)?;
            return (percent > 0.0 && percent < 100.0)
                .then_some(DistributionPoint::Percentile(percent));
        }
    })
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !name.ends_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

fn field_of(field: RunField, run: &Run) -> Result<f64, String> {
    let read = |signal: &str| match run.reading(signal) {
        Some(reading) => reading_value(reading),
        None => Err(format!("no `{signal}` was read in this run")),
    };
    match field {
        RunField::Throughput => Ok(run.throughput()),
        RunField::AchievedRate => read(CLIENT_ACHIEVED_RATE.name),
        RunField::TargetRate => {
            run.target_rate().ok_or_else(|| "a closed loop has no target rate".to_owned())
        }
        RunField::HitRatio => read(CACHE_HIT_RATIO.name),
        RunField::Power => power(run),
        RunField::Seconds => Ok(run.seconds),
        RunField::Operations => Ok(run.operations as f64),
        RunField::Verified => Ok(run.verified as f64),
        RunField::Misses => Ok(run.misses as f64),
        RunField::Errors => Ok(run.errors() as f64),
        RunField::Threads => Ok(f64::from(run.threads)),
        RunField::Busy => run
            .tax
            .as_ref()
            .map(|tax| tax.busy)
            .ok_or_else(|| "the cost of the harness was not measured in this run".to_owned()),
    }
}

/// Mean watts over the window, at the widest boundary that was read.
fn power(run: &Run) -> Result<f64, String> {
    let widest = widest_first(&run.readings, "energy").into_iter().next();
    match widest.and_then(|(_, energy)| Some((energy.value()?, energy.window_s))) {
        Some((joules, seconds)) if seconds > 0.0 => Ok(joules / seconds),
        Some(_) => Err("energy was read over an empty window".to_owned()),
        None => Err(match run.reading(OPS_PER_JOULE.name).map(reading_value) {
            Some(Err(reason)) => reason,
            _ => "no energy was read in this run".to_owned(),
        }),
    }
}

fn reading_value(reading: &Reading) -> Result<f64, String> {
    match &reading.answer {
        ReadingValue::Value(value) => Ok(*value),
        ReadingValue::Unavailable { reason, .. } => {
            Err(format!("`{}` is unavailable: {reason}", reading.signal))
        }
    }
}

fn fact_of(run: &Run, fact: &str) -> Result<f64, String> {
    let text = run.stream.get(fact).ok_or_else(|| format!("the stream has no fact `{fact}`"))?;
    text.parse().map_err(|_| format!("`stream.{fact}` is `{text}`, which is not a number"))
}

fn latency_of(
    run: &Run,
    clock: LatencyClock,
    op: Option<Op>,
    point: DistributionPoint,
) -> Result<f64, String> {
    let found = match op {
        Some(op) => run.latencies.of(op, clock),
        None => run.latency_of_all(clock),
    };
    let clock_name = CLOCKS.iter().find(|(_, known)| *known == clock).map_or("", |(name, _)| name);
    let of = op.map_or("any operation", Op::name);
    let latency = found.ok_or_else(|| format!("this run has no {clock_name} latency of {of}"))?;
    let nanoseconds = match point {
        DistributionPoint::Count => return Ok(latency.count() as f64),
        DistributionPoint::Mean => latency.mean(),
        DistributionPoint::Min => latency.min() as f64,
        DistributionPoint::Max => latency.max() as f64,
        DistributionPoint::Percentile(percent) => latency.value_at_percentile(percent) as f64,
    };
    Ok(nanoseconds / NANOS_PER_MICRO)
}
