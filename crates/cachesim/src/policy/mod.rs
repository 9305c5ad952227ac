//! Policies for the allocation of ways: fixed settings, and controllers that adapt them.
//!
//! A controller observes what counters of real processors give (per window: hits and misses of the
//! card's writes, misses of each group of cores, work done) and sets what real processors offer:
//! the card's ways and a mask of ways for each group.

mod iat;
mod phase_and_rate;
mod yield_search;

use model::suggest::hint;

use crate::error::SimError;

/// Ways of the last-level cache, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WayMask {
    /// Ways in which the card may allocate; 0 turns direct cache access off.
    pub card: u32,
    /// Ways that the workers may fill.
    pub workers: u32,
    /// Ways that the co-runners may fill, each within its own mask.
    pub co_runners: u32,
}

impl WayMask {
    /// The card's ways, if it may allocate at all.
    #[inline]
    pub fn device(self) -> Option<u32> {
        (self.card != 0).then_some(self.card)
    }
}

/// The options of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyOptions {
    /// Ways of the cache.
    pub ways: u32,
    /// Default ways of the card.
    pub usual: u32,
    /// Masks from the traffic's description; for the co-runners, their union.
    pub workers: u32,
    pub co_runners: u32,
}

impl PolicyOptions {
    pub fn every(self) -> u32 {
        u32::MAX >> (32 - self.ways)
    }

    /// The highest `count` ways.
    pub fn highest(self, count: u32) -> u32 {
        self.every() & !(self.every() >> count.min(self.ways))
    }

    /// The lowest `count` ways.
    pub fn lowest(self, count: u32) -> u32 {
        self.every() >> (self.ways - count.min(self.ways))
    }

    /// The machine's default setting.
    pub fn usual(self) -> WayMask {
        WayMask {
            card: self.highest(self.usual),
            workers: self.workers,
            co_runners: self.co_runners,
        }
    }
}

/// The observations of one window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WindowObservation {
    pub seconds: f64,
    /// Lines that the card wrote, by hit, and by allocation or write to memory.
    pub write_hits: u64,
    pub write_misses: u64,
    /// Lines that the card read.
    pub read_hits: u64,
    pub read_misses: u64,
    /// Packets that were answered, and the time that workers were busy with it.
    pub answered: u64,
    pub busy_seconds: f64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Accesses of workers and co-runners that reached the last-level cache, and misses.
    pub worker_reached: u64,
    pub worker_misses: u64,
    pub co_runner_accesses: u64,
    pub co_runner_reached: u64,
    pub co_runner_misses: u64,
}

/// Adapts the setting during the simulation.
pub trait Controller: std::fmt::Debug {
    /// Seconds of a window.
    fn window(&self) -> f64;
    fn begin(&self) -> WayMask;
    /// The setting for the next window, after one with the present setting.
    fn next(&mut self, observed: &WindowObservation) -> WayMask;
}

/// A policy by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The machine's default.
    On,
    /// The card writes to memory.
    Off,
    /// So many ways for the card.
    Ways(u32),
    /// By phase and rate, as proposed by Basavaraj 2017, chapters 3 and 5.
    PhaseAndRate,
    /// A finite-state controller after IAT (Yuan et al., ISCA 2021).
    Iat,
    /// Tries settings and keeps the best for both sides.
    YieldSearch,
}

const NAMES: [&str; 6] = ["on", "off", "ways:N", "phase-and-rate", "iat", "yield-search"];

impl Policy {
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        NAMES.into_iter()
    }

    pub fn parse(text: &str) -> Result<Policy, SimError> {
        match text {
            "on" => Ok(Policy::On),
            "off" => Ok(Policy::Off),
            "phase-and-rate" => Ok(Policy::PhaseAndRate),
            "iat" => Ok(Policy::Iat),
            "yield-search" => Ok(Policy::YieldSearch),
            _ => match text.strip_prefix("ways:").map(str::parse) {
                Some(Ok(ways)) => Ok(Policy::Ways(ways)),
                _ => Err(SimError::Value(format!(
                    "there is no policy `{text}`; {}",
                    hint(text, Policy::names())
                ))),
            },
        }
    }

    pub fn name(self) -> String {
        match self {
            Policy::On => "on".into(),
            Policy::Off => "off".into(),
            Policy::Ways(ways) => format!("ways:{ways}"),
            Policy::PhaseAndRate => "phase-and-rate".into(),
            Policy::Iat => "iat".into(),
            Policy::YieldSearch => "yield-search".into(),
        }
    }

    /// The setting it begins with, and the controller that changes it.
    pub fn start(
        self,
        choice: PolicyOptions,
    ) -> Result<(WayMask, Option<Box<dyn Controller>>), SimError> {
        let usual = choice.usual();
        let fixed = |card| Ok((WayMask { card, ..usual }, None));
        let controlled =
            |controller: Box<dyn Controller>| Ok((controller.begin(), Some(controller)));
        match self {
            Policy::On => fixed(usual.card),
            Policy::Off => fixed(0),
            Policy::Ways(ways) if ways > choice.ways => Err(SimError::Value(format!(
                "policy `ways:{ways}`: the cache has {} ways",
                choice.ways
            ))),
            Policy::Ways(ways) => fixed(choice.highest(ways)),
            Policy::PhaseAndRate => controlled(Box::new(phase_and_rate::PhaseAndRate::new(choice))),
            Policy::Iat => controlled(Box::new(iat::Iat::new(choice))),
            Policy::YieldSearch => controlled(Box::new(yield_search::YieldSearch::new(choice))),
        }
    }
}
