//! A rate that moves over the time of an open loop, and its integral.

mod cursor;
mod error;
mod file;
mod notation;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use cursor::ProfileCursor;
pub use error::ProfileError;
pub use notation::MAX_RATE;

/// More pieces are a mistake: a day has 86,400 seconds.
pub const MAX_PROFILE_PIECES: usize = 100_000;
/// Longest profile: a year.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;
/// Shortest profile: shorter ones repeat faster than a client can follow.
const MIN_SECONDS: f64 = 1e-3;

/// A stretch of time in which the rate is linear.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64, f64)", into = "(f64, f64, f64)")]
pub struct RatePiece {
    pub seconds: f64,
    /// The rate at its beginning and at its end.
    pub from: f64,
    pub to: f64,
}

impl From<(f64, f64, f64)> for RatePiece {
    fn from((seconds, from, to): (f64, f64, f64)) -> RatePiece {
        RatePiece { seconds, from, to }
    }
}

impl From<RatePiece> for (f64, f64, f64) {
    fn from(piece: RatePiece) -> (f64, f64, f64) {
        (piece.seconds, piece.from, piece.to)
    }
}

impl RatePiece {
    fn area(self) -> f64 {
        self.seconds * 0.5 * (self.from + self.to)
    }

    fn slope(self) -> f64 {
        (self.to - self.from) / self.seconds
    }

    /// The integral over its first `t` seconds.
    fn area_until(self, t: f64) -> f64 {
        t * (self.from + 0.5 * self.slope() * t)
    }
}

/// What a profile holds; a profile also has its sums.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileParts {
    name: String,
    /// The mean rate, where rates were given and not multiples of one.
    own_rate: Option<f64>,
    pieces: Vec<RatePiece>,
}

/// A rate over time as multiples of the rate of an open loop. It is piecewise linear and repeats
/// after its end, so its integral is inverted in closed form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ProfileParts", into = "ProfileParts")]
pub struct RateProfile(Arc<SummedParts>);

#[derive(Debug, PartialEq)]
struct SummedParts {
    parts: ProfileParts,
    /// Before each piece, and at the end: seconds, and the integral.
    sums: Vec<(f64, f64)>,
}

impl TryFrom<ProfileParts> for RateProfile {
    type Error = ProfileError;

    fn try_from(parts: ProfileParts) -> Result<RateProfile, ProfileError> {
        let refuse = |why: String| Err(ProfileError::whole(&parts.name, why));
        if parts.pieces.len() > MAX_PROFILE_PIECES {
            return refuse(format!("has more than {MAX_PROFILE_PIECES} pieces; give fewer points"));
        }
        let mut sums = vec![(0.0, 0.0)];
        let (mut seconds, mut area) = (0.0, 0.0);
        for piece in &parts.pieces {
            let RatePiece { seconds: length, from, to } = *piece;
            // Written so that what is not a number is refused too.
            if !(from >= 0.0 && to >= 0.0) {
                return refuse("goes below zero; the least rate is 0".to_owned());
            }
            if !(length > 0.0 && from.is_finite() && to.is_finite()) {
                return refuse(
                    "has a piece that takes no time or whose rate has no end".to_owned(),
                );
            }
            (seconds, area) = (seconds + length, area + piece.area());
            sums.push((seconds, area));
        }
        if !(MIN_SECONDS..=MAX_SECONDS).contains(&seconds) {
            return refuse(format!("takes {seconds} s; it takes from 1 ms to a year"));
        }
        if area <= 0.0 {
            return refuse("has a rate of 0 all the time; give one above it".to_owned());
        }
        Ok(RateProfile(Arc::new(SummedParts { parts, sums })))
    }
}

impl From<RateProfile> for ProfileParts {
    fn from(profile: RateProfile) -> ProfileParts {
        profile.0.parts.clone()
    }
}

impl RateProfile {
    /// Rates are divided by their mean, which becomes the rate of the loop; multiples stay.
    fn new(
        name: &str,
        multiples: bool,
        pieces: Vec<RatePiece>,
    ) -> Result<RateProfile, ProfileError> {
        let given = ProfileParts { name: name.to_owned(), own_rate: None, pieces };
        let profile = RateProfile::try_from(given)?;
        if multiples {
            return Ok(profile);
        }
        // Rounding of the sum must not show in a mean of 20k.
        let mean = profile.mean();
        let mean = format!("{mean:.11e}").parse().unwrap_or(mean);
        let mut parts = profile.0.parts.clone();
        for piece in &mut parts.pieces {
            (piece.from, piece.to) = (piece.from / mean, piece.to / mean);
        }
        parts.own_rate = Some(mean);
        RateProfile::try_from(parts)
    }

    /// As it was written, or the file's name with a hash of its contents.
    pub fn name(&self) -> &str {
        &self.0.parts.name
    }

    /// The mean of the rates that were given; None where they are multiples of a rate.
    pub fn own_rate(&self) -> Option<f64> {
        self.0.parts.own_rate
    }

    pub fn pieces(&self) -> &[RatePiece] {
        &self.0.parts.pieces
    }

    /// Its length; after it, it repeats.
    pub fn seconds(&self) -> f64 {
        self.last_sum().0
    }

    /// Its mean, as all that follow in multiples of the rate.
    pub fn mean(&self) -> f64 {
        let (seconds, area) = self.last_sum();
        area / seconds
    }

    pub fn peak(&self) -> f64 {
        self.pieces().iter().map(|piece| piece.from.max(piece.to)).fold(0.0, f64::max)
    }

    /// At its beginning.
    pub fn first(&self) -> f64 {
        self.pieces().first().map_or(0.0, |piece| piece.from)
    }

    /// The integral from the beginning to an instant.
    pub fn integral(&self, until_s: f64) -> f64 {
        let (length, area) = self.last_sum();
        let passes = (until_s / length).floor().max(0.0);
        let within = (until_s - passes * length).clamp(0.0, length);
        // The piece in which it lies begins at or before it.
        let at = self.0.sums.partition_point(|(begin, _)| *begin <= within).saturating_sub(1);
        let (begin, before) = self.0.sums[at];
        let rest = self.pieces().get(at).map_or(0.0, |piece| piece.area_until(within - begin));
        passes * area + before + rest
    }

    /// The mean over a window that begins with it; over its own length without one.
    pub fn mean_over(&self, window: Option<Duration>) -> f64 {
        match window {
            Some(window) if !window.is_zero() => self.mean_between(0.0, window.as_secs_f64()),
            _ => self.mean(),
        }
    }

    /// The mean between two instants.
    pub fn mean_between(&self, from_s: f64, to_s: f64) -> f64 {
        (self.integral(to_s) - self.integral(from_s)) / (to_s - from_s).max(f64::MIN_POSITIVE)
    }

    fn last_sum(&self) -> (f64, f64) {
        self.0.sums.last().copied().unwrap_or_default()
    }
}
