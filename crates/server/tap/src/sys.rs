//! The C library's functions that both halves call. Declared here because the crate has no
//! dependencies; Linux on 64-bit x86 and Arm, whose numbers agree.

#![allow(unsafe_code)]
// Each half uses its part.
#![allow(dead_code)]

pub use std::ffi::{c_char, c_int, c_uint, c_void};

pub const PROT_READ: c_int = 1;
pub const PROT_WRITE: c_int = 2;
pub const MAP_SHARED: c_int = 1;
pub const MAP_PRIVATE: c_int = 2;
pub const MAP_ANONYMOUS: c_int = 0x20;
pub const MADV_WIPEONFORK: c_int = 18;
pub const O_RDONLY: c_int = 0;
pub const O_RDWR: c_int = 2;
pub const O_CLOEXEC: c_int = 0o2_000_000;
pub const SEEK_END: c_int = 2;
pub const SOL_SOCKET: c_int = 1;
pub const SO_TYPE: c_int = 3;
pub const SOCK_STREAM: c_int = 1;
pub const MSG_OOB: c_int = 1;
pub const MSG_PEEK: c_int = 2;
pub const CLOCK_MONOTONIC: c_int = 1;
pub const ENOSYS: c_int = 38;
pub const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;

/// `struct iovec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Iovec {
    pub base: *const c_void,
    pub bytes: usize,
}

/// `struct msghdr` as far as it is looked at.
#[repr(C)]
pub struct Message {
    pub name: *mut c_void,
    pub name_bytes: c_uint,
    pub segments: *const Iovec,
    pub segment_count: usize,
}

/// `struct timespec`.
#[repr(C)]
#[derive(Default)]
pub struct Timespec {
    pub seconds: i64,
    pub nanoseconds: i64,
}

unsafe extern "C" {
    pub fn mmap(
        at: *mut c_void,
        bytes: usize,
        protection: c_int,
        flags: c_int,
        fd: c_int,
        offset: i64,
    ) -> *mut c_void;
    pub fn munmap(at: *mut c_void, bytes: usize) -> c_int;
    pub fn madvise(at: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    pub fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    pub fn lseek(fd: c_int, offset: i64, whence: c_int) -> i64;
    pub fn pread(fd: c_int, into: *mut c_void, bytes: usize, offset: i64) -> isize;
    pub fn getenv(name: *const c_char) -> *const c_char;
    pub fn getpid() -> c_int;
    pub fn gettid() -> c_int;
    pub fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub fn getsockopt(
        fd: c_int,
        level: c_int,
        name: c_int,
        value: *mut c_void,
        bytes: *mut c_uint,
    ) -> c_int;
    pub fn memchr(at: *const c_void, byte: c_int, bytes: usize) -> *const c_void;
    pub fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    pub fn nanosleep(time: *const Timespec, left: *mut Timespec) -> c_int;
    pub fn __errno_location() -> *mut c_int;
}

/// Whether an address from `mmap` means failure.
pub fn map_failed(at: *mut c_void) -> bool {
    at.is_null() || at as usize == usize::MAX
}
