use crate::reading::ReadingValue;

/// Why something is unavailable here, and a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; {remedy}")]
pub struct Unavailable {
    pub reason: String,
    pub remedy: String,
}

impl Unavailable {
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Unavailable { reason: reason.into(), remedy: remedy.into() }
    }
}

impl From<Unavailable> for ReadingValue {
    fn from(why: Unavailable) -> ReadingValue {
        ReadingValue::Unavailable { reason: why.reason, remedy: Some(why.remedy) }
    }
}
