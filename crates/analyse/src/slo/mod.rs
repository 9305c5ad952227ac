//! Latency objectives: `p99<1ms`, `read.p99.9<500us & mean<200us`, and whether measured latencies
//! meet them.

mod judge;
mod parse;

use std::fmt;
use std::time::Duration;

use model::{Op, Span};

pub use judge::{ConditionResult, Judgement, ObjectiveVerdict};
pub use parse::SloError;

/// Conditions on latency, all of which have to hold. At least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    conditions: Vec<Condition>,
}

impl Objective {
    /// In the order in which they were written.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

/// One upper limit on one figure of the latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// The kind of operation; None: all together.
    pub op: Option<Op>,
    pub figure: LatencyFigure,
    pub relation: LimitRelation,
    pub limit: Duration,
}

impl Condition {
    pub fn limit_ns(&self) -> f64 {
        self.limit.as_nanos() as f64
    }
}

/// The limited figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LatencyFigure {
    Mean,
    /// Between 0 and 100, both excluded.
    Percentile(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitRelation {
    Below,
    AtMost,
}

impl fmt::Display for LatencyFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LatencyFigure::Mean => f.write_str("mean"),
            LatencyFigure::Percentile(percentile) => write!(f, "p{percentile}"),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(op) = self.op {
            write!(f, "{op}.")?;
        }
        let relation = match self.relation {
            LimitRelation::Below => "<",
            LimitRelation::AtMost => "<=",
        };
        write!(f, "{}{relation}{}", self.figure, Span(self.limit))
    }
}

/// The form that is parsed: `read.p99<1ms,mean<200us`.
impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, condition) in self.conditions.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            condition.fmt(f)?;
        }
        Ok(())
    }
}
