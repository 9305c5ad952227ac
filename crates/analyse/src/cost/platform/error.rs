use thiserror::Error;

/// Every one is for the user to mend.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlatformError {
    #[error("there is no platform file `{name}` and no built-in platform of that name; {hint}")]
    Unknown { name: String, hint: String },
    #[error("there are no published tables `{name}`; {hint}")]
    Unpublished { name: String, hint: String },
    #[error("{path}: cannot be read: {why}")]
    Unreadable { path: String, why: String },
    /// The text is not TOML, or has a key or value that means nothing: what, and the place shown.
    #[error("{0}")]
    Broken(String),
    /// A value that no machine has.
    #[error("{origin}: `{key}` is {value}: {why}")]
    Impossible { origin: String, key: &'static str, value: String, why: &'static str },
}
