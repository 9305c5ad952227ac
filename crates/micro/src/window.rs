//! Reports the window of a microbenchmark to the process that watches the machine meanwhile.
//!
//! Each edge is a datagram to a socket with an abstract name (unix(7)): it wakes the listener at
//! once, takes some microseconds and needs no file.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// An end of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowEdge {
    Opens,
    Closes,
}

impl WindowEdge {
    const ALL: [WindowEdge; 2] = [WindowEdge::Opens, WindowEdge::Closes];

    const fn word(self) -> &'static [u8] {
        match self {
            WindowEdge::Opens => b"opens",
            WindowEdge::Closes => b"closes",
        }
    }
}

/// Receives the window of a process that knows its name.
#[derive(Debug)]
pub struct WindowListener {
    socket: UnixDatagram,
    name: String,
}

impl WindowListener {
    /// # Errors
    /// The system has no more sockets for this process.
    pub fn new() -> io::Result<WindowListener> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kvmeter-window-{}-{number}", process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        Ok(WindowListener { socket, name })
    }

    /// For [`WindowReporter::connect`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits for the next edge; none within `limit`, which is not zero.
    pub fn wait_for_edge(&self, limit: Duration) -> Option<WindowEdge> {
        self.socket.set_read_timeout(Some(limit)).ok()?;
        let mut word = [0; 16];
        let len = self.socket.recv(&mut word).ok()?;
        WindowEdge::ALL.into_iter().find(|edge| edge.word() == &word[..len])
    }
}

/// Reports the edges of a window.
#[derive(Debug)]
pub struct WindowReporter(UnixDatagram);

impl WindowReporter {
    /// # Errors
    /// Nothing listens by this name.
    pub fn connect(name: &str) -> io::Result<WindowReporter> {
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        Ok(WindowReporter(socket))
    }

    /// Reports an edge, unless the listener has ended.
    pub fn report(&self, edge: WindowEdge) {
        let _ = self.0.send(edge.word());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    #[test]
    fn both_edges_arrive_in_order() {
        let listener = WindowListener::new().unwrap();
        let other = WindowListener::new().unwrap();
        let reporter = WindowReporter::connect(listener.name()).unwrap();
        reporter.report(WindowEdge::Opens);
        reporter.report(WindowEdge::Closes);
        assert_eq!(listener.wait_for_edge(SOON), Some(WindowEdge::Opens));
        assert_eq!(listener.wait_for_edge(SOON), Some(WindowEdge::Closes));
        assert_eq!(listener.wait_for_edge(Duration::from_millis(1)), None);
        assert_eq!(other.wait_for_edge(Duration::from_millis(1)), None);
    }

    #[test]
    fn an_ended_listener_is_not_waited_for() {
        let listener = WindowListener::new().unwrap();
        let reporter = WindowReporter::connect(listener.name()).unwrap();
        let name = listener.name().to_owned();
        drop(listener);
        reporter.report(WindowEdge::Opens);
        assert!(WindowReporter::connect(&name).is_err());
    }
}
