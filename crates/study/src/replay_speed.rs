//! The speed at which a trace is replayed.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// The speed of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplaySpeed {
    /// So many times as fast as it was recorded: an open loop.
    Times(f64),
    /// As fast as the store answers: a closed loop in the trace's order.
    Max,
}

/// Maximum speed: at a higher one a second of the trace is too short to count its requests.
const MAX_SPEED: f64 = 1e6;

impl FromStr for ReplaySpeed {
    type Err = String;

    fn from_str(text: &str) -> Result<ReplaySpeed, String> {
        if text == "max" {
            return Ok(ReplaySpeed::Max);
        }
        let times = text.parse().ok().filter(|times| *times > 0.0 && *times <= MAX_SPEED);
        times.map(ReplaySpeed::Times).ok_or_else(|| {
            format!(
                "`{text}` is not a speed; write a factor of the recorded speed, above 0 and up to \
                 a million, or `max`"
            )
        })
    }
}

impl fmt::Display for ReplaySpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplaySpeed::Times(times) => write!(f, "{times}"),
            ReplaySpeed::Max => f.write_str("max"),
        }
    }
}

impl Serialize for ReplaySpeed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ReplaySpeed {
    /// A number or text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReplaySpeed, D::Error> {
        struct SpeedVisitor;
        impl Visitor<'_> for SpeedVisitor {
            type Value = ReplaySpeed;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number above 0 or \"max\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<ReplaySpeed, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: Error>(self, times: i64) -> Result<ReplaySpeed, E> {
                self.visit_str(&times.to_string())
            }
            fn visit_u64<E: Error>(self, times: u64) -> Result<ReplaySpeed, E> {
                self.visit_str(&times.to_string())
            }
            fn visit_f64<E: Error>(self, times: f64) -> Result<ReplaySpeed, E> {
                self.visit_str(&times.to_string())
            }
        }
        deserializer.deserialize_any(SpeedVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_parsed_and_displayed() {
        for (text, speed) in [
            ("max", ReplaySpeed::Max),
            ("1", ReplaySpeed::Times(1.0)),
            ("0.5", ReplaySpeed::Times(0.5)),
            ("1e3", ReplaySpeed::Times(1000.0)),
        ] {
            assert_eq!(text.parse(), Ok(speed), "{text}");
            assert_eq!(speed.to_string().parse(), Ok(speed));
        }
        for text in ["", "0", "-1", "2x", "inf", "nan", "1e7", "MAX"] {
            assert!(text.parse::<ReplaySpeed>().unwrap_err().contains("`max`"), "{text}");
        }
    }
}
