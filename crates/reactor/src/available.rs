//! Which engines work on this machine.

use model::Engine;

use crate::engine::{EngineOptions, EngineUnavailable};
use crate::uring::Uring;

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

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions { engine: cheapest(), timestamps: false, largest_answer: 64 << 20 }
    }
}
