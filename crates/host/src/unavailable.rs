use model::Unavailable;

use crate::root::RootError;

/// For calls that only the running kernel answers.
pub(crate) fn live_only(call: &str) -> Unavailable {
    Unavailable::new(
        format!("{call} answers for the running system, and this root is a recorded machine"),
        "read the machine itself, through the root `/`",
    )
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
