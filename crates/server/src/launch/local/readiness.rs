//! Whether a server is ready.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use model::Address;

use super::super::program::Program;

/// A server that is up answers a local request within microseconds.
const LIMIT: Duration = Duration::from_secs(1);

/// Probes once. A server that closes is up too: with TLS or authentication it refuses the request.
pub(super) fn answers(program: &dyn Program, address: &Address) -> bool {
    let answer = match address {
        Address::Unix(path) => UnixStream::connect(path).and_then(|stream| {
            stream.set_read_timeout(Some(LIMIT))?;
            stream.set_write_timeout(Some(LIMIT))?;
            exchange(stream, program.probe_request())
        }),
        Address::Tcp { host, port } => {
            let Ok(ip) = host.parse::<IpAddr>() else { return false };
            TcpStream::connect_timeout(&SocketAddr::new(ip, *port), LIMIT).and_then(|stream| {
                stream.set_read_timeout(Some(LIMIT))?;
                stream.set_write_timeout(Some(LIMIT))?;
                exchange(stream, program.probe_request())
            })
        }
    };
    answer.is_ok_and(|answer| !program.is_loading(&answer))
}

/// The first bytes of the answer; none if the server closed.
fn exchange(mut stream: impl Read + Write, question: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(question)?;
    let mut answer = vec![0; 256];
    match stream.read(&mut answer) {
        Ok(length) => answer.truncate(length),
        // Closed with some of the request unread.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => answer.clear(),
        Err(error) => return Err(error),
    }
    Ok(answer)
}
