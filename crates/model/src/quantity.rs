//! Numbers as people write them: `1M` records, `4KiB`, `100k` per second, `1m30s`.
//!
//! `k M G T` are powers of 1000, `Ki Mi Gi Ti` powers of 1024, everywhere and in either case.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not {what}; write it as {examples}")]
pub struct QuantityError {
    pub text: String,
    pub what: &'static str,
    pub examples: &'static str,
}

const SCALES: [(&str, f64); 9] = [
    ("", 1.0),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
];

/// Splits `12.5MiB` into 12.5 and `MiB`; underscores between digits are allowed.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    // `1e6` is a number too.
    let end = match text[end..].strip_prefix(['e', 'E']) {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            end + 1 + digits
        }
        _ => end,
    };
    let digits: String = text[..end].chars().filter(|c| *c != '_').collect();
    let value: f64 = digits.parse().ok()?;
    value.is_finite().then_some((value, text[end..].trim_start()))
}

fn scale(suffix: &str) -> Option<f64> {
    SCALES.iter().find(|(name, _)| name.eq_ignore_ascii_case(suffix)).map(|(_, factor)| *factor)
}

/// A scaled number whose exact integer value fits `u64`.
fn whole(value: f64, factor: f64) -> Option<u64> {
    let scaled = value * factor;
    let rounded = scaled.round();
    // Integers above 2^53 are not exact in f64, and half a record is a mistake.
    ((scaled - rounded).abs() < 1e-6 && rounded < 9.0e15).then_some(rounded as u64)
}

/// Shortest text with a decimal suffix that reads back as the same number.
fn decimal(value: u64) -> String {
    for (suffix, factor) in [("T", 1e12 as u64), ("G", 1e9 as u64), ("M", 1e6 as u64), ("k", 1000)]
    {
        if value >= factor && value.is_multiple_of(factor) {
            return format!("{}{suffix}", value / factor);
        }
    }
    value.to_string()
}

macro_rules! quantity {
    ($name:ident, $inner:ty, $what:literal, $examples:literal) => {
        impl $name {
            const WHAT: &'static str = $what;
            const EXAMPLES: &'static str = $examples;

            fn error(text: &str) -> QuantityError {
                QuantityError { text: text.to_owned(), what: Self::WHAT, examples: Self::EXAMPLES }
            }
        }

        impl FromStr for $name {
            type Err = QuantityError;
            fn from_str(text: &str) -> Result<Self, QuantityError> {
                Self::read(text).ok_or_else(|| Self::error(text))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "{}, as {}", $what, $examples)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_u64<E: de::Error>(self, value: u64) -> Result<$name, E> {
                        value.to_string().parse().map_err(E::custom)
                    }
                    fn visit_i64<E: de::Error>(self, value: i64) -> Result<$name, E> {
                        value.to_string().parse().map_err(E::custom)
                    }
                    fn visit_f64<E: de::Error>(self, value: f64) -> Result<$name, E> {
                        value.to_string().parse().map_err(E::custom)
                    }
                }
                from.deserialize_any(Text)
            }
        }
    };
}

/// A number of things: records, operations, keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Count(pub u64);
quantity!(Count, u64, "a whole number", "`1000`, `100k`, `1M` or `2.5G`");

impl Count {
    fn read(text: &str) -> Option<Self> {
        let (value, suffix) = split(text)?;
        whole(value, scale(suffix)?).map(Count)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal(self.0))
    }
}

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Bytes(pub u64);
quantity!(Bytes, u64, "a size in bytes", "`512`, `4KiB`, `1MB` or `2GiB`");

impl Bytes {
    fn read(text: &str) -> Option<Self> {
        let (value, suffix) = split(text)?;
        let suffix = suffix.strip_suffix(['B', 'b']).unwrap_or(suffix);
        whole(value, scale(suffix)?).map(Bytes)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (suffix, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{}{suffix}", self.0 >> shift);
            }
        }
        f.write_str(&self.0.to_string())
    }
}

/// Operations per second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Rate(pub f64);
quantity!(
    Rate,
    f64,
    "a rate per second",
    "`500`, `20k`, `1.5M` or `20k/s`, and one in two seconds as `0.5`, `30/m` or `1/2s`"
);

impl Rate {
    fn read(text: &str) -> Option<Self> {
        let (number, seconds) = match text.trim().split_once('/') {
            None => (text, 1.0),
            Some((number, span)) => (number, per(span)?),
        };
        let (value, suffix) = split(number)?;
        let rate = value * scale(suffix)? / seconds;
        // Between two requests lies a span of time, which has a limit too.
        let slowest = 1.0 / Span::LONGEST.as_secs_f64();
        (rate.is_finite() && (rate == 0.0 || rate >= slowest)).then_some(Rate(rate))
    }
}

/// The seconds behind the slash of a rate: a unit or a span with its unit.
fn per(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Some(seconds) = unit_seconds(text) {
        return Some(seconds);
    }
    let bare = text.ends_with(|c: char| c.is_ascii_digit());
    let Span(span) = Span::read(text).filter(|_| !bare)?;
    (!span.is_zero()).then_some(span.as_secs_f64())
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.fract() == 0.0 && self.0 < 9.0e15 {
            f.write_str(&decimal(self.0 as u64))
        } else {
            write!(f, "{}", self.0)
        }
    }
}

/// Bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct ByteRate(pub f64);
quantity!(ByteRate, f64, "a bandwidth", "`10GB/s`, `800MB/s` or `5GiB/s`");

impl ByteRate {
    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_suffix("/s").unwrap_or(text);
        let (value, suffix) = split(text)?;
        // A unit is required, and `b` would be bits.
        let suffix = suffix.strip_suffix('B')?;
        let rate = value * scale(suffix)?;
        rate.is_finite().then_some(ByteRate(rate))
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.fract() == 0.0 && self.0 < 9.0e15 {
            write!(f, "{}B/s", decimal(self.0 as u64))
        } else {
            write!(f, "{}B/s", self.0)
        }
    }
}

/// A span of time that a user gives, of at most [`Span::LONGEST`]: instants and sums that are
/// reckoned with it cannot overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span(pub Duration);
quantity!(Span, Duration, "a span of time of at most 366d", "`10s`, `500ms`, `2m` or `1h30m`");

/// Seconds in a unit of time, by the name of the unit.
fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "ns" => 1e-9,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    })
}

impl Span {
    /// Nothing is measured for longer than a year: more is a mistake. A thousand million times as
    /// long still fits into a [`Duration`], and 500 times into nanoseconds as `u64`.
    pub const LONGEST: Duration = Duration::from_secs(366 * 86_400);

    fn read(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        if rest.is_empty() {
            return None;
        }
        let mut total = 0.0;
        let mut parts = 0;
        while !rest.is_empty() {
            let (value, tail) = split(rest)?;
            let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
            let seconds = match tail[..end].trim() {
                // A bare number is in seconds, but `1m30` is refused.
                "" if parts == 0 && end == tail.len() => 1.0,
                unit => unit_seconds(unit)?,
            };
            total += value * seconds;
            parts += 1;
            rest = &tail[end..];
        }
        Duration::try_from_secs_f64(total).ok().filter(|span| *span <= Span::LONGEST).map(Span)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        match nanos {
            0 => f.write_str("0s"),
            n if n.is_multiple_of(1_000_000_000) => write!(f, "{}s", n / 1_000_000_000),
            n if n.is_multiple_of(1_000_000) => write!(f, "{}ms", n / 1_000_000),
            n if n.is_multiple_of(1000) => write!(f, "{}us", n / 1000),
            n => write!(f, "{n}ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_as_people_write_them() {
        for (text, value) in [
            ("0", 0),
            ("1000", 1000),
            ("1_000", 1000),
            ("1k", 1000),
            ("1K", 1000),
            ("2.5M", 2_500_000),
            ("1e6", 1_000_000),
            ("1G", 1_000_000_000),
            ("1Ki", 1024),
            ("1m", 1_000_000),
            (" 7 ", 7),
        ] {
            assert_eq!(text.parse(), Ok(Count(value)), "{text}");
        }
        for text in
            ["", "k", "1.5", "-1", "1x", "1MB", "1k2", "nan", "1e400", "1.2.3", "99999999999T"]
        {
            assert!(text.parse::<Count>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_as_people_write_them() {
        for (text, value) in [
            ("512", 512),
            ("4KiB", 4096),
            ("4kib", 4096),
            ("4Ki", 4096),
            ("4kB", 4000),
            ("4K", 4000),
            ("1MiB", 1 << 20),
            ("1.5GiB", 3 << 29),
            ("100B", 100),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(value)), "{text}");
        }
        for text in ["4KBi", "B", "4KiBB", "1.0001"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn rates_and_spans() {
        assert_eq!("20k/s".parse(), Ok(Rate(20_000.0)));
        assert_eq!("0.5".parse(), Ok(Rate(0.5)));
        for (text, rate) in [("10GB/s", 1e10), ("1.5GB", 1.5e9), ("1GiB/s", 1073741824.0)] {
            assert_eq!(text.parse(), Ok(ByteRate(rate)), "{text}");
            assert_eq!(ByteRate(rate).to_string().parse(), Ok(ByteRate(rate)));
        }
        for text in ["", "10", "10G/s", "GB/s", "-1GB/s", "10Gb/s"] {
            assert!(text.parse::<ByteRate>().is_err(), "{text}");
        }
        for (text, millis) in [
            ("10s", 10_000),
            ("10", 10_000),
            ("500ms", 500),
            ("1m30s", 90_000),
            ("1h", 3_600_000),
            ("0.25s", 250),
        ] {
            assert_eq!(text.parse(), Ok(Span(Duration::from_millis(millis))), "{text}");
        }
        for text in ["", "s", "1m30", "10x", "-1s"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn slow_rates_as_people_write_them() {
        for (text, rate) in
            [("0.5/s", 0.5), ("1/m", 1.0 / 60.0), ("30/min", 0.5), ("1/2s", 0.5), ("36k/h", 10.0)]
        {
            assert_eq!(text.parse(), Ok(Rate(rate)), "{text}");
            assert_eq!(Rate(rate).to_string().parse(), Ok(Rate(rate)), "{text}");
        }
        for text in ["1/", "/s", "1/2", "1/0s", "1/x", "1/s/s", "1/400d", "1e-300"] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains("one in two seconds as `0.5`"), "{text}: {error}");
        }
    }

    #[test]
    fn refuses_overflow() {
        assert_eq!("366d".parse(), Ok(Span(Span::LONGEST)));
        for text in ["367d", "1e19s", "18446744073709551615s", "18446744073709551615ns", "1e308d"] {
            let error = text.parse::<Span>().unwrap_err().to_string();
            assert!(error.contains("at most 366d"), "{text}: {error}");
        }
        let most = Span::LONGEST.checked_mul(u32::MAX);
        assert!(most.and_then(|most| std::time::Instant::now().checked_add(most)).is_some());
        assert!("1e308T".parse::<Rate>().is_err());
        assert!("1e308TB/s".parse::<ByteRate>().is_err());
    }

    #[test]
    fn what_is_shown_reads_back() {
        for n in [0, 1, 999, 1000, 1024, 1_000_000, 123_456_789, 5 << 30] {
            assert_eq!(Count(n).to_string().parse(), Ok(Count(n)));
            assert_eq!(Bytes(n).to_string().parse(), Ok(Bytes(n)));
            assert_eq!(Rate(n as f64).to_string().parse(), Ok(Rate(n as f64)));
            assert_eq!(
                Span(Duration::from_nanos(n)).to_string().parse(),
                Ok(Span(Duration::from_nanos(n)))
            );
        }
    }

    #[test]
    fn files_hold_numbers_or_text() {
        let read = |text: &str| serde_json::from_str::<Bytes>(text);
        assert_eq!(read("4096").unwrap(), Bytes(4096));
        assert_eq!(read("\"4KiB\"").unwrap(), Bytes(4096));
        let error = read("\"4 apples\"").unwrap_err().to_string();
        assert!(error.contains("`4 apples` is not a size in bytes"), "{error}");
        assert!(read("-1").is_err());
    }
}
