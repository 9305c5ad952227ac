//! The side that asks: all agents as one.
mod books;
mod explain;
mod member;
mod steps;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use model::Address;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::clock::{ClockEstimate, MonotonicClock, wall_ns};
use crate::credentials::Credentials;
use crate::error::AgentError;
use crate::messages::Welcome;
use crate::pieces;
use crate::work::{PeerOptions, TaskProgress};
use member::{AgentConnection, ReceivedMessage, What};

/// How long agents may take to let go when the fleet is dropped.
const GOODBYE: Duration = Duration::from_secs(2);

/// Agents that are held by this coordinator. All calls block, each with a limit; signs of life
/// pass between them. Dropped, it lets the agents go: they wait for the next coordinator.
pub struct AgentGroup {
    members: Vec<AgentConnection>,
    greetings: Vec<AgentInfo>,
    heard: UnboundedReceiver<ReceivedMessage>,
    clock: MonotonicClock,
    /// The time of day at the steady clock's zero, in ns.
    wall: i64,
    options: PeerOptions,
    round: u32,
    /// How many probes were numbered.
    probes: u64,
    stage: AgentStage,
    /// None only while it is dropped.
    runtime: Option<Runtime>,
}

/// What an agent told of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentInfo {
    pub address: Address,
    pub version: String,
    /// The host name of its machine.
    pub machine: String,
    /// What it tells of itself: JSON.
    pub about: Vec<u8>,
    /// How far its time of day is ahead of this machine's, in seconds, within half of the round
    /// trip.
    pub wall_offset_s: f64,
    pub round_trip: Duration,
}

/// The agents were told to start.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    /// The first instant, by this machine's clock.
    pub begin: Instant,
    /// No agent's clock is further off the instant than this: half of the longest round trip. Any
    /// two agents begin within twice of it, on top of how late their threads wake.
    pub bound: Duration,
    pub agents: Vec<AgentClock>,
}

/// How one agent's clock was read.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentClock {
    pub address: Address,
    /// The shortest of the probes.
    pub round_trip: Duration,
    /// From when the instruction came to the first instant.
    pub margin: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentStage {
    Idle,
    Prepared,
    Started,
}

impl AgentGroup {
    /// Takes all of the agents, or none.
    ///
    /// # Errors
    /// The first agent, as they are listed, that cannot be reached within `limit` or refuses.
    pub fn connect(
        addresses: &[Address],
        credentials: &Credentials,
        options: PeerOptions,
        limit: Duration,
    ) -> Result<AgentGroup, AgentError> {
        if addresses.is_empty() {
            return Err(AgentError::NoAgents);
        }
        if let Some(twice) =
            addresses.iter().enumerate().find(|(n, address)| addresses[..*n].contains(address))
        {
            return Err(AgentError::Twice { address: twice.1.clone() });
        }
        // One thread is enough to pass messages on, and leaves the others to the load.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("fleet")
            .enable_all()
            .build()
            .map_err(|error| AgentError::Runtime { why: error.to_string() })?;
        let (tell, heard) = unbounded_channel();
        let reaching: Vec<_> = (0..)
            .zip(addresses)
            .map(|(n, address)| {
                runtime.spawn(AgentConnection::reach(
                    n,
                    address.clone(),
                    credentials.clone(),
                    options.clone(),
                    limit,
                    tell.clone(),
                ))
            })
            .collect();
        let (mut members, mut welcomes, mut failed) = (Vec::new(), Vec::new(), None);
        for task in reaching {
            match runtime.block_on(task) {
                Ok(Ok((member, welcome))) => {
                    members.push(member);
                    welcomes.push(welcome);
                }
                Ok(Err(error)) => failed = failed.or(Some(error)),
                Err(error) => {
                    failed = failed.or(Some(AgentError::Runtime { why: error.to_string() }));
                }
            }
        }
        let clock = MonotonicClock::new();
        let wall = wall_ns();
        let mut fleet = AgentGroup {
            members,
            greetings: Vec::new(),
            heard,
            clock,
            wall,
            options,
            round: 0,
            probes: 0,
            stage: AgentStage::Idle,
            runtime: Some(runtime),
        };
        if let Some(error) = failed {
            return Err(error);
        }
        let clocks = fleet.wait(AgentGroup::read_clocks, &AtomicBool::new(false))?;
        fleet.greetings = fleet.greet(welcomes, &clocks);
        Ok(fleet)
    }

    /// What each agent told of itself, in the order of the addresses.
    pub fn hello(&self) -> &[AgentInfo] {
        &self.greetings
    }

    /// Gives each agent its assignment and waits until all are ready.
    ///
    /// # Errors
    /// An agent refused, was lost or took longer than `limit`, or `stop` was raised: then none is
    /// prepared.
    pub fn prepare(
        &mut self,
        assignments: Vec<Vec<u8>>,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<(), AgentError> {
        let (agents, given) = (self.members.len(), assignments.len());
        if agents != given {
            return Err(AgentError::Count { agents, assignments: given });
        }
        let most = pieces::LARGEST_ASSIGNMENT;
        if assignments.iter().any(|assignment| assignment.len() > most) {
            return Err(AgentError::TooLarge { what: "an assignment".to_owned(), most });
        }
        self.wait(
            async |fleet, stop| {
                if fleet.stage != AgentStage::Idle {
                    fleet.halt().await;
                }
                fleet.prepare_all(assignments, limit, stop).await
            },
            stop,
        )
    }

    /// Reads the agents' clocks and tells each the instant, at least `lead` ahead, at which to
    /// begin. Returns before that instant, when all have agreed.
    ///
    /// # Errors
    /// The fleet is not prepared, an agent was lost, was told too late or failed, or `stop` was
    /// raised: then none goes on.
    pub fn start(&mut self, lead: Duration, stop: &AtomicBool) -> Result<Started, AgentError> {
        self.expect(AgentStage::Prepared, "the start")?;
        self.wait(async |fleet, stop| fleet.start_all(lead, stop).await, stop)
    }

    /// Waits for what the agents give, in their order. `progress` is told how all of them and each
    /// of them stand, some times a second.
    ///
    /// # Errors
    /// The fleet is not started, an agent failed, was lost or took longer than `limit`, or `stop`
    /// was raised: then all are stopped.
    pub fn run(
        &mut self,
        limit: Duration,
        progress: &mut dyn FnMut(&TaskProgress, &[Option<TaskProgress>]),
        stop: &AtomicBool,
    ) -> Result<Vec<Vec<u8>>, AgentError> {
        self.expect(AgentStage::Started, "the run")?;
        self.wait(async |fleet, stop| fleet.gather(limit, progress, stop).await, stop)
    }

    fn expect(&self, stage: AgentStage, asked: &'static str) -> Result<(), AgentError> {
        match self.stage == stage {
            true => Ok(()),
            false => Err(AgentError::OutOfOrder { asked }),
        }
    }

    /// Does something that all agents take part in; if it fails, it fails for all of them.
    fn wait<T>(
        &mut self,
        what: impl AsyncFnOnce(&mut AgentGroup, &AtomicBool) -> Result<T, AgentError>,
        stop: &AtomicBool,
    ) -> Result<T, AgentError> {
        let Some(handle) = self.runtime.as_ref().map(|runtime| runtime.handle().clone()) else {
            return Err(AgentError::Stopped);
        };
        handle.block_on(async {
            let done = what(self, stop).await;
            if done.is_err() {
                self.halt().await;
            }
            done
        })
    }

    fn greet(&self, welcomes: Vec<Welcome>, clocks: &[ClockEstimate]) -> Vec<AgentInfo> {
        let all = self.members.iter().zip(welcomes).zip(clocks);
        all.map(|((member, welcome), clock)| AgentInfo {
            address: member.address.clone(),
            version: welcome.version,
            machine: welcome.machine,
            about: welcome.about.to_vec(),
            wall_offset_s: clock.wall_offset_ns(self.wall) as f64 / 1e9,
            round_trip: Duration::from_nanos(clock.round_trip_ns),
        })
        .collect()
    }
}

impl Drop for AgentGroup {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        for member in &mut self.members {
            member.hang_up();
        }
        let goodbyes = async {
            let mut here = self.members.iter().filter(|member| member.lost.is_none()).count();
            while here > 0 {
                match self.heard.recv().await {
                    Some(ReceivedMessage { what: What::Lost(_), .. }) => here -= 1,
                    Some(_) => {}
                    None => break,
                }
            }
        };
        // Who does not say goodbye in time finds the connection closed.
        let _ = runtime.block_on(async { timeout(GOODBYE, goodbyes).await });
        runtime.shutdown_background();
    }
}
