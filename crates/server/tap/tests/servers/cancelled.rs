//! Cancels a thread that waits in `read`: the C library unwinds it.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::time::Duration;

type Body = extern "C-unwind" fn(*mut c_void) -> *mut c_void;

unsafe extern "C" {
    fn pthread_create(thread: *mut usize, how: *const c_void, body: Body, with: *mut c_void) -> c_int;
    fn pthread_cancel(thread: usize) -> c_int;
    fn pthread_join(thread: usize, result: *mut *mut c_void) -> c_int;
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int;
}

unsafe extern "C-unwind" {
    fn read(fd: c_int, into: *mut c_void, bytes: usize) -> isize;
}

extern "C-unwind" fn wait(fd: *mut c_void) -> *mut c_void {
    let mut byte = 0u8;
    // SAFETY: room for the one byte.
    unsafe { read(fd as usize as c_int, (&raw mut byte).cast(), 1) };
    null_mut()
}

fn main() {
    const CANCELED: usize = usize::MAX;
    let (mut pair, mut thread, mut result) = ([0; 2], 0, null_mut());
    // SAFETY: each pointer is to a place of its kind; the thread is joined.
    unsafe {
        assert_eq!(socketpair(1, 1, 0, pair.as_mut_ptr()), 0);
        assert_eq!(pthread_create(&mut thread, null_mut(), wait, pair[0] as usize as *mut _), 0);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(pthread_cancel(thread), 0);
        assert_eq!(pthread_join(thread, &mut result), 0);
    }
    assert_eq!(result as usize, CANCELED);
}
