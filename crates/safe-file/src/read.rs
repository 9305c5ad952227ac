//! Reading files that a stranger's text may name.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

use crate::FileError;

/// The text of a regular file, as [`read_bytes`] reads it.
///
/// # Errors
/// Those of [`read_bytes`], and text that is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> Result<String, FileError> {
    String::from_utf8(read_bytes(path, most)?)
        .map_err(|_| FileError::refused(path, "is not text in UTF-8; give another one"))
}

/// The bytes of a regular file of at most `most` bytes. A pipe is not waited for, and a device is
/// not read.
///
/// # Errors
/// Another kind of file, a longer one, I/O errors.
pub fn read_bytes(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let failed = |error: io::Error| FileError::io(path, error);
    let nonblocking = OFlag::O_NONBLOCK.bits();
    let file =
        OpenOptions::new().read(true).custom_flags(nonblocking).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(FileError::refused(path, "is not a regular file; give one"));
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(FileError::refused(path, format!("is longer than {most} bytes; shorten it")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
        let refused = |path: &Path| read_text(path, 4).unwrap_err().to_string();
        assert!(refused(&path).ends_with("is longer than 4 bytes; shorten it"));
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for other in [&pipe, Path::new("/dev/zero"), folder.path()] {
            let why = refused(other);
            assert!(why.ends_with("is not a regular file; give one"), "{why}");
        }
        std::fs::write(&path, [0xff]).unwrap();
        assert!(read_text(&path, 4).unwrap_err().to_string().contains("UTF-8"));
        assert_eq!(read_bytes(&path, 4).unwrap(), [0xff]);
    }
}
