//! Listening, accepting and connecting.

use std::io;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::time::Duration;

use model::Address;
use socket2::{Domain, SockAddr, Socket, Type};

use super::error::NetError;

const BACKLOG: i32 = 4096;

/// A listening socket; dropping it removes the file of a unix socket.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: Address,
    file: Option<PathBuf>,
}

impl Listener {
    /// Listens on an address; port 0 is any free one.
    ///
    /// # Errors
    /// The address is not of this machine, taken, or forbidden.
    pub fn bind(address: &Address) -> Result<Listener, NetError> {
        let refused = |source| NetError::Listen { place: address.to_string(), source };
        let mut last = io::Error::other("the host has no address");
        for place in sock_addrs(address).map_err(refused)? {
            match listen(&place) {
                Ok(socket) => {
                    let port = socket.local_addr().ok().and_then(|own| own.as_socket());
                    let (address, file) = match (address, port) {
                        (Address::Tcp { host, .. }, Some(own)) => {
                            (Address::Tcp { host: host.clone(), port: own.port() }, None)
                        }
                        (Address::Unix(path), _) => (address.clone(), Some(path.clone())),
                        (Address::Tcp { .. }, None) => (address.clone(), None),
                    };
                    return Ok(Listener { socket, address, file });
                }
                Err(error) => last = error,
            }
        }
        Err(refused(last))
    }

    /// The address, with the actual port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Accepts a pending connection, if there is one; it is in blocking mode.
    pub(super) fn accept(&self) -> io::Result<Option<Socket>> {
        loop {
            match self.socket.accept() {
                Ok((socket, _)) => return socket.set_nonblocking(false).map(|()| Some(socket)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                // The client gave up before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // It may be removed already.
            let _ = std::fs::remove_file(file);
        }
    }
}

fn sock_addrs(address: &Address) -> io::Result<Vec<SockAddr>> {
    Ok(match address {
        Address::Tcp { host, port } => {
            (host.as_str(), *port).to_socket_addrs()?.map(SockAddr::from).collect()
        }
        Address::Unix(path) => vec![SockAddr::unix(path)?],
    })
}

fn listen(place: &SockAddr) -> io::Result<Socket> {
    let socket = Socket::new(place.domain(), Type::STREAM, None)?;
    if place.domain() != Domain::UNIX {
        socket.set_reuse_address(true)?;
    }
    if let Err(error) = socket.bind(place) {
        let path = place.as_pathname().filter(|_| error.kind() == io::ErrorKind::AddrInUse);
        let Some(path) = path.filter(|_| is_stale(place)) else { return Err(error) };
        std::fs::remove_file(path)?;
        socket.bind(place)?;
    }
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Whether a socket file is of a server that has ended.
fn is_stale(place: &SockAddr) -> bool {
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None);
    let answer = probe.and_then(|probe| probe.connect(place));
    answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Connects a blocking stream to a listener.
///
/// # Errors
/// No such host, nothing listens, or no answer within `limit`.
pub(super) fn connect(address: &Address, kind: &str, limit: Duration) -> Result<Socket, NetError> {
    let refused = |error: io::Error| {
        let why = match error.kind() {
            io::ErrorKind::TimedOut => format!("no answer within {:.1} s", limit.as_secs_f64()),
            _ => error.to_string(),
        };
        NetError::Connect { place: address.to_string(), kind: kind.to_owned(), why }
    };
    let mut last = io::Error::other("the host has no address");
    for place in sock_addrs(address).map_err(refused)? {
        let attempt = Socket::new(place.domain(), Type::STREAM, None).and_then(|socket| {
            match place.domain() {
                // A unix socket connects at once or not at all.
                Domain::UNIX => socket.connect(&place)?,
                _ => socket.connect_timeout(&place, limit)?,
            }
            Ok(socket)
        });
        match attempt {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(refused(last))
}
