//! A machine: its caches, memory, bus and card.

use std::path::Path;

use model::{Bytes, Rate, Span};
use serde::Deserialize;
use toml::Spanned;

use super::text::DescriptionText;
use crate::cache::{Geometry, GeometryError, Replacement};
use crate::error::SimError;
use crate::memory::{CacheShape, ConsumedPolicy};
use crate::policy::PolicyOptions;

/// A machine as its file describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatedMachine {
    pub name: String,
    pub cores: Spanned<u32>,
    /// Cycles a second.
    pub frequency: Rate,
    pub shared: SharedCacheSpec,
    pub private: PrivateCacheSpec,
    pub dca: DcaSpec,
    pub memory: MemorySpec,
    pub bus: BusSpec,
    pub card: CardSpec,
    /// What accesses cost; without it no energy is modelled.
    pub energy: Option<EnergySpec>,
}

/// Energy of one access of a line, in nanojoules.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EnergySpec {
    pub llc_nanojoules: Spanned<f64>,
    pub dram_nanojoules: Spanned<f64>,
}

/// The last-level cache.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SharedCacheSpec {
    pub slices: Spanned<u32>,
    pub sets: Spanned<u32>,
    pub ways: Spanned<u32>,
    pub replacement: Replacement,
    /// Whatever a private cache holds is here too.
    pub inclusive: bool,
    /// From a miss in the private cache to the data.
    pub latency: Span,
    /// Entries for one set in the snoop filter.
    pub directory_ways: Spanned<u32>,
}

/// The cache of each core.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PrivateCacheSpec {
    pub sets: Spanned<u32>,
    pub ways: Spanned<u32>,
    pub replacement: Replacement,
    pub latency: Span,
    /// Misses that a core waits for at the same time.
    pub overlap: Spanned<f64>,
    /// The same while its prefetchers run ahead along lines in order; `overlap` if absent.
    pub stream_overlap: Option<Spanned<f64>>,
    /// Lines after the first of a forwarded packet that its prefetchers fetch; reading workers read
    /// those anyway.
    #[serde(default)]
    pub prefetch: u32,
    /// The same when the core takes packets back to back; the same number if absent.
    pub prefetch_busy: Option<u32>,
}

/// Policy for a device-written line that a core reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenConsumed {
    Keep,
    Migrate,
    Move,
}

/// Direct cache access.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DcaSpec {
    /// Ways in which a device may allocate, counted from the highest.
    pub ways: Spanned<u32>,
    pub when_consumed: WhenConsumed,
    /// Ways, counted from the lowest, that keep lines which a core holds too.
    pub inclusive_ways: Spanned<u32>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySpec {
    pub latency: Span,
    /// Bytes a second, reads and writes together.
    pub bandwidth: Spanned<Rate>,
}

/// The bus between card and processor.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BusSpec {
    /// Payload bytes a second in each direction.
    pub bandwidth: Spanned<Rate>,
    /// From a request of the card to the answer of a cache.
    pub latency: Span,
    /// Most bytes of reads that the card has in flight.
    pub read_window: Spanned<Bytes>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CardSpec {
    /// Bits a second on the wire.
    pub line_rate: Spanned<Rate>,
    /// Share of the line rate that a generator's packets take at most.
    pub filled: Spanned<f64>,
    /// Bytes that wait in the card for the bus.
    pub buffer: Bytes,
    /// Packets whose completions share a line (completion compression).
    pub completions_per_line: Spanned<u32>,
    /// Bytes that it fetches ahead of the wire; `bus.read-window` if absent.
    pub ahead: Option<Bytes>,
    /// Time of a send queue per packet besides its bytes, during which other queues continue.
    pub send_packet: Option<Span>,
    /// Additional time for a packet that comes entirely from memory.
    pub send_missed: Option<Span>,
    /// Time to fetch descriptors: per post of six packets or more, else per packet.
    pub send_fetch: Option<Span>,
}

const BUILT_IN: &[(&str, &str)] = &[
    ("xeon-gold-6140", include_str!("../machines/xeon-gold-6140.toml")),
    ("xeon-e5-2697-v2", include_str!("../machines/xeon-e5-2697-v2.toml")),
];

impl SimulatedMachine {
    /// Names of the machines that need no file.
    pub fn built_in() -> impl Iterator<Item = &'static str> + Clone {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// A built-in machine by its name, or a file by its path.
    pub fn open(name: &str) -> Result<SimulatedMachine, SimError> {
        SimulatedMachine::parse(&super::open(name, BUILT_IN, "machine")?)
    }

    pub fn read(path: &Path) -> Result<SimulatedMachine, SimError> {
        SimulatedMachine::parse(&DescriptionText::read(path)?)
    }

    pub fn parse(source: &DescriptionText) -> Result<SimulatedMachine, SimError> {
        let machine: SimulatedMachine = source.parse()?;
        machine.check(source)?;
        Ok(machine)
    }

    fn check(&self, source: &DescriptionText) -> Result<(), SimError> {
        let at = |key: std::ops::Range<usize>, words: &str| Err(source.at(key, words));
        if !(1..=64).contains(self.cores.get_ref()) {
            return at(self.cores.span(), "`cores` must be 1 to 64");
        }
        if let Err(GeometryError { key, why }) = self.shared_geometry().checked() {
            let span = match key {
                "slices" => self.shared.slices.span(),
                "sets" => self.shared.sets.span(),
                _ => self.shared.ways.span(),
            };
            return at(span, &format!("`shared.{key}` {why}"));
        }
        if let Err(GeometryError { key, why }) = self.private_geometry().checked() {
            let span =
                if key == "sets" { self.private.sets.span() } else { self.private.ways.span() };
            return at(span, &format!("`private.{key}` {why}"));
        }
        let ways = *self.shared.ways.get_ref();
        if !(1..=32).contains(self.shared.directory_ways.get_ref()) {
            return at(
                self.shared.directory_ways.span(),
                "`shared.directory-ways` must be 1 to 32",
            );
        }
        if *self.dca.ways.get_ref() > ways {
            let words =
                format!("`dca.ways` must be at most {ways}, the ways that the cache has; 0 is off");
            return at(self.dca.ways.span(), &words);
        }
        let inclusive = *self.dca.inclusive_ways.get_ref();
        if inclusive > ways || (inclusive == 0 && self.dca.when_consumed == WhenConsumed::Migrate) {
            let words =
                format!("`dca.inclusive-ways` must be 1 to {ways}, the ways that the cache has");
            return at(self.dca.inclusive_ways.span(), &words);
        }
        let positive = [
            (&self.memory.bandwidth, "memory.bandwidth"),
            (&self.bus.bandwidth, "bus.bandwidth"),
            (&self.card.line_rate, "card.line-rate"),
        ];
        for (rate, key) in positive {
            if rate.get_ref().0 <= 0.0 {
                return at(rate.span(), &format!("`{key}` must be above 0"));
            }
        }
        if *self.private.overlap.get_ref() < 1.0 {
            return at(self.private.overlap.span(), "`private.overlap` must be at least 1");
        }
        if let Some(overlap) = &self.private.stream_overlap
            && *overlap.get_ref() < 1.0
        {
            return at(overlap.span(), "`private.stream-overlap` must be at least 1");
        }
        if !(0.0..=1.0).contains(self.card.filled.get_ref()) || *self.card.filled.get_ref() == 0.0 {
            return at(self.card.filled.span(), "`card.filled` must be above 0 and at most 1");
        }
        let costs = self.energy.iter();
        for cost in costs.flat_map(|energy| [&energy.llc_nanojoules, &energy.dram_nanojoules]) {
            if !(0.0..f64::INFINITY).contains(cost.get_ref()) {
                return at(cost.span(), "a cost of `energy` must be 0 or more");
            }
        }
        if self.bus.read_window.get_ref().0 == 0 {
            return at(self.bus.read_window.span(), "`bus.read-window` must be above 0");
        }
        if *self.card.completions_per_line.get_ref() == 0 {
            let span = self.card.completions_per_line.span();
            return at(span, "`card.completions-per-line` must be at least 1");
        }
        Ok(())
    }

    pub fn shared_geometry(&self) -> Geometry {
        Geometry {
            slices: *self.shared.slices.get_ref(),
            sets: *self.shared.sets.get_ref(),
            ways: *self.shared.ways.get_ref(),
        }
    }

    pub fn private_geometry(&self) -> Geometry {
        Geometry {
            slices: 1,
            sets: *self.private.sets.get_ref(),
            ways: *self.private.ways.get_ref(),
        }
    }

    /// The highest `count` ways of the shared cache, which direct cache access uses.
    pub fn highest_ways(&self, count: u32) -> u32 {
        let ways = *self.shared.ways.get_ref();
        let every = self.shared_geometry().every_way();
        every & !(every >> count.min(ways))
    }

    /// The options of a policy on this machine.
    pub fn choice(&self) -> PolicyOptions {
        let every = self.shared_geometry().every_way();
        let ways = self.shared_geometry().ways;
        PolicyOptions { ways, usual: *self.dca.ways.get_ref(), workers: every, co_runners: every }
    }

    /// Sets the ways of direct cache access.
    pub fn set_ways(&mut self, text: &str) -> Result<(), SimError> {
        let most = *self.shared.ways.get_ref();
        match text.parse() {
            Ok(ways) if ways <= most => {
                self.dca.ways = Spanned::new(0..0, ways);
                Ok(())
            }
            _ => Err(SimError::Value(format!(
                "ways={text}: must be 0 to {most}, the ways that the cache has; 0 is off"
            ))),
        }
    }

    /// The shape of the caches, for the cores in use.
    pub fn shape(&self, cores: usize) -> CacheShape {
        let lowest = *self.dca.inclusive_ways.get_ref();
        let consumed = match self.dca.when_consumed {
            WhenConsumed::Keep => ConsumedPolicy::Keep,
            WhenConsumed::Move => ConsumedPolicy::Move,
            WhenConsumed::Migrate => ConsumedPolicy::Migrate { ways: u32::MAX >> (32 - lowest) },
        };
        CacheShape {
            shared: self.shared_geometry(),
            shared_replacement: self.shared.replacement,
            private: self.private_geometry(),
            private_replacement: self.private.replacement,
            directory_ways: *self.shared.directory_ways.get_ref(),
            cores,
            inclusive: self.shared.inclusive,
            consumed,
        }
    }
}
