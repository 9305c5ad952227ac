use std::time::Duration;

/// How long a wait may be extended until several connections are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gather {
    /// Connections that end the wait at once.
    pub least: u32,
    /// After it one is enough; counts from the start of the wait.
    pub max_wait: Duration,
}

impl Gather {
    /// The first connection that is ready ends the wait.
    pub const NONE: Gather = Gather { least: 1, max_wait: Duration::ZERO };
}
