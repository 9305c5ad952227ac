use study::StudyError;
use thiserror::Error;

/// Why a plan did not run to its end.
#[derive(Debug, Error)]
pub enum ExecuteError {
    /// The request is invalid; the message names the place.
    #[error("{0}")]
    Request(String),
    /// A valid request failed.
    #[error("{0}")]
    Failed(String),
}

impl ExecuteError {
    /// The same error with a line appended.
    pub fn with_note(self, note: &str) -> Self {
        match self {
            ExecuteError::Request(words) => ExecuteError::Request(format!("{words}\n{note}")),
            ExecuteError::Failed(words) => ExecuteError::Failed(format!("{words}\n{note}")),
        }
    }

    pub fn is_request(&self) -> bool {
        matches!(self, ExecuteError::Request(_))
    }
}

impl From<StudyError> for ExecuteError {
    fn from(error: StudyError) -> Self {
        match error.is_request() {
            true => ExecuteError::Request(error.to_string()),
            false => ExecuteError::Failed(error.to_string()),
        }
    }
}

impl From<host::knob::KnobError> for ExecuteError {
    fn from(error: host::knob::KnobError) -> Self {
        match error.is_request() {
            true => ExecuteError::Request(error.to_string()),
            false => ExecuteError::Failed(error.to_string()),
        }
    }
}

impl From<store::StoreError> for ExecuteError {
    fn from(error: store::StoreError) -> Self {
        use store::StoreError::{
            Broken, Directory, Failed, Full, Lost, Request, Unanswered, Unsettled,
        };
        let words = error.to_string();
        match error {
            // The user can make space, and no saved run is lost.
            Request(_) | Directory { .. } | Full(_) => ExecuteError::Request(words),
            Failed(_) | Broken(_) | Unsettled(_) | Unanswered(_) | Lost(_) => {
                ExecuteError::Failed(words)
            }
        }
    }
}

impl From<drive::DriveError> for ExecuteError {
    fn from(error: drive::DriveError) -> Self {
        match error {
            drive::DriveError::Store(error) => error.into(),
            drive::DriveError::Trace(error) => error.into(),
            other => ExecuteError::Failed(other.to_string()),
        }
    }
}

impl From<record::RecordError> for ExecuteError {
    fn from(error: record::RecordError) -> Self {
        match error.is_request() {
            true => ExecuteError::Request(error.to_string()),
            false => ExecuteError::Failed(error.to_string()),
        }
    }
}

impl From<workload::SpecError> for ExecuteError {
    fn from(error: workload::SpecError) -> Self {
        ExecuteError::Request(error.to_string())
    }
}

impl From<workload::trace::TraceError> for ExecuteError {
    /// The trace is part of the request, and so are its errors.
    fn from(error: workload::trace::TraceError) -> Self {
        ExecuteError::Request(error.to_string())
    }
}
