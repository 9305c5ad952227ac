//! Helpers for the tests of both engines.
#![allow(clippy::unwrap_used)]
#![allow(dead_code, reason = "each test file uses some of it")]

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use model::Engine;
use reactor::{ConnectionState, EngineOptions, Reactor, Stream};

/// Timeout of a test.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// Runs a test with every engine that this machine has; epoll is always there.
pub fn with_each_engine(mut test: impl FnMut(Engine)) {
    for engine in Engine::ALL {
        match reactor::available(engine) {
            Ok(()) => test(engine),
            Err(why) => {
                assert_ne!(engine, Engine::Epoll);
                eprintln!("left out: {why}");
            }
        }
    }
}

pub fn reactor(engine: Engine) -> Reactor {
    Reactor::new(EngineOptions { engine, ..EngineOptions::default() }).unwrap()
}

/// A connection of the reactor and its other end.
pub fn add_pair(reactor: &mut Reactor) -> (usize, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_read_timeout(Some(TIMEOUT)).unwrap();
    theirs.set_write_timeout(Some(TIMEOUT)).unwrap();
    (reactor.add(Stream::from(ours)).unwrap(), theirs)
}

/// Polls until `done`.
pub fn poll_until(reactor: &mut Reactor, mut done: impl FnMut(&mut Reactor) -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !done(reactor) {
        assert!(Instant::now() < deadline, "it never came");
        reactor.poll(Some(Duration::from_millis(5))).unwrap();
        while reactor.ready().is_some() {}
    }
}

/// Polls until a connection has ended.
pub fn poll_to_end(reactor: &mut Reactor, conn: usize) -> ConnectionState {
    poll_until(reactor, |reactor| reactor.state(conn) != ConnectionState::Open);
    reactor.state(conn)
}
