use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use model::Address;
use rustls::ClientConnection;

use crate::connect_error::ConnectError;
use crate::socket::Socket;
use crate::stream::Stream;
use tls::{TlsConfig, TlsFailure};

impl Stream {
    /// Connects to every address of the name in turn until one answers, then
    /// speaks TLS if it is to. All of it takes at most `limit`, as does each
    /// read and write later.
    ///
    /// # Errors
    /// The error, with the address and a remedy.
    pub fn connect(
        address: &Address,
        tls: Option<&TlsConfig>,
        limit: Duration,
    ) -> Result<Stream, ConnectError> {
        connect(address, tls, limit)
    }
}

fn connect(
    address: &Address,
    tls: Option<&TlsConfig>,
    limit: Duration,
) -> Result<Stream, ConnectError> {
    let deadline = Instant::now() + limit;
    let other = |source| ConnectError::Other { address: address.clone(), source };
    let mut socket = match address {
        Address::Tcp { host, port } => connect_tcp(address, host, *port, limit, deadline)?,
        Address::Unix(path) => connect_unix(address, path, limit)?,
    };
    socket.limit(limit.max(SHORTEST)).map_err(other)?;
    let session = match tls {
        None => None,
        Some(tls) => Some(shake_hands(address, tls, &mut socket, limit, deadline)?),
    };
    Ok(Stream::new(socket, session))
}

/// The kernel takes a limit of zero for none.
const SHORTEST: Duration = Duration::from_millis(1);

fn connect_tcp(
    address: &Address,
    host: &str,
    port: u16,
    limit: Duration,
    deadline: Instant,
) -> Result<Socket, ConnectError> {
    let all = resolve(address, host, port, limit)?;
    let mut refused = Vec::new();
    let mut slow = false;
    let mut last = None;
    for (index, socket_address) in all.iter().enumerate() {
        // An address that drops packets must not use up the time of the others.
        let remaining = deadline.saturating_duration_since(Instant::now());
        let share = (remaining / (all.len() - index) as u32).max(SHORTEST);
        match TcpStream::connect_timeout(socket_address, share) {
            Ok(socket) => return Ok(Socket::Tcp(socket)),
            Err(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused => refused.push(socket_address.to_string()),
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => slow = true,
                _ => last = Some(error),
            },
        }
    }
    let address = address.clone();
    Err(match last {
        _ if slow => ConnectError::TimedOut {
            address,
            step: "connecting",
            limit,
            hint: "is the host up, and does a firewall let this port through?",
        },
        _ if !refused.is_empty() => ConnectError::Refused { address, tried: refused.join(", ") },
        Some(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            ConnectError::Forbidden { address }
        }
        Some(source) => ConnectError::Other { address, source },
        None => ConnectError::NoSuchHost { address, why: "it has no addresses".to_owned() },
    })
}

/// Every address of a name. The system's resolver has no timeout, so it runs in a thread that may
/// be abandoned.
fn resolve(
    address: &Address,
    host: &str,
    port: u16,
    limit: Duration,
) -> Result<Vec<SocketAddr>, ConnectError> {
    if let Ok(ip) = host.parse() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let (sender, receiver) = mpsc::channel();
    let name = host.to_owned();
    let spawned = thread::Builder::new().name("resolver".to_owned()).spawn(move || {
        // The receiver may have timed out.
        let _ = sender.send((name.as_str(), port).to_socket_addrs().map(Vec::from_iter));
    });
    let address = address.clone();
    if let Err(source) = spawned {
        return Err(ConnectError::Other { address, source });
    }
    match receiver.recv_timeout(limit) {
        Ok(Ok(all)) => Ok(all),
        Ok(Err(error)) => Err(ConnectError::NoSuchHost { address, why: error.to_string() }),
        Err(_) => Err(ConnectError::TimedOut {
            address,
            step: "looking up the host's name",
            limit,
            hint: "does the name server answer?",
        }),
    }
}

fn connect_unix(address: &Address, path: &Path, limit: Duration) -> Result<Socket, ConnectError> {
    // Without this thread, a full queue of the server would block the client without limit.
    let (sender, receiver) = mpsc::channel();
    let owned_path = path.to_owned();
    let spawned = thread::Builder::new().name("connector".to_owned()).spawn(move || {
        // The receiver may have timed out.
        let _ = sender.send(UnixStream::connect(owned_path));
    });
    let address = address.clone();
    if let Err(source) = spawned {
        return Err(ConnectError::Other { address, source });
    }
    match receiver.recv_timeout(limit) {
        Ok(Ok(socket)) => Ok(Socket::Unix(socket)),
        Ok(Err(source)) => Err(match source.kind() {
            io::ErrorKind::NotFound => ConnectError::NoSuchSocket { path: path.into() },
            io::ErrorKind::ConnectionRefused => ConnectError::Refused {
                tried: "the socket exists, but no server listens on it".to_owned(),
                address,
            },
            io::ErrorKind::PermissionDenied => ConnectError::Forbidden { address },
            _ => ConnectError::Other { address, source },
        }),
        Err(_) => Err(ConnectError::TimedOut {
            address,
            step: "connecting",
            limit,
            hint: "the server accepts no connections; is it stuck or full?",
        }),
    }
}

fn shake_hands(
    address: &Address,
    tls: &TlsConfig,
    socket: &mut Socket,
    limit: Duration,
    deadline: Instant,
) -> Result<Box<ClientConnection>, ConnectError> {
    let failed = |why| ConnectError::Tls { address: address.clone(), why };
    let name = tls.name_of(address).map_err(failed)?;
    let mut session = ClientConnection::new(Arc::clone(&tls.client), name)
        .map_err(|error| failed(TlsFailure::of(error)))?;
    // A slow server can stay within the limit of each read.
    while session.is_handshaking() {
        let late = Instant::now() >= deadline;
        let step = match late {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => step(&mut session, socket),
        };
        if let Err(error) = step {
            let address = address.clone();
            return Err(match (TlsFailure::inside(&error), error.kind()) {
                (Some(why), _) => ConnectError::Tls { address, why },
                (None, io::ErrorKind::TimedOut) => ConnectError::TimedOut {
                    address,
                    step: "the TLS handshake",
                    limit,
                    hint: "does the server speak TLS on this port?",
                },
                (None, io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => {
                    let why =
                        TlsFailure::NotTls("it closed the connection in the handshake".to_owned());
                    ConnectError::Tls { address, why }
                }
                (None, _) => ConnectError::Other { address, source: error },
            });
        }
    }
    Ok(Box::new(session))
}

/// One step of the handshake: send pending data, or else receive once.
fn step(session: &mut ClientConnection, socket: &mut Socket) -> io::Result<()> {
    let mut wrote = false;
    while session.wants_write() {
        session.write_tls(socket)?;
        wrote = true;
    }
    if wrote && !session.is_handshaking() {
        return Ok(());
    }
    if session.read_tls(socket)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let processed = session.process_new_packets();
    // Sends a last message, such as an alert or the client's finish.
    while session.wants_write() {
        if let Err(error) = session.write_tls(socket) {
            return Err(match processed {
                Ok(_) => error,
                Err(why) => io::Error::new(io::ErrorKind::InvalidData, why),
            });
        }
    }
    processed.map(drop).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
}
