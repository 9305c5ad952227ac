//! A file system on a device, mounted for the lifetime of this process.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use super::consent::Consent;
use super::content::{self, Ext4, OWN_LABEL};
use super::error::{PreconditionError, WriteError};
use super::held_device::descriptor_path;
use super::target::{OpenTarget, Target};

/// How long another program may hold a device that is to be mounted.
const MOUNT_TIMEOUT: Duration = Duration::from_secs(1);

/// Gives this thread and its children a mount namespace of their own, so that mounts end with the
/// process however it ends. Call it before other threads are started.
///
/// # Errors
/// It is not permitted.
pub fn own_mounts() -> Result<(), String> {
    let not = |what: &str, error: nix::Error| {
        format!("{what}: {}; mounting a device needs root, or name a folder on it", error.desc())
    };
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| not("a mount namespace", error))?;
    // Mounts do not propagate outside.
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
        .map_err(|error| not("making mounts private", error))
}

/// A file system that kvmeter made, by its UUID, on a device that is held.
#[derive(Debug)]
pub struct MadeFileSystem {
    target: Target,
    uuid: String,
}

impl MadeFileSystem {
    /// Makes an ext4 file system on a confirmed device: everything on it is lost.
    ///
    /// # Errors
    /// The target is a file, another program has written to it or claimed it, or `mkfs.ext4` is missing
    /// or failed.
    pub fn format(
        mut target: Target,
        consent: &Consent,
    ) -> Result<MadeFileSystem, PreconditionError> {
        target.confirm(consent)?;
        let path = target.path.clone();
        let refused = |why: String| PreconditionError::Refused { path: path.clone(), why };
        let failed = |error| PreconditionError::Failed { path: path.clone(), error };
        let OpenTarget::Device(held) = &mut target.open else {
            let why = "is a file; attach it with losetup, and name the loop device";
            return Err(refused(why.to_owned()));
        };
        let looked = content::inspect(held.pin(), target.bytes);
        let looked = looked.map_err(|error| failed(WriteError::Call { what: "reading", error }))?;
        let agreed: Vec<String> = target.content.iter().map(|found| found.token.clone()).collect();
        let is_new = |found: &&content::FoundContent| !found.may_be_remainder_of(&agreed);
        if let Some(new) = looked.iter().find(is_new) {
            return Err(refused(format!("now holds {}, which was not named", new.description)));
        }
        let uuid =
            new_uuid().map_err(|error| failed(WriteError::Call { what: "a UUID", error }))?;
        held.check().map_err(refused)?;
        // `mkfs` takes the claim itself, on the device as its standard input.
        held.release_claim();
        make(held.pin(), &uuid, &path)?;
        let file_system = MadeFileSystem { target, uuid };
        file_system.check()?;
        Ok(file_system)
    }

    /// Opens the file system that was made before.
    ///
    /// # Errors
    /// The device is in use, or another file system, or none, is on it.
    pub fn reopen(target: Target, uuid: &str) -> Result<MadeFileSystem, PreconditionError> {
        let file_system = MadeFileSystem { target, uuid: uuid.to_owned() };
        file_system.check()?;
        Ok(file_system)
    }

    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    pub fn path(&self) -> &Path {
        &self.target.path
    }

    /// Mounts it in a folder that is created for it. Call [`own_mounts`] before.
    ///
    /// # Errors
    /// It cannot be mounted, or does not exist any more.
    pub fn mount(mut self, folder: &Path) -> Result<MountedVolume, PreconditionError> {
        let path = self.target.path.clone();
        let failed = |error: io::Error| PreconditionError::Failed {
            path: path.clone(),
            error: WriteError::Call { what: "mounting it", error },
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        self.check()?;
        let OpenTarget::Device(held) = &mut self.target.open else {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        };
        held.release_claim();
        let flags = MsFlags::MS_NOATIME | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        let device = descriptor_path(held.pin());
        // A program that probes devices may have claimed it for a moment.
        let over = Instant::now() + MOUNT_TIMEOUT;
        while let Err(error) = mount(Some(&device), folder, Some("ext4"), flags, None::<&str>) {
            if error != Errno::EBUSY || Instant::now() > over {
                return Err(failed(error.into()));
            }
            std::thread::sleep(MOUNT_TIMEOUT / 20);
        }
        let number = held.number();
        let volume = MountedVolume { path: folder.to_owned(), file_system: self };
        // The claim was free for a moment.
        volume.file_system.check()?;
        match folder.metadata().map_err(failed)?.dev() == number {
            true => {
                volume.file_system.unlock();
                Ok(volume)
            }
            false => Err(PreconditionError::Refused {
                path,
                why: "is no longer the same device; nothing was written".to_owned(),
            }),
        }
    }

    fn unlock(&self) {
        if let OpenTarget::Device(held) = &self.target.open {
            held.unlock();
        }
    }

    /// Checks that the file system that was made is on the device.
    fn check(&self) -> Result<(), PreconditionError> {
        let Target { path, bytes, open, .. } = &self.target;
        let refused = |why: String| PreconditionError::Refused { path: path.clone(), why };
        let OpenTarget::Device(held) = open else {
            return Err(refused("is not a device".to_owned()));
        };
        held.check().map_err(refused)?;
        let superblock = Ext4::read(held.pin(), *bytes)
            .map_err(|error| refused(format!("cannot be read: {error}")))?;
        let (label, uuid) = match &superblock {
            Some(superblock) => {
                (superblock.label.as_deref().unwrap_or_default(), superblock.uuid.as_str())
            }
            None => return Err(refused(self.not_ours("no ext4 file system"))),
        };
        match label == OWN_LABEL && uuid == self.uuid {
            true => Ok(()),
            false => {
                let other = format!("the ext4 file system `{label}` (UUID {uuid})");
                Err(refused(self.not_ours(&other)))
            }
        }
    }

    fn not_ours(&self, other: &str) -> String {
        format!(
            "holds {other}, not the file system of this evaluation (`{OWN_LABEL}`, UUID {}); name \
             the devices in their original order",
            self.uuid
        )
    }
}

/// Runs `mkfs.ext4` on the device as its standard input, so that no path can lead it elsewhere.
fn make(pin: &File, uuid: &str, path: &Path) -> Result<(), PreconditionError> {
    let failed = |error| PreconditionError::Failed { path: path.to_owned(), error };
    let input =
        pin.try_clone().map_err(|error| failed(WriteError::Call { what: "holding it", error }))?;
    // No discard and no lazy initialisation, so that the blocks stay preconditioned.
    let options = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
    let output = Command::new("mkfs.ext4")
        .args(["-q", "-F", "-L", OWN_LABEL, "-U", uuid, "-E", options, "/proc/self/fd/0"])
        .stdin(Stdio::from(input))
        .output()
        .map_err(|error| PreconditionError::Refused {
            path: path.to_owned(),
            why: format!("mkfs.ext4: {error}; install e2fsprogs"),
        })?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(failed(WriteError::Other(format!("mkfs.ext4 failed: {words}"))))
}

fn new_uuid() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned())
}

/// A mounted file system, unmounted when this is dropped.
#[derive(Debug)]
pub struct MountedVolume {
    path: PathBuf,
    /// Held while it is mounted.
    file_system: MadeFileSystem,
}

impl MountedVolume {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn uuid(&self) -> &str {
        self.file_system.uuid()
    }
}

impl Drop for MountedVolume {
    fn drop(&mut self) {
        // A busy mount ends with the process.
        let _ = umount2(&self.path, MntFlags::MNT_DETACH);
        let _ = std::fs::remove_dir(&self.path);
    }
}
