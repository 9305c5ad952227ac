//! The hooks in front of the C library's functions.

#![allow(unsafe_code)]

use crate::sys::{Iovec, MSG_OOB, MSG_PEEK, Message, c_int, c_uint, c_void};
use crate::watch::{read_returned, segments_of, woke_up, write_begins};
use crate::{descriptors, real};

/// Hooks a call that reads into one buffer, and parses the data.
macro_rules! reads {
    ($($name:ident($fd:ident, $into:ident, $bytes:ident $(, $more:ident: $type:ty)*) $(unless $flags:ident)?;)*) => {
        $(
            /// # Safety
            /// As for the C library's function of the name.
            // SAFETY: replaces the C library's function by one that behaves
            // the same.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name(
                $fd: c_int, $into: *mut c_void, $bytes: usize $(, $more: $type)*
            ) -> isize {
                // SAFETY: the caller's promise; the call filled as many bytes
                // of the buffer as it says.
                unsafe {
                    let moved = real::$name($fd, $into, $bytes $(, $more)*);
                    $(if $flags & (MSG_PEEK | MSG_OOB) != 0 { return moved; })?
                    read_returned($fd, moved, &Iovec { base: $into, bytes: $bytes }, 1);
                    moved
                }
            }
        )*
    };
}

reads! {
    read(fd, into, bytes);
    __read_chk(fd, into, bytes, room: usize);
    recv(fd, into, bytes, flags: c_int) unless flags;
    __recv_chk(fd, into, bytes, room: usize, flags: c_int) unless flags;
    recvfrom(fd, into, bytes, flags: c_int, from: *mut c_void, from_bytes: *mut c_uint) unless flags;
}

/// # Safety
/// As for the C library's function of the name.
// SAFETY: replaces the C library's function by one that behaves the same.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn readv(fd: c_int, segments: *const Iovec, count: c_int) -> isize {
    // SAFETY: the caller's promise; the call filled so many bytes.
    unsafe {
        let moved = real::readv(fd, segments, count);
        read_returned(fd, moved, segments, usize::try_from(count).unwrap_or(0));
        moved
    }
}

/// # Safety
/// As for the C library's function of the name.
// SAFETY: replaces the C library's function by one that behaves the same.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, message: *mut Message, flags: c_int) -> isize {
    // SAFETY: the caller's promise; the call filled so many bytes. A message
    // is looked at only when the call succeeded, so it is valid.
    unsafe {
        let moved = real::recvmsg(fd, message, flags);
        if flags & (MSG_PEEK | MSG_OOB) == 0 {
            let (list, count) =
                if moved > 0 { segments_of(message) } else { (std::ptr::null(), 0) };
            read_returned(fd, moved, list, count);
        }
        moved
    }
}

/// Hooks a call that writes one buffer: takes the time, makes the call, parses the data.
macro_rules! writes {
    ($($name:ident($fd:ident, $from:ident, $bytes:ident $(, $more:ident: $type:ty)*);)*) => {
        $(
            /// # Safety
            /// As for the C library's function of the name.
            // SAFETY: replaces the C library's function by one that behaves
            // the same.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name(
                $fd: c_int, $from: *const c_void, $bytes: usize $(, $more: $type)*
            ) -> isize {
                let writing = write_begins($fd);
                // SAFETY: the caller's promise; so many bytes were read from
                // the buffer.
                unsafe {
                    let moved = real::$name($fd, $from, $bytes $(, $more)*);
                    if let Some(writing) = writing {
                        writing.returned(moved, &Iovec { base: $from, bytes: $bytes }, 1);
                    }
                    moved
                }
            }
        )*
    };
}

writes! {
    write(fd, from, bytes);
    send(fd, from, bytes, flags: c_int);
    sendto(fd, from, bytes, flags: c_int, to: *const c_void, to_bytes: c_uint);
}

/// # Safety
/// As for the C library's function of the name.
// SAFETY: replaces the C library's function by one that behaves the same.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn writev(fd: c_int, segments: *const Iovec, count: c_int) -> isize {
    let writing = write_begins(fd);
    // SAFETY: the caller's promise; so many bytes were read.
    unsafe {
        let moved = real::writev(fd, segments, count);
        if let Some(writing) = writing {
            writing.returned(moved, segments, usize::try_from(count).unwrap_or(0));
        }
        moved
    }
}

/// # Safety
/// As for the C library's function of the name.
// SAFETY: replaces the C library's function by one that behaves the same.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmsg(fd: c_int, message: *const Message, flags: c_int) -> isize {
    let writing = write_begins(fd);
    // SAFETY: the caller's promise; so many bytes were read. A message is
    // looked at only when the call succeeded, so it is valid.
    unsafe {
        let moved = real::sendmsg(fd, message, flags);
        if let Some(writing) = writing {
            let (list, count) =
                if moved > 0 { segments_of(message) } else { (std::ptr::null(), 0) };
            writing.returned(moved, list, count);
        }
        moved
    }
}

/// Hooks a call and uses its result.
macro_rules! watched {
    ($($name:ident($($argument:ident: $type:ty),*) $(before $before:block)? $(after $after:path)?;)*) => {
        $(
            /// # Safety
            /// As for the C library's function of the name.
            // SAFETY: replaces the C library's function by one that behaves
            // the same.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
                $($before)?
                // SAFETY: the caller's promise.
                let result = unsafe { real::$name($($argument),*) };
                $($after(result);)?
                result
            }
        )*
    };
}

watched! {
    accept(fd: c_int, from: *mut c_void, from_bytes: *mut c_uint)
        after descriptors::accepted;
    accept4(fd: c_int, from: *mut c_void, from_bytes: *mut c_uint, flags: c_int)
        after descriptors::accepted;
    connect(fd: c_int, to: *const c_void, to_bytes: c_uint)
        before { descriptors::ignore(fd) };
    // Before the call: afterwards another thread may reuse the number.
    close(fd: c_int)
        before { descriptors::closing(fd) };
    dup2(old: c_int, new: c_int)
        before { if old != new { descriptors::closing(new) } };
    dup3(old: c_int, new: c_int, flags: c_int)
        before { descriptors::closing(new) };
    epoll_wait(fd: c_int, events: *mut c_void, room: c_int, wait: c_int)
        after woke_up;
    epoll_pwait(fd: c_int, events: *mut c_void, room: c_int, wait: c_int, mask: *const c_void)
        after woke_up;
    epoll_pwait2(fd: c_int, events: *mut c_void, room: c_int, wait: *const c_void, mask: *const c_void)
        after woke_up;
}

/// # Safety
/// As for the C library's function of the name.
// SAFETY: replaces the C library's function by one that behaves the same.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    pair: *mut c_int,
) -> c_int {
    // SAFETY: the caller's promise; a call that succeeded wrote two numbers.
    unsafe {
        let result = real::socketpair(domain, kind, protocol, pair);
        if result == 0 {
            // Socket pairs wake threads of the server.
            descriptors::ignore(*pair);
            descriptors::ignore(*pair.add(1));
        }
        result
    }
}
