//! The coordinator's side: all agents as a group.
mod connection;
mod explain;
mod ledger;
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
use crate::task::{PeerOptions, TaskProgress};
use connection::{AgentConnection, Delivery, ReceivedMessage};

/// How long agents may take to end their session when the group is dropped.
const GOODBYE: Duration = Duration::from_secs(2);

/// Agents taken by this coordinator. All calls block, each with a time limit; heartbeats continue in
/// the background. Dropping it frees the agents for the next coordinator.
pub struct AgentGroup {
    members: Vec<AgentConnection>,
    infos: Vec<AgentInfo>,
    messages: UnboundedReceiver<ReceivedMessage>,
    clock: MonotonicClock,
    /// The time of day at the steady clock's zero, in ns.
    wall: i64,
    options: PeerOptions,
    round: u32,
    /// Number of the last probe.
    probes: u64,
    stage: AgentStage,
    /// None only while it is dropped.
    runtime: Option<Runtime>,
}

/// Information about an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentInfo {
    pub address: Address,
    pub version: String,
    /// The host name of its machine.
    pub machine: String,
    /// Its self-description: JSON.
    pub about: Vec<u8>,
    /// How far its time of day is ahead of this machine's, in seconds, within half of the round
    /// trip.
    pub wall_offset_s: f64,
    pub round_trip: Duration,
}

/// The agents have agreed to start.
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
    /// The shortest round trip of the probes.
    pub round_trip: Duration,
    /// Time from the arrival of the instruction to the first instant.
    pub margin: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentStage {
    Idle,
    Prepared,
    Started,
}

impl AgentGroup {
    /// Takes all of the agents or none.
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
        // One thread suffices for messages and leaves the CPUs to the load.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("agent-group")
            .enable_all()
            .build()
            .map_err(|error| AgentError::Runtime { why: error.to_string() })?;
        let (sender, messages) = unbounded_channel();
        let reaching: Vec<_> = (0..)
            .zip(addresses)
            .map(|(n, address)| {
                runtime.spawn(AgentConnection::reach(
                    n,
                    address.clone(),
                    credentials.clone(),
                    options.clone(),
                    limit,
                    sender.clone(),
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
        let mut group = AgentGroup {
            members,
            infos: Vec::new(),
            messages,
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
        let clocks = group.wait(AgentGroup::read_clocks, &AtomicBool::new(false))?;
        group.infos = group.agent_infos(welcomes, &clocks);
        Ok(group)
    }

    /// Information about each agent, in the order of the addresses.
    pub fn infos(&self) -> &[AgentInfo] {
        &self.infos
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
            async |group, stop| {
                if group.stage != AgentStage::Idle {
                    group.halt().await;
                }
                group.prepare_all(assignments, limit, stop).await
            },
            stop,
        )
    }

    /// Reads the agents' clocks and tells each the instant, at least `lead` ahead, at which to
    /// begin. Returns before that instant, when all have agreed.
    ///
    /// # Errors
    /// The group is not prepared, an agent was lost, got the instruction too late or failed, or `stop`
    /// was set: then none continues.
    pub fn start(&mut self, lead: Duration, stop: &AtomicBool) -> Result<Started, AgentError> {
        self.expect(AgentStage::Prepared, "the start")?;
        self.wait(async |group, stop| group.start_all(lead, stop).await, stop)
    }

    /// Waits for the agents' outcomes, in their order. `progress` receives the progress of all and of
    /// each, several times a second.
    ///
    /// # Errors
    /// The group is not started, an agent failed, was lost or took longer than `limit`, or `stop` was
    /// set: then all are stopped.
    pub fn run(
        &mut self,
        limit: Duration,
        progress: &mut dyn FnMut(&TaskProgress, &[Option<TaskProgress>]),
        stop: &AtomicBool,
    ) -> Result<Vec<Vec<u8>>, AgentError> {
        self.expect(AgentStage::Started, "the run")?;
        self.wait(async |group, stop| group.gather(limit, progress, stop).await, stop)
    }

    fn expect(&self, stage: AgentStage, asked: &'static str) -> Result<(), AgentError> {
        match self.stage == stage {
            true => Ok(()),
            false => Err(AgentError::OutOfOrder { asked }),
        }
    }

    /// Runs a step of all agents; if it fails, all are halted.
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

    fn agent_infos(&self, welcomes: Vec<Welcome>, clocks: &[ClockEstimate]) -> Vec<AgentInfo> {
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
                match self.messages.recv().await {
                    Some(ReceivedMessage { what: Delivery::Lost(_), .. }) => here -= 1,
                    Some(_) => {}
                    None => break,
                }
            }
        };
        // Agents that take longer find the connection closed.
        let _ = runtime.block_on(async { timeout(GOODBYE, goodbyes).await });
        runtime.shutdown_background();
    }
}
