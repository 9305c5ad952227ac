use std::fmt;
use std::io;

use thiserror::Error;

use crate::uring::Uring;

/// The kernel interface for many sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Engine {
    /// `epoll`, one system call a send and one a receive; every Linux has it.
    Epoll,
    /// `io_uring`: all sends, receives and the wait in one system call. Linux 6.1
    /// or later, where it is not forbidden.
    IoUring,
}

/// Why an engine cannot be used here.
#[derive(Debug, Error)]
#[error("the {engine} engine is not available: {why}; use the epoll engine")]
pub struct EngineUnavailable {
    /// The requested engine.
    pub engine: Engine,
    /// The reason.
    pub why: String,
}

impl Engine {
    /// Every engine, for tests and for lists of choices.
    pub const ALL: [Engine; 2] = [Engine::Epoll, Engine::IoUring];

    /// The cheapest engine of this machine; both measure the same.
    pub fn cheapest() -> Engine {
        match Engine::IoUring.available() {
            Ok(()) => Engine::IoUring,
            Err(_) => Engine::Epoll,
        }
    }

    /// Whether it can be used here.
    ///
    /// # Errors
    /// Why not.
    pub fn available(self) -> Result<(), EngineUnavailable> {
        match self {
            Engine::Epoll => Ok(()),
            Engine::IoUring => Uring::new().map(drop),
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::Epoll => "epoll",
            Engine::IoUring => "io_uring",
        })
    }
}

impl From<EngineUnavailable> for io::Error {
    fn from(why: EngineUnavailable) -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, why)
    }
}

/// How a reactor works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOptions {
    pub engine: Engine,
    /// Whether the kernel timestamps answers (TCP only); it then reads its clock for every packet
    /// of the machine.
    pub timestamps: bool,
    /// The most bytes that may wait unconsumed on one connection. A connection
    /// whose answer is larger fails with [`crate::ConnectionFailure::AnswerTooLarge`].
    pub largest_answer: usize,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions { engine: Engine::cheapest(), timestamps: false, largest_answer: 64 << 20 }
    }
}
