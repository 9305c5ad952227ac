//! The expiry of written values.

/// When a written value expires.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Expiry {
    #[default]
    Never,
    /// After so many seconds, more than 0.
    After(u32),
    /// At once: written, but never found by later requests. memcached's negative times.
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
