//! The first line of defence: the kernel kills the server when the thread that started it ends.
//! That thread is therefore one of its own, which ends after the server.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use model::cpu_list;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::prctl;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, getpid, getppid};

#[derive(Debug)]
pub(super) enum SpawnError {
    Cpus(String),
    Start(io::Error),
}

/// Interval of polls of the stop flag.
const POLL: Duration = Duration::from_millis(50);

/// A child process from its start to its end.
#[derive(Debug)]
pub(super) struct ServerProcess {
    pid: u32,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    ended: Mutex<Option<ExitStatus>>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<ExitStatus>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerProcess {
    /// Starts `command` on `cpus`, in a process group of its own, with `mark` open in it.
    pub fn start(
        mut command: Command,
        cpus: Option<&[u32]>,
        mark: BorrowedFd<'_>,
    ) -> Result<Self, SpawnError> {
        // Ctrl-C in a terminal must reach kvmeter only, which then ends the server.
        command.process_group(0);
        bind_to_parent(&mut command, mark);
        let shared = Arc::new(Shared::default());
        let thread_shared = Arc::clone(&shared);
        let cpus = cpus.map(<[u32]>::to_vec);
        let (sender, receiver) = mpsc::channel();
        thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || {
                // A child inherits the affinity of the thread that starts it.
                let started = match cpus.map_or(Ok(()), |cpus| move_to(&cpus)) {
                    Ok(()) => command.spawn().map_err(SpawnError::Start),
                    Err(why) => Err(SpawnError::Cpus(why)),
                };
                drop(command);
                match started {
                    Ok(child) => {
                        // The receiver is dropped only if kvmeter panics: the wait goes on.
                        let _ = sender.send(Ok(child.id()));
                        reap(child, &thread_shared);
                    }
                    Err(error) => {
                        let _ = sender.send(Err(error));
                    }
                }
            })
            .map_err(SpawnError::Start)?;
        let pid = receiver.recv().map_err(|error| SpawnError::Start(io::Error::other(error)))??;
        Ok(ServerProcess { pid, shared })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn ended(&self) -> Option<ExitStatus> {
        *self.shared.lock()
    }

    /// Waits until it has ended, at most `limit`.
    pub fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        let ended = self
            .shared
            .changed
            .wait_timeout_while(self.shared.lock(), limit, |ended| ended.is_none());
        *ended.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The same, until `stop` is set.
    pub fn wait_unless(&self, stop: &AtomicBool, limit: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + limit;
        loop {
            let remaining = until.saturating_duration_since(Instant::now());
            let ended = self.wait(remaining.min(POLL));
            if ended.is_some() || remaining <= POLL || stop.load(Ordering::Relaxed) {
                return ended;
            }
        }
    }

    /// Signals its process group, if it has not ended.
    pub fn signal(&self, signal: Signal) {
        // While the lock is held the child is not reaped, and its pid not reused.
        let ended = self.shared.lock();
        if ended.is_none() {
            // A zombie needs no signal.
            let _ = killpg(Pid::from_raw(self.pid.cast_signed()), signal);
        }
    }
}

/// Waits for the child and publishes how it ended.
fn reap(mut child: Child, shared: &Shared) {
    let pid = Pid::from_raw(child.id().cast_signed());
    // Ended, but not reaped yet.
    while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
    let mut ended = shared.lock();
    // A status that another thread took is still an end.
    *ended = Some(child.wait().unwrap_or_default());
    shared.changed.notify_all();
}

/// Makes the kernel kill the child when this thread ends, and leaves `mark` open in it.
fn bind_to_parent(command: &mut Command, mark: BorrowedFd<'_>) {
    let parent = getpid();
    let mark = std::os::fd::AsRawFd::as_raw_fd(&mark);
    let bind = move || {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have ended just before.
        if getppid() != parent {
            return Err(Errno::ESRCH.into());
        }
        // SAFETY: the descriptor is open in the parent until the child has been started.
        let mark = unsafe { BorrowedFd::borrow_raw(mark) };
        fcntl(mark, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made, nothing is allocated or locked.
    unsafe { command.pre_exec(bind) };
}

/// Moves this thread to exactly these CPUs.
fn move_to(cpus: &[u32]) -> Result<(), String> {
    let refused = |why: &str| {
        // Those of the whole process, whatever this thread may use.
        let allowed = affinity::of_process(std::process::id()).unwrap_or_default();
        let (cpus, allowed) = (cpu_list::show(cpus), cpu_list::show(&allowed));
        format!("CPUs {cpus}: {why}; kvmeter may use CPUs {allowed}")
    };
    let got = affinity::restrict(cpus).and_then(|()| affinity::of_thread());
    match got.map_err(|error| refused(&error.to_string()))? == cpus {
        true => Ok(()),
        // The kernel silently leaves out missing CPUs.
        false => Err(refused("not all of them are there")),
    }
}
