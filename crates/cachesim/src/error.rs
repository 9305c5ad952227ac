use thiserror::Error;

/// Errors before a simulation; all can be mended by the user.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SimError {
    /// A description or a trace is invalid; the message shows the place.
    #[error("{0}")]
    Place(String),
    /// A value outside any file.
    #[error("{0}")]
    Value(String),
    /// A file that cannot be read.
    #[error("{path}: cannot be read: {why}")]
    File { path: String, why: String },
}

impl SimError {
    pub(crate) fn file(path: String, error: &safe_file::FileError) -> SimError {
        SimError::File { path, why: error.why() }
    }
}
