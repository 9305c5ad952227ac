//! Whether the kernel says when it got an answer.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::{Engine, EngineOptions, Reactor, Stream};

/// How long one byte over the loopback may take.
const LIMIT: Duration = Duration::from_secs(1);

/// Sends a byte to this process itself and looks whether it comes with the time at which the
/// kernel got it.
///
/// # Errors
/// What failed on the way, or that it came without.
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
        // The kernel begins to stamp a moment after it was asked for the first time.
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
