//! Discarding all content, so that the device's mapping tables are as new.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use nix::fcntl::{FallocateFlags, fallocate};

use super::error::WriteError;
use super::target::{Target, TargetKind};

/// `_IO(0x12, 119)` of `linux/fs.h`.
const BLKDISCARD: libc::c_ulong = 0x1277;

/// Discards every block of a device, or makes one hole of a file.
pub(super) fn discard(file: &File, target: &Target) -> Result<(), WriteError> {
    let what = "discarding all blocks";
    if target.kind == TargetKind::File {
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        return fallocate(file, flags, 0, target.bytes as i64)
            .map_err(|error| WriteError::Call { what, error: error.into() });
    }
    let range: [u64; 2] = [0, target.bytes];
    // SAFETY: the request reads two numbers of 64 bits, which live until it returns.
    match unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD as _, range.as_ptr()) } {
        0 => Ok(()),
        _ => Err(WriteError::Call { what, error: io::Error::last_os_error() }),
    }
}
