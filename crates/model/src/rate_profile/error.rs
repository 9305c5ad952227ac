use thiserror::Error;

/// Why a text or a file is no profile.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place} {why}")]
pub struct ProfileError {
    /// The profile or its part, or the file and its line.
    place: String,
    why: String,
}

impl ProfileError {
    /// Of all of it.
    pub(super) fn whole(name: &str, why: impl Into<String>) -> ProfileError {
        ProfileError { place: format!("`{name}`"), why: why.into() }
    }

    /// Of one line of a file.
    pub(super) fn line(file: &str, line: usize, why: impl Into<String>) -> ProfileError {
        ProfileError { place: format!("`{file}`, line {line}:"), why: why.into() }
    }
}
