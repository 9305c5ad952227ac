//! Finds the platform that a user names.

use std::path::Path;

use analyse::cost::{Platform, PlatformError};

/// A built-in platform by its name, or a file by its path.
///
/// # Errors
/// Neither is there; the file cannot be read; see [`Platform::parse`].
pub fn open_platform(name: &str) -> Result<Platform, PlatformError> {
    let unknown = match Platform::built_in(name) {
        Err(error @ PlatformError::Unknown { .. }) => error,
        known => return known,
    };
    match std::fs::read_to_string(name) {
        Ok(text) => Platform::parse(name, &text),
        Err(error) if Path::new(name).exists() => {
            Err(PlatformError::Unreadable { path: name.to_owned(), why: error.to_string() })
        }
        Err(_) => Err(unknown),
    }
}
