//! Why a question has no answer: two reasons with different advice.

use std::fmt;

/// Why a question cannot be answered from some runs, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    /// The metric or the level is unavailable on this machine or in this store.
    NotMeasurable(String),
    /// There are too few runs, levels or machines.
    NotEnough(String),
}

pub(super) type AnswerResult<T> = Result<T, Unanswered>;

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Unanswered::NotMeasurable(why) | Unanswered::NotEnough(why)) = self;
        f.write_str(why)
    }
}

impl From<Unanswered> for String {
    fn from(why: Unanswered) -> String {
        why.to_string()
    }
}
