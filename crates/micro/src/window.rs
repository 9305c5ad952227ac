//! The window of a microbenchmark, told to the process that watches the machine meanwhile.
//!
//! A datagram to a socket with an abstract name (unix(7)): it wakes the listener at once, takes some
//! microseconds, needs no file, and is gone with the processes.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// An end of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    Opens,
    Closes,
}

impl Edge {
    const ALL: [Edge; 2] = [Edge::Opens, Edge::Closes];

    const fn word(self) -> &'static [u8] {
        match self {
            Edge::Opens => b"opens",
            Edge::Closes => b"closes",
        }
    }
}

/// Hears of the window of a process that is told its name.
#[derive(Debug)]
pub struct Listener {
    socket: UnixDatagram,
    name: String,
}

impl Listener {
    /// # Errors
    /// The system has no more sockets for this process.
    pub fn new() -> io::Result<Listener> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kvmeter-window-{}-{number}", process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        Ok(Listener { socket, name })
    }

    /// For [`Teller::to`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is told next; none within `limit`, which is not zero.
    pub fn hear(&self, limit: Duration) -> Option<Edge> {
        self.socket.set_read_timeout(Some(limit)).ok()?;
        let mut word = [0; 16];
        let len = self.socket.recv(&mut word).ok()?;
        Edge::ALL.into_iter().find(|edge| edge.word() == &word[..len])
    }
}

/// Tells of its window.
#[derive(Debug)]
pub struct Teller(UnixDatagram);

impl Teller {
    /// # Errors
    /// Nobody listens by this name.
    pub fn to(name: &str) -> io::Result<Teller> {
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        Ok(Teller(socket))
    }

    /// A listener that has gone is not told.
    pub fn say(&self, edge: Edge) {
        let _ = self.0.send(edge.word());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    #[test]
    fn both_edges_are_heard_in_their_order() {
        let listener = Listener::new().unwrap();
        let other = Listener::new().unwrap();
        let teller = Teller::to(listener.name()).unwrap();
        teller.say(Edge::Opens);
        teller.say(Edge::Closes);
        assert_eq!(listener.hear(SOON), Some(Edge::Opens));
        assert_eq!(listener.hear(SOON), Some(Edge::Closes));
        assert_eq!(listener.hear(Duration::from_millis(1)), None);
        assert_eq!(other.hear(Duration::from_millis(1)), None);
    }

    #[test]
    fn nobody_waits_for_one_that_has_gone() {
        let listener = Listener::new().unwrap();
        let teller = Teller::to(listener.name()).unwrap();
        let name = listener.name().to_owned();
        drop(listener);
        teller.say(Edge::Opens);
        assert!(Teller::to(&name).is_err());
    }
}
