//! Finds the platform that a user names.

use std::path::Path;

use analyse::cost::{Platform, PlatformError};

/// The longest file of a platform.
const MAX_BYTES: u64 = 1 << 20;

/// A built-in platform by its name, or a file by its path.
///
/// # Errors
/// Neither is there; the file cannot be read; see [`Platform::parse`].
pub fn open_platform(name: &str) -> Result<Platform, PlatformError> {
    let unknown = match Platform::built_in(name) {
        Err(error @ PlatformError::Unknown { .. }) => error,
        known => return known,
    };
    match safe_file::read_text(Path::new(name), MAX_BYTES) {
        Ok(text) => Platform::parse(name, &text),
        Err(error) if Path::new(name).exists() => {
            Err(PlatformError::Unreadable { path: name.to_owned(), why: error.why() })
        }
        Err(_) => Err(unknown),
    }
}
