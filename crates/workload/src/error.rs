//! Errors of workloads, each with the key to change.

use model::{Bytes, Count};
use thiserror::Error;

/// Why a [`WorkloadSpec`](crate::WorkloadSpec) cannot be run.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SpecError {
    #[error("no workload preset is called `{name}`; {hint}")]
    UnknownPreset { name: String, hint: String },

    /// An invalid text for a size, a popularity or a mix.
    #[error("`{text}` is not {what}: {problem}")]
    Unreadable { text: String, what: &'static str, problem: String },

    #[error("`records` is 0, but the mix uses loaded records; set it to at least 1")]
    NoRecords,

    #[error("`records` is {records}, above the most that can be numbered, {most}")]
    TooManyRecords { records: Count, most: u64 },

    #[error("`{key}`: {problem}")]
    Invalid { key: &'static str, problem: String },

    #[error("`{key}` is {size}, but it must lie between {lowest} and {highest}")]
    OutOfRange { key: &'static str, size: Bytes, lowest: Bytes, highest: Bytes },

    #[error(
        "`key.size` is {size}, too small for {records} distinct keys of this form{room_for}; \
         the smallest that works is {smallest}"
    )]
    KeyTooSmall { size: Bytes, smallest: Bytes, records: Count, room_for: &'static str },

    #[error("`mix` is empty: every weight is zero; set at least one, e.g. `mix = {{ read = 1 }}`")]
    EmptyMix,

    #[error("`mix.{op}` is {weight}; a weight is a number that is not negative, e.g. 0.5")]
    Weight { op: model::Op, weight: f64 },
}

impl SpecError {
    /// The key of the workload to change, dotted; none for a text that cannot be parsed.
    pub fn key(&self) -> Option<&'static str> {
        match self {
            SpecError::UnknownPreset { .. } | SpecError::Unreadable { .. } => None,
            SpecError::NoRecords | SpecError::TooManyRecords { .. } => Some("records"),
            SpecError::Invalid { key, .. } | SpecError::OutOfRange { key, .. } => Some(key),
            SpecError::KeyTooSmall { .. } => Some("key.size"),
            SpecError::EmptyMix | SpecError::Weight { .. } => Some("mix"),
        }
    }

    pub(crate) fn invalid(key: &'static str, problem: impl Into<String>) -> SpecError {
        SpecError::Invalid { key, problem: problem.into() }
    }
}
