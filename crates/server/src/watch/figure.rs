use model::{Answer, Unit};

/// Why a number cannot be had, and what to do about it.
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

impl From<Unavailable> for Answer {
    fn from(why: Unavailable) -> Self {
        Answer::Unavailable { reason: why.reason, remedy: Some(why.remedy) }
    }
}

/// One number about a server process.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Dotted, such as `server.cpu.user`.
    pub name: &'static str,
    pub value: Result<f64, Unavailable>,
    pub unit: Unit,
    /// The file and field, or the call, with its resolution where that matters.
    pub source: String,
    /// Whether it covers the window, or is of the instant at its end.
    pub of_window: bool,
}
