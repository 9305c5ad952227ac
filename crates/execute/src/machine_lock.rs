//! A lock that allows one study at a time on a machine: two would disturb each other.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use safe_file::{Lock, LockError, LockOptions, LockScope};

use crate::error::ExecuteError;

/// Variable with another folder for the lock, which also has the journal of the knobs.
const FOLDER: &str = "KVMETER_STATE_DIR";
/// Folders shared by all users of a machine, in order of preference.
const COMMON: [&str; 3] = ["/run/lock", "/var/lock", "/tmp"];
const NAME: &str = "kvmeter-run.lock";
/// The lock is shared by all users, so its file may be any user's; only its owner writes to it.
const TERMS: LockOptions = LockOptions {
    scope: LockScope::AllUsers,
    timeout: Duration::from_secs(5),
    leaves_nothing: false,
};

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
    pub fn take() -> Result<MachineLock, ExecuteError> {
        let own = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty());
        match own {
            Some(folder) => MachineLock::take_in(Path::new(&folder)),
            None => MachineLock::take_in(shared_folder(&COMMON.map(Path::new))),
        }
    }

    fn take_in(folder: &Path) -> Result<MachineLock, ExecuteError> {
        let path = folder.join(NAME);
        let taken = safe_file::make_folder(folder)
            .map_err(LockError::File)
            .and_then(|()| Lock::take(&path, &TERMS));
        match taken {
            Ok(held) => Ok(MachineLock { _held: held }),
            Err(LockError::Held { holder, .. }) => Err(ExecuteError::Request(format!(
                "another study runs on this machine, and would disturb this one: {holder} has the \
                 lock {}; wait until it ends, or end it",
                path.display()
            ))),
            Err(LockError::File(error)) => Err(ExecuteError::Request(format!(
                "the lock of this machine cannot be taken: {error}; or name a folder of your own \
                 in {FOLDER}"
            ))),
        }
    }
}

/// The first folder that already has the lock, else the first in which every user can create it:
/// some distributions let only root write to `/run/lock`, where root and others would not share a
/// lock. Otherwise the last one.
fn shared_folder<'a>(common: &[&'a Path]) -> &'a Path {
    let has_it = |folder: &&&Path| folder.join(NAME).symlink_metadata().is_ok();
    let is_writable_by_all = |folder: &&&Path| {
        let mode = fs::metadata(folder).map_or(0, |there| there.permissions().mode());
        mode & 0o003 == 0o003
    };
    let found = common.iter().find(has_it).or_else(|| common.iter().find(is_writable_by_all));
    found.or(common.last()).unwrap_or(&Path::new("/tmp"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_second_lock_is_refused_with_its_holder() {
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
    fn all_users_share_one_folder() {
        let folder = tempfile::tempdir().unwrap();
        let [roots, everybodys, last] =
            [("run", 0o755), ("var", 0o1777), ("tmp", 0o1777)].map(|(name, mode)| {
                let path = folder.path().join(name);
                fs::create_dir(&path).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                path
            });
        let missing = folder.path().join("missing");
        let all = [&*missing, &*roots, &*everybodys, &*last];
        assert_eq!(shared_folder(&all), everybodys);
        assert_eq!(shared_folder(&all[..2]), roots, "there is no other");
        fs::write(last.join(NAME), "").unwrap();
        assert_eq!(shared_folder(&all), last);
        fs::write(roots.join(NAME), "").unwrap();
        assert_eq!(shared_folder(&all), roots);
    }

    #[test]
    fn the_lock_of_a_killed_process_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), "4194304000").unwrap();
        MachineLock::take_in(folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join(NAME)).unwrap();
        assert!(text.starts_with(&format!("process {} of ", std::process::id())), "{text}");
    }

    #[test]
    fn a_symbolic_link_is_refused() {
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
