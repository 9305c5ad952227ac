//! A device that is held open from the check to the end, so that the confirmed device is the one
//! that is written.
//!
//! An open descriptor keeps the device number from being reused. `pin` is one for reading; writers
//! open the device through it (`/proc/self/fd`) and never again by its path. `exclusive` is the
//! kernel's exclusive claim. As there can be only one, it is released for `mkfs` and `mount`, and
//! the device is checked again afterwards.

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// `_IOR(0x12, 128, __u64)` of `linux/fs.h`: a number that is unique among the disks of a boot.
const BLKGETDISKSEQ: libc::c_ulong = 0x8008_1280;
/// How long udev and the like may hold a device.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens a path without access to its content (`O_PATH`).
pub(super) fn open_path(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)
}

/// The path by which this process reopens a descriptor's file, whatever its path names by now.
pub(super) fn descriptor_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A block device.
#[derive(Debug)]
pub(super) struct HeldDevice {
    pin: File,
    exclusive: Option<File>,
    number: u64,
    sequence: Option<u64>,
}

impl HeldDevice {
    /// Opens and claims the device for this process alone.
    ///
    /// # Errors
    /// In words: another program has it, or it cannot be opened.
    pub(super) fn new(place: &File) -> Result<HeldDevice, String> {
        let words = |error: io::Error| error.to_string();
        let number = place.metadata().map_err(words)?.rdev();
        let pin = File::open(descriptor_path(place)).map_err(words)?;
        let sequence = sequence_of(&pin);
        let mut device = HeldDevice { pin, exclusive: None, number, sequence };
        device.claim()?;
        lock(&device.pin)?;
        Ok(device)
    }

    /// Takes the kernel's exclusive claim: file systems, arrays, mappings and swap have one.
    fn claim(&mut self) -> Result<(), String> {
        let open = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_EXCL)
            .open(descriptor_path(&self.pin));
        let alone = open.map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => {
                "is in use by a file system of another namespace, an array or a program".to_owned()
            }
            _ => error.to_string(),
        })?;
        self.is_same(&alone)?;
        self.exclusive = Some(alone);
        Ok(())
    }

    /// Releases the claim for the program that takes it next.
    pub(super) fn release_claim(&mut self) {
        self.exclusive = None;
    }

    /// For reading.
    pub(super) fn pin(&self) -> &File {
        &self.pin
    }

    /// The descriptor with the claim, for direct I/O.
    pub(super) fn direct(&self) -> io::Result<File> {
        let alone =
            self.exclusive.as_ref().ok_or_else(|| io::Error::from_raw_os_error(libc::EBUSY))?;
        bypass_page_cache(alone.try_clone()?)
    }

    /// As `st_dev` of what is mounted from it.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Checks that the device is still the same one; another medium is another device.
    pub(super) fn check(&self) -> Result<(), String> {
        self.is_same(&self.pin)
    }

    fn is_same(&self, file: &File) -> Result<(), String> {
        let number = file.metadata().map_err(|error| error.to_string())?.rdev();
        match number == self.number && sequence_of(file) == self.sequence {
            true => Ok(()),
            false => Err("is no longer the same device; nothing more was written".to_owned()),
        }
    }

    /// Releases the advisory lock, which udev respects.
    pub(super) fn unlock(&self) {
        let _ = self.pin.unlock();
    }
}

/// Takes the advisory lock, which udev respects.
///
/// # Errors
/// In words: another program has it.
pub(super) fn lock(file: &File) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if begun.elapsed() < CLAIM_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(TryLockError::WouldBlock) => {
                return Err("is locked by another program (flock); end that first".to_owned());
            }
            Err(TryLockError::Error(error)) => return Err(format!("cannot be locked: {error}")),
        }
    }
}

/// Makes a descriptor and its duplicates use direct I/O.
pub(super) fn bypass_page_cache(file: File) -> io::Result<File> {
    let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
    fcntl(&file, FcntlArg::F_SETFL(flags | OFlag::O_DIRECT))?;
    Ok(file)
}

/// None before Linux 5.15.
fn sequence_of(file: &File) -> Option<u64> {
    let mut sequence = 0_u64;
    // SAFETY: the request writes one number of 64 bits, which lives until it returns.
    let code = unsafe { libc::ioctl(file.as_raw_fd(), BLKGETDISKSEQ as _, &mut sequence) };
    (code == 0).then_some(sequence)
}
