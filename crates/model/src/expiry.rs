//! How long what is written lives.

/// When something that is written expires.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Expiry {
    #[default]
    Never,
    /// After so many seconds, more than 0.
    After(u32),
    /// At once: it is written, and no later request finds it. memcached's negative times.
    AtOnce,
}

impl Expiry {
    /// After so many seconds, 0 for never, as memcached and Redis count.
    pub const fn after(seconds: u32) -> Expiry {
        match seconds {
            0 => Expiry::Never,
            seconds => Expiry::After(seconds),
        }
    }
}
