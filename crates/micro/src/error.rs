//! Why a microbenchmark gave no result.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MicroError {
    /// What was asked cannot be done; `key` is the setting to change.
    #[error("{key}: {why}")]
    Request { key: &'static str, why: String },
    /// It began and went wrong.
    #[error("{0}")]
    Failed(String),
    /// It was told to stop before there was a result.
    #[error("stopped before there was a result")]
    Stopped,
}

impl MicroError {
    pub(crate) fn request(key: &'static str, why: impl Into<String>) -> MicroError {
        MicroError::Request { key, why: why.into() }
    }

    /// Whether the mistake is the asker's.
    pub fn is_request(&self) -> bool {
        matches!(self, MicroError::Request { .. })
    }
}
