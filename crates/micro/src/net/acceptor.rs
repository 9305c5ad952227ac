//! Accepts connections to a server. Connections that send no valid greeting are rejected, and slow
//! ones do not block others.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use model::Address;
use nix::sys::socket::{MsgFlags, recv};
use socket2::Socket;

use super::control::{Hello, MAX_HELLO, parse_hello};
use super::error::NetError;
use super::listener::Listener;

/// Limit on receiving a greeting, which is one line.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections whose greeting is awaited; a further one displaces the oldest.
const MAX_WAITING: usize = 1024;
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener, and the connections whose greeting has not arrived yet.
pub(super) struct Acceptor<'l> {
    listener: &'l Listener,
    waiting: VecDeque<(Socket, Instant)>,
    paused: Option<Instant>,
    /// The error of the last accept, until one succeeds.
    accept_error: Option<io::Error>,
}

/// The outcome of a connection.
pub(super) enum Arrival {
    Identified(Socket, Hello),
    Rejected(NetError),
}

impl<'l> Acceptor<'l> {
    pub(super) fn new(listener: &'l Listener) -> Acceptor<'l> {
        Acceptor { listener, waiting: VecDeque::new(), paused: None, accept_error: None }
    }

    pub(super) fn address(&self) -> &Address {
        self.listener.address()
    }

    /// The connections that were identified or rejected by now; does not wait.
    pub(super) fn poll(&mut self) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        self.accept(&mut arrivals);
        let now = Instant::now();
        for (socket, until) in std::mem::take(&mut self.waiting) {
            match greeting(&socket) {
                Ok(Some(hello)) => arrivals.push(Arrival::Identified(socket, hello)),
                Ok(None) if now < until => self.waiting.push_back((socket, until)),
                Ok(None) => arrivals.push(Arrival::Rejected(NetError::Timeout {
                    what: "greeting",
                    seconds: HELLO_TIMEOUT.as_secs_f64(),
                })),
                Err(error) => arrivals.push(Arrival::Rejected(error)),
            }
        }
        arrivals
    }

    /// Takes the error of the last accept.
    pub(super) fn accept_error(&mut self) -> Option<NetError> {
        self.accept_error.take().map(|source| NetError::Io { doing: "accepting", source })
    }

    fn accept(&mut self, arrivals: &mut Vec<Arrival>) {
        if self.paused.is_some_and(|paused| paused.elapsed() < ACCEPT_PAUSE) {
            return;
        }
        self.paused = None;
        loop {
            match self.listener.accept() {
                Ok(Some(socket)) => {
                    self.accept_error = None;
                    if self.waiting.len() >= MAX_WAITING {
                        self.waiting.pop_front();
                    }
                    self.waiting.push_back((socket, Instant::now() + HELLO_TIMEOUT));
                    if self.waiting.len() >= MAX_WAITING {
                        return;
                    }
                }
                Ok(None) => return,
                Err(source) => {
                    // Most likely no descriptor is left, and unidentified connections hold some.
                    self.waiting.drain(..self.waiting.len().div_ceil(2));
                    self.paused = Some(Instant::now());
                    if self.accept_error.is_none() {
                        let source = io::Error::from(source.kind());
                        arrivals
                            .push(Arrival::Rejected(NetError::Io { doing: "accepting", source }));
                    }
                    self.accept_error = Some(source);
                    return;
                }
            }
        }
    }
}

/// The greeting of a connection, without waiting; none while its line is incomplete. What follows
/// the line stays unread for its later reader.
fn greeting(socket: &Socket) -> Result<Option<Hello>, NetError> {
    let failed = NetError::io("a new connection");
    let mut bytes = [0; MAX_HELLO];
    let length =
        match recv(socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT)
            .map_err(io::Error::from)
        {
            Ok(0) => return Err(NetError::Closed { doing: "a new connection" }),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
    let Some(end) = bytes[..length].iter().position(|byte| *byte == b'\n') else {
        return match length < MAX_HELLO {
            true => Ok(None),
            false => Err(NetError::Protocol("a line without an end".to_owned())),
        };
    };
    let line = &mut bytes[..=end];
    let mut reader = socket;
    reader.read_exact(line).map_err(failed)?;
    parse_hello(line).map(Some)
}
