use std::io;

use model::Engine;
use thiserror::Error;

/// Why an engine cannot be used here.
#[derive(Debug, Error)]
#[error("the {engine} engine is not available: {why}; use the epoll engine")]
pub struct EngineUnavailable {
    /// The requested engine.
    pub engine: Engine,
    /// The reason.
    pub why: String,
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
