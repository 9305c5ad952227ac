//! A figure of a run by its name of `--json`: the one way in which checks, adaptive repeats,
//! questions and figures say what they mean.

use model::{Answer, Distribution, Op, Reading, Unit};
use record::{Asked, Clock, Phase, Run};
use thiserror::Error;

use crate::compare::{Wish, wish_of};
use crate::efficiency::{BOUNDARIES, OPS_PER_JOULE};

const NANOS_PER_MICRO: f64 = 1e3;

/// A name that no figure has, or why a run has no value for it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoValue {
    #[error("`{name}` names no figure: {why}")]
    Name { name: String, why: String },
    #[error("{0}")]
    Unavailable(String),
}

/// A figure of a run, by the name that it has in `--json`.
#[derive(Debug, Clone, PartialEq)]
pub enum Named {
    /// `throughput_ops_s`, `errors` and their like: fields of the run itself.
    Field(Field),
    /// In microseconds.
    Latency {
        /// The run's own if it is not named.
        clock: Option<Clock>,
        /// All operations together if it is not named.
        op: Option<Op>,
        point: Point,
    },
    /// `stream.NAME`: a fact about the stream that was asked, where it is a number.
    Stream(String),
    /// A reading of this signal.
    Signal(String),
}

/// A point of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Point {
    Mean,
    Min,
    Max,
    Count,
    /// In percent.
    Percentile(f64),
}

/// What a run says of itself; see `docs/results-file.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
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
    /// `harness.busy`: share of the window in which the harness was at work.
    Busy,
}

const FIELDS: [(&str, Field); 12] = [
    ("throughput_ops_s", Field::Throughput),
    ("achieved_rate_ops_s", Field::AchievedRate),
    ("target_rate_ops_s", Field::TargetRate),
    ("hit_ratio", Field::HitRatio),
    ("power_w", Field::Power),
    ("seconds", Field::Seconds),
    ("operations", Field::Operations),
    ("verified", Field::Verified),
    ("misses", Field::Misses),
    ("errors", Field::Errors),
    ("threads", Field::Threads),
    ("harness.busy", Field::Busy),
];

/// The tables of latencies in `--json`, and whose clock each has.
const TABLES: [(&str, Option<Clock>); 4] = [
    ("latency_us", None),
    ("service_us", Some(Clock::Service)),
    ("arrival_latency_us", Some(Clock::Arrival)),
    ("server_latency_us", Some(Clock::Server)),
];

const CLOCKS: [(&str, Clock); 4] = [
    ("response", Clock::Response),
    ("service", Clock::Service),
    ("arrival", Clock::Arrival),
    ("server", Clock::Server),
];

/// The figure of this name in a run.
///
/// # Errors
/// A name that no figure has; a figure that this run does not have, with the reason.
pub fn metric_value(run: &Run, name: &str) -> Result<f64, NoValue> {
    Named::parse(name)?.value(run)
}

impl Named {
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
    /// # Errors
    /// What cannot be any of these.
    pub fn parse(name: &str) -> Result<Named, NoValue> {
        let wrong = |why: String| NoValue::Name { name: name.to_owned(), why };
        if let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) {
            return Ok(Named::Field(*field));
        }
        let (first, rest) = name.split_once('.').map_or((name, None), |(a, b)| (a, Some(b)));
        if let Some((_, clock)) = TABLES.iter().find(|(table, _)| *table == first) {
            let rest = rest.ok_or_else(|| {
                wrong(format!("name a point of the distribution, as in `{first}.read.p99`"))
            })?;
            return latency(rest, *clock).map_err(wrong);
        }
        match (first, rest) {
            ("stream", Some(fact)) if !fact.is_empty() => Ok(Named::Stream(fact.to_owned())),
            _ if plain(name) => Ok(Named::Signal(name.to_owned())),
            _ => Err(wrong("a name is made of letters, digits, `_`, `-` and `.`".to_owned())),
        }
    }

    /// Its value in a run, in the unit that [`Named::unit`] tells; latencies in microseconds.
    ///
    /// # Errors
    /// The run does not have it, with the reason.
    pub fn value(&self, run: &Run) -> Result<f64, NoValue> {
        let value = match self {
            Named::Field(_) if run.phase == Phase::Simulate => {
                Err("a simulation asks nothing; its figures are those of `simulated.`".to_owned())
            }
            Named::Field(field) => field_of(*field, run),
            Named::Latency { clock, op, point } => {
                latency_of(run, clock.unwrap_or(run.clock()), *op, *point)
            }
            Named::Stream(fact) => fact_of(run, fact),
            Named::Signal(signal) => match run.reading(signal) {
                Some(reading) => known(reading),
                None => Err(format!("no `{signal}` was read in this run")),
            },
        };
        match value {
            Ok(value) if value.is_finite() => Ok(value),
            Ok(value) => Err(NoValue::Unavailable(format!("its value is not a number ({value})"))),
            Err(reason) => Err(NoValue::Unavailable(reason)),
        }
    }

    /// The unit's symbol; empty for a bare number, None where only a run can tell.
    pub fn unit(&self, run: Option<&Run>) -> Option<&'static str> {
        match self {
            Named::Field(field) => Some(match field {
                Field::Throughput | Field::AchievedRate | Field::TargetRate => "ops/s",
                Field::Power => Unit::Watts.symbol(),
                Field::Seconds => Unit::Seconds.symbol(),
                _ => "",
            }),
            Named::Latency { point: Point::Count, .. } | Named::Stream(_) => Some(""),
            Named::Latency { .. } => Some("us"),
            Named::Signal(signal) => Some(run?.reading(signal)?.unit.symbol()),
        }
    }

    /// Which way it is to go.
    pub fn wish(&self) -> Wish {
        match self {
            Named::Field(Field::Throughput | Field::AchievedRate | Field::HitRatio) => Wish::More,
            Named::Field(Field::Power | Field::Errors | Field::Misses) => Wish::Less,
            Named::Latency { point: Point::Count, .. } => Wish::Neither,
            Named::Latency { .. } => Wish::Less,
            Named::Signal(signal) => wish_of(signal).unwrap_or(Wish::Neither),
            Named::Field(_) | Named::Stream(_) => Wish::Neither,
        }
    }
}

/// `p99`, `read.p99`, `server.p99`, `server.read.p99`.
fn latency(text: &str, table: Option<Clock>) -> Result<Named, String> {
    let mut parts: Vec<&str> = text.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let point = point(last).ok_or_else(|| {
        format!("`{last}` is no point of a distribution; write `mean`, `max`, `p99` or `p99_9`")
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
        Some(word) => match Asked::from_name(word) {
            Some(asked) => asked.op(),
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
        None => Ok(Named::Latency { clock, op, point }),
    }
}

/// `mean`, `min`, `max`, `count`, `p99`, `p99_9`.
fn point(text: &str) -> Option<Point> {
    Some(match text {
        "mean" => Point::Mean,
        "min" => Point::Min,
        "max" => Point::Max,
        "count" => Point::Count,
        _ => {
            let digits = text.strip_prefix('p')?;
            let sound = digits.chars().all(|c| c.is_ascii_digit() || c == '_');
            let percent: f64 = digits.replacen('_', ".", 1).parse().ok().filter(|_| sound)?;
            return (percent > 0.0 && percent < 100.0).then_some(Point::Percentile(percent));
        }
    })
}

fn plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !name.ends_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

fn field_of(field: Field, run: &Run) -> Result<f64, String> {
    let read = |signal: &str| match run.reading(signal) {
        Some(reading) => known(reading),
        None => Err(format!("no `{signal}` was read in this run")),
    };
    match field {
        Field::Throughput => Ok(run.throughput()),
        Field::AchievedRate => read("client.achieved_rate"),
        Field::TargetRate => {
            run.target_rate().ok_or_else(|| "a closed loop has no target rate".to_owned())
        }
        Field::HitRatio => read("cache.hit_ratio"),
        Field::Power => power(run),
        Field::Seconds => Ok(run.seconds),
        Field::Operations => Ok(run.operations as f64),
        Field::Verified => Ok(run.verified as f64),
        Field::Misses => Ok(run.misses as f64),
        Field::Errors => Ok(run.errors() as f64),
        Field::Threads => Ok(f64::from(run.threads)),
        Field::Busy => run
            .tax
            .as_ref()
            .map(|tax| tax.busy)
            .ok_or_else(|| "the cost of the harness was not measured in this run".to_owned()),
    }
}

/// Joules of the window over its length, at the widest boundary that was read.
fn power(run: &Run) -> Result<f64, String> {
    let widest = BOUNDARIES
        .iter()
        .filter_map(|name| run.reading(&format!("energy.{name}")))
        .find_map(|energy| Some((energy.value()?, energy.window_s)));
    match widest {
        Some((joules, seconds)) if seconds > 0.0 => Ok(joules / seconds),
        Some(_) => Err("energy was read over no time".to_owned()),
        None => Err(match run.reading(OPS_PER_JOULE).map(known) {
            Some(Err(reason)) => reason,
            _ => "no energy was read in this run".to_owned(),
        }),
    }
}

fn known(reading: &Reading) -> Result<f64, String> {
    match &reading.answer {
        Answer::Value(value) => Ok(*value),
        Answer::Unavailable { reason, .. } => {
            Err(format!("`{}` is unavailable: {reason}", reading.signal))
        }
    }
}

fn fact_of(run: &Run, fact: &str) -> Result<f64, String> {
    let text = run.stream.get(fact).ok_or_else(|| format!("the stream has no fact `{fact}`"))?;
    text.parse().map_err(|_| format!("`stream.{fact}` is `{text}`, which is no number"))
}

fn latency_of(run: &Run, clock: Clock, op: Option<Op>, point: Point) -> Result<f64, String> {
    let all;
    let found: Option<&Distribution> = match op {
        Some(op) => run.latency(op, clock),
        None => {
            all = run.latency_of_all(clock);
            all.as_ref()
        }
    };
    let clock_name = CLOCKS.iter().find(|(_, known)| *known == clock).map_or("", |(name, _)| name);
    let of = op.map_or("any operation", Op::name);
    let histogram = found
        .filter(|histogram| !histogram.is_empty())
        .ok_or_else(|| format!("this run has no {clock_name} latency of {of}"))?;
    let nanoseconds = match point {
        Point::Count => return Ok(histogram.len() as f64),
        Point::Mean => histogram.mean(),
        Point::Min => histogram.min() as f64,
        Point::Max => histogram.max() as f64,
        Point::Percentile(percent) => histogram.value_at_percentile(percent) as f64,
    };
    Ok(nanoseconds / NANOS_PER_MICRO)
}
