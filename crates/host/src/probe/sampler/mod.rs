//! What has to be looked at again and again between a run's two looks: one
//! thread does it for all probes.

mod gauge;
mod sampled;
mod summary;
mod thread;

pub use gauge::Gauge;
pub(super) use gauge::Kind;
pub(super) use sampled::{Handle, Sampled, Sensor, Take};
pub(super) use thread::{COST, Sampler};

use std::time::{Duration, Instant};

/// Something that the sampler thread does every now and then.
pub struct SamplerTask {
    every: Duration,
    look: Box<dyn FnMut(Instant) + Send>,
}

/// More often than this, sampling would be a load of its own.
const SHORTEST: Duration = Duration::from_millis(20);

impl SamplerTask {
    /// `look` is called about every `every`, with the time of the call. It must
    /// return within a second or two: all tasks share the thread.
    pub fn new(every: Duration, look: impl FnMut(Instant) + Send + 'static) -> Self {
        SamplerTask { every: every.max(SHORTEST), look: Box::new(look) }
    }
}
