//! Errors of microbenchmarks.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MicroError {
    /// A setting cannot be met; `key` names it.
    #[error("{key}: {why}")]
    Request { key: &'static str, why: String },
    /// The measurement failed.
    #[error("{0}")]
    Failed(String),
    /// The measurement was stopped before there was a result.
    #[error("stopped before there was a result")]
    Stopped,
}

impl MicroError {
    pub(crate) fn request(key: &'static str, why: impl Into<String>) -> MicroError {
        MicroError::Request { key, why: why.into() }
    }

    /// Whether the user can mend it by another setting.
    pub fn is_request(&self) -> bool {
        matches!(self, MicroError::Request { .. })
    }
}
