//! Every load option: one row gives its flag, key, help, check, effect and what is recorded; then
//! the checked form and its defaults.

use std::time::Duration;

use analyse::STEADY_ROUNDS;
use model::{ConnectionConfig, Count, LoadShape, MAX_RATE, Pacing, Rate, ShareRange, Span};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::option::FlagGroup::{ClosedLoop, Window};
use super::option::FlagValue::{Number, Optional, Quantity, Switch, Text};
use super::option::{Flag, InvalidOption, LoadOption, load_options, unplaced};
use super::values::{
    ProfileOption, SteadyTable, arrivals, at_most, count, cpus, engine, positive, recorded,
    server_timing,
};
use crate::rate_spec::RateSpec;
use crate::server_timing::ServerTiming;

/// More threads are a mistake.
const MAX_THREADS: u32 = 10_000;
/// Maximum connections of a thread to a server, and requests in flight on one of them.
const MAX_CONNECTIONS: u64 = 60_000;
const MAX_DEPTH: u64 = 10_000;
/// Maximum queue of a thread: some hundreds of bytes a request.
const MAX_QUEUE: u64 = 10_000_000;
/// Maximum share of a calibrated maximum.
const MAX_SHARE: f64 = 2.0;

load_options! {
    /// Client threads, of all agents together [default: 1, or one an agent]
    threads: u32 {
        flag: Flag::new("threads", Number("N")).short('j'),
        check: |threads| match *threads {
            0 => positive(0.0),
            1..=MAX_THREADS => Ok(()),
            _ => Err(format!("is at most {MAX_THREADS}")),
        },
        apply: |config, threads| config.threads = *threads,
        recorded: |config| recorded(config.threads),
    }
    /// Operations per second of all threads together: an open loop
    rate: RateSpec {
        check: |rate| match *rate {
            RateSpec::Rate(Rate(rate)) if rate > MAX_RATE => {
                Err("is more than any client sends; at most 1G".to_owned())
            }
            RateSpec::Rate(Rate(rate)) => positive(rate),
            RateSpec::Share(share) if share > 0.0 && share <= MAX_SHARE => Ok(()),
            RateSpec::Share(_) => Err("is a share of the maximum above 0 and up to 200%".to_owned()),
        },
        recorded: |config| match config.shape.pacing {
            Pacing::Open { rate, .. } if config.of_maximum => recorded(RateSpec::Share(rate)),
            Pacing::Open { rate, .. } => recorded(Rate(rate)),
            _ => None,
        },
    }
    /// When requests of an open loop are due: constant, poisson, pareto, pareto:SHAPE, facebook
    /// [default: the workload's, else constant; of a trace within its seconds poisson]
    arrivals: String {
        flag: Flag::new("arrivals", Text("PROCESS")),
        check: |name| arrivals(name).map(drop),
        recorded: |config| config.is_open().then(|| config.arrivals()),
    }
    /// How the rate moves: `steps:10k@30s,40k@30s`, `ramp:10k..40k@1m`,
    /// `sine:mean=20k,amplitude=15k,period=10m`, `burst:base=10k,peak=60k,at=30s,hold=10s`, or a file
    /// of times and rates. `0.5x` is a multiple of the rate; `constant` does not move
    rate_profile: ProfileOption {
        flag: Flag::new("rate-profile", Text("PROFILE")).of(Window),
        measured_only: true,
        check: |given| given.profile().map(drop),
        apply: |config, given| config.shape.profile = given.profile().ok().flatten().cloned(),
        recorded: |config| recorded(config.shape.profile.as_ref()?.name()),
    }
    /// Think time of a closed loop, between an answer and the next operation
    think: Span {
        flag: Flag::new("think", Quantity("TIME")).of(ClosedLoop),
        recorded: |config| match config.shape.pacing {
            Pacing::Closed { think } if !think.is_zero() => recorded(Span(think)),
            _ => None,
        },
    }
    /// Length of the warm-up before the measured window
    warm_up: Span {
        flag: Flag::new("warm-up", Quantity("TIME")),
        measured_only: true,
        apply: |config, time| config.shape.warm_up = Some(time.0).filter(|time| !time.is_zero()),
        recorded: |config| recorded(Span(config.shape.warm_up?)),
    }
    /// Rate of the warm-up, if it differs
    warm_up_rate: Rate {
        flag: Flag::new("warm-up-rate", Quantity("RATE")),
        measured_only: true,
        check: |rate| positive(rate.0),
        apply: |config, rate| config.shape.warm_up_rate = Some(rate.0),
        recorded: |config| recorded(Rate(config.shape.warm_up_rate?)),
    }
    /// Length of the measured window [default: 10s without --ops, or the length of a
    /// rate profile, which repeats in a longer window; of a trace all of it]
    time: Span {
        flag: Flag::new("time", Quantity("TIME")).short('t').of(Window).follows("operations"),
        measured_only: true,
        check: |time| positive(time.0.as_secs_f64()),
        apply: |config, time| config.shape.until.time = Some(time.0),
        recorded: |config| recorded(Span(config.shape.until.time?)),
    }
    /// Number of measured operations; an open loop measures the time in which so many are due, a
    /// trace its first ones
    operations: Count {
        flag: Flag::new("ops", Quantity("N")).of(Window),
        measured_only: true,
        check: |operations| positive(operations.0 as f64),
        apply: |config, operations| config.shape.until.operations = Some(operations.0),
        recorded: |config| recorded(Count(config.shape.until.operations?)),
    }
    /// Wait for the steady state, in rounds of this length [default: 1s]
    steady: SteadyTable {
        flag: Flag::new("steady", Optional("TIME", "1s")).of(ClosedLoop),
        measured_only: true,
        check: |steady| match steady.round.0.is_zero() || (steady.most_rounds as usize) < STEADY_ROUNDS {
            true => Err(format!("takes at least {STEADY_ROUNDS} rounds of more than 0 s")),
            false => Ok(()),
        },
        apply: |config, steady| config.steady = Some((steady.round.0, steady.most_rounds)),
        recorded: |config| {
            config.steady.map(|(round, most)| format!("{} x {most}", Span(round)))
        },
    }
    /// Do not pin threads to CPUs
    pin: bool {
        flag: Flag::new("no-pin", Switch("false")),
        apply: |config, pin| config.pin = *pin,
        recorded: |config| recorded(config.pin),
    }
    /// The CPUs of the threads, in turn: `0-3,8`
    cpus: String {
        check: |list| cpus(list).map(drop),
        apply: |config, list| config.cpus = cpus(list).unwrap_or_default(),
        recorded: |config| {
            let cpus: Vec<String> = config.cpus.iter().map(u32::to_string).collect();
            (!cpus.is_empty()).then(|| cpus.join(","))
        },
    }
    /// Connections of each thread to each server [default: 16]
    connections: u32 {
        flag: Flag::new("connections", Number("N")).short('c'),
        for_servers: true,
        check: |connections| count(u64::from(*connections), MAX_CONNECTIONS),
        apply: |config, connections| config.connections.count = *connections as usize,
        recorded: |config| recorded(config.connections.count),
    }
    /// Requests in flight on one connection [default: 1]
    depth: u32 {
        flag: Flag::new("depth", Number("N")).short('d'),
        for_servers: true,
        check: |depth| count(u64::from(*depth), MAX_DEPTH),
        apply: |config, depth| config.connections.depth = *depth as usize,
        recorded: |config| recorded(config.connections.depth),
    }
    /// Due requests of an open loop that may wait for a connection, in each thread [default: 100k]
    queue: Count {
        flag: Flag::new("queue", Quantity("N")),
        for_servers: true,
        check: |queue| at_most(queue.0, MAX_QUEUE),
        apply: |config, queue| config.connections.queue = queue.0 as usize,
        recorded: |config| recorded(Count(config.connections.queue as u64)),
    }
    /// Poll for answers without sleeping
    busy_poll: bool {
        flag: Flag::new("busy-poll", Switch("true")),
        for_servers: true,
        apply: |config, busy_poll| config.connections.busy_poll = *busy_poll,
        recorded: |config| recorded(config.connections.busy_poll),
    }
    /// Interface to sockets: epoll or io_uring
    engine: String {
        flag: Flag::new("engine", Text("ENGINE")),
        for_servers: true,
        check: |name| engine(name).map(drop),
        apply: |config, name| config.connections.engine = engine(name).ok(),
        recorded: |config| {
            let engine = config.connections.engine;
            Some(engine.map_or("fastest".to_owned(), |engine| engine.to_string()))
        },
    }
    /// Method to measure latency inside servers: auto, tap, ebpf or off [default: auto; off in a
    /// search, as it lowers the rate]
    server_latency: String {
        flag: Flag::new("server-latency", Text("WAY")),
        for_servers: true,
        check: |name| server_timing(name).map(drop),
        apply: |config, name| config.server_timing = server_timing(name).unwrap_or_default(),
        recorded: |config| recorded(config.server_timing),
    }
    /// Expected hit ratio, outside of which a run is invalid: `0.9..1`, `..0.5`, or the least,
    /// `0.9`
    expect_hit_ratio: ShareRange {
        flag: Flag::new("expect-hit-ratio", Quantity("SHARES")).follows("warm_up_rate"),
        measured_only: true,
        apply: |config, expected| config.expected_hit_ratio = Some(*expected),
        recorded: |config| recorded(config.expected_hit_ratio?),
    }
}

/// `[load]`, `[measure]` or the flags of `bench`, ready to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadConfig {
    pub threads: u32,
    #[serde(flatten)]
    pub shape: LoadShape,
    /// The rate is a share of the maximum that a calibration will find.
    #[serde(skip)]
    pub of_maximum: bool,
    pub steady: Option<(Duration, u32)>,
    pub pin: bool,
    /// The CPUs of its threads, in turn, where given; otherwise kvmeter chooses.
    #[serde(skip)]
    pub cpus: Vec<u32>,
    /// Spaces the requests of each second of a trace evenly instead of at random.
    pub evenly: bool,
    /// Connections to servers.
    pub connections: ConnectionConfig,
    /// The key that only servers support, if one was given.
    #[serde(skip)]
    pub needs_servers: Option<&'static str>,
    /// How latency inside the servers is measured.
    #[serde(skip)]
    pub server_timing: ServerTiming,
    /// The hit ratio outside of which a run is invalid.
    #[serde(skip)]
    pub expected_hit_ratio: Option<ShareRange>,
}

impl LoadConfig {
    /// A closed loop of so many threads without think time.
    pub fn closed(threads: u32) -> Self {
        LoadConfig {
            threads,
            shape: LoadShape::default(),
            of_maximum: false,
            steady: None,
            pin: true,
            cpus: Vec::new(),
            evenly: false,
            connections: ConnectionConfig::default(),
            needs_servers: None,
            server_timing: ServerTiming::Off,
            expected_hit_ratio: None,
        }
    }
}
