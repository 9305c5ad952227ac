//! Estimates the offset of an agent's clock from round trips.
//!
//! With t0 and t3 by the coordinator's clock and t1 and t2 by the agent's, the agent is ahead by
//! ((t1 - t0) + (t2 - t3)) / 2, wrong by at most half of the round trip (t3 - t0) - (t2 - t1),
//! however unequal the two ways are (RFC 5905, section 8). The shortest round trip bounds best.
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since an instant of this process: a monotonic clock whose readings can be sent.
#[derive(Debug, Clone, Copy)]
pub struct MonotonicClock(Instant);

impl MonotonicClock {
    pub fn new() -> MonotonicClock {
        MonotonicClock(Instant::now())
    }

    pub fn of(self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.0).as_nanos()).unwrap_or(u64::MAX)
    }

    pub fn now(self) -> u64 {
        self.of(Instant::now())
    }

    /// None where the instant is out of range.
    pub fn at(self, ns: u64) -> Option<Instant> {
        self.0.checked_add(Duration::from_nanos(ns))
    }
}

/// The time of day in nanoseconds since 1970.
pub fn wall_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// One probe: times in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSample {
    /// By the coordinator's clock.
    pub sent: u64,
    /// By the agent's.
    pub received: u64,
    /// By the agent's.
    pub answered: u64,
    /// By the coordinator's.
    pub returned: u64,
    /// The agent's time of day at `answered`, less `answered`.
    pub wall: i64,
}

/// The estimate of an agent's clocks from the best probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockEstimate {
    /// How far the agent's steady clock is ahead of the coordinator's, in ns.
    pub offset_ns: i64,
    pub round_trip_ns: u64,
    /// The agent's time of day, less its steady clock, in ns.
    pub wall: i64,
}

impl ClockSample {
    fn estimate(self) -> ClockEstimate {
        let there = self.received.wrapping_sub(self.sent) as i64;
        let back = self.answered.wrapping_sub(self.returned) as i64;
        let away = self.returned.saturating_sub(self.sent);
        ClockEstimate {
            offset_ns: ((i128::from(there) + i128::from(back)) / 2) as i64,
            round_trip_ns: away.saturating_sub(self.answered.saturating_sub(self.received)),
            wall: self.wall,
        }
    }
}

/// The estimate of the shortest round trip; None without samples.
pub fn best(samples: &[ClockSample]) -> Option<ClockEstimate> {
    samples.iter().map(|sample| sample.estimate()).min_by_key(|estimate| estimate.round_trip_ns)
}

impl ClockEstimate {
    /// An instant of the coordinator's clock by the agent's.
    pub fn by_the_agent(&self, coordinator_ns: u64) -> u64 {
        coordinator_ns.saturating_add_signed(self.offset_ns)
    }

    /// How far the agent's time of day is ahead of the coordinator's, in ns. `own` is the
    /// coordinator's time of day less its steady clock.
    pub fn wall_offset_ns(&self, own: i64) -> i64 {
        self.wall.saturating_add(self.offset_ns).saturating_sub(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent that is ahead by so much, on a way there and a way back of so many ns.
    fn sample(ahead: i64, sent: u64, there: u64, held: u64, back: u64) -> ClockSample {
        let received = (sent + there).wrapping_add_signed(ahead);
        ClockSample {
            sent,
            received,
            answered: received + held,
            returned: sent + there + held + back,
            wall: 0,
        }
    }

    #[test]
    fn the_shortest_round_trip_wins_and_bounds_the_error() {
        for ahead in [-5_000_000_000, -1, 0, 1, 7_000_000_000_000] {
            let sent = 6_000_000_000;
            let samples = [
                sample(ahead, sent, 90_000, 5_000, 900_000),
                sample(ahead, sent + 1, 100_000, 800_000, 60_000),
                sample(ahead, sent + 2, 2_000_000, 0, 100_000),
            ];
            let estimate = best(&samples).unwrap();
            assert_eq!(estimate.round_trip_ns, 160_000);
            assert_eq!(estimate.offset_ns, ahead + 20_000);
            assert!((estimate.offset_ns - ahead).unsigned_abs() <= estimate.round_trip_ns / 2);
            let by_agent = estimate.by_the_agent(sent + 1_000_000);
            assert_eq!(by_agent as i64, sent as i64 + 1_000_000 + ahead + 20_000);
        }
        assert_eq!(best(&[]), None);
    }

    #[test]
    fn the_time_of_day_is_compared_at_one_instant() {
        // Both began at zero of their own; the agent 1 s later and its wall clock 3 s ahead.
        let estimate =
            ClockEstimate { offset_ns: -1_000_000_000, round_trip_ns: 0, wall: 104_000_000_000 };
        assert_eq!(estimate.wall_offset_ns(100_000_000_000), 3_000_000_000);
    }
}
