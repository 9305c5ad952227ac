//! The way in to a server: who comes is told from strangers, and no stranger keeps others out.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use model::Address;
use nix::sys::socket::{MsgFlags, recv};
use socket2::Socket;

use super::control::{Hello, LONGEST_HELLO, parse_hello};
use super::error::NetError;
use super::listener::Listener;

/// From the first to the last byte of a greeting, which is one line.
const GREETING: Duration = Duration::from_secs(10);
/// Greetings that are waited for at once; the oldest goes for one more.
const MOST_WAITING: usize = 1024;
/// After the system could take no connection, none is asked for so long.
const PAUSE: Duration = Duration::from_millis(100);

/// A listener, and those who have connected and are not known yet.
pub(super) struct Acceptor<'l> {
    listener: &'l Listener,
    waiting: VecDeque<(Socket, Instant)>,
    paused: Option<Instant>,
    /// What the system said when it could take none, until it can again.
    accept_error: Option<io::Error>,
}

/// Who came in.
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

    /// Who has come by now; waits for nobody.
    pub(super) fn poll(&mut self) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        self.accept(&mut arrivals);
        let now = Instant::now();
        for (socket, until) in std::mem::take(&mut self.waiting) {
            match greeting(&socket) {
                Ok(Some(hello)) => arrivals.push(Arrival::Identified(socket, parse_hello)),
                Ok(None) if now < until => self.waiting.push_back((socket, until)),
                Ok(None) => arrivals.push(Arrival::Rejected(NetError::Timeout {
                    what: "greeting",
                    seconds: GREETING.as_secs_f64(),
                })),
                Err(error) => arrivals.push(Arrival::Rejected(error)),
            }
        }
        arrivals
    }

    /// Why nobody can come in, where that is so.
    pub(super) fn accept_error(&mut self) -> Option<NetError> {
        self.accept_error.take().map(|source| NetError::Io { doing: "accepting", source })
    }

    fn accept(&mut self, arrivals: &mut Vec<Arrival>) {
        if self.paused.is_some_and(|paused| paused.elapsed() < PAUSE) {
            return;
        }
        self.paused = None;
        loop {
            match self.listener.accept() {
                Ok(Some(socket)) => {
                    self.accept_error = None;
                    if self.waiting.len() >= MOST_WAITING {
                        self.waiting.pop_front();
                    }
                    self.waiting.push_back((socket, Instant::now() + GREETING));
                    if self.waiting.len() >= MOST_WAITING {
                        return;
                    }
                }
                Ok(None) => return,
                Err(source) => {
                    // Most likely no descriptor is left. Strangers hold some.
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

/// What a connection has said of itself, without waiting; none while its line has no end. What
/// follows the line stays unread: it is not ours.
fn greeting(socket: &Socket) -> Result<Option<Hello>, NetError> {
    let failed = NetError::io("a new connection");
    let mut bytes = [0; LONGEST_HELLO];
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
        return match length < LONGEST_HELLO {
            true => Ok(None),
            false => Err(NetError::Protocol("a line without an end".to_owned())),
        };
    };
    let line = &mut bytes[..=end];
    let mut reader = socket;
    reader.read_exact(line).map_err(failed)?;
    parse_hello(line).map(Some)
}
