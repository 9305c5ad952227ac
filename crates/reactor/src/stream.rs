use std::io::{self, Read, Write};
use std::net::TcpStream;

use rustls::ClientConnection;

use crate::session::Session;
use crate::socket::Socket;
use tls::TlsFailure;

/// A connected, blocking stream: for the handshake with a server, then for a [`crate::Reactor`].
///
/// Every read and write ends within the limit that it was connected with, with
/// `io::ErrorKind::TimedOut`. It may be created in one thread and used in another.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

impl Stream {
    pub(crate) fn new(socket: Socket, tls: Option<Box<ClientConnection>>) -> Stream {
        Stream { socket, tls }
    }

    /// The parts that a reactor works with.
    pub(crate) fn into_parts(self) -> (Socket, Option<Session>) {
        (self.socket, self.tls.map(Session::new))
    }

    /// Limits each read and write anew.
    ///
    /// # Errors
    /// A limit that the kernel does not take.
    pub fn set_limit(&self, limit: std::time::Duration) -> io::Result<()> {
        self.socket.limit(limit)
    }

    /// Whether this is TCP, the only family with receive timestamps.
    pub fn is_tcp(&self) -> bool {
        self.socket.is_tcp()
    }
}

/// A connected stream.
impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Stream {
        Stream::new(Socket::Tcp(socket), None)
    }
}

/// A connected stream.
impl From<std::os::unix::net::UnixStream> for Stream {
    fn from(socket: std::os::unix::net::UnixStream) -> Stream {
        Stream::new(Socket::Unix(socket), None)
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(into),
            Some(tls) => {
                rustls::Stream::new(tls.as_mut(), &mut self.socket).read(into).map_err(explained)
            }
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.write(from),
            Some(tls) => {
                rustls::Stream::new(tls.as_mut(), &mut self.socket).write(from).map_err(explained)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(tls) => {
                rustls::Stream::new(tls.as_mut(), &mut self.socket).flush().map_err(explained)
            }
        }
    }
}

/// TLS 1.3 servers refuse a client's certificate only after the handshake, so that reads and writes
/// need the same explanations as connecting.
fn explained(error: io::Error) -> io::Error {
    match TlsFailure::inside(&error) {
        Some(failure) => io::Error::new(error.kind(), failure),
        None => error,
    }
}
