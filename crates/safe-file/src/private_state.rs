//! State that is trusted later: only this user may have written it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::FileError;
use crate::open::{flags, foreign_owner, not_opened, plain};
use crate::users::{own_uid, user_name};

/// Creates a folder and its parents for this user alone, whatever the umask; an existing one is
/// unchanged.
///
/// # Errors
/// I/O errors.
pub fn make_folder(path: &Path) -> Result<(), FileError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| FileError::io(path, error))
}

/// [`make_folder`], and checks an existing folder.
///
/// # Errors
/// The folder is another user's, or others can write to it.
pub fn make_private_folder(path: &Path) -> Result<(), FileError> {
    make_folder(path)?;
    let metadata = fs::metadata(path).map_err(|error| FileError::io(path, error))?;
    is_own(metadata.uid(), metadata.mode(), path)
}

/// Opens a file that only this user can have written. `options` may create it (mode 0600). Links
/// are not followed.
///
/// # Errors
/// A link, a second name, another kind of file, another user's, one that others can write to.
pub fn open_private(path: &Path, options: &mut OpenOptions) -> Result<File, FileError> {
    let file = flags(options).mode(0o600).open(path).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => FileError::io(path, error),
        _ => not_opened(path, error),
    })?;
    let metadata = file.metadata().map_err(|error| FileError::io(path, error))?;
    plain(&metadata, path)?;
    is_own(metadata.uid(), metadata.mode(), path)?;
    Ok(file)
}

fn is_own(uid: u32, mode: u32, path: &Path) -> Result<(), FileError> {
    if uid != own_uid() {
        return Err(foreign_owner(path, uid));
    }
    if mode & 0o022 != 0 {
        let me = user_name(uid);
        let why = format!(
            "can be written by others than {me} (mode {:03o}): check its content, then forbid that \
             (chmod go-w)",
            mode & 0o777
        );
        return Err(FileError::refused(path, why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn with_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn opens_only_private_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        make_private_folder(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        let file = path.join("journal");
        drop(open_private(&file, OpenOptions::new().append(true).create(true)).unwrap());
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        let read = || {
            open_private(&file, OpenOptions::new().read(true)).map_err(|error| error.to_string())
        };
        read().unwrap();
        let folder_words = || make_private_folder(&path).unwrap_err().to_string();
        for mode in [0o620, 0o602] {
            with_mode(&file, mode);
            assert!(read().unwrap_err().contains("can be written by others"));
            with_mode(&path, mode);
            assert!(folder_words().contains("chmod go-w"));
        }
        with_mode(&file, 0o644);
        with_mode(&path, 0o755);
        if own_uid() == 0 {
            chown(&path, Some(12_345), None).unwrap();
            assert!(folder_words().contains("belongs to user 12345"));
            chown(&file, Some(12_345), None).unwrap();
            assert!(read().unwrap_err().contains("belongs to user 12345"));
        }
        fs::remove_file(&file).unwrap();
        symlink("/etc/passwd", &file).unwrap();
        assert!(read().unwrap_err().contains("is a symbolic link"));
    }
}
