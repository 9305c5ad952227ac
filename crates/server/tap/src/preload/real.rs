//! The C library's functions behind the hooks: the next of each name in the dynamic linker's order.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::sys::{self, Iovec, Message, c_char, c_int, c_uint, c_void};

/// The next function of a name, looked up once.
struct Next {
    name: *const c_char,
    address: AtomicPtr<c_void>,
}

// SAFETY: the name is a constant.
unsafe impl Sync for Next {}

impl Next {
    #[inline]
    fn get(&self) -> *mut c_void {
        let address = self.address.load(Relaxed);
        if address.is_null() { self.look_up() } else { address }
    }

    /// Usually from [`look_up_all`]; from a call only when another library's
    /// constructor ran before ours.
    #[cold]
    fn look_up(&self) -> *mut c_void {
        // SAFETY: the name ends in zero.
        let address = unsafe { sys::dlsym(sys::RTLD_NEXT, self.name) };
        self.address.store(address, Relaxed);
        address
    }
}

/// Sets `errno` and returns a failure.
fn missing() -> isize {
    // SAFETY: the address of this thread's errno is always valid.
    unsafe { *sys::__errno_location() = sys::ENOSYS };
    -1
}

macro_rules! real {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        mod next {
            use super::*;
            $(
                #[allow(non_upper_case_globals)]
                pub static $name: Next = Next {
                    name: concat!(stringify!($name), "\0").as_ptr().cast(),
                    address: AtomicPtr::new(std::ptr::null_mut()),
                };
            )*
        }

        $(
            /// # Safety
            /// As for the C library's function of the name.
            #[inline]
            pub unsafe fn $name($($argument: $type),*) -> $result {
                let address = next::$name.get();
                if address.is_null() {
                    return missing() as $result;
                }
                // SAFETY: the C library's function of this name has this
                // signature; its demands are passed on to the caller.
                unsafe {
                    let function: unsafe extern "C-unwind" fn($($type),*) -> $result =
                        std::mem::transmute(address);
                    function($($argument),*)
                }
            }
        )*

        /// Looks all of them up.
        pub fn look_up_all() {
            $(next::$name.get();)*
        }
    };
}

real! {
    read(fd: c_int, into: *mut c_void, bytes: usize) -> isize;
    __read_chk(fd: c_int, into: *mut c_void, bytes: usize, room: usize) -> isize;
    recv(fd: c_int, into: *mut c_void, bytes: usize, flags: c_int) -> isize;
    __recv_chk(fd: c_int, into: *mut c_void, bytes: usize, room: usize, flags: c_int) -> isize;
    recvfrom(fd: c_int, into: *mut c_void, bytes: usize, flags: c_int, from: *mut c_void, from_bytes: *mut c_uint) -> isize;
    recvmsg(fd: c_int, message: *mut Message, flags: c_int) -> isize;
    readv(fd: c_int, segments: *const Iovec, count: c_int) -> isize;
    write(fd: c_int, from: *const c_void, bytes: usize) -> isize;
    send(fd: c_int, from: *const c_void, bytes: usize, flags: c_int) -> isize;
    sendto(fd: c_int, from: *const c_void, bytes: usize, flags: c_int, to: *const c_void, to_bytes: c_uint) -> isize;
    sendmsg(fd: c_int, message: *const Message, flags: c_int) -> isize;
    writev(fd: c_int, segments: *const Iovec, count: c_int) -> isize;
    accept(fd: c_int, from: *mut c_void, from_bytes: *mut c_uint) -> c_int;
    accept4(fd: c_int, from: *mut c_void, from_bytes: *mut c_uint, flags: c_int) -> c_int;
    connect(fd: c_int, to: *const c_void, to_bytes: c_uint) -> c_int;
    socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int;
    close(fd: c_int) -> c_int;
    dup2(old: c_int, new: c_int) -> c_int;
    dup3(old: c_int, new: c_int, flags: c_int) -> c_int;
    epoll_wait(fd: c_int, events: *mut c_void, room: c_int, wait: c_int) -> c_int;
    epoll_pwait(fd: c_int, events: *mut c_void, room: c_int, wait: c_int, mask: *const c_void) -> c_int;
    epoll_pwait2(fd: c_int, events: *mut c_void, room: c_int, wait: *const c_void, mask: *const c_void) -> c_int;
}
