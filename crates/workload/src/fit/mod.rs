//! From a description of a trace to a workload that resembles it, and back.

mod candidates;
mod compare;
mod generated;
mod poisson_mixture;
mod popular_sizes;
mod popularity;
mod profile;
mod reuse;
mod sizes;

use model::{Bytes, Count, Op};
use serde::{Deserialize, Serialize};

pub use compare::{ComparedFigure, ComparedMissRatio, Resemblance};
pub use generated::{describe_generated, describe_stream};
pub use reuse::FitProgress;

use crate::describe::TraceDescription;
use crate::trace::{TraceOp, TraceTiming};
use crate::{InsertOrder, KeyForm, KeySpec, LengthSpec, Mix, ValueSpec, WorkloadSpec};

/// Characters of a hashed key.
const HASHED: u64 = 11;
/// Ordered keys have room for as many times the keys of the trace.
const ROOM: u64 = 1024;

/// What a workload file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkloadFile {
    /// The version of the file's format.
    pub version: u32,
    /// The arrival process that belongs to it, for open loops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<String>,
    /// The rate over time, where it moves; for open loops that name this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_profile: Option<String>,
    pub workload: WorkloadSpec,
}

impl WorkloadFile {
    pub const VERSION: u32 = 1;
}

impl Default for WorkloadFile {
    fn default() -> WorkloadFile {
        WorkloadFile {
            version: WorkloadFile::VERSION,
            arrivals: None,
            rate_profile: None,
            workload: WorkloadSpec::default(),
        }
    }
}

/// A workload that resembles a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedWorkload {
    pub file: WorkloadFile,
    /// The greatest difference of the miss ratio that the fit left. None without reads.
    pub miss_ratio_difference: Option<f64>,
}

/// Makes a workload of a description. `progress` gets how far it is.
pub fn fit(
    description: &TraceDescription,
    timing: TraceTiming,
    progress: impl FnMut(FitProgress),
) -> FittedWorkload {
    let tables = &description.tables;
    // A hash takes 11 characters, a number fewer.
    let short = tables.key_bytes.first().is_some_and(|(bytes, _)| *bytes < HASHED);
    let key_size = sizes::fit(&tables.key_bytes);
    let records = (description.keys.value.round() as u64).max(1);
    let least =
        if short { KeyForm::Text.ordered_width(records.saturating_mul(ROOM)) } else { HASHED };
    let mix = mix(description);
    let base = WorkloadSpec {
        records: Count(records),
        key: KeySpec { form: KeyForm::Text, size: key_size.map(|size| at_least(size, least)) },
        order: if short { InsertOrder::Ordered } else { InsertOrder::Hashed },
        value: ValueSpec {
            size: sizes::fit(&tables.value_bytes).unwrap_or(ValueSpec::default().size),
            ..ValueSpec::default()
        },
        mix,
        scan: LengthSpec::fixed(1),
        ttl: sizes::ttl(&tables.ttl_s, tables.never_expire),
        ..WorkloadSpec::default()
    };
    let mut reuse = reuse::fit(description, &base, progress);
    sizes::choose(&mut reuse.spec, description);
    FittedWorkload {
        file: WorkloadFile {
            version: WorkloadFile::VERSION,
            arrivals: description.inter_arrival.as_ref().map(|times| times.family.clone()),
            rate_profile: match timing {
                TraceTiming::Untimed => None,
                _ => profile::of(description),
            },
            workload: reuse.spec,
        },
        miss_ratio_difference: reuse.difference,
    }
}

/// Raises a fixed size to the shortest possible key. Drawn sizes are raised when keys are written.
fn at_least(size: LengthSpec, least: u64) -> LengthSpec {
    match size {
        LengthSpec::Fixed(Bytes(bytes)) => LengthSpec::fixed(bytes.max(least)),
        drawn => drawn,
    }
}

fn mix(description: &TraceDescription) -> Mix {
    let mut mix = Mix::default();
    for of in &description.operations {
        let op = TraceOp::from_name(of.operation.as_bytes()).unwrap_or(TraceOp::Seek).op();
        let weight = mix.weights()[op] + of.share;
        mix = mix.with(op, significant(weight, 6));
    }
    if mix == Mix::default() { Mix::only(Op::Read) } else { mix }
}

/// A number with so many significant digits.
fn significant(number: f64, digits: usize) -> f64 {
    format!("{number:.*e}", digits.saturating_sub(1)).parse().unwrap_or(number)
}
