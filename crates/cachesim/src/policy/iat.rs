//! A finite-state controller after IAT (Yuan et al., "Don't Forget the I/O When Allocating Your
//! LLC", ISCA 2021).
//!
//! Each window it compares the card's allocations, its hits and the cores' misses with those of
//! the window before, and moves one way a step: to the card while it allocates much (I/O demand),
//! to the workers while they miss more although the card allocates little (core demand), back
//! while neither needs it (reclaim). The workers have ways of their own; the co-runners, IAT's
//! best-effort tenants, share the others with the card. IAT polls each second; simulated runs last
//! tens of milliseconds, so the window is shorter here.

use super::{Controller, PolicyOptions, WayMask, WindowObservation};

/// Smaller relative changes are ignored (IAT's threshold of stability).
const STABLE: f64 = 0.03;
/// Allocations of the card a second that count as few (IAT's low threshold of misses).
const FEW_ALLOCATIONS: f64 = 1e6;
const MAX_CARD_WAYS: u32 = 6;
const MIN_WAYS: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    LowKeep,
    HighKeep,
    IoDemand,
    CoreDemand,
    Reclaim,
}

#[derive(Debug)]
pub struct Iat {
    choice: PolicyOptions,
    state: State,
    card: u32,
    workers: u32,
    before: Option<WindowObservation>,
}

impl Iat {
    pub fn new(choice: PolicyOptions) -> Self {
        let card = choice.usual.max(1);
        let workers = MIN_WAYS.max(choice.ways / 4).min(choice.ways - 1);
        Iat { choice, state: State::LowKeep, card, workers, before: None }
    }

    /// The workers have the lowest ways for themselves; the co-runners, IAT's best-effort tenants, have
    /// all others and share the highest with the card.
    fn setting(&self) -> WayMask {
        let workers = self.choice.lowest(self.workers);
        WayMask {
            card: self.choice.highest(self.card),
            workers,
            co_runners: self.choice.every() & !workers,
        }
    }
}

/// The change from `before` to `now` as a share of `before`.
fn change(before: f64, now: f64) -> f64 {
    (now - before) / before.max(1.0)
}

impl Controller for Iat {
    fn window(&self) -> f64 {
        5e-4
    }

    fn begin(&self) -> WayMask {
        self.setting()
    }

    fn next(&mut self, observed: &WindowObservation) -> WayMask {
        let Some(before) = self.before.replace(*observed) else { return self.setting() };
        let allocations = observed.write_misses as f64 / observed.seconds;
        let of = |observed: &WindowObservation, what: fn(&WindowObservation) -> u64| {
            what(observed) as f64 / observed.seconds
        };
        let misses = change(of(&before, |o| o.write_misses), allocations);
        let hits = change(of(&before, |o| o.write_hits), of(observed, |o| o.write_hits));
        let cores = change(of(&before, |o| o.worker_misses), of(observed, |o| o.worker_misses));
        let high = allocations > FEW_ALLOCATIONS;
        self.state = match self.state {
            State::LowKeep if high && misses > STABLE && hits < -STABLE => State::CoreDemand,
            State::LowKeep if high => State::IoDemand,
            State::IoDemand if self.card >= MAX_CARD_WAYS => State::HighKeep,
            State::IoDemand if misses < -STABLE && !high => State::Reclaim,
            State::IoDemand if high => State::IoDemand,
            State::HighKeep if !high || misses < -STABLE * 4.0 => State::Reclaim,
            State::HighKeep if cores > STABLE => State::CoreDemand,
            State::CoreDemand if cores <= STABLE => State::Reclaim,
            State::Reclaim if high && misses > STABLE => State::IoDemand,
            State::Reclaim if self.card <= 1 => State::LowKeep,
            State::IoDemand => State::LowKeep,
            same => same,
        };
        let free = self.choice.ways.saturating_sub(self.card + self.workers);
        match self.state {
            State::IoDemand => {
                self.card = (self.card + 1).min(MAX_CARD_WAYS).min(self.choice.ways - 1)
            }
            State::CoreDemand if free > MIN_WAYS => self.workers += 1,
            State::Reclaim if self.card > MIN_WAYS => self.card -= 1,
            State::Reclaim if self.workers > MIN_WAYS => self.workers -= 1,
            _ => {}
        }
        if self.state == State::Reclaim && self.card <= MIN_WAYS {
            self.state = State::LowKeep;
        }
        self.setting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICE: PolicyOptions =
        PolicyOptions { ways: 11, usual: 2, workers: 0x7ff, co_runners: 0x7ff };

    fn observation(write_misses: u64) -> WindowObservation {
        WindowObservation {
            seconds: 1e-3,
            write_hits: 1000,
            write_misses,
            ..WindowObservation::default()
        }
    }

    #[test]
    fn a_card_that_allocates_much_gains_one_way_per_step() {
        let mut iat = Iat::new(CHOICE);
        assert_eq!(iat.begin().card.count_ones(), 2);
        let ways: Vec<u32> =
            (0..8).map(|i| iat.next(&observation(100_000 + i)).card.count_ones()).collect();
        assert_eq!(ways, [2, 3, 4, 5, 6, 6, 6, 6]);
    }

    #[test]
    fn no_group_loses_all_ways_and_co_runners_avoid_the_workers() {
        let mut iat = Iat::new(CHOICE);
        for i in 0..50 {
            let setting = iat.next(&observation(if i % 20 < 10 { 1_000_000 } else { 0 }));
            assert!(setting.card != 0 && setting.workers != 0 && setting.co_runners != 0);
            assert_eq!(setting.workers & setting.co_runners, 0);
            assert_eq!((setting.card | setting.workers | setting.co_runners) & !0x7ff, 0);
        }
    }
}
