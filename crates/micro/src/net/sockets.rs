//! Data sockets.

use std::io::{self, IoSlice, Read};
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::content::MessageSource;
use super::control::is_timeout;
use super::error::NetError;
use super::job::{NetJob, Transport};

/// A closed stream gives an error and no signal.
const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL;

/// The outcome of a nonblocking step on a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketStep {
    Moved(usize),
    /// It would block.
    Pause,
}

/// Sets up a data socket for the cell.
pub fn prepare(socket: &Socket, job: &NetJob) -> Result<(), NetError> {
    let refused = NetError::io("setting up a data socket");
    let set = || -> io::Result<()> {
        if job.transport == Transport::Tcp {
            socket.set_tcp_nodelay(true)?;
        }
        if let Some(bytes) = job.socket_buffer {
            socket.set_send_buffer_size(bytes as usize)?;
            socket.set_recv_buffer_size(bytes as usize)?;
        }
        Ok(())
    };
    set().map_err(refused)
}

/// A socket for datagrams at any free port of this machine's `ip`.
pub fn datagram(ip: IpAddr, job: &NetJob) -> Result<(Socket, u16), NetError> {
    let open = || -> io::Result<(Socket, u16)> {
        let place = SockAddr::from(SocketAddr::new(ip, 0));
        let socket = Socket::new(
            Domain::for_address(SocketAddr::new(ip, 0)),
            Type::DGRAM,
            Some(Protocol::UDP),
        )?;
        socket.bind(&place)?;
        let own = socket.local_addr()?.as_socket();
        let own = own.ok_or_else(|| io::Error::other("a UDP socket without a port"))?;
        Ok((socket, own.port()))
    };
    let (socket, port) = open().map_err(NetError::io("opening a UDP socket"))?;
    prepare(&socket, job)?;
    Ok((socket, port))
}

/// Sends the rest of a message from `at` on.
pub fn send(socket: &Socket, source: &MessageSource, at: usize) -> Result<SocketStep, NetError> {
    let (head, body) = source.parts(at);
    step(
        socket.send_vectored_with_flags(&[IoSlice::new(head), IoSlice::new(body)], SEND_FLAGS),
        "sending",
    )
}

/// Sends bytes that were received.
pub fn send_bytes(socket: &Socket, bytes: &[u8]) -> Result<SocketStep, NetError> {
    step(socket.send_with_flags(bytes, SEND_FLAGS), "sending")
}

/// Receives what has arrived, at most as much as fits. A stream's end is an error.
pub fn receive(socket: &Socket, job: &NetJob, into: &mut [u8]) -> Result<SocketStep, NetError> {
    let mut reader = socket;
    let taken = step(reader.read(into), "receiving")?;
    if taken == SocketStep::Moved(0) && !job.transport.is_lossy() {
        return Err(NetError::Closed { doing: "receiving" });
    }
    Ok(taken)
}

fn step(outcome: io::Result<usize>, doing: &'static str) -> Result<SocketStep, NetError> {
    match outcome {
        Ok(moved) => Ok(SocketStep::Moved(moved)),
        Err(error) if is_timeout(&error) || error.raw_os_error() == Some(libc::ENOBUFS) => {
            Ok(SocketStep::Pause)
        }
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Err(NetError::Closed { doing })
        }
        Err(source) => Err(NetError::Io { doing, source }),
    }
}
