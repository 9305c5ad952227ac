//! Direct cache access by phase and rate, as proposed by the thesis (Basavaraj 2017).
//!
//! Where computing dominates it is off, as it helps little and takes cache from the cores. Where
//! input and output dominate it is on, and gets more of the cache as packets are evicted before
//! their use; if that continues at its largest share, it is turned off, which helped at high request
//! rates in the thesis. The thesis gives no thresholds; these are our own.

use super::{Controller, PolicyOptions, WayMask, WindowObservation};

/// Share of the card's lines among all that reach the cache, below which computing dominates.
const COMPUTING: f64 = 0.05;
/// Share of reads of packets that miss, above which packets are evicted too early, and below which
/// the share of the cache may shrink.
const EVICTED_EARLY: f64 = 0.10;
const FEW_EVICTED: f64 = 0.02;
/// The same where packets are received only: misses of the workers for each line that the card
/// wrote. The misses of their programs are among them.
const RECEIVED_EVICTED_EARLY: f64 = 0.5;
const RECEIVED_FEW_EVICTED: f64 = 0.25;
/// The card reads less than this share of what it writes where packets are received only.
const RECEIVES_ONLY: f64 = 0.25;
/// Share of the cache that it gets at most.
const MAX_SHARE: f64 = 0.5;
/// Windows that it stays off before it is tried again: more each time that this failed.
const PAUSE: u32 = 8;
const LONGEST_PAUSE: u32 = 64;

#[derive(Debug)]
pub struct PhaseAndRate {
    choice: PolicyOptions,
    ways: u32,
    pause: u32,
    next_pause: u32,
}

/// How many packets are evicted before they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evicted {
    Few,
    Some,
    Many,
}

impl Evicted {
    fn of(observed: &WindowObservation) -> Evicted {
        let reads = observed.read_hits + observed.read_misses;
        let writes = observed.write_hits + observed.write_misses;
        let (missed, of, few, early) = if (reads as f64) < writes as f64 * RECEIVES_ONLY {
            let missed = observed.worker_misses;
            (missed, writes, RECEIVED_FEW_EVICTED, RECEIVED_EVICTED_EARLY)
        } else {
            (observed.read_misses, reads, FEW_EVICTED, EVICTED_EARLY)
        };
        match missed as f64 / of.max(1) as f64 {
            share if share > early => Evicted::Many,
            share if share < few => Evicted::Few,
            _ => Evicted::Some,
        }
    }
}

impl PhaseAndRate {
    pub fn new(choice: PolicyOptions) -> Self {
        PhaseAndRate { choice, ways: choice.usual, pause: 0, next_pause: PAUSE }
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

    fn next(&mut self, observed: &WindowObservation) -> WayMask {
        let card =
            observed.write_hits + observed.write_misses + observed.read_hits + observed.read_misses;
        let cores = observed.worker_reached + observed.co_runner_reached;
        let share = card as f64 / (card + cores).max(1) as f64;
        let evicted = Evicted::of(observed);
        let most = (f64::from(self.choice.ways) * MAX_SHARE) as u32;
        if self.ways == 0 {
            self.pause = self.pause.saturating_sub(1);
            if self.pause == 0 && share >= COMPUTING {
                self.ways = self.choice.usual;
            }
        } else if share < COMPUTING {
            (self.ways, self.pause) = (0, 1);
        } else if evicted == Evicted::Many && self.ways >= most {
            (self.ways, self.pause) = (0, self.next_pause);
            self.next_pause = (self.next_pause * 2).min(LONGEST_PAUSE);
        } else if evicted == Evicted::Many {
            self.ways += 1;
        } else {
            self.next_pause = PAUSE;
            if evicted == Evicted::Few && self.ways > self.choice.usual {
                self.ways -= 1;
            }
        }
        self.setting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICE: PolicyOptions =
        PolicyOptions { ways: 11, usual: 2, workers: 0x7ff, co_runners: 0x7ff };

    fn observation(card: u64, misses: u64, cores: u64) -> WindowObservation {
        WindowObservation {
            write_misses: card,
            read_hits: card - misses,
            read_misses: misses,
            co_runner_reached: cores,
            ..WindowObservation::default()
        }
    }

    #[test]
    fn is_off_while_computing_and_on_for_packets() {
        let mut policy = PhaseAndRate::new(CHOICE);
        assert_eq!(policy.next(&observation(10, 0, 10_000)).card, 0);
        assert_eq!(policy.next(&observation(10, 0, 10_000)).card, 0);
        assert_eq!(policy.next(&observation(1000, 0, 1000)).card, 0x600);
    }

    #[test]
    fn grows_on_early_evictions_and_finally_turns_off() {
        let mut policy = PhaseAndRate::new(CHOICE);
        assert_eq!(policy.next(&observation(1000, 500, 0)).card, 0x700);
        assert_eq!(policy.next(&observation(1000, 0, 0)).card, 0x600);
        for _ in 0..3 {
            assert_ne!(policy.next(&observation(1000, 500, 0)).card, 0);
        }
        assert_eq!(policy.next(&observation(1000, 500, 0)).card, 0);
    }

    #[test]
    fn packets_that_are_only_received_are_judged_by_the_workers_misses() {
        let received = |misses| WindowObservation {
            write_hits: 1000,
            worker_reached: 1500,
            worker_misses: misses,
            ..WindowObservation::default()
        };
        let mut policy = PhaseAndRate::new(CHOICE);
        assert_eq!(policy.next(&received(400)).card, 0x600, "the program's own may be so many");
        // Each trial that fails is followed by a pause of twice as many windows.
        for pause in [8, 16, 32, 64, 64] {
            for _ in 0..3 {
                assert_ne!(policy.next(&received(900)).card, 0);
            }
            for _ in 0..pause {
                assert_eq!(policy.next(&received(900)).card, 0);
            }
            assert_eq!(policy.next(&received(900)).card, 0x600);
        }
        policy.next(&received(100));
        for _ in 0..3 {
            policy.next(&received(900));
        }
        assert_eq!(policy.next(&received(900)).card, 0);
        assert_eq!(policy.pause, PAUSE, "one that did not fail begins anew");
    }
}
