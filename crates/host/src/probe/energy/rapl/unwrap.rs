//! Joules of a counter that wraps.

use std::time::{Duration, Instant};

use model::Unavailable;

/// More than any package or platform draws; bounds the speed of a counter.
const MAX_WATTS: f64 = 2000.0;

/// A counter whose wraps are detected, as it is read before half of its range can have passed.
#[derive(Debug, Clone)]
pub(super) struct Unwrapped {
    joules_per_step: f64,
    range: Option<u64>,
    last: Option<(Instant, u64)>,
    /// Steps since the first look; falls when the counter went back.
    gained: i64,
}

impl Unwrapped {
    pub fn new(joules_per_step: f64, range: Option<u64>) -> Self {
        Unwrapped { joules_per_step, range, last: None, gained: 0 }
    }

    /// The shortest time in which half of the range can pass.
    pub fn read_within(&self) -> Duration {
        let half = |range: u64| range as f64 * self.joules_per_step / 2.0 / MAX_WATTS;
        self.range.map_or(Duration::MAX, |range| Duration::from_secs_f64(half(range)))
    }

    /// Joules since the first reading. They fall if the counter went back; it is an error if a wrap
    /// may have been missed.
    pub fn joules(&mut self, steps: u64, now: Instant) -> Result<f64, Unavailable> {
        let (before, last) = self.last.replace((now, steps)).unwrap_or((now, steps));
        let unseen = now.saturating_duration_since(before);
        if unseen > self.read_within().saturating_mul(2) {
            return Err(Unavailable::new(
                format!("the counter was not read for {unseen:.0?}, in which it may have wrapped"),
                "keep the machine from sleeping, and leave the sampler a CPU",
            ));
        }
        let forward = steps as i64 - last as i64;
        self.gained += match self.range {
            Some(range) if forward < 0 => {
                let wrapped = forward + range as i64;
                // More than half of the range cannot have passed: it went back.
                if wrapped >= 0 && wrapped as u64 <= range / 2 { wrapped } else { forward }
            }
            _ => forward,
        };
        Ok(self.gained as f64 * self.joules_per_step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: u64 = 65_712_999_613;

    #[test]
    fn detects_wraps_and_counters_that_went_back() {
        let now = Instant::now();
        let mut counter = Unwrapped::new(1e-6, Some(RANGE));
        assert_eq!(counter.joules(RANGE - 1_000_000, now), Ok(0.0));
        assert_eq!(counter.joules(2_000_000, now), Ok(3.0));
        assert_eq!(counter.joules(3_000_000, now), Ok(4.0));
        assert_eq!(counter.joules(1_000_000, now), Ok(2.0));
        // Without a range, the kernel unwraps, and nothing may go back.
        let mut perf = Unwrapped::new(2f64.powi(-32), None);
        assert_eq!(perf.joules(5 << 32, now), Ok(0.0));
        assert_eq!(perf.joules(7 << 32, now), Ok(2.0));
        assert_eq!(perf.joules(6 << 32, now), Ok(1.0));
    }

    #[test]
    fn a_possibly_missed_wrap_is_an_error() {
        let counter = Unwrapped::new(1e-6, Some(RANGE));
        let within = counter.read_within();
        assert!(within > Duration::from_secs(16) && within < Duration::from_secs(17), "{within:?}");
        let (mut seen, mut slept) = (counter.clone(), counter);
        let now = Instant::now();
        seen.joules(0, now).unwrap();
        assert_eq!(seen.joules(1_000_000, now + within), Ok(1.0));
        slept.joules(0, now).unwrap();
        let why = slept.joules(1_000_000, now + within * 3).unwrap_err();
        assert!(why.reason.contains("may have wrapped"), "{why}");
    }
}
