//! The table of descriptors: chunks that are mapped on first use and never freed.

#![allow(unsafe_code)]

use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use crate::attached::{Attached, map_zeros};
use crate::connection::{Connection, standing};
use crate::sys::{self, c_int, c_uint, c_void};

const CHUNK: usize = 64;

/// Descriptors below 2^20 (the usual hard limit of a process) are watched.
const CHUNKS: usize = (1 << 20) / CHUNK;

type Chunk = [Connection; CHUNK];

static TABLE: [AtomicPtr<Chunk>; CHUNKS] = [const { AtomicPtr::new(null_mut()) }; CHUNKS];

/// The descriptor's entry, if its chunk is mapped.
#[inline]
fn find(fd: c_int) -> Option<&'static Connection> {
    let fd = usize::try_from(fd).ok()?;
    let chunk = TABLE.get(fd / CHUNK)?.load(Acquire);
    if chunk.is_null() {
        return None;
    }
    // SAFETY: chunks are mapped zeros, which are valid, and never go.
    unsafe { &*chunk }.get(fd % CHUNK)
}

/// The descriptor's entry, mapped if necessary.
fn find_or_make(fd: c_int) -> Option<&'static Connection> {
    if let Some(entry) = find(fd) {
        return Some(entry);
    }
    let chunk = TABLE.get(usize::try_from(fd).ok()? / CHUNK)?;
    let fresh = map_zeros(size_of::<Chunk>())?;
    if chunk.compare_exchange(null_mut(), fresh.cast(), AcqRel, Relaxed).is_err() {
        // SAFETY: another thread was first; ours was never published.
        unsafe { sys::munmap(fresh, size_of::<Chunk>()) };
    }
    find(fd)
}

/// The connection that is to be timed, if the descriptor is one.
#[inline]
pub fn connection(attached: Attached, fd: c_int) -> Option<&'static Connection> {
    let entry = match find(fd) {
        Some(entry) if entry.standing() != standing::UNKNOWN => entry,
        _ => learn(attached, fd)?,
    };
    (entry.standing() != standing::IGNORED).then_some(entry)
}

/// Classifies a new descriptor: inherited, or from a call that is not hooked.
#[cold]
fn learn(attached: Attached, fd: c_int) -> Option<&'static Connection> {
    preserve_errno(|| {
        let is_stream = is_stream_socket(fd);
        let Some(entry) = find_or_make(fd) else {
            if is_stream {
                attached.header.connections_unwatched.fetch_add(1, Relaxed);
            }
            return None;
        };
        entry.set_standing(if is_stream { standing::FRESH } else { standing::IGNORED });
        Some(entry)
    })
}

fn is_stream_socket(fd: c_int) -> bool {
    let mut kind: c_int = 0;
    let mut bytes = size_of::<c_int>() as c_uint;
    // SAFETY: the option is an int, and there is room for one.
    let failed = unsafe {
        let value = (&raw mut kind).cast::<c_void>();
        sys::getsockopt(fd, sys::SOL_SOCKET, sys::SO_TYPE, value, &mut bytes)
    };
    failed == 0 && kind == sys::SOCK_STREAM
}

/// A client's connection was accepted.
pub fn accepted(fd: c_int) {
    become_if_watched(fd, standing::FRESH);
}

/// The descriptor is not timed.
pub fn ignore(fd: c_int) {
    become_if_watched(fd, standing::IGNORED);
}

fn become_if_watched(fd: c_int, standing: u8) {
    let Some(attached) = Attached::here().filter(|_| fd >= 0) else { return };
    match find(fd).or_else(|| preserve_errno(|| find_or_make(fd))) {
        Some(entry) => entry.set_standing(standing),
        None if standing == standing::FRESH => {
            attached.header.connections_unwatched.fetch_add(1, Relaxed);
        }
        None => {}
    }
}

/// The descriptor is about to be closed.
pub fn closing(fd: c_int) {
    if Attached::here().is_some()
        && let Some(entry) = find(fd)
    {
        entry.set_standing(standing::UNKNOWN);
    }
}

/// Runs `work` and leaves `errno` as it was.
pub fn preserve_errno<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the address of this thread's errno is always valid.
    unsafe {
        let errno = sys::__errno_location();
        let saved = *errno;
        let result = work();
        *errno = saved;
        result
    }
}
