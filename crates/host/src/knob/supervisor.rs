//! A second process that puts the knobs back when the first one is killed.
//!
//! It is the same program, started before the first write in a session of its own, which Ctrl-C
//! does not reach. It shares the lock of the journal and has one end of a socket. When the socket
//! closes without a goodbye, the first process has died, and the supervisor follows the journal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use safe_file::Lock;

use super::error::KnobError;
use super::journal::Journal;
use super::restore::RestoreOutcome;
use crate::root::Root;

const READY: &[u8; 1] = b"r";
const GOODBYE: &[u8; 1] = b"g";
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// The first process's side.
pub(super) struct KnobSupervisor {
    child: Child,
    line: UnixStream,
}

impl KnobSupervisor {
    /// Starts the process and waits until it is ready. `lock` is shared with it, so that no other
    /// process turns knobs before it has put them back.
    pub(super) fn start(mut command: Command, lock: &Lock) -> Result<KnobSupervisor, KnobError> {
        let failed = |error: std::io::Error| KnobError::Supervisor { why: error.to_string() };
        let (mut line, its) = UnixStream::pair().map_err(failed)?;
        command.stdin(OwnedFd::from(its)).stdout(lock.share().map_err(failed)?);
        let child = command.stderr(Stdio::inherit()).spawn().map_err(failed)?;
        // The command holds the other end of the socket; dropped, the socket closes with the child.
        drop(command);
        let mut supervisor = KnobSupervisor { child, line: line.try_clone().map_err(failed)? };
        let mut ready = [0];
        let answer =
            line.set_read_timeout(Some(START_TIMEOUT)).and_then(|()| line.read_exact(&mut ready));
        match answer {
            Ok(()) if ready == *READY => Ok(supervisor),
            Ok(()) => Err(supervisor.failed("its answer is unexpected")),
            Err(error) => Err(supervisor.failed(&error.to_string())),
        }
    }

    fn failed(&mut self, why: &str) -> KnobError {
        let _ = self.child.kill();
        let _ = self.child.wait();
        KnobError::Supervisor { why: format!("the supervisor does not answer: {why}") }
    }

    /// Dismisses it: everything is put back, or is to stay.
    pub(super) fn dismiss(mut self) {
        // If it was killed, there is nothing left for it to do.
        let _ = self.line.write_all(GOODBYE);
        let _ = self.line.shutdown(std::net::Shutdown::Both);
        let limit = Instant::now() + START_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < limit {
            thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The supervisor's side: standard input is the socket, standard output the locked file. Returns
/// what it had to put back, if anything.
pub fn run(root: &Root, folder: &Path) -> Result<Option<RestoreOutcome>, KnobError> {
    let failed = |why: String| KnobError::Supervisor { why };
    // It must outlive the signals that end its terminal or service.
    SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT])
        .thread_block()
        .map_err(|error| failed(error.to_string()))?;
    // Fails if it leads a session already, which is as good.
    let _ = nix::unistd::setsid();
    let own = |fd: std::os::fd::BorrowedFd<'_>| {
        fd.try_clone_to_owned().map_err(|error| failed(error.to_string()))
    };
    let lock = File::from(own(std::io::stdout().as_fd())?);
    let mut line = UnixStream::from(own(std::io::stdin().as_fd())?);
    line.write_all(READY).map_err(|error| failed(error.to_string()))?;
    let mut message = [0];
    if matches!(line.read(&mut message), Ok(1)) && message == *GOODBYE {
        return Ok(None);
    }
    Journal::inherited(root, folder, Lock::inherited(lock))?.put_back_running()
}
