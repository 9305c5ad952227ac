//! Expiry as memcached's `exptime`.

use std::time::{SystemTime, UNIX_EPOCH};

use model::Expiry;

/// The longest relative expiry; larger numbers are dates.
const LONGEST_RELATIVE: u32 = 30 * 24 * 60 * 60;

/// A date that has passed: the smallest that is no relative time. Negative numbers mean "at once"
/// only in the text protocols; this date works in all of them.
const PAST: u32 = LONGEST_RELATIVE + 1;

/// memcached's `exptime`, 0 for never: up to thirty days the seconds themselves, beyond that the
/// date as seconds since 1970.
#[inline]
pub(super) fn exptime(expiry: Expiry) -> u32 {
    match expiry {
        Expiry::Never => 0,
        Expiry::After(seconds) if seconds <= LONGEST_RELATIVE => seconds,
        Expiry::After(seconds) => date(seconds),
        Expiry::AtOnce => PAST,
    }
}

#[cold]
fn date(ttl_s: u32) -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    // The server stores it in 31 bits; later dates mean never.
    u32::try_from(now.saturating_add(u64::from(ttl_s))).unwrap_or(u32::MAX).min(i32::MAX as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_become_dates() {
        assert_eq!(exptime(Expiry::Never), 0);
        assert_eq!(exptime(Expiry::After(LONGEST_RELATIVE)), 2_592_000);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let date = u64::from(exptime(Expiry::After(LONGEST_RELATIVE + 1)));
        assert!((now + 2_592_001..now + 2_592_100).contains(&date), "{date}");
        assert_eq!(exptime(Expiry::After(u32::MAX)), i32::MAX as u32);
    }
}
