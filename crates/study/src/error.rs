use thiserror::Error;

use crate::load::InvalidOption;

/// Why a study did not run to its end.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The request is invalid; the message names the place.
    #[error("{0}")]
    Request(String),
    /// A value of a study is invalid: why, and the same with its place in the text.
    #[error("{shown}")]
    InText { why: String, shown: String },
    /// A valid request failed.
    #[error("{0}")]
    Failed(String),
    /// A load option is invalid.
    #[error(transparent)]
    InvalidOption(#[from] InvalidOption),
}

impl StudyError {
    /// The same error with a line appended.
    pub fn with_note(self, note: &str) -> Self {
        match self {
            StudyError::Request(words) => StudyError::Request(format!("{words}\n{note}")),
            StudyError::Failed(words) => StudyError::Failed(format!("{words}\n{note}")),
            StudyError::InText { .. } | StudyError::InvalidOption(_) => {
                StudyError::Request(format!("{self}\n{note}"))
            }
        }
    }

    pub fn is_request(&self) -> bool {
        !matches!(self, StudyError::Failed(_))
    }

    /// The first line without a place in the study, which may be one of a generated text.
    pub(crate) fn reason(&self) -> String {
        let words = match self {
            StudyError::InText { why, .. } => why.clone(),
            other => other.to_string(),
        };
        words.lines().next().unwrap_or_default().to_owned()
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
        use store::StoreError::{
            Broken, Directory, Failed, Full, Lost, Request, Unanswered, Unsettled,
        };
        let words = error.to_string();
        match error {
            // The user can make space, and no saved run is lost.
            Request(_) | Directory { .. } | Full(_) => StudyError::Request(words),
            Failed(_) | Broken(_) | Unsettled(_) | Unanswered(_) | Lost(_) => {
                StudyError::Failed(words)
            }
        }
    }
}

impl From<workload::SpecError> for StudyError {
    fn from(error: workload::SpecError) -> Self {
        StudyError::Request(error.to_string())
    }
}

impl From<workload::trace::TraceError> for StudyError {
    /// The trace is part of the request, and so are its errors.
    fn from(error: workload::trace::TraceError) -> Self {
        StudyError::Request(error.to_string())
    }
}
