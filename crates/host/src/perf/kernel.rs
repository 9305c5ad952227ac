//! The system call layer: open, start, stop and read one event.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd};

use perf_event_open_sys::bindings::{
    PERF_FLAG_FD_CLOEXEC, PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING,
    PERF_IOC_FLAG_GROUP, perf_event_attr,
};
use perf_event_open_sys::{ioctls, perf_event_open};

use super::encoding::EncodedEvent;

/// An event and whether the threads that its target starts are counted too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfEvent {
    pub encoded: EncodedEvent,
    pub inherit: bool,
}

/// Where an event is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PerfTarget {
    /// One thread, on whichever CPU it runs.
    Thread(u32),
    /// One CPU with all its threads; for a PMU outside the cores the unit of that CPU.
    Cpu(u32),
}

/// An event that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PerfHandle(pub usize);

/// The count of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerfCount {
    pub value: u64,
    /// Nanoseconds for which it was enabled, and for which it really counted.
    pub enabled_ns: u64,
    pub running_ns: u64,
}

/// The kernel's error number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    fn last() -> Errno {
        Errno::from(&io::Error::last_os_error())
    }

    fn from(error: &io::Error) -> Errno {
        Errno(error.raw_os_error().unwrap_or_default())
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", nix::errno::Errno::from_raw(self.0))
    }
}

/// The running kernel, or a fake for tests.
pub trait PerfKernel: Send {
    /// Opens an event, stopped, in the group of `leader` or as a new group's leader.
    ///
    /// # Errors
    /// The kernel's error number.
    fn open(
        &mut self,
        event: &PerfEvent,
        target: PerfTarget,
        leader: Option<PerfHandle>,
    ) -> Result<PerfHandle, Errno>;

    /// Starts (or stops) a leader and its group, inherited threads' too.
    ///
    /// # Errors
    /// The kernel's error number.
    fn switch(&mut self, leader: PerfHandle, on: bool) -> Result<(), Errno>;

    /// Reads an event.
    ///
    /// # Errors
    /// The kernel's error number.
    fn read(&mut self, handle: PerfHandle) -> Result<PerfCount, Errno>;
}

/// The running kernel. Events close when it is dropped.
#[derive(Debug, Default)]
pub struct RunningKernel {
    files: Vec<File>,
}

impl RunningKernel {
    fn file(&mut self, handle: PerfHandle) -> Result<&mut File, Errno> {
        self.files.get_mut(handle.0).ok_or(Errno(nix::errno::Errno::EBADF as i32))
    }
}

impl PerfKernel for RunningKernel {
    fn open(
        &mut self,
        event: &PerfEvent,
        target: PerfTarget,
        leader: Option<PerfHandle>,
    ) -> Result<PerfHandle, Errno> {
        let group = match leader {
            Some(leader) => self.file(leader)?.as_raw_fd(),
            None => -1,
        };
        let (pid, cpu) = match target {
            PerfTarget::Thread(tid) => (tid as i32, -1),
            PerfTarget::Cpu(cpu) => (-1, cpu as i32),
        };
        let encoded = &event.encoded;
        let mut attr = perf_event_attr {
            size: mem::size_of::<perf_event_attr>() as u32,
            type_: encoded.kind,
            config: encoded.config[0],
            read_format: u64::from(PERF_FORMAT_TOTAL_TIME_ENABLED)
                | u64::from(PERF_FORMAT_TOTAL_TIME_RUNNING),
            ..perf_event_attr::default()
        };
        attr.config1 = encoded.config[1];
        attr.config2 = encoded.config[2];
        // Members follow their leader; a leader waits for `switch`.
        attr.set_disabled(u64::from(leader.is_none()));
        attr.set_inherit(u64::from(event.inherit));
        attr.set_exclude_kernel(u64::from(encoded.only_user));
        attr.set_exclude_hv(u64::from(encoded.only_user));
        attr.set_exclude_user(u64::from(encoded.only_kernel));
        // SAFETY: `attr` is a whole attribute of the size that it states and lives
        // through the call; the call returns a descriptor that nothing else owns.
        #[allow(unsafe_code)]
        let fd =
            unsafe { perf_event_open(&raw mut attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC.into()) };
        if fd < 0 {
            return Err(Errno::last());
        }
        // SAFETY: the descriptor is fresh from the kernel and has no other owner.
        #[allow(unsafe_code)]
        let file = unsafe { File::from_raw_fd(fd) };
        self.files.push(file);
        Ok(PerfHandle(self.files.len() - 1))
    }

    fn switch(&mut self, leader: PerfHandle, on: bool) -> Result<(), Errno> {
        let fd = self.file(leader)?.as_raw_fd();
        let call = if on { ioctls::ENABLE } else { ioctls::DISABLE };
        // SAFETY: the descriptor is open for as long as `self.files` holds it, and
        // both requests take a flag and no pointer.
        #[allow(unsafe_code)]
        let result = unsafe { call(fd, PERF_IOC_FLAG_GROUP) };
        if result < 0 { Err(Errno::last()) } else { Ok(()) }
    }

    fn read(&mut self, handle: PerfHandle) -> Result<PerfCount, Errno> {
        let mut bytes = [0; 24];
        let file = self.file(handle)?;
        let read = file.read(&mut bytes).map_err(|error| Errno::from(&error))?;
        // The kernel gives nothing for an event that went into the error state.
        if read != bytes.len() {
            return Err(Errno(nix::errno::Errno::ENODEV as i32));
        }
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at * 8..at * 8 + 8]);
            u64::from_ne_bytes(word)
        };
        Ok(PerfCount { value: word(0), enabled_ns: word(1), running_ns: word(2) })
    }
}
