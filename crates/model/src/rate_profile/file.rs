//! Profiles in files: lines of a time and a rate.

use super::notation::RateNumbers;
use super::{MAX_PROFILE_PIECES, ProfileError, RatePiece, RateProfile};
use crate::quantity::Span;

/// Seconds of a point, as a number or with a unit.
fn time(text: &str) -> Option<f64> {
    let number = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite());
    number.or_else(|| text.parse::<Span>().ok().map(|span| span.0.as_secs_f64()))
}

/// FNV-1a of a text: files of one name differ by it.
fn hash(text: &str) -> u64 {
    let prime = 0x0100_0000_01b3;
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(prime))
}

impl RateProfile {
    /// Reads a file's text: lines `time,rate`, with or without a header. Between two points the rate
    /// goes along a line; two points of one time are a jump. Times count from the first.
    ///
    /// # Errors
    /// No points, a line that is not one, times that go back, a rate below zero or beyond limits.
    pub fn from_file(file: &str, text: &str) -> Result<RateProfile, ProfileError> {
        let mut numbers = RateNumbers::default();
        let mut pieces = Vec::new();
        let mut before: Option<(f64, f64)> = None;
        let mut first = true;
        for (line, number) in text.trim_start_matches('\u{feff}').lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let refuse = |why: String| Err(ProfileError::line(file, number, why));
            let fields: Vec<&str> = line.split([',', ';', '\t']).map(str::trim).collect();
            let is_header = std::mem::take(&mut first) && names(&fields);
            if is_header {
                continue;
            }
            let [at, rate] = fields[..] else {
                return refuse(format!("`{line}` has {} fields; write `time,rate`", fields.len()));
            };
            let Some(at) = time(at) else {
                return refuse(format!("`{at}` is no time; write seconds, or `1m30s`"));
            };
            let rate = match numbers.read(rate) {
                Ok(rate) => rate,
                Err(why) => return refuse(format!("it {why}")),
            };
            if let Some((begin, from)) = before {
                if at < begin {
                    let why = format!("the time goes back from {begin} to {at}; sort the lines");
                    return refuse(why);
                }
                if at > begin {
                    pieces.push(RatePiece { seconds: at - begin, from, to: rate });
                }
            }
            if pieces.len() > MAX_PROFILE_PIECES {
                return refuse(format!("more than {MAX_PROFILE_PIECES} points; give fewer"));
            }
            before = Some((at, rate));
        }
        if pieces.is_empty() {
            let why = match before {
                None => "is empty; write lines `time,rate`",
                Some(_) => "has one instant only; a profile takes two or more",
            };
            return Err(ProfileError::whole(file, why));
        }
        let name = std::path::Path::new(file).file_name().map(|name| name.to_string_lossy());
        let name = format!("{}#{:08x}", name.unwrap_or_default(), hash(text) >> 32);
        RateProfile::new(&name, numbers.are_multiples(), pieces)
    }
}

/// Whether fields are the names of columns: none has a digit.
fn names(fields: &[&str]) -> bool {
    let is_name = |field: &&str| {
        field.starts_with(|c: char| c.is_alphabetic() || c == '"')
            && !["nan", "inf"].iter().any(|other| field.eq_ignore_ascii_case(other))
    };
    fields.iter().all(is_name)
}
