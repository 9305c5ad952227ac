//! The system calls that the standard library has no safe form of.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

/// Room for one `SCM_TIMESTAMPNS` message, which is 32 bytes, aligned as its header is.
pub(crate) const CONTROL: usize = 32;

#[repr(align(8))]
struct Control([u8; CONTROL]);

/// Sends as much as the socket takes at once.
pub(crate) fn send(socket: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length are those of a live slice.
    let sent = unsafe {
        libc::send(
            socket,
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives available data, without waiting.
pub(crate) fn receive(socket: RawFd, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length are those of a live, exclusive slice.
    let received =
        unsafe { libc::recv(socket, into.as_mut_ptr().cast(), into.len(), libc::MSG_DONTWAIT) };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// Receives available data, without waiting, and the kernel's timestamp of the newest, in ns of
/// `CLOCK_REALTIME`.
pub(crate) fn receive_stamped(socket: RawFd, into: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    let mut control = Control([0; CONTROL]);
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all zeroes is a valid msghdr: no name, no parts, no control.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL as _;
    // SAFETY: the message points at a live, exclusive slice and control buffer, with their lengths.
    let received = unsafe { libc::recvmsg(socket, &mut message, libc::MSG_DONTWAIT) };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    let used = (message.msg_controllen as usize).min(CONTROL);
    Ok((received, stamp(&control.0[..used])))
}

/// The time in a control message of one `SCM_TIMESTAMPNS`, in ns of `CLOCK_REALTIME`.
pub(crate) fn stamp(control: &[u8]) -> Option<u64> {
    // A header is the length (8 bytes), the level and the type (4 each); the time is
    // seconds and nanoseconds (8 each). On 32-bit machines there is none.
    let word = |at: usize| control.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
    let half = |at: usize| control.get(at..at + 4)?.try_into().ok().map(i32::from_ne_bytes);
    if half(8)? != libc::SOL_SOCKET || half(12)? != libc::SCM_TIMESTAMPNS {
        return None;
    }
    Some(word(16)? * 1_000_000_000 + word(24)?)
}

/// Enables the kernel's timestamps of segments.
pub(crate) fn enable_stamps(socket: &impl AsRawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    set_option(socket, libc::SO_TIMESTAMPNS, &on)
}

/// Has the kernel reset the connection when the socket is closed.
pub(crate) fn disable_linger(socket: &impl AsRawFd) -> io::Result<()> {
    set_option(socket, libc::SO_LINGER, &libc::linger { l_onoff: 1, l_linger: 0 })
}

fn set_option<T>(socket: &impl AsRawFd, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the option's value is live and of the given length.
    done(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            ptr::from_ref(value).cast(),
            mem::size_of_val(value) as libc::socklen_t,
        )
    })
}

/// Sets this thread's timer slack to the minimum: by default the kernel extends waits by up to 50
/// us.
pub(crate) fn wake_on_time() {
    let slack_ns: libc::c_ulong = 1;
    // SAFETY: takes no pointer. It cannot fail, and if it did waits would only be longer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns) };
}

pub(crate) fn new_epoll() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointer.
    let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    done(fd)?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Watches a socket: edges of `events`, reported with `token`.
pub(crate) fn watch(
    epoll: &OwnedFd,
    socket: &impl AsRawFd,
    events: i32,
    token: u64,
) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: token };
    // SAFETY: the event is live; the kernel copies it.
    done(unsafe {
        libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, socket.as_raw_fd(), &mut event)
    })
}

/// Waits for events; returns their number.
pub(crate) fn wait(
    epoll: &OwnedFd,
    events: &mut [libc::epoll_event],
    wait: Duration,
) -> io::Result<usize> {
    let limit = libc::timespec {
        tv_sec: wait.as_secs() as libc::time_t,
        tv_nsec: wait.subsec_nanos() as _,
    };
    // The C library's own `epoll_pwait2` is younger than the kernel's. SAFETY: the events are a
    // live, exclusive slice of the given length; the limit is live; there is no signal mask.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            events.as_mut_ptr(),
            events.len() as libc::c_int,
            &limit,
            ptr::null::<libc::sigset_t>(),
            0usize,
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// The same by `epoll_wait`, for kernels before 5.11; waits are rounded up to ms.
pub(crate) fn wait_ms(
    epoll: &OwnedFd,
    events: &mut [libc::epoll_event],
    wait: Duration,
) -> io::Result<usize> {
    let limit = wait.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as libc::c_int;
    // SAFETY: the events are a live, exclusive slice of the given length.
    let count = unsafe {
        libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), events.len() as libc::c_int, limit)
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

fn done(result: libc::c_int) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
