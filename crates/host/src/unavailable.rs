use model::ReadingValue;

use crate::root::RootError;

/// Why a value is unavailable here, and a remedy.
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

    /// For calls that only the running kernel answers.
    pub(crate) fn recorded(call: &str) -> Self {
        Unavailable::new(
            format!("{call} answers for the running system, and this root is a recorded tree"),
            "read the machine itself, through the root `/`",
        )
    }
}

impl From<RootError> for Unavailable {
    fn from(error: RootError) -> Self {
        let remedy = match &error {
            RootError::Missing { path } => {
                format!("measure where the kernel offers {path} (a container may hide it)")
            }
            RootError::Denied { path } => format!("run as root, or grant read access to {path}"),
            RootError::Io { path, .. } => format!("find out why {path} cannot be read"),
            RootError::Empty { path } | RootError::Malformed { path, .. } => {
                format!("report the content of {path}: this kernel writes it in another way")
            }
        };
        Unavailable::new(error.to_string(), remedy)
    }
}

impl From<Unavailable> for ReadingValue {
    fn from(why: Unavailable) -> ReadingValue {
        ReadingValue::Unavailable { reason: why.reason, remedy: Some(why.remedy) }
    }
}
