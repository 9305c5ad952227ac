use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::time::Duration;

use crate::connection::{Connection, ConnectionFailure, ConnectionState};
use crate::counters::Counters;
use crate::engine::EngineOptions;
use crate::epoll::Epoll;
use crate::gather::Gather;
use crate::shared::Shared;
use crate::stream::Stream;
use crate::sys;
use crate::uring::Uring;
use model::Engine;

/// The longest that a poll without a limit waits.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

#[derive(Debug)]
enum Poller {
    Epoll(Epoll),
    Uring(Box<Uring>),
}

/// Many connections, driven by one thread without blocking.
///
/// A connection is known by its number, from 0, in the order in which they were added. In each
/// round: append requests to [`Reactor::outgoing`], [`Reactor::send`], [`Reactor::poll`], then for
/// each [`Reactor::ready`] connection consume the whole answers of [`Reactor::incoming`] and look
/// at its [`Reactor::state`]. Whole answers should be consumed before the next poll, for what is
/// unconsumed counts as one answer against `largest_answer`.
///
/// It stays in the thread that made it: io_uring takes work from one thread only,
/// and for epoll that thread's timer slack is set to 1 ns, so that waits end on time.
///
/// # Panics
/// Functions that take a connection's number panic when there is none of it.
#[derive(Debug)]
pub struct Reactor {
    poller: Poller,
    shared: Shared,
    _one_thread: PhantomData<*const ()>,
}

impl Reactor {
    /// # Errors
    /// The engine is not available here ([`io::ErrorKind::Unsupported`], holding
    /// an [`crate::EngineUnavailable`]), or the kernel has no more descriptors.
    pub fn new(options: EngineOptions) -> io::Result<Reactor> {
        let poller = match options.engine {
            Engine::Epoll => Poller::Epoll(Epoll::new()?),
            Engine::IoUring => Poller::Uring(Box::new(Uring::new()?)),
        };
        let shared = Shared {
            options,
            connections: Vec::new(),
            counters: Counters::default(),
            ready: VecDeque::new(),
        };
        Ok(Reactor { poller, shared, _one_thread: PhantomData })
    }

    /// Adds a connection; returns its number.
    ///
    /// # Errors
    /// The kernel's refusal to set an option or to watch one more socket.
    pub fn add(&mut self, stream: Stream) -> io::Result<usize> {
        let number = self.shared.connections.len();
        let connection = Connection::new(stream, 0);
        self.shared.connections.push(connection);
        let started = self.start(number);
        if started.is_err() {
            self.shared.connections.pop();
        }
        started.map(|()| number)
    }

    /// Replaces the stream of a connection. Its buffers are cleared; no data of the old stream
    /// arrives any more.
    ///
    /// # Errors
    /// The kernel's refusal to set an option or to watch one more socket; the
    /// connection has then failed, and can be replaced again.
    pub fn replace(&mut self, conn: usize, stream: Stream) -> io::Result<()> {
        if let Poller::Uring(uring) = &mut self.poller {
            uring.discard(conn as u32);
        }
        self.shared.connections[conn].replace(stream);
        let started = self.start(conn);
        if let Err(error) = &started {
            let failure = ConnectionFailure::Io { kind: error.kind(), words: error.to_string() };
            self.shared.fail(conn as u32, failure);
        }
        started
    }

    fn start(&mut self, number: usize) -> io::Result<()> {
        let connection = &mut self.shared.connections[number];
        connection.socket().prepare()?;
        if self.shared.options.timestamps && connection.socket().is_tcp() {
            sys::enable_stamps(connection.socket())?;
            connection.stamped = true;
        }
        match &mut self.poller {
            Poller::Epoll(epoll) => epoll.add(number as u32, connection)?,
            Poller::Uring(uring) => uring.add(number as u32),
        }
        // The handshake may have decrypted more than it read.
        let early = match &mut connection.session {
            None => Ok(false),
            Some(session) => session.decipher(&[], &mut connection.incoming),
        };
        let some = connection.incoming.len() > 0;
        match early {
            Err(failure) => self.shared.fail(number as u32, ConnectionFailure::Tls(failure)),
            Ok(true) => self.shared.end(number as u32, ConnectionState::Closed),
            Ok(false) if some => self.shared.make_ready(number as u32),
            Ok(false) => {}
        }
        Ok(())
    }

    /// How many connections there are.
    pub fn len(&self) -> usize {
        self.shared.connections.len()
    }

    /// Whether there are no connections.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffer for whole requests. Existing content is not sent yet and must not be changed.
    pub fn outgoing(&mut self, conn: usize) -> &mut Vec<u8> {
        &mut self.shared.connections[conn].outgoing
    }

    /// Bytes that the connection's socket has not taken (enciphered where they are).
    pub fn unsent(&self, conn: usize) -> usize {
        self.shared.connections[conn].unsent()
    }

    /// Sends appended requests: epoll writes now as far as the socket takes them and the rest when
    /// there is room; io_uring sends it with the next [`Reactor::poll`]. Nothing happens on a
    /// connection that is not open.
    pub fn send(&mut self, conn: usize) {
        if !self.shared.connections[conn].is_open() {
            return;
        }
        match &mut self.poller {
            Poller::Epoll(epoll) => epoll.send(conn as u32, &mut self.shared),
            Poller::Uring(uring) => uring.send(conn as u32, &mut self.shared.connections[conn]),
        }
    }

    /// Sends what is queued, then waits until a connection is ready or `wait` is
    /// over (`None`: 100 ms). Returns at once when some are ready already, and may
    /// come back early with none. How many connections are ready.
    ///
    /// A wait of zero never sleeps. With io_uring that is no system call while there is nothing to
    /// do.
    ///
    /// # Errors
    /// The kernel's, about the waiting itself; those of a connection are its state.
    pub fn poll(&mut self, wait: Option<Duration>) -> io::Result<usize> {
        self.poll_many(wait, Gather::NONE)
    }

    /// As [`Reactor::poll`], but sleeps until several connections have received something, so that
    /// one wake-up serves them all. Only for io_uring with minimal waits (Linux 6.12); otherwise
    /// the first ends the wait.
    ///
    /// # Errors
    /// As [`Reactor::poll`].
    pub fn poll_many(&mut self, wait: Option<Duration>, gather: Gather) -> io::Result<usize> {
        let wait = wait.unwrap_or(LONGEST_WAIT);
        match &mut self.poller {
            Poller::Epoll(epoll) => epoll.poll(wait, &mut self.shared)?,
            Poller::Uring(uring) => uring.poll(wait, gather, &mut self.shared)?,
        }
        let ready = self.shared.ready.len();
        self.shared.counters.wakeups += u64::from(ready > 0);
        Ok(ready)
    }

    /// The next connection that has received something or has ended.
    pub fn ready(&mut self) -> Option<usize> {
        let number = self.shared.ready.pop_front()? as usize;
        self.shared.connections[number].queued = false;
        Some(number)
    }

    /// Received bytes that are not consumed, in plain text.
    pub fn incoming(&self, conn: usize) -> &[u8] {
        self.shared.connections[conn].incoming.as_slice()
    }

    /// When the kernel got the newest segment of what was last received, in ns of `CLOCK_REALTIME`:
    /// at the network card's interrupt or the loopback's, before this process was woken. `None`
    /// without timestamps, on unix sockets, and for the first segments after the kernel's
    /// timestamps were enabled.
    ///
    /// Several segments that were received at once have one time, the newest's; an answer that
    /// ended in an earlier one then has a late timestamp.
    pub fn arrived(&self, conn: usize) -> Option<u64> {
        self.shared.connections[conn].arrived
    }

    /// Drops the first `bytes` of the received data.
    pub fn consume(&mut self, conn: usize, bytes: usize) {
        self.shared.connections[conn].incoming.consume(bytes);
    }

    /// Whether the connection can still be used, and why not.
    pub fn state(&self, conn: usize) -> ConnectionState {
        self.shared.connections[conn].state.clone()
    }

    /// The system calls so far.
    pub fn counters(&self) -> Counters {
        self.shared.counters
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        // A ring releases its sockets only some time after it is closed.
        for connection in &self.shared.connections {
            connection.socket().shut();
        }
    }
}
