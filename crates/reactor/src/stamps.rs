//! Whether the kernel timestamps received data.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::{EngineOptions, Reactor, Stream};
use model::Engine;

/// How long one byte over the loopback may take.
const LIMIT: Duration = Duration::from_secs(1);

/// Sends a byte to this process and checks that it has a timestamp.
///
/// # Errors
/// A failed step, or a byte without a timestamp.
pub fn stamps_available() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let receiver = TcpStream::connect(listener.local_addr()?)?;
    let (mut sender, _) = listener.accept()?;
    let mut reactor = Reactor::new(EngineOptions {
        engine: Engine::Epoll,
        timestamps: true,
        ..EngineOptions::default()
    })?;
    let receiver = reactor.add(Stream::from(receiver))?;
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        // The kernel starts to timestamp a moment after the first request.
        sender.write_all(b".")?;
        reactor.poll(Some(Duration::from_millis(20)))?;
        if reactor.arrived(receiver).is_some() {
            return Ok(());
        }
        let waiting = reactor.incoming(receiver).len();
        reactor.consume(receiver, waiting);
    }
    Err(io::Error::new(io::ErrorKind::Unsupported, "data came without the time of its arrival"))
}
