use std::io;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};

use thiserror::Error;

use crate::incoming::Incoming;
use crate::session::Session;
use crate::socket::Socket;
use crate::stream::Stream;
use crate::tls::TlsFailure;

/// Whether a connection can still be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionState {
    Open,
    /// The peer has ended it; what it sent before is still there to be read.
    Closed,
    Failed(ConnectionFailure),
}

/// Why a connection is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConnectionFailure {
    /// The server sends on although so much is unconsumed.
    #[error(
        "an answer is larger than {limit} bytes, the largest that is expected; \
         ask for smaller values or raise the limit"
    )]
    AnswerTooLarge { limit: usize },
    /// TLS found something wrong.
    #[error("TLS: {0}")]
    Tls(TlsFailure),
    /// The socket's error.
    #[error("{words}")]
    Io { kind: io::ErrorKind, words: String },
}

impl From<io::Error> for ConnectionFailure {
    fn from(error: io::Error) -> ConnectionFailure {
        ConnectionFailure::Io { kind: error.kind(), words: error.to_string() }
    }
}

/// Bytes on their way out, while the caller appends to another buffer.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sent: usize,
}

impl SendBuffer {
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }
}

/// One connection, whichever engine moves its bytes.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Socket,
    pub(crate) session: Option<Session>,
    /// Plain text that the caller has appended and that is not yet in `flight`.
    pub(crate) outgoing: Vec<u8>,
    pub(crate) flight: SendBuffer,
    /// The caller has asked for `outgoing` to follow what is in `flight`.
    pub(crate) asked: bool,
    /// The socket takes no more for now.
    pub(crate) blocked: bool,
    /// The socket may have more than was received, and no event will tell.
    pub(crate) more: bool,
    pub(crate) incoming: Incoming,
    pub(crate) arrived: Option<u64>,
    /// The kernel notes when segments come.
    pub(crate) stamped: bool,
    pub(crate) state: ConnectionState,
    /// It waits in the list of ready connections.
    pub(crate) queued: bool,
    /// How often this connection was replaced: tells events of an old socket.
    pub(crate) generation: u32,
}

impl Connection {
    pub(crate) fn new(stream: Stream, generation: u32) -> Connection {
        let (socket, session) = stream.into_parts();
        Connection {
            socket,
            session,
            outgoing: Vec::new(),
            flight: SendBuffer::default(),
            asked: false,
            blocked: false,
            more: false,
            incoming: Incoming::default(),
            arrived: None,
            stamped: false,
            state: ConnectionState::Open,
            queued: false,
            generation,
        }
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Puts a new stream in the place of this one; the buffers are kept, empty.
    pub(crate) fn replace(&mut self, stream: Stream) {
        let mut fresh = Connection::new(stream, self.generation.wrapping_add(1));
        fresh.incoming = mem::take(&mut self.incoming);
        fresh.incoming.clear();
        fresh.outgoing = mem::take(&mut self.outgoing);
        fresh.outgoing.clear();
        fresh.queued = self.queued;
        fresh.flight.bytes = mem::take(&mut self.flight.bytes);
        fresh.flight.bytes.clear();
        // The kernel may still hold the old socket, whose peer should know at once.
        self.socket.shut();
        *self = fresh;
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state == ConnectionState::Open
    }

    /// Bytes that the socket has not taken.
    pub(crate) fn unsent(&self) -> usize {
        self.outgoing.len() + self.flight.rest().len()
    }

    /// Puts what was appended in flight, enciphered if need be. Only when nothing
    /// is in flight. Answers whether there is anything to send.
    pub(crate) fn take_off(&mut self) -> Result<bool, ConnectionFailure> {
        debug_assert!(self.flight.is_empty());
        self.asked = false;
        self.flight.sent = 0;
        match &mut self.session {
            None => {
                self.flight.bytes.clear();
                mem::swap(&mut self.flight.bytes, &mut self.outgoing);
            }
            Some(session) => {
                self.flight.bytes.clear();
                session.encipher(&mut self.outgoing, &mut self.flight.bytes)?;
            }
        }
        Ok(!self.flight.is_empty())
    }

    /// More has come although so much is unconsumed that no answer can be that large.
    pub(crate) fn check_size(&self, largest_answer: usize) -> Result<(), ConnectionFailure> {
        match self.incoming.len() > largest_answer {
            true => Err(ConnectionFailure::AnswerTooLarge { limit: largest_answer }),
            false => Ok(()),
        }
    }
}
