//! Test intensity, from the environment.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use spill::{CachedWrites, Durability, Options};

/// All points instead of some: `SPILL_TEST_EVERY=1`.
pub fn every() -> bool {
    std::env::var_os("SPILL_TEST_EVERY").is_some_and(|value| value != "0")
}

/// How often a process is killed: `SPILL_KILLS=500`.
pub fn kills() -> Option<usize> {
    let text = std::env::var("SPILL_KILLS").ok()?;
    Some(text.parse().expect("SPILL_KILLS is a number"))
}

/// Random, unless `SPILL_TEST_SEED` sets it.
pub fn seed() -> u64 {
    match std::env::var("SPILL_TEST_SEED") {
        Ok(text) => text.parse().expect("SPILL_TEST_SEED is a number"),
        Err(_) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
            u64::from(now.subsec_nanos()) ^ now.as_secs() << 20
        }
    }
}

/// Everything small, so that little traffic fills, compacts and collects; no threads, so that calls
/// are repeatable; direct I/O where possible; filters in two of three modes.
pub fn tiny(durability: Durability) -> Options {
    Options {
        memory: 64 << 10,
        segment: 64 << 10,
        growth: 2,
        durability,
        bloom_bits: if durability == Durability::None { 0 } else { 10 },
        cached_writes: CachedWrites::Never,
        background: false,
        throttle: Duration::ZERO,
        ..Options::default()
    }
}

pub const MODES: [Durability; 3] =
    [Durability::None, Durability::Interval(Duration::from_millis(20)), Durability::Sync];
