//! What the user said may be lost.

/// Nothing is taken for allowed that is not said here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consent {
    /// Names of devices and files (`--confirm`).
    pub names: Vec<String>,
    /// Words of what lies on them (`--overwrite`).
    pub overwrite: Vec<String>,
}
