use thiserror::Error;

/// Why a simulation was not begun: always something that the user can mend.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SimError {
    /// A description or a trace says what cannot be; the message shows the place.
    #[error("{0}")]
    Place(String),
    /// A value outside any file.
    #[error("{0}")]
    Value(String),
    /// A file that cannot be read.
    #[error("{path}: cannot be read: {why}")]
    File { path: String, why: String },
}
