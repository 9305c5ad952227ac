//! The seed's proposal: direct cache access by phase and rate.
//!
//! Where computing dominates it is turned off, as it does little and takes cache from the cores;
//! where input and output dominate it is on and gets more of the cache as packets are pushed out
//! before they were used; if that goes on at its largest share, it is turned off, as the seed
//! measured it to help at high request rates. The proposal names no thresholds; these are ours.

use super::{Controller, PolicyOptions, WayMask, WindowObservation};

/// Share of the card's lines among all that reach the cache, below which computing dominates.
const COMPUTING: f64 = 0.05;
/// Share of what the card reads back or workers read that is gone, above which packets are pushed
/// out too early, and below which the share of the cache may shrink.
const PUSHED_OUT: f64 = 0.10;
const AT_EASE: f64 = 0.02;
/// Share of the cache that it gets at most.
const MOST: f64 = 0.5;
/// Windows that it stays off before it is tried again.
const PAUSE: u32 = 8;

#[derive(Debug)]
pub struct PhaseAndRate {
    choice: PolicyOptions,
    ways: u32,
    pause: u32,
}

impl PhaseAndRate {
    pub fn new(choice: PolicyOptions) -> Self {
        PhaseAndRate { choice, ways: choice.usual, pause: 0 }
    }

    fn setting(&self) -> WayMask {
        WayMask { card: self.choice.highest(self.ways), ..self.choice.usual() }
    }
}

impl Controller for PhaseAndRate {
    fn window(&self) -> f64 {
        5e-4
    }

    fn begin(&self) -> WayMask {
        self.setting()
    }

    fn next(&mut self, seen: &WindowObservation) -> WayMask {
        let card = seen.write_hits + seen.write_misses + seen.read_hits + seen.read_misses;
        let cores = seen.worker_reached + seen.co_runner_reached;
        let share = card as f64 / (card + cores).max(1) as f64;
        let gone = seen.read_misses as f64 / (seen.read_hits + seen.read_misses).max(1) as f64;
        let most = (f64::from(self.choice.ways) * MOST) as u32;
        if self.ways == 0 {
            self.pause = self.pause.saturating_sub(1);
            if self.pause == 0 && share >= COMPUTING {
                self.ways = self.choice.usual;
            }
        } else if share < COMPUTING {
            (self.ways, self.pause) = (0, 1);
        } else if gone > PUSHED_OUT && self.ways >= most {
            (self.ways, self.pause) = (0, PAUSE);
        } else if gone > PUSHED_OUT {
            self.ways += 1;
        } else if gone < AT_EASE && self.ways > self.choice.usual {
            self.ways -= 1;
        }
        self.setting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICE: PolicyOptions =
        PolicyOptions { ways: 11, usual: 2, workers: 0x7ff, co_runners: 0x7ff };

    fn seen(card: u64, gone: u64, cores: u64) -> WindowObservation {
        WindowObservation {
            write_misses: card,
            read_hits: card - gone,
            read_misses: gone,
            co_runner_reached: cores,
            ..WindowObservation::default()
        }
    }

    #[test]
    fn computing_turns_it_off_and_packets_turn_it_on() {
        let mut policy = PhaseAndRate::new(CHOICE);
        assert_eq!(policy.next(&seen(10, 0, 10_000)).card, 0);
        assert_eq!(policy.next(&seen(10, 0, 10_000)).card, 0);
        assert_eq!(policy.next(&seen(1000, 0, 1000)).card, 0x600);
    }

    #[test]
    fn packets_that_are_pushed_out_get_more_and_in_the_end_nothing() {
        let mut policy = PhaseAndRate::new(CHOICE);
        assert_eq!(policy.next(&seen(1000, 500, 0)).card, 0x700);
        assert_eq!(policy.next(&seen(1000, 0, 0)).card, 0x600);
        for _ in 0..3 {
            assert_ne!(policy.next(&seen(1000, 500, 0)).card, 0);
        }
        assert_eq!(policy.next(&seen(1000, 500, 0)).card, 0);
    }
}
