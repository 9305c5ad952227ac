//! perf_event_open(2) with its ring of records, and sock_diag(7). All unsafe code of the crate is here.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_CLOCK,
    PERF_FLAG_FD_CLOEXEC, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_IP, PERF_SAMPLE_PERIOD,
    PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
    PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, perf_event_attr, perf_event_mmap_page,
};
use perf_event_open_sys::{ioctls, perf_event_open};

/// Bytes of a ring, powers of two, the first that this user may lock: 0.5 MiB may be locked for each
/// CPU by default.
const RINGS: [usize; 3] = [16 << 20, 4 << 20, 256 << 10];

/// Bytes of the stack that are copied: deep stacks of stores take some ten KiB, and a sample may
/// have 64 KiB.
const STACK: u32 = 32 << 10;

/// Registers that unwinding begins with, as bits in the order in which they come: frame pointer,
/// stack pointer and program counter of x86-64; those of Arm, and its link register.
/// `arch/x86/include/uapi/asm/perf_regs.h`, `arch/arm64/include/uapi/asm/perf_regs.h`.
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REGISTERS: u64 = 0;

/// How many there are.
pub(crate) const REGISTER_COUNT: usize = REGISTERS.count_ones() as usize;

/// What is counted until a sample is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trigger {
    Cycles,
    /// The software clock of CPU time.
    Clock,
    /// Each so manieth switch away from a CPU. All of them, and the switches back, are recorded with
    /// their times.
    Switches {
        period: u64,
    },
}

/// What interrupts a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventKind {
    pub trigger: Trigger,
    /// Also inside the kernel.
    pub kernel: bool,
    pub frequency: u64,
}

/// The number of the calling thread.
pub(crate) fn own_thread() -> u32 {
    // SAFETY: takes and returns a number.
    unsafe { libc::gettid() as u32 }
}

/// `CLOCK_MONOTONIC`, nanoseconds.
pub(crate) fn monotonic() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to the structure that it gets.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// An event of one thread, and of those that it starts, on one CPU. Stopped at first.
pub(crate) struct SampleEvent(OwnedFd);

impl SampleEvent {
    pub fn open(kind: EventKind, thread: u32, cpu: u32) -> io::Result<SampleEvent> {
        let (type_, config) = match kind.trigger {
            Trigger::Cycles => (PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES),
            Trigger::Clock => (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK),
            Trigger::Switches { .. } => (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES),
        };
        let mut attr = perf_event_attr {
            type_,
            size: mem::size_of::<perf_event_attr>() as u32,
            config: u64::from(config),
            sample_type: u64::from(
                PERF_SAMPLE_IP
                    | PERF_SAMPLE_TID
                    | PERF_SAMPLE_TIME
                    | PERF_SAMPLE_PERIOD
                    | PERF_SAMPLE_CALLCHAIN
                    | PERF_SAMPLE_REGS_USER
                    | PERF_SAMPLE_STACK_USER,
            ),
            sample_regs_user: REGISTERS,
            sample_stack_user: STACK,
            ..perf_event_attr::default()
        };
        match kind.trigger {
            Trigger::Switches { period } => attr.__bindgen_anon_1.sample_period = period,
            Trigger::Cycles | Trigger::Clock => {
                attr.__bindgen_anon_1.sample_freq = kind.frequency;
                attr.set_freq(1);
            }
        }
        attr.set_disabled(1);
        attr.set_inherit(1);
        attr.set_exclude_hv(1);
        attr.set_exclude_kernel(u64::from(!kind.kernel));
        attr.set_use_clockid(1);
        attr.clockid = libc::CLOCK_MONOTONIC;
        if matches!(kind.trigger, Trigger::Switches { .. }) {
            attr.set_context_switch(1);
            attr.set_sample_id_all(1);
        }
        // The program's part is unwound here.
        attr.set_exclude_callchain_user(1);
        // SAFETY: the structure is exclusively borrowed and states its own size.
        let descriptor = unsafe {
            perf_event_open(
                &raw mut attr,
                thread as i32,
                cpu as i32,
                -1,
                u64::from(PERF_FLAG_FD_CLOEXEC),
            )
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor without another owner.
        Ok(SampleEvent(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Sends its records to the ring of another event on the same CPU.
    pub fn send_to(&self, other: &SampleEvent) -> io::Result<()> {
        // SAFETY: two open descriptors.
        done(unsafe { ioctls::SET_OUTPUT(self.0.as_raw_fd(), other.0.as_raw_fd()) })
    }

    /// Takes a sample after so many events from now on.
    pub fn set_period(&self, period: u64) -> io::Result<()> {
        // SAFETY: an open descriptor, and the address of a number that outlives the call.
        done(unsafe { ioctls::PERIOD(self.0.as_raw_fd(), (&raw const period) as u64) })
    }

    pub fn switch(&self, on: bool) -> io::Result<()> {
        let descriptor = self.0.as_raw_fd();
        // SAFETY: an open descriptor; the argument is a number.
        done(unsafe {
            match on {
                true => ioctls::ENABLE(descriptor, 0),
                false => ioctls::DISABLE(descriptor, 0),
            }
        })
    }
}

fn done(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The records of the events of one CPU.
pub(crate) struct RecordRing {
    start: NonNull<u8>,
    page: usize,
    bytes: usize,
    /// Of the record that is being read, where it goes over the end.
    joined: Vec<u8>,
}

// SAFETY: the mapping belongs to the process, and only the owner reads it.
unsafe impl Send for RecordRing {}

impl RecordRing {
    pub fn of(event: &SampleEvent) -> io::Result<RecordRing> {
        let smaller = |_| RecordRing::map(event, RINGS[1]);
        let smallest = |_| RecordRing::map(event, RINGS[2]);
        RecordRing::map(event, RINGS[0]).or_else(smaller).or_else(smallest)
    }

    fn map(event: &SampleEvent, bytes: usize) -> io::Result<RecordRing> {
        // SAFETY: reads a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page + bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.0.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(RecordRing { start, page, bytes, joined: Vec::new() })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: a field of the first page, aligned, which both sides change as a whole.
        unsafe { self.start.add(offset).cast::<AtomicU64>().as_ref() }
    }

    fn byte_slice(&self, at: usize, bytes: usize) -> &[u8] {
        // SAFETY: within the mapping; the kernel writes there only after the tail has passed it.
        unsafe { std::slice::from_raw_parts(self.start.add(self.page + at).as_ptr(), bytes) }
    }

    /// Passes the records that are there to `each`, with their header.
    pub fn take(&mut self, mut each: impl FnMut(&[u8])) {
        /// Type, misc and size.
        const HEADER: usize = 8;
        let head_at = mem::offset_of!(perf_event_mmap_page, data_head);
        let tail_at = mem::offset_of!(perf_event_mmap_page, data_tail);
        let head = self.position(head_at).load(Ordering::Acquire);
        let mut tail = self.position(tail_at).load(Ordering::Relaxed);
        while tail < head {
            let at = tail as usize & (self.bytes - 1);
            // Records are multiples of 8, so that a header is never cut.
            let header = self.byte_slice(at, HEADER);
            let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if size < HEADER {
                tail = head;
                break;
            }
            if at + size <= self.bytes {
                each(self.byte_slice(at, size));
            } else {
                let mut joined = mem::take(&mut self.joined);
                joined.clear();
                joined.extend_from_slice(self.byte_slice(at, self.bytes - at));
                joined.extend_from_slice(self.byte_slice(0, size - (self.bytes - at)));
                each(&joined);
                self.joined = joined;
            }
            tail += size as u64;
        }
        self.position(tail_at).store(tail, Ordering::Release);
    }
}

impl Drop for RecordRing {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made above; no borrow outlives its owner.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.page + self.bytes) };
    }
}

/// A socket on which the kernel lists sockets, `sock_diag(7)`.
pub(crate) struct SocketLister(OwnedFd);

/// A kernel that does not answer is not waited for: an answer takes microseconds.
const ANSWER_LIMIT_S: libc::time_t = 2;

impl SocketLister {
    pub fn open() -> io::Result<SocketLister> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: takes numbers alone.
        let descriptor = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor without another owner.
        let lister = SocketLister(unsafe { OwnedFd::from_raw_fd(descriptor) });
        let limit = libc::timeval { tv_sec: ANSWER_LIMIT_S, tv_usec: 0 };
        // SAFETY: a structure that outlives the call, with its own size.
        done(unsafe {
            libc::setsockopt(
                descriptor,
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                (&raw const limit).cast(),
                size_of::<libc::timeval>() as libc::socklen_t,
            )
        })?;
        Ok(lister)
    }

    pub fn send(&self, request: &[u8]) -> io::Result<()> {
        // SAFETY: a live buffer with its length; the kernel is where netlink sends by default.
        let sent =
            unsafe { libc::send(self.0.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// One datagram of answers.
    pub fn receive<'a>(&self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        // SAFETY: a live buffer, exclusively borrowed, with its length.
        let received =
            unsafe { libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let bytes = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        Ok(&buffer[..bytes.min(buffer.len())])
    }
}
