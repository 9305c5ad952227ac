//! Formats numbers for people.

/// A size with a binary suffix and three digits at the most behind the comma.
pub(crate) fn bytes(value: u64) -> String {
    for (suffix, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if value >= 1 << shift {
            return format!("{} {suffix}", short(value as f64 / (1u64 << shift) as f64));
        }
    }
    format!("{value} B")
}

pub(crate) fn kilohertz(value: u64) -> String {
    if value >= 1_000_000 {
        format!("{} GHz", short(value as f64 / 1e6))
    } else {
        format!("{} MHz", short(value as f64 / 1e3))
    }
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Two decimals without trailing zeros.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `1 device`, `2 devices`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_frequencies_and_shares() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(32 << 10), "32 KiB");
        assert_eq!(bytes(25_344 << 10), "24.75 MiB");
        assert_eq!(bytes(100 << 30), "100 GiB");
        assert_eq!(kilohertz(2_300_000), "2.3 GHz");
        assert_eq!(kilohertz(800_000), "800 MHz");
        assert_eq!(percent(0.0125), "1.25 %");
    }
}
