//! Traffic: arriving packets, the workers that answer them, and co-runners.

mod check;

use std::path::Path;
use std::sync::Arc;

use model::{Bytes, Count, Rate, Span};
use serde::Deserialize;
use toml::Spanned;

use super::machine::SimulatedMachine;
use super::text::DescriptionText;
use crate::cache::LINE;
use crate::error::SimError;
use crate::recorded_arrivals::RecordedArrivals;

/// Traffic as its file describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    pub name: String,
    #[serde(default = "one")]
    pub seed: u64,
    pub port: PortSpec,
    pub queues: QueuesSpec,
    #[serde(default)]
    pub pool: PoolSpec,
    pub workers: WorkersSpec,
    #[serde(default)]
    pub neighbours: Vec<CoRunnerSpec>,
    #[serde(default)]
    pub run: RunSpec,
}

/// The packets that arrive at the card.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PortSpec {
    /// Packets a second; the wire's capacity if absent.
    pub rate: Option<Spanned<Rate>>,
    /// Bytes of a frame, without checksum, preamble and gap.
    pub packet: Spanned<Bytes>,
    #[serde(default)]
    pub arrivals: ArrivalsSpec,
    /// Spans in which packets come at another rate, over and over.
    pub burst: Option<BurstSpec>,
    /// Packets of one flow in a row; a flow always goes to the same queue.
    #[serde(default = "one_packet")]
    pub train: Spanned<Count>,
    /// Generators whose packets alternate.
    #[serde(default = "one_packet")]
    pub generators: Spanned<Count>,
    /// A file of recorded arrivals, `seconds,bytes` a line; takes the place of rate, packet and
    /// arrivals.
    pub recorded: Option<Spanned<String>>,
    /// The same without a file.
    #[serde(skip)]
    pub recording: Option<Arc<RecordedArrivals>>,
}

/// A burst, or a phase of another rate: the last `lasts` of each `every`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstSpec {
    /// Packets a second.
    pub rate: Spanned<Rate>,
    pub lasts: Spanned<Span>,
    /// From one burst's end to the next one's.
    pub every: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalsSpec {
    /// At equal distances.
    #[default]
    Even,
    /// Each at any time (exponential distances).
    Poisson,
}

/// Rings between card and worker; one of each a worker.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueuesSpec {
    /// Receive descriptors.
    pub receive: Spanned<Count>,
    /// Send descriptors.
    #[serde(default = "send_descriptors")]
    pub send: Spanned<Count>,
    /// Packets that the program holds when the send ring is full, before it stops receiving.
    #[serde(default = "software_queue")]
    pub software: Spanned<Count>,
    /// Packets that a worker takes per poll.
    #[serde(default = "burst")]
    pub burst: Spanned<Count>,
}

/// Where buffers come from and go to.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PoolSpec {
    pub buffers: Spanned<Count>,
    /// Buffers that each worker keeps for itself: last in, first out. 0 makes the pool one queue,
    /// first in, first out.
    pub cache: Count,
    /// From the beginning of a buffer to that of the next.
    pub stride: Spanned<Bytes>,
    /// From the beginning of a buffer to the packet in it.
    pub offset: Spanned<Bytes>,
}

impl Default for PoolSpec {
    /// As DPDK's packet buffers: object header, descriptor, headroom and 2 KiB of data.
    fn default() -> PoolSpec {
        PoolSpec {
            buffers: Spanned::new(0..0, Count(65_535)),
            cache: Count(256),
            stride: Spanned::new(0..0, Bytes(2368)),
            offset: Spanned::new(0..0, Bytes(320)),
        }
    }
}

/// The cores that answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkersSpec {
    pub cores: Spanned<u32>,
    /// Cycles for each packet, misses aside.
    #[serde(default = "cycles")]
    pub cycles: Rate,
    /// Cycles of each poll that finds packets, besides those per packet.
    #[serde(default = "no_cycles")]
    pub turn: Rate,
    /// Ways of the last-level cache that they may fill, as a mask; all if absent.
    pub ways: Option<Spanned<u32>>,
    /// Looks up data of the program for each packet.
    pub program: Option<ProgramSpec>,
    #[serde(default)]
    pub read: Option<ReadSpec>,
    #[serde(default)]
    pub store: Option<StoreSpec>,
}

/// Memory of the program that serves packets, which all workers share. A look-up waits for the one
/// before it, as pointers are followed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    pub memory: Spanned<Bytes>,
    /// Lines that each packet touches, any with the same chance.
    pub lookups: Count,
}

/// Touches what was received.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReadSpec {
    /// Bytes from one read to the next.
    #[serde(default = "line_stride")]
    pub stride: Spanned<Bytes>,
    /// How many packets the reader is behind.
    #[serde(default)]
    pub behind: Count,
    /// Copies the packet to the program's memory first, as a kernel's network stack does: the
    /// size of that memory.
    pub copy: Option<Bytes>,
}

/// Answers from a key-value store's memory.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StoreSpec {
    /// Memory of the index; each request touches `lookups` lines of it.
    pub index: Spanned<Bytes>,
    #[serde(default = "lookups")]
    pub lookups: Count,
    /// Memory of the values, and the size of one.
    pub values: Spanned<Bytes>,
    pub value: Spanned<Bytes>,
    /// Skew of the values' popularity: 0 is uniform, below 1.
    #[serde(default)]
    pub skew: Option<Spanned<f64>>,
}

/// A co-runner that uses the cache.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CoRunnerSpec {
    pub name: String,
    #[serde(default = "one_core")]
    pub cores: Spanned<u32>,
    /// Memory that each of its cores uses.
    pub working_set: Spanned<Bytes>,
    #[serde(default)]
    pub pattern: Pattern,
    /// Time between two accesses, the accesses aside.
    #[serde(default = "think")]
    pub think: Span,
    /// Share of the accesses that write.
    #[serde(default)]
    pub writes: Option<Spanned<f64>>,
    /// Ways of the last-level cache that it may fill, as a mask.
    pub ways: Option<Spanned<u32>>,
    /// Length of alternating active and idle phases; always active if absent.
    pub phase: Option<Spanned<Span>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Any line, each with the same chance.
    #[default]
    Random,
    /// One line after the other, over and over.
    Sequential,
}

/// Warm-up and measured time.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunSpec {
    /// Warm-up; a few rounds of all rings if absent.
    pub warm_up: Option<Span>,
    /// Measured time; enough packets for a standard error below 0.1 % if absent.
    pub measure: Option<Span>,
}

const BUILT_IN: &[(&str, &str)] = &[
    ("forward", include_str!("../traffics/forward.toml")),
    ("ping-pong", include_str!("../traffics/ping-pong.toml")),
    ("flow", include_str!("../traffics/flow.toml")),
    ("store", include_str!("../traffics/store.toml")),
    ("co-run", include_str!("../traffics/co-run.toml")),
    ("data-caching", include_str!("../traffics/data-caching.toml")),
    ("data-caching-bursts", include_str!("../traffics/data-caching-bursts.toml")),
    ("phases", include_str!("../traffics/phases.toml")),
];

fn one() -> u64 {
    1
}
fn spanned<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}
fn one_packet() -> Spanned<Count> {
    spanned(Count(1))
}
fn one_core() -> Spanned<u32> {
    spanned(1)
}
/// `FromDPDKDevice`'s and `ToDPDKDevice`'s defaults in FastClick.
fn send_descriptors() -> Spanned<Count> {
    spanned(Count(256))
}
fn software_queue() -> Spanned<Count> {
    spanned(Count(1024))
}
fn burst() -> Spanned<Count> {
    spanned(Count(32))
}
fn cycles() -> Rate {
    Rate(200.0)
}
fn no_cycles() -> Rate {
    Rate(0.0)
}
fn line_stride() -> Spanned<Bytes> {
    spanned(Bytes(LINE))
}
fn lookups() -> Count {
    Count(2)
}
fn think() -> Span {
    Span(std::time::Duration::from_nanos(2))
}

impl Traffic {
    /// Names of the traffic that needs no file.
    pub fn built_in() -> impl Iterator<Item = &'static str> + Clone {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Built-in traffic by its name, or a file by its path; checked against the machine.
    pub fn open(name: &str, machine: &SimulatedMachine) -> Result<Traffic, SimError> {
        Traffic::parse(&super::open(name, BUILT_IN, "traffic")?, machine)
    }

    pub fn parse(
        source: &DescriptionText,
        machine: &SimulatedMachine,
    ) -> Result<Traffic, SimError> {
        let mut traffic: Traffic = source.parse()?;
        check::check(&traffic, source, machine)?;
        if let Some(recorded) = &mut traffic.port.recorded {
            let beside = Path::new(&source.origin).parent().unwrap_or(Path::new(""));
            let path = beside.join(recorded.get_ref()).display().to_string();
            *recorded = Spanned::new(recorded.span(), path);
        }
        Ok(traffic)
    }

    /// Keys that [`Traffic::set`] knows.
    pub const KEYS: [&'static str; 14] = [
        "packet",
        "descriptors",
        "cores",
        "rate",
        "burst",
        "cycles",
        "program",
        "stride",
        "behind",
        "copy",
        "working-set",
        "warm-up",
        "measure",
        "seed",
    ];

    /// Gives one key another value, as in the file. Not checked: see [`Traffic::recheck`].
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), SimError> {
        fn read<T: std::str::FromStr<Err: std::fmt::Display>>(
            key: &str,
            text: &str,
        ) -> Result<T, SimError> {
            text.parse().map_err(|error| SimError::Value(format!("{key}={text}: {error}")))
        }
        match key {
            "packet" => self.port.packet = spanned(read(key, text)?),
            "descriptors" => self.queues.receive = spanned(read(key, text)?),
            "cores" => self.workers.cores = spanned(read(key, text)?),
            "rate" => self.port.rate = Some(spanned(read(key, text)?)),
            "cycles" => self.workers.cycles = read(key, text)?,
            "warm-up" => self.run.warm_up = Some(read(key, text)?),
            "measure" => self.run.measure = Some(read(key, text)?),
            "seed" => self.seed = read(key, text)?,
            "burst" => {
                let Some(burst) = &mut self.port.burst else {
                    return Err(SimError::Value(format!(
                        "{key}={text}: `{}` has no bursts; use traffic with `[port.burst]`, e.g. \
                         data-caching-bursts",
                        self.name
                    )));
                };
                burst.rate = spanned(read(key, text)?);
            }
            "program" => {
                let Some(program) = &mut self.workers.program else {
                    return Err(SimError::Value(format!(
                        "{key}={text}: the workers of `{}` do no lookups; use traffic with \
                         `[workers.program]`, e.g. data-caching-bursts",
                        self.name
                    )));
                };
                program.memory = spanned(read(key, text)?);
            }
            "stride" | "behind" | "copy" => {
                let Some(work) = &mut self.workers.read else {
                    return Err(SimError::Value(format!(
                        "{key}={text}: the workers of `{}` do not read packets; use traffic with \
                         `[workers.read]`, e.g. flow",
                        self.name
                    )));
                };
                match key {
                    "stride" => work.stride = spanned(read(key, text)?),
                    "behind" => work.behind = read(key, text)?,
                    _ => work.copy = Some(read(key, text)?),
                }
            }
            "working-set" => {
                if self.neighbours.is_empty() {
                    return Err(SimError::Value(format!(
                        "{key}={text}: `{}` has no neighbours; use traffic with `[[neighbours]]`, \
                         e.g. co-run",
                        self.name
                    )));
                }
                for neighbour in &mut self.neighbours {
                    neighbour.working_set = spanned(read(key, text)?);
                }
            }
            _ => {
                let hint = model::suggest::hint(key, Traffic::KEYS.into_iter().chain(["ways"]));
                return Err(SimError::Value(format!("there is no key `{key}` to sweep; {hint}")));
            }
        }
        Ok(())
    }

    /// Checks values that were changed after the file was read.
    pub fn recheck(&self, machine: &SimulatedMachine) -> Result<(), SimError> {
        let source = DescriptionText { origin: self.name.clone(), text: String::new() };
        check::check(self, &source, machine).map_err(|error| {
            // Only the first line, as the value has no place in a file.
            SimError::Value(error.to_string().lines().next().unwrap_or_default().to_owned())
        })
    }

    /// Bytes of memory that the described programs use.
    fn memory(&self) -> u64 {
        let pool = self.pool.buffers.get_ref().0 * self.pool.stride.get_ref().0;
        let read = self.workers.read.as_ref().and_then(|r| r.copy).map_or(0, |b| b.0);
        let store =
            self.workers.store.as_ref().map_or(0, |s| s.index.get_ref().0 + s.values.get_ref().0);
        let neighbours = self.neighbours.iter();
        let program = self.workers.program.as_ref().map_or(0, |p| p.memory.get_ref().0);
        let others: u64 = neighbours
            .map(|n| n.working_set.get_ref().0.saturating_mul(u64::from(*n.cores.get_ref())))
            .sum();
        let rings = 1 << 30;
        [pool, read * 64, store, program, others, rings].into_iter().fold(0, u64::saturating_add)
    }
}
