use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::sys;

/// A connected stream socket of either family.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self, Socket::Tcp(_))
    }

    /// Limits every blocking read and write.
    pub(crate) fn limit(&self, limit: Duration) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => {
                socket.set_read_timeout(Some(limit))?;
                socket.set_write_timeout(Some(limit))
            }
            Socket::Unix(socket) => {
                socket.set_read_timeout(Some(limit))?;
                socket.set_write_timeout(Some(limit))
            }
        }
    }

    /// Disables Nagle's algorithm and blocking.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => socket.set_nodelay(true),
            Socket::Unix(_) => Ok(()),
        }
    }

    /// Closes both directions and drops data on its way: the peer gets a reset at the latest when
    /// this is dropped.
    pub(crate) fn abort(&self) {
        if self.is_tcp() {
            // Otherwise a peer in mid-answer would not be notified.
            let _ = sys::disable_linger(self);
        }
        self.shut();
    }

    /// Ends both directions; operations that the kernel still holds then end too.
    pub(crate) fn shut(&self) {
        // It may be closed already.
        let _ = match self {
            Socket::Tcp(socket) => socket.shutdown(std::net::Shutdown::Both),
            Socket::Unix(socket) => socket.shutdown(std::net::Shutdown::Both),
        };
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Socket::Tcp(socket) => socket.as_raw_fd(),
            Socket::Unix(socket) => socket.as_raw_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Socket::Tcp(socket) => socket.read(into),
            Socket::Unix(socket) => socket.read(into),
        })
    }
}

impl Write for Socket {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Socket::Tcp(socket) => socket.write(from),
            Socket::Unix(socket) => socket.write(from),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Retries interrupted calls: work of a ring interrupts its thread, and the kernel does not restart
/// calls with a timeout.
fn uninterrupted(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map_err(timed_out),
        }
    }
}

/// A blocking call that timed out returns `WouldBlock` on Linux.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => {
            io::Error::new(io::ErrorKind::TimedOut, "the server did not answer in time")
        }
        _ => error,
    }
}
