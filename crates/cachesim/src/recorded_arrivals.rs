//! Recorded arrivals: a line `seconds,bytes` per packet.

use std::path::Path;

use crate::engine::time::{Picos, of_seconds, seconds};
use crate::error::SimError;

/// The longest file of arrivals.
const MAX_BYTES: u64 = 1 << 30;

/// Arrivals in order, repeated cyclically.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedArrivals {
    arrivals: Vec<(Picos, u32)>,
    /// Time from the first arrival to that of the next round.
    round: Picos,
}

impl RecordedArrivals {
    /// Arrivals in seconds from any beginning, in order, with their bytes; `most` is the longest
    /// packet that fits a buffer. The error names the arrival.
    pub fn of(
        arrivals: impl IntoIterator<Item = (f64, u32)>,
        most: u64,
    ) -> Result<RecordedArrivals, SimError> {
        let mut checked: Vec<(Picos, u32)> = Vec::new();
        for (i, (at, bytes)) in arrivals.into_iter().enumerate() {
            let late = checked.last().is_some_and(|(last, _)| *last > of_seconds(at));
            if !at.is_finite() || at < 0.0 || late || bytes == 0 || u64::from(bytes) > most {
                let words = format!(
                    "recorded arrival {i}: {bytes} B at {at} s; arrivals must be in order and of 1 \
                     to {most} B, which fit a buffer"
                );
                return Err(SimError::Value(words));
            }
            checked.push((of_seconds(at), bytes));
        }
        RecordedArrivals::from_parts(checked, "the recorded run")
    }

    /// Reads a file; `most` is the longest packet that fits a buffer.
    pub fn read(path: &Path, most: u64) -> Result<RecordedArrivals, SimError> {
        let origin = path.display().to_string();
        let text = safe_file::read_text(path, MAX_BYTES)
            .map_err(|error| SimError::file(origin.clone(), &error))?;
        RecordedArrivals::parse(&origin, &text, most)
    }

    /// Lines that are empty or begin with `#` are left out, and so is a head that names the two
    /// columns.
    pub fn parse(origin: &str, text: &str, most: u64) -> Result<RecordedArrivals, SimError> {
        let mut arrivals: Vec<(Picos, u32)> = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') || (i == 0 && line == "seconds,bytes") {
                continue;
            }
            let wrong = |why: &str| {
                SimError::Place(format!("{origin}:{}: {why}\n{} | {line}", i + 1, i + 1))
            };
            let (at, bytes) = line
                .split_once(',')
                .ok_or_else(|| wrong("write an arrival as `seconds,bytes`, e.g. `0.000125,64`"))?;
            let at: f64 = at.trim().parse().map_err(|_| wrong("`seconds` is not a number"))?;
            if !(0.0..1e6).contains(&at) {
                return Err(wrong("`seconds` must be 0 to 1000000"));
            }
            let bytes: u32 = bytes.trim().parse().map_err(|_| wrong("`bytes` is not a number"))?;
            if bytes == 0 || u64::from(bytes) > most {
                return Err(wrong(&format!("`bytes` must be 1 to {most}: it has to fit a buffer")));
            }
            let at = of_seconds(at);
            if arrivals.last().is_some_and(|(last, _)| *last > at) {
                return Err(wrong("`seconds` goes back: arrivals must be in order"));
            }
            arrivals.push((at, bytes));
        }
        RecordedArrivals::from_parts(arrivals, origin)
    }

    fn from_parts(
        mut arrivals: Vec<(Picos, u32)>,
        origin: &str,
    ) -> Result<RecordedArrivals, SimError> {
        let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else {
            return Err(SimError::Place(format!("{origin}: it has no arrival")));
        };
        let span = last.0 - first.0;
        if arrivals.len() < 2 || span == 0 {
            let words = "at least two arrivals at different times are needed";
            return Err(SimError::Place(format!("{origin}: {words}")));
        }
        let round = span + span / (arrivals.len() as u64 - 1);
        let begin = first.0;
        for arrival in &mut arrivals {
            arrival.0 -= begin;
        }
        Ok(RecordedArrivals { arrivals, round })
    }

    /// Seconds between two packets on average.
    pub fn distance(&self) -> f64 {
        seconds(self.round) / self.arrivals.len() as f64
    }

    /// Time and bytes of the `turn`-th arrival.
    pub fn at(&self, turn: usize) -> (Picos, u32) {
        let (round, i) = (turn / self.arrivals.len(), turn % self.arrivals.len());
        let (at, bytes) = self.arrivals[i];
        (at + round as Picos * self.round, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RecordedArrivals, SimError> {
        RecordedArrivals::parse("a.csv", text, 2048)
    }

    #[test]
    fn arrivals_repeat() {
        let recorded = parse("seconds,bytes\n5,64\n\n# a pause\n5.5,128\n6,64\n").unwrap();
        assert_eq!(recorded.distance(), 0.5);
        assert_eq!(recorded.at(1), (of_seconds(0.5), 128));
        assert_eq!(recorded.at(4), (of_seconds(2.0), 128));
    }

    #[test]
    fn a_bad_line_is_shown_with_its_number() {
        for (text, says) in [
            ("1,64\n2\n", "a.csv:2: write an arrival"),
            ("1,64\nx,64\n", "a.csv:2: `seconds` is not"),
            ("1,64\n2,0\n", "a.csv:2: `bytes` must be 1 to 2048"),
            ("1,64\n2,4096\n", "a.csv:2: `bytes` must be"),
            ("2,64\n1,64\n", "a.csv:2: `seconds` goes back"),
            ("", "a.csv: it has no arrival"),
            ("1,64\n", "a.csv: at least two"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
