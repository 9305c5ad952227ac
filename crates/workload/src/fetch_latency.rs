//! How long a database takes that is only modelled: it answers what a cache has missed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use model::random::{mix, unit};
use model::{Span, suggest};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::SpecError;
use crate::normal;

/// Separates these draws from the others of an operation.
const PURPOSE: u64 = 0x6461_7461_6261_7365;
/// The quantile of the standard normal distribution for 99 %.
const P99: f64 = 0.99;

/// The distribution of a modelled latency. Draws above [`FetchLatency::LONGEST`] are cut to it.
///
/// In a file and as a flag: a text as [`FetchLatency::parse`] reads it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FetchLatency {
    Constant(Span),
    /// Every latency from `min` to `max` equally often.
    Uniform {
        min: Span,
        max: Span,
    },
    /// F(x) = 1 - exp(-x / mean).
    Exponential {
        mean: Span,
    },
    /// Its logarithm is normal; given by two of its percentiles.
    Lognormal {
        median: Span,
        p99: Span,
    },
}

impl FetchLatency {
    /// A slower database is a failure that no model has.
    pub const LONGEST: Duration = Duration::from_secs(60);

    const LAWS: [&'static str; 4] = ["constant", "uniform", "exponential", "lognormal"];

    /// Reads `5ms`, `constant:5ms`, `uniform:1ms..10ms`, `exponential:5ms` (its mean) or
    /// `lognormal:5ms,100ms` (its median and 99th percentile).
    ///
    /// # Errors
    /// [`SpecError::Unreadable`] with what is wrong and how to write it.
    pub fn parse(text: &str) -> Result<FetchLatency, SpecError> {
        let read = FetchLatency::read(text.trim());
        read.and_then(FetchLatency::checked).map_err(|problem| SpecError::Unreadable {
            text: text.to_owned(),
            what: "a latency",
            problem,
        })
    }

    /// The same, and `none`.
    ///
    /// # Errors
    /// Those of [`FetchLatency::parse`].
    pub fn parse_option(text: &str) -> Result<Option<FetchLatency>, SpecError> {
        match text.trim() {
            "none" => Ok(None),
            text => FetchLatency::parse(text).map(Some),
        }
    }

    fn read(text: &str) -> Result<FetchLatency, String> {
        let Some((law, rest)) = text.split_once(':') else {
            return text.parse().map(FetchLatency::Constant).map_err(|_| {
                "write it as `5ms`, `uniform:1ms..10ms`, `exponential:5ms` or `lognormal:5ms,100ms`"
                    .to_owned()
            });
        };
        match law.trim() {
            "constant" => span(rest).map(FetchLatency::Constant),
            "uniform" => {
                let (min, max) = rest.split_once("..").ok_or("write it as `uniform:1ms..10ms`")?;
                Ok(FetchLatency::Uniform { min: span(min)?, max: span(max)? })
            }
            "exponential" => Ok(FetchLatency::Exponential { mean: span(rest)? }),
            "lognormal" => {
                let form = "write its median and its p99, as `lognormal:5ms,100ms`";
                let (median, p99) = rest.split_once(',').ok_or(form)?;
                Ok(FetchLatency::Lognormal { median: span(median)?, p99: span(p99)? })
            }
            other => Err(format!(
                "no distribution of latencies is called `{other}`; {}",
                suggest::hint(other, FetchLatency::LAWS)
            )),
        }
    }

    fn checked(self) -> Result<FetchLatency, String> {
        let (low, high) = match self {
            FetchLatency::Constant(all) => (all, all),
            FetchLatency::Uniform { min, max } => (min, max),
            FetchLatency::Exponential { mean } => (mean, mean),
            FetchLatency::Lognormal { median, p99 } => (median, p99),
        };
        if low > high {
            return Err(format!("{low} is more than {high}; write the smaller one first"));
        }
        let needs_time = !matches!(self, FetchLatency::Constant(_) | FetchLatency::Uniform { .. });
        if needs_time && low.0.is_zero() {
            return Err("a latency of 0 has no such distribution; write `constant:0s`".to_owned());
        }
        if high.0 > FetchLatency::LONGEST {
            let longest = Span(FetchLatency::LONGEST);
            return Err(format!("{high} is longer than {longest}, the longest that is modelled"));
        }
        Ok(self)
    }

    /// The latency that the operation with this salt meets.
    #[inline]
    pub fn of(&self, salt: u64) -> Duration {
        self.quantile(unit(mix(salt ^ PURPOSE)))
    }

    /// The latency below which a draw lies with probability `p`, 0 <= p < 1.
    pub fn quantile(&self, p: f64) -> Duration {
        let seconds = match self {
            FetchLatency::Constant(all) => return all.0,
            FetchLatency::Uniform { min, max } => {
                let (min, max) = (min.0.as_secs_f64(), max.0.as_secs_f64());
                min + (max - min) * p
            }
            FetchLatency::Exponential { mean } => -mean.0.as_secs_f64() * (-p).ln_1p(),
            FetchLatency::Lognormal { median, p99 } => {
                let (median, p99) = (median.0.as_secs_f64(), p99.0.as_secs_f64());
                let sigma = (p99 / median).ln() / normal::quantile(P99);
                // The lowest of 2^53 draws is 0, whose logarithm has no end.
                median * (sigma * normal::quantile(p.max(f64::EPSILON / 4.0))).exp()
            }
        };
        Duration::from_secs_f64(seconds.clamp(0.0, FetchLatency::LONGEST.as_secs_f64()))
    }
}

fn span(text: &str) -> Result<Span, String> {
    text.trim().parse::<Span>().map_err(|error| error.to_string())
}

impl FromStr for FetchLatency {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<FetchLatency, SpecError> {
        FetchLatency::parse(text)
    }
}

/// Writes what [`FetchLatency::parse`] reads.
impl fmt::Display for FetchLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchLatency::Constant(all) => write!(f, "constant:{all}"),
            FetchLatency::Uniform { min, max } => write!(f, "uniform:{min}..{max}"),
            FetchLatency::Exponential { mean } => write!(f, "exponential:{mean}"),
            FetchLatency::Lognormal { median, p99 } => write!(f, "lognormal:{median},{p99}"),
        }
    }
}

impl Serialize for FetchLatency {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FetchLatency {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<FetchLatency, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_stated_distribution() {
        for text in ["uniform:1ms..10ms", "exponential:5ms", "lognormal:5ms,100ms"] {
            let latency = FetchLatency::parse(text).unwrap();
            let mut drawn: Vec<Duration> = (0..100_000).map(|n| latency.of(mix(n))).collect();
            drawn.sort_unstable();
            for part in [0.01, 0.25, 0.5, 0.75, 0.99] {
                let below = drawn.partition_point(|one| *one <= latency.quantile(part));
                // Five standard errors.
                let limit = 5.0 * (part * (1.0 - part) / 1e5f64).sqrt();
                assert!((below as f64 / 1e5 - part).abs() < limit, "{text} {part}: {below}");
            }
        }
        let lognormal = FetchLatency::parse("lognormal:5ms,100ms").unwrap();
        for (part, ms) in [(0.5, 5.0), (0.99, 100.0)] {
            let quantile = lognormal.quantile(part).as_secs_f64() * 1e3;
            assert!((quantile / ms - 1.0).abs() < 1e-6, "{quantile}");
        }
        let exponential = FetchLatency::parse("exponential:5ms").unwrap();
        assert_eq!(exponential.quantile(1.0 - (-1f64).exp()).as_micros(), 5_000);
    }

    #[test]
    fn the_salt_alone_decides_and_no_draw_is_beyond_the_longest() {
        let wide = FetchLatency::parse("lognormal:1us,60s").unwrap();
        assert_eq!(wide.of(7), wide.of(7));
        assert_ne!(wide.of(7), wide.of(8));
        assert_eq!(wide.quantile(0.999_999), FetchLatency::LONGEST);
        assert!(wide.quantile(0.0) < Duration::from_micros(1));
    }

    #[test]
    fn texts_are_read_and_written_back() {
        for text in
            ["constant:5ms", "uniform:1ms..10ms", "exponential:250us", "lognormal:5ms,100ms"]
        {
            assert_eq!(FetchLatency::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(FetchLatency::parse(" 5ms "), FetchLatency::parse("constant:5ms"));
        for (text, says) in [
            ("", "write it as `5ms`"),
            ("-5ms", "write it as `5ms`"),
            ("lognorml:5ms,9ms", "did you mean `lognormal`?"),
            ("lognormal:5ms", "its median and its p99"),
            ("lognormal:9ms,5ms", "9ms is more than 5ms"),
            ("lognormal:0s,5ms", "constant:0s"),
            ("uniform:5ms", "uniform:1ms..10ms"),
            ("exponential:nan", "is not a span of time"),
            ("2m", "longer than 60s"),
        ] {
            let error = FetchLatency::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
