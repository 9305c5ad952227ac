use std::io;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};

use thiserror::Error;

use crate::incoming::Incoming;
use crate::session::Session;
use crate::socket::Socket;
use crate::stream::Stream;
use tls::TlsFailure;

/// Whether a connection can still be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionState {
    Open,
    /// The peer has closed it; data sent before can still be read.
    Closed,
    Failed(ConnectionFailure),
}

/// Why a connection failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConnectionFailure {
    /// More unconsumed bytes than the limit.
    #[error(
        "an answer is larger than {limit} bytes, the largest that is expected; use smaller values \
         or raise the limit"
    )]
    AnswerTooLarge { limit: usize },
    /// A TLS error.
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
    /// Plain text that the caller has appended and that is not yet in `in_flight`.
    pub(crate) outgoing: Vec<u8>,
    pub(crate) in_flight: SendBuffer,
    /// The caller has requested that `outgoing` be sent after `in_flight`.
    pub(crate) send_requested: bool,
    /// The socket's send buffer is full.
    pub(crate) blocked: bool,
    /// The socket may have more data, without another event.
    pub(crate) more: bool,
    pub(crate) incoming: Incoming,
    pub(crate) arrived: Option<u64>,
    /// The kernel timestamps segments.
    pub(crate) stamped: bool,
    pub(crate) state: ConnectionState,
    /// It is in the list of ready connections.
    pub(crate) queued: bool,
    /// How often this connection was replaced: identifies events of an old socket.
    pub(crate) generation: u32,
}

impl Connection {
    pub(crate) fn new(stream: Stream, generation: u32) -> Connection {
        let (socket, session) = stream.into_parts();
        Connection {
            socket,
            session,
            outgoing: Vec::new(),
            in_flight: SendBuffer::default(),
            send_requested: false,
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

    /// Replaces the stream; the buffers are cleared and kept.
    pub(crate) fn replace(&mut self, stream: Stream) {
        let mut fresh = Connection::new(stream, self.generation.wrapping_add(1));
        fresh.incoming = mem::take(&mut self.incoming);
        fresh.incoming.clear();
        fresh.outgoing = mem::take(&mut self.outgoing);
        fresh.outgoing.clear();
        fresh.queued = self.queued;
        fresh.in_flight.bytes = mem::take(&mut self.in_flight.bytes);
        fresh.in_flight.bytes.clear();
        // The kernel may still hold the old socket; its peer is notified at once.
        self.socket.shut();
        *self = fresh;
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state == ConnectionState::Open
    }

    /// Bytes that the socket has not taken.
    pub(crate) fn unsent(&self) -> usize {
        self.outgoing.len() + self.in_flight.rest().len()
    }

    /// Moves appended bytes in flight, encrypted with TLS. Only when nothing is in flight. Returns
    /// whether there is anything to send.
    pub(crate) fn start_flight(&mut self) -> Result<bool, ConnectionFailure> {
        debug_assert!(self.in_flight.is_empty());
        self.send_requested = false;
        self.in_flight.sent = 0;
        match &mut self.session {
            None => {
                self.in_flight.bytes.clear();
                mem::swap(&mut self.in_flight.bytes, &mut self.outgoing);
            }
            Some(session) => {
                self.in_flight.bytes.clear();
                session.encipher(&mut self.outgoing, &mut self.in_flight.bytes)?;
            }
        }
        Ok(!self.in_flight.is_empty())
    }

    /// Fails a connection with more unconsumed bytes than the largest answer.
    pub(crate) fn check_size(&self, largest_answer: usize) -> Result<(), ConnectionFailure> {
        match self.incoming.len() > largest_answer {
            true => Err(ConnectionFailure::AnswerTooLarge { limit: largest_answer }),
            false => Ok(()),
        }
    }
}
