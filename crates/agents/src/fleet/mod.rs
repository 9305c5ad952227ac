//! The side that asks: all agents as one.
mod explain;
mod member;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::Address;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep_until, timeout};

use crate::clock::{Estimate, Sample, Steady, best, wall_ns};
use crate::credentials::Credentials;
use crate::error::AgentError;
use crate::messages::{self, Ask, Say, Welcome};
use crate::pieces::{self, Gather};
use crate::work::{Options, Progress};
use member::{Heard, Member, What};

/// How often the flag that stops is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Probes of each clock; the shortest round trip of them counts.
const PROBES: usize = 16;
/// The shortest time from the instruction to the start; round trips come on top.
const LEAD: Duration = Duration::from_millis(250);
/// How long agents may take to let go when the fleet is dropped.
const GOODBYE: Duration = Duration::from_secs(2);

/// Agents that are held by this coordinator. All calls block, each with a limit; signs of life
/// pass between them. Dropped, it lets the agents go: they wait for the next coordinator.
pub struct Fleet {
    members: Vec<Member>,
    greetings: Vec<Greeting>,
    heard: UnboundedReceiver<Heard>,
    clock: Steady,
    /// The time of day at the steady clock's zero, in ns.
    wall: i64,
    options: Options,
    round: u32,
    /// How many probes were numbered.
    probes: u64,
    stage: Stage,
    /// None only while it is dropped.
    runtime: Option<Runtime>,
}

/// What an agent told of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Greeting {
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
enum Stage {
    Idle,
    Prepared,
    Started,
}

impl Fleet {
    /// Takes all of the agents, or none.
    ///
    /// # Errors
    /// The first agent, as they are listed, that cannot be reached within `limit` or refuses.
    pub fn connect(
        addresses: &[Address],
        credentials: &Credentials,
        options: Options,
        limit: Duration,
    ) -> Result<Fleet, AgentError> {
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
                runtime.spawn(Member::reach(
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
        let clock = Steady::new();
        let wall = wall_ns();
        let mut fleet = Fleet {
            members,
            greetings: Vec::new(),
            heard,
            clock,
            wall,
            options,
            round: 0,
            probes: 0,
            stage: Stage::Idle,
            runtime: Some(runtime),
        };
        if let Some(error) = failed {
            return Err(error);
        }
        let clocks = fleet.wait(Fleet::read_clocks, &AtomicBool::new(false))?;
        fleet.greetings = fleet.greet(welcomes, &clocks);
        Ok(fleet)
    }

    /// What each agent told of itself, in the order of the addresses.
    pub fn hello(&self) -> &[Greeting] {
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
                if fleet.stage != Stage::Idle {
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
        self.expect(Stage::Prepared, "the start")?;
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
        progress: &mut dyn FnMut(&Progress, &[Option<Progress>]),
        stop: &AtomicBool,
    ) -> Result<Vec<Vec<u8>>, AgentError> {
        self.expect(Stage::Started, "the run")?;
        self.wait(async |fleet, stop| fleet.gather(limit, progress, stop).await, stop)
    }

    fn expect(&self, stage: Stage, asked: &'static str) -> Result<(), AgentError> {
        match self.stage == stage {
            true => Ok(()),
            false => Err(AgentError::OutOfOrder { asked }),
        }
    }

    /// Does something that all agents take part in; if it fails, it fails for all of them.
    fn wait<T>(
        &mut self,
        what: impl AsyncFnOnce(&mut Fleet, &AtomicBool) -> Result<T, AgentError>,
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

    fn greet(&self, welcomes: Vec<Welcome>, clocks: &[Estimate]) -> Vec<Greeting> {
        let all = self.members.iter().zip(welcomes).zip(clocks);
        all.map(|((member, welcome), clock)| Greeting {
            address: member.address.clone(),
            version: welcome.version,
            machine: welcome.machine,
            about: welcome.about.to_vec(),
            wall_offset_s: clock.wall_offset_ns(self.wall) as f64 / 1e9,
            round_trip: Duration::from_nanos(clock.round_trip_ns),
        })
        .collect()
    }

    async fn prepare_all(
        &mut self,
        assignments: Vec<Vec<u8>>,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<(), AgentError> {
        self.all_there()?;
        self.round += 1;
        for (member, assignment) in self.members.iter_mut().zip(assignments) {
            member.working = true;
            for piece in pieces::cut(self.round, assignment) {
                member.ask(Ask::Assignment(piece));
            }
        }
        let ready = |_, _, say| Ok(matches!(say, Say::Ready(_)).then_some(()));
        self.each("become ready", limit, stop, ready).await?;
        self.stage = Stage::Prepared;
        Ok(())
    }

    async fn start_all(
        &mut self,
        lead: Duration,
        stop: &AtomicBool,
    ) -> Result<Started, AgentError> {
        let clocks = self.read_clocks(stop).await?;
        let longest = clocks.iter().map(|clock| clock.round_trip_ns).max().unwrap_or(0);
        let longest = Duration::from_nanos(longest);
        let begin = Instant::now() + lead.max(LEAD) + 4 * longest;
        let begin_ns = self.clock.of(begin);
        let round = self.round;
        for (member, clock) in self.members.iter().zip(&clocks) {
            let begin_ns = clock.by_the_agent(begin_ns);
            member.ask(Ask::Start(messages::Start { round, begin_ns }));
        }
        let addresses = self.addresses();
        let accepted = |n: usize, _, say| match say {
            Say::Accepted(accepted) => match u64::try_from(accepted.margin_ns) {
                Ok(margin) => Ok(Some(Duration::from_nanos(margin))),
                Err(_) => Err(AgentError::Late {
                    address: addresses[n].clone(),
                    by: Duration::from_nanos(accepted.margin_ns.unsigned_abs()),
                }),
            },
            _ => Ok(None),
        };
        let limit = self.options.pace.silence;
        let margins = self.each("take the start", limit, stop, accepted).await?;
        self.stage = Stage::Started;
        let agents = addresses
            .iter()
            .zip(&clocks)
            .zip(margins)
            .map(|((address, clock), margin)| AgentClock {
                address: address.clone(),
                round_trip: Duration::from_nanos(clock.round_trip_ns),
                margin,
            })
            .collect();
        Ok(Started { begin, bound: longest / 2, agents })
    }

    async fn gather(
        &mut self,
        limit: Duration,
        progress: &mut dyn FnMut(&Progress, &[Option<Progress>]),
        stop: &AtomicBool,
    ) -> Result<Vec<Vec<u8>>, AgentError> {
        let addresses = self.addresses();
        let mut standing: Vec<Option<Progress>> = vec![None; addresses.len()];
        let mut parts: Vec<Gather> = addresses.iter().map(|_| Gather::default()).collect();
        let outcome = |n: usize, _, say| match say {
            Say::Progress(now) => {
                standing[n] = Some(Progress {
                    stage: now.stage,
                    operations: now.operations,
                    elapsed_s: now.elapsed_s,
                    done: now.done,
                    live_ops_s: now.live_ops_s,
                    live_p99_ns: now.live_p99_ns,
                });
                if let Some(all) = Progress::together(standing.iter().flatten()) {
                    progress(&all, &standing);
                }
                Ok(None)
            }
            Say::Outcome(piece) => {
                let most = pieces::LARGEST_OUTCOME;
                let what = || format!("the outcome of agent {}", addresses[n]);
                parts[n].add(&piece, most).map_err(|_| AgentError::TooLarge { what: what(), most })
            }
            _ => Ok(None),
        };
        let outcomes = self.each("finish", limit, stop, outcome).await?;
        self.stage = Stage::Idle;
        Ok(outcomes)
    }

    /// The clock of each agent, now.
    async fn read_clocks(&mut self, stop: &AtomicBool) -> Result<Vec<Estimate>, AgentError> {
        self.all_there()?;
        let clock = self.clock;
        let askers: Vec<_> = self.members.iter().map(Member::asker).collect();
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); self.members.len()];
        // The number and the time of the last probe of each.
        let mut sent = vec![(0, 0); self.members.len()];
        let mut last_number = self.probes;
        self.probes += (PROBES * self.members.len()) as u64;
        let mut probe = |n: usize, sent: &mut (u64, u64)| {
            last_number += 1;
            *sent = (last_number, clock.now());
            let probe = Ask::Probe(messages::Probe { number: last_number });
            if let Some(out) = askers[n].as_ref().and_then(|out| out.upgrade()) {
                // One that is lost is heard of.
                let _ = out.send(probe.into());
            }
        };
        for (n, sent) in sent.iter_mut().enumerate() {
            probe(n, sent);
        }
        let echo = |n: usize, at, say| {
            let Say::Echo(echo) = say else { return Ok(None) };
            let (number, sent_ns) = sent[n];
            if echo.number != number {
                return Ok(None);
            }
            samples[n].push(Sample {
                sent: sent_ns,
                received: echo.received_ns,
                answered: echo.answered_ns,
                returned: clock.of(at),
                wall: echo.wall_ns.saturating_sub_unsigned(echo.answered_ns),
            });
            if samples[n].len() < PROBES {
                probe(n, &mut sent[n]);
                return Ok(None);
            }
            Ok(best(&samples[n]))
        };
        self.each("answer probes of its clock", self.options.pace.silence, stop, echo).await
    }

    /// Waits until `take` has made something of what each agent said.
    async fn each<T>(
        &mut self,
        what: &'static str,
        limit: Duration,
        stop: &AtomicBool,
        mut take: impl FnMut(usize, Instant, Say) -> Result<Option<T>, AgentError>,
    ) -> Result<Vec<T>, AgentError> {
        let until = Instant::now() + limit;
        let mut taken: Vec<Option<T>> = self.members.iter().map(|_| None).collect();
        while let Some(waits_for) = taken.iter().position(Option::is_none) {
            if stop.load(Ordering::Relaxed) {
                return Err(AgentError::Stopped);
            }
            if Instant::now() > until {
                let address = self.members[waits_for].address.clone();
                return Err(AgentError::TooSlow { address, what, limit });
            }
            let Ok(Some(heard)) = timeout(LOOK, self.heard.recv()).await else { continue };
            let (from, at) = (heard.from, heard.at);
            let Some(say) = self.note(heard) else {
                self.all_there()?;
                continue;
            };
            let failed = |words| {
                let address = self.members[from].address.clone();
                Err(AgentError::Failed { address, words })
            };
            match say {
                Say::Failed(say) => return failed(say.words),
                Say::Stopped(_) => return failed("it stopped by itself".to_owned()),
                say => taken[from] = take(from, at, say)?.or(taken[from].take()),
            }
        }
        Ok(taken.into_iter().flatten().collect())
    }

    /// Keeps the books on a member; None of what is of no more use.
    fn note(&mut self, heard: Heard) -> Option<Say> {
        let member = &mut self.members[heard.from];
        let say = match heard.what {
            What::Lost(why) => {
                member.working = false;
                member.lost.get_or_insert(why);
                return None;
            }
            What::Said(say) => say,
        };
        let (round, ends) = match &say {
            Say::Ready(say) => (say.round, false),
            Say::Accepted(say) => (say.round, false),
            Say::Progress(say) => (say.round, false),
            Say::Outcome(piece) => (piece.round, piece.last),
            Say::Failed(say) => (say.round, true),
            Say::Stopped(say) => (say.round, true),
            Say::Welcome(_) | Say::Echo(_) | Say::Beat(_) => return Some(say),
        };
        if round != self.round {
            return None;
        }
        if ends {
            member.working = false;
        }
        Some(say)
    }

    /// Ends what is at work. An agent that does not end in time is given up.
    async fn halt(&mut self) {
        self.stage = Stage::Idle;
        let round = self.round;
        for member in self.members.iter().filter(|member| member.working) {
            member.ask(Ask::Stop(messages::Stop { round }));
        }
        let until = tokio::time::Instant::now() + self.options.pace.wind_down;
        while self.members.iter().any(|member| member.working) {
            tokio::select! {
                Some(heard) = self.heard.recv() => {
                    self.note(heard);
                }
                () = sleep_until(until) => break,
            }
        }
        for member in self.members.iter_mut().filter(|member| member.working) {
            member.working = false;
            member.lost = Some("it did not stop when it was told to".to_owned());
            member.hang_up();
        }
    }

    fn all_there(&self) -> Result<(), AgentError> {
        let lost = |member: &Member| {
            let why = member.lost.clone()?;
            Some(AgentError::Lost { address: member.address.clone(), why })
        };
        self.members.iter().find_map(lost).map_or(Ok(()), Err)
    }

    fn addresses(&self) -> Vec<Address> {
        self.members.iter().map(|member| member.address.clone()).collect()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        for member in &mut self.members {
            member.hang_up();
        }
        let goodbyes = async {
            let mut here = self.members.iter().filter(|member| member.lost.is_none()).count();
            while here > 0 {
                match self.heard.recv().await {
                    Some(Heard { what: What::Lost(_), .. }) => here -= 1,
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
