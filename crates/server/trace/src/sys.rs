//! Handles of processes, and clocks. All unsafe code of the crate is here.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

/// A handle on a process that stays valid when its number is reused.
pub(crate) fn open_process(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes two integers and no pointers.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0u32) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
}

/// Whether the process behind the handle has ended.
pub(crate) fn has_exited(process: &OwnedFd) -> bool {
    let mut poll = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, exclusively borrowed; returns at once.
    unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
}

/// What `CLOCK_MONOTONIC`, which programs read, is behind the time of day.
pub(crate) fn behind_the_day_ns() -> i128 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a structure that is exclusively borrowed.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as i128 - (i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec))
}

/// Device and inode of a file, for naming a namespace.
pub(crate) fn identity_of(file: &File) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}
