//! Shared libraries that are loaded when a store is opened, and never unloaded: engines have threads
//! of their own.

use std::fs::File;
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// A library with the SHA-256 of its file, in hexadecimal.
pub struct SharedLibrary {
    pub library: Library,
    pub sha256: String,
}

impl SharedLibrary {
    /// # Errors
    /// The file cannot be read or loaded, in words.
    pub fn load(file: &Path) -> Result<SharedLibrary, String> {
        // Hashed before loading: the recorded hash is that of the loaded file.
        let sha256 =
            File::open(file).and_then(safe_file::sha256).map_err(|error| error.to_string())?;
        // SAFETY: the user, or the machine's loader, names an engine; loading runs its constructors,
        // as linking it would have.
        #[allow(unsafe_code)]
        let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| format!("it cannot be loaded: {error}"))?;
        Ok(SharedLibrary { library, sha256 })
    }
}

/// `LevelDB 1.23 (sha256 0123456789abcdef)`: the first 16 digits distinguish builds of a version.
pub fn described(name: &str, version: &str, sha256: &str) -> String {
    format!("{name} {version} (sha256 {})", &sha256[..16])
}
