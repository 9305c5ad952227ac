use std::io;

use model::Engine;
use thiserror::Error;

use crate::uring::Uring;

/// Why an engine cannot be used here.
#[derive(Debug, Error)]
#[error("the {engine} engine is not available: {why}; use the epoll engine")]
pub struct EngineUnavailable {
    /// The requested engine.
    pub engine: Engine,
    /// The reason.
    pub why: String,
}

/// The cheapest engine of this machine; both measure the same.
pub fn cheapest() -> Engine {
    match available(Engine::IoUring) {
        Ok(()) => Engine::IoUring,
        Err(_) => Engine::Epoll,
    }
}

/// Whether an engine can be used here.
///
/// # Errors
/// Why not.
pub fn available(engine: Engine) -> Result<(), EngineUnavailable> {
    match engine {
        Engine::Epoll => Ok(()),
        Engine::IoUring => Uring::new().map(drop),
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
        EngineOptions { engine: cheapest(), timestamps: false, largest_answer: 64 << 20 }
    }
}
