//! The attachment of this process: the mapped shared file and the clock.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::clock::Clock;
use crate::layout::{FILE_BYTES, Header, LANES, Lane, MAGIC, VERSION};
use crate::sys;

/// In a page that the kernel fills with zeros in a forked child, however it
/// is forked: a child has no header, and is not watched.
struct Page {
    header: AtomicPtr<Header>,
    clock: MaybeUninit<Clock>,
}

static PAGE: AtomicPtr<Page> = AtomicPtr::new(null_mut());

/// A watched process.
#[derive(Clone, Copy)]
pub struct Attached {
    pub header: &'static Header,
    pub clock: &'static Clock,
}

impl Attached {
    /// This process, if it is watched.
    #[inline]
    pub fn here() -> Option<Attached> {
        let page = PAGE.load(Acquire);
        if page.is_null() {
            return None;
        }
        // SAFETY: the page was mapped and is never unmapped; zeros are a null header.
        let page = unsafe { &*page };
        let header = page.header.load(Relaxed);
        if header.is_null() {
            return None;
        }
        // SAFETY: the header was mapped, with all lanes, and is never unmapped; the clock was
        // written before the page was published, and is there when the header is.
        unsafe { Some(Attached { header: &*header, clock: page.clock.assume_init_ref() }) }
    }

    /// The lanes of the file.
    pub fn lanes(self) -> &'static [Lane] {
        let header: *const Header = self.header;
        // SAFETY: the file was checked to be so long, and zero is valid in all
        // of a lane, which is made of atomic integers.
        unsafe { std::slice::from_raw_parts(header.add(1).cast::<Lane>(), LANES) }
    }
}

/// Attaches this process to the file that `KVMETER_TAP` names, if that is valid.
pub fn attach() {
    // SAFETY: a name that ends in zero; no other thread runs yet.
    let path = unsafe { sys::getenv(c"KVMETER_TAP".as_ptr()) };
    if path.is_null() {
        return;
    }
    let Some(header) = map_file(path) else { return };
    let clock = Clock::choose();
    let Some(page) = map_page() else { return };
    // SAFETY: a page of zeros of our own, large enough and aligned.
    unsafe {
        (*page).clock.write(clock);
        (*page).header.store(header, Relaxed);
        let header = &*header;
        header.ticks_per_s.store(clock.ticks_per_s, Relaxed);
        header.clock.store(clock.kind as u32, Relaxed);
        header.pid.store(sys::getpid() as u32, Release);
    }
    PAGE.store(page, Release);
}

fn map_file(path: *const sys::c_char) -> Option<*mut Header> {
    // SAFETY: the path ends in zero; the mapping is new and as long as the
    // file was found to be; its first page is only read as atomic integers.
    unsafe {
        let fd = sys::open(path, sys::O_RDWR | sys::O_CLOEXEC);
        if fd < 0 {
            return None;
        }
        let bytes = sys::lseek(fd, 0, sys::SEEK_END);
        let mapped = if usize::try_from(bytes) == Ok(FILE_BYTES) {
            let protection = sys::PROT_READ | sys::PROT_WRITE;
            sys::mmap(null_mut(), FILE_BYTES, protection, sys::MAP_SHARED, fd, 0)
        } else {
            null_mut()
        };
        crate::real::close(fd);
        if sys::map_failed(mapped) {
            return None;
        }
        let header = mapped.cast::<Header>();
        if (*header).magic.load(Acquire) == MAGIC && (*header).version.load(Relaxed) == VERSION {
            return Some(header);
        }
        sys::munmap(mapped, FILE_BYTES);
        None
    }
}

fn map_page() -> Option<*mut Page> {
    const BYTES: usize = 4096;
    const { assert!(size_of::<Page>() <= BYTES) };
    // SAFETY: a new anonymous mapping, of zeros.
    unsafe {
        let page = map_zeros(BYTES)?;
        if sys::madvise(page, BYTES, sys::MADV_WIPEONFORK) != 0 {
            // A forked child could not be distinguished.
            sys::munmap(page, BYTES);
            return None;
        }
        Some(page.cast())
    }
}

/// New memory of zeros.
pub fn map_zeros(bytes: usize) -> Option<*mut sys::c_void> {
    let protection = sys::PROT_READ | sys::PROT_WRITE;
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping.
    let mapped = unsafe { sys::mmap(null::<u8>() as *mut _, bytes, protection, flags, -1, 0) };
    (!sys::map_failed(mapped)).then_some(mapped)
}
