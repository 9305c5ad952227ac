use thiserror::Error;

use crate::asking::InvalidOption;

/// Why a study did not run to its end.
#[derive(Debug, Error)]
pub enum StudyError {
    /// What was asked cannot be done as it was asked; the message names the place.
    #[error("{0}")]
    Request(String),
    /// It was asked rightly and went wrong.
    #[error("{0}")]
    Failed(String),
    /// One key of what was asked makes no sense.
    #[error(transparent)]
    Senseless(#[from] InvalidOption),
}

impl StudyError {
    /// The same error with a line behind it.
    pub fn with_note(self, note: &str) -> Self {
        match self {
            StudyError::Request(words) => StudyError::Request(format!("{words}\n{note}")),
            StudyError::Failed(words) => StudyError::Failed(format!("{words}\n{note}")),
            StudyError::Senseless(senseless) => StudyError::Request(format!("{senseless}\n{note}")),
        }
    }

    pub fn is_request(&self) -> bool {
        matches!(self, StudyError::Request(_) | StudyError::Senseless(_))
    }
}

impl From<host::knob::KnobError> for StudyError {
    fn from(error: host::knob::KnobError) -> Self {
        match error.is_request() {
            true => StudyError::Request(error.to_string()),
            false => StudyError::Failed(error.to_string()),
        }
    }
}

impl From<store::StoreError> for StudyError {
    fn from(error: store::StoreError) -> Self {
        use store::StoreError::{Directory, Failed, Full, Request, Unsettled};
        let words = error.to_string();
        match error {
            // More room is the user's to give: nothing that was kept is lost.
            Request(_) | Directory { .. } | Full(_) => StudyError::Request(words),
            Failed(_) | Unsettled(_) => StudyError::Failed(words),
        }
    }
}

impl From<drive::DriveError> for StudyError {
    fn from(error: drive::DriveError) -> Self {
        match error {
            drive::DriveError::Store(error) => error.into(),
            drive::DriveError::Trace(error) => error.into(),
            other => StudyError::Failed(other.to_string()),
        }
    }
}

impl From<record::Error> for StudyError {
    fn from(error: record::Error) -> Self {
        StudyError::Request(error.to_string())
    }
}

impl From<workload::SpecError> for StudyError {
    fn from(error: workload::SpecError) -> Self {
        StudyError::Request(error.to_string())
    }
}

impl From<workload::trace::TraceError> for StudyError {
    /// A trace is the user's, and so is what is wrong with it.
    fn from(error: workload::trace::TraceError) -> Self {
        StudyError::Request(error.to_string())
    }
}
