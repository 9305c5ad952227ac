//! Why a relation cannot be parsed.

use thiserror::Error;

/// A relation that cannot be parsed; `at` is the position of the error in characters, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the check `{text}`, at character {at}: {what}")]
pub struct CheckError {
    pub text: String,
    pub at: usize,
    pub what: String,
}

impl CheckError {
    /// `at` in bytes.
    pub(super) fn new(text: &str, at: usize, what: impl Into<String>) -> CheckError {
        let at = text[..at].chars().count() + 1;
        CheckError { text: text.to_owned(), at, what: what.into() }
    }
}
