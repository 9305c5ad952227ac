//! One study at a time on a machine: two would measure each other.

use std::path::Path;
use std::time::Duration;

use safe_file::{Lock, LockError, Sharing, Terms};

use crate::error::StudyError;

/// Where the lock lies instead, with the journal of the knobs.
const FOLDER: &str = "KVMETER_STATE_DIR";
/// Folders that every user of a machine has in common, the best first.
const COMMON: [&str; 3] = ["/run/lock", "/var/lock", "/tmp"];
const NAME: &str = "kvmeter-run.lock";
/// All users meet here, so the file may be any user's; it is written to by its owner alone.
const TERMS: Terms =
    Terms { sharing: Sharing::Common, patience: Duration::from_secs(5), leaves_nothing: false };

/// Held while a study runs; it ends with the process, however that ends.
#[derive(Debug)]
pub struct MachineLock {
    _held: Lock,
}

impl MachineLock {
    /// Takes the lock of this machine at once or not at all.
    ///
    /// # Errors
    /// Another study runs, with its process; no place for the lock.
    pub fn take() -> Result<MachineLock, StudyError> {
        let own = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty());
        match own {
            Some(folder) => MachineLock::take_in(Path::new(&folder)),
            None => {
                let common = COMMON.iter().map(Path::new).find(|folder| folder.is_dir());
                MachineLock::take_in(common.unwrap_or(Path::new("/tmp")))
            }
        }
    }

    fn take_in(folder: &Path) -> Result<MachineLock, StudyError> {
        let path = folder.join(NAME);
        let taken = safe_file::make_folder(folder)
            .map_err(LockError::File)
            .and_then(|()| Lock::take(&path, &TERMS));
        match taken {
            Ok(held) => Ok(MachineLock { _held: held }),
            Err(LockError::Held { holder, .. }) => Err(StudyError::Request(format!(
                "another study runs on this machine, and two would measure each other: {holder} \
                 has the lock {}; wait until that has ended, or end it",
                path.display()
            ))),
            Err(LockError::File(error)) => Err(StudyError::Request(format!(
                "the lock of this machine cannot be taken: {error}; or name a folder of your own \
                 in {FOLDER}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_second_one_is_refused_with_the_process_that_holds_it_and_since_when() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("not there yet");
        let first = MachineLock::take_in(&place).unwrap();
        let refused = MachineLock::take_in(&place).unwrap_err();
        assert!(refused.is_request());
        let number = format!("process {} (", std::process::id());
        let refused = refused.to_string();
        assert!(
            refused.contains(&number) && refused.contains(", which runs since 20"),
            "{refused}"
        );
        drop(first);
        MachineLock::take_in(&place).unwrap();
    }

    #[test]
    fn what_a_killed_one_left_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), "4194304000").unwrap();
        MachineLock::take_in(folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join(NAME)).unwrap();
        assert!(text.starts_with(&format!("process {} of ", std::process::id())), "{text}");
    }

    #[test]
    fn a_link_at_its_name_makes_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        symlink(&victim, folder.path().join(NAME)).unwrap();
        for content in [None, Some("precious")] {
            if let Some(content) = content {
                fs::write(&victim, content).unwrap();
            }
            let refused = MachineLock::take_in(folder.path()).unwrap_err();
            assert!(refused.is_request());
            assert!(refused.to_string().contains("is a symbolic link of user "), "{refused}");
            assert_eq!(fs::read_to_string(&victim).ok().as_deref(), content);
        }
    }
}
