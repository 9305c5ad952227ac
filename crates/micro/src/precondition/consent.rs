//! The user's consent to losing data.

/// Only what is named here may be overwritten.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consent {
    /// Names of devices and files (`--confirm`).
    pub names: Vec<String>,
    /// Words of what lies on them (`--overwrite`).
    pub overwrite: Vec<String>,
}
