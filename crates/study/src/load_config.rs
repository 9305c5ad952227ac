//! The load configuration of a phase: as written, and checked with its defaults.

use std::time::Duration;

use analyse::STEADY_ROUNDS;
use model::{
    Arrivals, ConnectionConfig, Count, Engine, Pacing, Rate, RunSettings, ShareRange, Span,
    StopCondition,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use toml::Spanned;

use crate::calibrate::RateSpec;
use crate::error::StudyError;
use crate::knobs::KnobLevels;
use crate::server_timing::ServerTiming;
use crate::spec::{LoadTable, SteadyTable};
use crate::study_text::{StudyText, given};
use crate::trace::ReplaySpeed;

/// Length of a measured window without one.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// Requests in flight on a connection while data is loaded.
const LOADING_DEPTH: usize = 32;

/// `[load]`, `[measure]` or the flags of `bench`, ready to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadConfig {
    pub threads: u32,
    pub pacing: Pacing,
    /// The rate is a share of the maximum that a calibration will find.
    #[serde(skip)]
    pub of_maximum: bool,
    pub warm_up: Option<Duration>,
    /// Operations per second of a warm-up that has a rate of its own.
    pub warm_up_rate: Option<f64>,
    pub steady: Option<(Duration, u32)>,
    pub until: StopCondition,
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
            pacing: Pacing::Closed { think: Duration::ZERO },
            of_maximum: false,
            warm_up: None,
            warm_up_rate: None,
            steady: None,
            until: StopCondition { operations: None, time: None },
            pin: true,
            cpus: Vec::new(),
            evenly: false,
            connections: ConnectionConfig::default(),
            needs_servers: None,
            server_timing: ServerTiming::Off,
            expected_hit_ratio: None,
        }
    }

    /// The same as an open loop at this rate, for this time.
    pub fn at(&self, rate: f64, time: Duration) -> LoadConfig {
        let arrivals = match self.pacing {
            Pacing::Open { arrivals, .. } => arrivals,
            Pacing::Closed { .. } | Pacing::Recorded { .. } => Arrivals::Constant,
        };
        LoadConfig {
            pacing: Pacing::Open { rate, arrivals },
            of_maximum: false,
            until: StopCondition { operations: None, time: Some(time) },
            ..self.clone()
        }
    }

    /// The same with its share of a maximum replaced by a rate.
    pub fn calibrated(&self, maximum_ops_s: f64) -> LoadConfig {
        match self.pacing {
            Pacing::Open { rate, arrivals } if self.of_maximum => {
                let pacing = Pacing::Open { rate: rate * maximum_ops_s, arrivals };
                LoadConfig { pacing, of_maximum: false, ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// Whether due instants are independent of answers.
    pub fn is_open(&self) -> bool {
        self.pacing.is_open()
    }

    /// How data is loaded before the measurement: as fast as the same threads can.
    pub fn preparing(&self) -> Self {
        let mut connections = self.connections;
        // Loading is no measurement: requests share their system calls.
        connections.depth = connections.depth.max(LOADING_DEPTH);
        let cpus = self.cpus.clone();
        LoadConfig { pin: self.pin, cpus, connections, ..LoadConfig::closed(self.threads) }
    }

    /// How long the window is, where the clock ends it.
    pub fn length(&self) -> Option<Duration> {
        match (self.pacing, self.until.operations) {
            (Pacing::Open { rate, .. }, Some(operations)) => {
                let due = Duration::try_from_secs_f64(operations as f64 / rate).ok()?;
                Some(self.until.time.map_or(due, |time| time.min(due)))
            }
            (Pacing::Closed { .. } | Pacing::Recorded { .. }, Some(_)) => None,
            (_, None) => self.until.time,
        }
    }

    /// The same with the default length, if it has none.
    pub fn with_default_length(mut self) -> Self {
        if self.until.operations.is_none() && self.until.time.is_none() {
            self.until.time = Some(DEFAULT_TIME);
        }
        self
    }

    /// The settings of a run; `networked`: there are connections.
    pub fn settings(&self, networked: bool, settings: &mut RunSettings) {
        let mut put = |key: &str, value: String| settings.insert(key.to_owned(), value);
        put("threads", self.threads.to_string());
        put("pin", self.pin.to_string());
        if !self.cpus.is_empty() {
            let cpus: Vec<String> = self.cpus.iter().map(u32::to_string).collect();
            put("cpus", cpus.join(","));
        }
        match self.pacing {
            Pacing::Closed { think } => {
                put("loop", "closed".to_owned());
                if !think.is_zero() {
                    put("think", Span(think).to_string());
                }
            }
            Pacing::Open { rate, arrivals } => {
                put("loop", "open".to_owned());
                let pace = if self.of_maximum {
                    RateSpec::Share(rate)
                } else {
                    RateSpec::Rate(Rate(rate))
                };
                put("rate", pace.to_string());
                put("arrivals", arrivals.to_string());
            }
            Pacing::Recorded { .. } => {
                put("loop", "open".to_owned());
                put("arrivals", self.arrivals());
            }
        }
        let spans = [("warm_up", self.warm_up), ("time", self.until.time)];
        for (key, span) in spans {
            if let Some(span) = span {
                put(key, Span(span).to_string());
            }
        }
        if let Some(rate) = self.warm_up_rate {
            put("warm_up_rate", Rate(rate).to_string());
        }
        if let Some(expected) = self.expected_hit_ratio {
            put(model::EXPECTED_HIT_RATIO, expected.to_string());
        }
        if networked {
            let ConnectionConfig { count, depth, queue, busy_poll, engine } = self.connections;
            put("connections", count.to_string());
            put("depth", depth.to_string());
            put("queue", Count(queue as u64).to_string());
            put("busy_poll", busy_poll.to_string());
            put("server_latency", self.server_timing.to_string());
            put("engine", engine.map_or("fastest".to_owned(), |engine| engine.to_string()));
        }
        if let Some(operations) = self.until.operations {
            put("operations", Count(operations).to_string());
        }
        if let Some((round, most)) = self.steady {
            put("steady", format!("{} x {most}", Span(round)));
        }
    }

    /// The name of the arrivals; empty in a closed loop.
    pub fn arrivals(&self) -> String {
        match self.pacing {
            Pacing::Closed { .. } => String::new(),
            Pacing::Open { arrivals, .. } => arrivals.to_string(),
            Pacing::Recorded { .. } if self.evenly => "recorded, even within a second".to_owned(),
            Pacing::Recorded { .. } => "recorded".to_owned(),
        }
    }

    /// Seconds before the window: warm-up, and the minimum time of the steady state.
    pub fn seconds_before(&self) -> f64 {
        let steady = self.steady.map_or(Duration::ZERO, |(round, _)| round * STEADY_ROUNDS as u32);
        (self.warm_up.unwrap_or_default() + steady).as_secs_f64()
    }

    /// Seconds that so many operations take by the pacing alone.
    pub fn paced_seconds(&self, operations: u64) -> f64 {
        match self.pacing {
            Pacing::Open { rate, .. } => operations as f64 / rate,
            // Not known without reading the trace.
            Pacing::Recorded { .. } => 0.0,
            Pacing::Closed { think } => {
                think.as_secs_f64() * operations as f64 / f64::from(self.threads)
            }
        }
    }
}

/// No client sends more per second: a higher rate is a mistake.
pub const MAX_RATE: f64 = 1e9;
/// Maximum share of a calibrated maximum.
const MAX_SHARE: f64 = 2.0;

/// The load of a phase as written in a study's table or the flags of `bench`, not checked yet.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    pub threads: Option<u32>,
    pub rate: Option<Rate>,
    /// Instead of a rate: share of the maximum that a calibration finds.
    pub share: Option<f64>,
    pub arrivals: Option<String>,
    pub think: Option<Span>,
    pub warm_up: Option<Span>,
    pub warm_up_rate: Option<Rate>,
    pub time: Option<Span>,
    pub operations: Option<Count>,
    pub steady: Option<SteadyTable>,
    pub pin: bool,
    pub cpus: Option<String>,
    pub connections: Option<u32>,
    pub depth: Option<u32>,
    pub queue: Option<Count>,
    pub busy_poll: Option<bool>,
    pub engine: Option<String>,
    pub server_latency: Option<String>,
    pub expected_hit_ratio: Option<ShareRange>,
    /// A trace is replayed.
    pub trace: bool,
    /// Replay speed of the trace.
    pub speed: Option<ReplaySpeed>,
}

/// More threads are a mistake.
const MAX_THREADS: u32 = 10_000;

/// Maximum connections of a thread to a server, and requests in flight on one of them.
const MAX_CONNECTIONS: u32 = 60_000;
const MAX_DEPTH: u32 = 10_000;
/// Maximum queue of a thread: some hundreds of bytes a request.
const MAX_QUEUE: u64 = 10_000_000;

/// An invalid load option, and why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{key}`: {why}")]
pub struct InvalidOption {
    /// The key in a study; as a flag it has hyphens.
    pub key: &'static str,
    pub why: String,
}

impl LoadOptions {
    /// Fills in the defaults: one thread for each of `cpus`, pinned where there are as many.
    pub fn config(&self, cpus: u32) -> Result<LoadConfig, InvalidOption> {
        let no = |key, why: &str| Err(InvalidOption { key, why: why.to_owned() });
        let zero = [
            ("threads", self.threads == Some(0)),
            ("rate", self.rate.is_some_and(|rate| rate.0 <= 0.0)),
            ("time", self.time.is_some_and(|span| span.0.is_zero())),
            ("operations", self.operations == Some(Count(0))),
            ("warm_up_rate", self.warm_up_rate.is_some_and(|rate| rate.0 <= 0.0)),
            ("connections", self.connections == Some(0)),
            ("depth", self.depth == Some(0)),
        ];
        if let Some((key, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return no(key, "must be more than zero");
        }
        if self.threads.is_some_and(|threads| threads > MAX_THREADS) {
            return no("threads", &format!("is at most {MAX_THREADS}"));
        }
        let arrivals = match &self.arrivals {
            None => None,
            Some(name) => Some(Arrivals::parse(name).ok_or_else(|| InvalidOption {
                key: "arrivals",
                why: format!(
                    "there is no arrival process `{name}` (`pareto:SHAPE` takes a shape between 0 \
                     and 1); {}",
                    model::suggest::hint(name, Arrivals::NAMES)
                ),
            })?),
        };
        self.check_share()?;
        // Until the maximum is known, a share is kept as the rate.
        let pacing = match (self.rate.or(self.share.map(Rate)), self.think, arrivals) {
            _ if self.trace => self.trace_pacing(arrivals)?,
            _ if self.speed.is_some() => return no("speed", "is for a trace: name one"),
            (Some(rate), _, _) if rate.0 > MAX_RATE => {
                return no("rate", "is more than any client sends; at most 1G");
            }
            (Some(_), Some(_), _) => {
                return no("think", "belongs to a closed loop, and a rate makes it an open one");
            }
            (None, _, Some(_)) => return no("arrivals", "needs a rate"),
            (Some(Rate(rate)), None, arrivals) => {
                Pacing::Open { rate, arrivals: arrivals.unwrap_or(Arrivals::Constant) }
            }
            (None, think, None) => Pacing::Closed { think: think.unwrap_or_default().0 },
        };
        if let Some(SteadyTable { round, most_rounds }) = self.steady {
            if pacing.is_open() {
                let why = "looks at the throughput, and in an open loop that is the rate; warm up instead";
                return no("steady", why);
            }
            if round.0.is_zero() || (most_rounds as usize) < STEADY_ROUNDS {
                let why = format!("takes at least {STEADY_ROUNDS} rounds of some length");
                return no("steady", &why);
            }
        }
        let named = self.named_cpus()?;
        let usual = if named.is_empty() { cpus } else { named.len() as u32 };
        let threads = self.threads.unwrap_or(usual);
        if self.warm_up_rate.is_some() && self.trace {
            return no("warm_up_rate", "is for a workload; a trace warms up with its beginning");
        }
        if self.warm_up_rate.is_some() {
            match (&pacing, self.warm_up) {
                (Pacing::Closed { .. } | Pacing::Recorded { .. }, _) => {
                    return no("warm_up_rate", "is for an open loop: give a rate too");
                }
                (Pacing::Open { .. }, None) => {
                    return no("warm_up_rate", "needs a warm-up: say how long it takes");
                }
                _ => {}
            }
        }
        Ok(LoadConfig {
            threads,
            pacing,
            of_maximum: self.share.is_some(),
            warm_up: self.warm_up.map(|Span(span)| span).filter(|span| !span.is_zero()),
            steady: self.steady.map(|steady| (steady.round.0, steady.most_rounds)),
            until: StopCondition {
                operations: self.operations.map(|Count(count)| count),
                time: self.time.map(|Span(time)| time),
            },
            warm_up_rate: self.warm_up_rate.map(|rate| rate.0),
            pin: self.pin && (threads <= cpus || !named.is_empty()),
            cpus: named,
            evenly: self.trace && matches!(arrivals, Some(Arrivals::Constant)),
            connections: self.connections()?,
            needs_servers: self.needs_servers(),
            server_timing: self.server_timing()?,
            expected_hit_ratio: self.expected_hit_ratio,
        })
    }

    fn server_timing(&self) -> Result<ServerTiming, InvalidOption> {
        let Some(name) = self.server_latency.as_deref() else { return Ok(ServerTiming::default()) };
        ServerTiming::from_name(name).ok_or_else(|| InvalidOption {
            key: "server_latency",
            why: format!(
                "cannot be had by `{name}`; {}",
                model::suggest::hint(
                    name,
                    ServerTiming::ALL.iter().map(|server_timing| server_timing.name())
                )
            ),
        })
    }

    /// A trace keeps its recorded times, unless a rate or the speed `max` replaces them.
    fn trace_pacing(&self, arrivals: Option<Arrivals>) -> Result<Pacing, InvalidOption> {
        let no = |key, why: &str| Err(InvalidOption { key, why: why.to_owned() });
        match (self.rate, self.speed, arrivals) {
            (Some(_), Some(_), _) => {
                no("speed", "keeps the trace's own times, and a rate replaces them; give only one")
            }
            (Some(Rate(rate)), None, _) if rate > MAX_RATE => {
                no("rate", "is more than any client sends; at most 1G")
            }
            (Some(Rate(rate)), None, arrivals) if self.think.is_none() => {
                Ok(Pacing::Open { rate, arrivals: arrivals.unwrap_or(Arrivals::Constant) })
            }
            (None, Some(ReplaySpeed::Max), None) => {
                Ok(Pacing::Closed { think: self.think.unwrap_or_default().0 })
            }
            (None, Some(ReplaySpeed::Max), Some(_)) => no("arrivals", "needs a rate"),
            _ if self.think.is_some() => {
                no("think", "belongs to a closed loop, which a trace is at the speed `max`")
            }
            (_, _, Some(Arrivals::Pareto { .. })) => no(
                "arrivals",
                "of a trace within a second are `poisson` or `constant`; others need a rate",
            ),
            (_, Some(ReplaySpeed::Times(speed)), _) => Ok(Pacing::Recorded { speed }),
            _ => Ok(Pacing::Recorded { speed: 1.0 }),
        }
    }

    /// The CPUs given for the threads.
    fn named_cpus(&self) -> Result<Vec<u32>, InvalidOption> {
        let no = |why: String| Err(InvalidOption { key: "cpus", why });
        let Some(text) = &self.cpus else { return Ok(Vec::new()) };
        let Some(cpus) = model::cpu_list::parse(text).filter(|cpus| !cpus.is_empty()) else {
            return no(format!("`{text}` is not a list of CPUs; write `1` or `2-5,8`"));
        };
        match self.pin {
            true => Ok(cpus),
            false => no("are what threads are pinned to; leave out `pin = false`".to_owned()),
        }
    }

    fn check_share(&self) -> Result<(), InvalidOption> {
        let no = |key, why: &str| Err(InvalidOption { key, why: why.to_owned() });
        match self.share {
            None => Ok(()),
            Some(share) if !(share > 0.0 && share <= MAX_SHARE) => {
                no("rate", "is a share of the maximum above 0 and up to 200%")
            }
            Some(_) if self.trace => no("rate", "of a trace is a number; it is not calibrated"),
            Some(_) if self.operations.is_some() => no(
                "operations",
                "take a time that is not known beforehand at a share of a maximum; give a time",
            ),
            Some(_) => Ok(()),
        }
    }

    fn connections(&self) -> Result<ConnectionConfig, InvalidOption> {
        let most = |key, given: Option<u64>, most: u64| match given {
            Some(given) if given > most => {
                Err(InvalidOption { key, why: format!("is at most {most}, not {given}") })
            }
            _ => Ok(()),
        };
        most("connections", self.connections.map(u64::from), MAX_CONNECTIONS.into())?;
        most("depth", self.depth.map(u64::from), MAX_DEPTH.into())?;
        most("queue", self.queue.map(|Count(count)| count), MAX_QUEUE)?;
        let engine = match self.engine.as_deref() {
            None => None,
            Some(name) => {
                let names = Engine::ALL.map(|engine| engine.to_string());
                let at =
                    names.iter().position(|known| known == name).ok_or_else(|| InvalidOption {
                        key: "engine",
                        why: format!(
                            "there is no engine `{name}`; {}",
                            model::suggest::hint(name, names.iter().map(String::as_str))
                        ),
                    })?;
                let engine = Engine::ALL[at];
                reactor::available(engine)
                    .map_err(|why| InvalidOption { key: "engine", why: why.to_string() })?;
                Some(engine)
            }
        };
        let usual = ConnectionConfig::default();
        Ok(ConnectionConfig {
            count: self.connections.map_or(usual.count, |count| count as usize),
            depth: self.depth.map_or(usual.depth, |depth| depth as usize),
            queue: self.queue.map_or(usual.queue, |Count(queue)| queue as usize),
            busy_poll: self.busy_poll.unwrap_or(usual.busy_poll),
            engine,
        })
    }

    /// The first given key that only servers support.
    fn needs_servers(&self) -> Option<&'static str> {
        let given = [
            ("connections", self.connections.is_some()),
            ("depth", self.depth.is_some()),
            ("queue", self.queue.is_some()),
            ("busy_poll", self.busy_poll.is_some()),
            ("engine", self.engine.is_some()),
            ("server_latency", self.server_latency.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(key, _)| key)
    }
}

/// Checks one table of a study; errors show the place in it.
pub(crate) fn measure_config(
    source: &StudyText,
    table: &LoadTable,
    levels: &KnobLevels,
    cpus: u32,
) -> Result<LoadConfig, StudyError> {
    let refuse = |key: &str, why: &str| {
        let span = table.span_of(key).unwrap_or_default();
        source.at(span, &format!("{key}: {why}"))
    };
    let made =
        load_options(table).config(cpus).map_err(|InvalidOption { key, why }| refuse(key, &why))?;
    let allowed = host::cpus(source.root()).map(|order| order.cpus).unwrap_or_default();
    if let Some(cpu) = made.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        let why = format!("CPU {cpu} cannot be used; kvmeter may use {allowed:?}");
        return Err(refuse("cpus", &why));
    }
    // Pinning a thread overrides the knob.
    if let Some(left) = levels.cpus()
        && let Some(cpu) = made.cpus.iter().find(|cpu| !left.contains(cpu))
    {
        let why = format!("CPU {cpu} is none of those that the knob `cpus` leaves: {left:?}");
        return Err(refuse("cpus", &why));
    }
    Ok(made)
}

/// The same for a trace, whose speed is in another table.
pub(crate) fn trace_config(
    source: &StudyText,
    table: &LoadTable,
    speed: Option<&Spanned<ReplaySpeed>>,
    cpus: u32,
) -> Result<LoadConfig, StudyError> {
    let load_options = LoadOptions {
        trace: true,
        speed: speed.map(|speed| *speed.get_ref()),
        ..load_options(table)
    };
    load_options.config(cpus).map_err(|InvalidOption { key, why }| {
        let own = speed.filter(|_| key == "speed").map(Spanned::span);
        let span = own.or(table.span_of(key)).unwrap_or_default();
        source.at(span, &format!("{key}: {why}"))
    })
}

fn load_options(table: &LoadTable) -> LoadOptions {
    LoadOptions {
        threads: given(&table.threads),
        rate: given(&table.rate).and_then(RateSpec::rate),
        share: given(&table.rate).and_then(RateSpec::share),
        arrivals: given(&table.arrivals),
        think: given(&table.think),
        warm_up: given(&table.warm_up),
        warm_up_rate: given(&table.warm_up_rate),
        time: given(&table.time),
        operations: given(&table.operations),
        steady: given(&table.steady),
        pin: table.pin.unwrap_or(true),
        cpus: given(&table.cpus),
        connections: given(&table.connections),
        depth: given(&table.depth),
        queue: given(&table.queue),
        busy_poll: given(&table.busy_poll),
        engine: given(&table.engine),
        server_latency: given(&table.server_latency),
        expected_hit_ratio: given(&table.expect_hit_ratio),
        trace: false,
        speed: None,
    }
}

/// Checks `[load]`: a load phase inserts every record once.
pub(crate) fn load_phase_config(
    source: &StudyText,
    table: &LoadTable,
    levels: &KnobLevels,
    cpus: u32,
) -> Result<LoadConfig, StudyError> {
    for key in ["time", "operations", "warm_up", "warm_up_rate", "steady", "expect_hit_ratio"] {
        if let Some(span) = table.span_of(key) {
            let words = format!("{key}: a load begins with nothing and ends when all is there");
            return Err(source.at(span, &words));
        }
    }
    let made = measure_config(source, table, levels, cpus)?;
    match table.span_of("rate") {
        Some(span) if made.of_maximum => {
            Err(source.at(span, "rate: of a load it is a number; no maximum is calibrated for it"))
        }
        _ => Ok(made),
    }
}
