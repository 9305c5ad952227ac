//! A file system on a device, for as long as this process lives.

use std::path::{Path, PathBuf};
use std::process::Command;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use super::error::{PreconditionError, WriteError};
use super::target::{Kind, Target};

/// By this name a file system is told to be one that [`Volume::format`] made.
const LABEL: &str = "kvmeter-mbwu";

/// Gives this thread, and those that it starts, mounts of their own: however the process ends, what
/// it has mounted is gone with it. Before any other thread is started.
///
/// # Errors
/// It is not permitted.
pub fn own_mounts() -> Result<(), String> {
    let not = |what: &str, error: nix::Error| {
        format!("{what}: {}; mounting a device needs root, or name a folder on it", error.desc())
    };
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| not("a mount namespace", error))?;
    // Nothing of it is seen outside.
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
        .map_err(|error| not("making mounts private", error))
}

/// A mounted file system, unmounted when this is dropped.
#[derive(Debug)]
pub struct Volume {
    path: PathBuf,
}

impl Volume {
    /// Makes an ext4 file system on a confirmed device: everything on it is lost.
    ///
    /// # Errors
    /// The target is a file, or `mkfs.ext4` is not there or failed.
    pub fn format(target: &Target, confirmed: &[String]) -> Result<(), PreconditionError> {
        target.confirm(confirmed)?;
        let path = target.path.clone();
        if target.kind == Kind::File {
            let why = "is a file; attach it with losetup, and name the loop device".to_owned();
            return Err(PreconditionError::Refused { path, why });
        }
        // The blocks stay as they were brought to: no discard, and nothing is left for later.
        let options = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
        let output = Command::new("mkfs.ext4")
            .args(["-q", "-F", "-L", LABEL, "-E", options])
            .arg(&path)
            .output()
            .map_err(|error| PreconditionError::Refused {
                path: path.clone(),
                why: format!("mkfs.ext4: {error}; install e2fsprogs"),
            })?;
        if output.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let error = WriteError::Other(format!("mkfs.ext4 failed: {words}"));
        Err(PreconditionError::Failed { path, error })
    }

    /// Mounts a device that [`Volume::format`] has been at, in a folder that is made for it. Call
    /// [`own_mounts`] before.
    ///
    /// # Errors
    /// It cannot be mounted.
    pub fn mount(device: &Path, folder: &Path) -> Result<Volume, PreconditionError> {
        let failed = |error: std::io::Error| PreconditionError::Failed {
            path: device.to_owned(),
            error: WriteError::Call { what: "mounting it", error },
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        mount(Some(device), folder, Some("ext4"), MsFlags::MS_NOATIME, None::<&str>)
            .map_err(|error| failed(error.into()))?;
        Ok(Volume { path: folder.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // What still is busy goes with the process.
        let _ = umount2(&self.path, MntFlags::MNT_DETACH);
        let _ = std::fs::remove_dir(&self.path);
    }
}
