//! Periodic sampling during a run, by one thread for all probes.

mod gauge;
mod sampled;
mod summary;
mod thread;

pub use gauge::Gauge;
pub(super) use gauge::Kind;
pub(super) use sampled::{Handle, Sampled, Sensor, Take};
pub(super) use thread::{COST, Sampler};

use std::time::{Duration, Instant};

/// A periodic task of the sampler thread.
pub struct SamplerTask {
    every: Duration,
    look: Box<dyn FnMut(Instant) + Send>,
}

/// More often than this, sampling would be a load of its own.
const MIN_INTERVAL: Duration = Duration::from_millis(20);

impl SamplerTask {
    /// `look` is called about every `every`, with the time of the call. It must
    /// return within a second or two: all tasks share the thread.
    pub fn new(every: Duration, look: impl FnMut(Instant) + Send + 'static) -> Self {
        SamplerTask { every: every.max(MIN_INTERVAL), look: Box::new(look) }
    }
}
