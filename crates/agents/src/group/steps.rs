//! The steps of a group: prepare, start, gather.
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use model::Address;

use super::connection::AgentConnection;
use super::{AgentClock, AgentGroup, AgentStage, Started};
use crate::clock::{ClockEstimate, ClockSample, best};
use crate::error::AgentError;
use crate::messages::{self, AgentMessage, CoordinatorMessage};
use crate::pieces::{self, PayloadAssembler};
use crate::task::TaskProgress;

/// Probes of each clock; the shortest round trip of them counts.
const PROBES: usize = 16;
/// The shortest time from the instruction to the start; round trips come on top.
const LEAD: Duration = Duration::from_millis(250);

impl AgentGroup {
    pub(super) async fn prepare_all(
        &mut self,
        assignments: Vec<Vec<u8>>,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<(), AgentError> {
        self.check_connected()?;
        self.round += 1;
        for (member, assignment) in self.members.iter_mut().zip(assignments) {
            member.working = true;
            for piece in pieces::cut(self.round, assignment) {
                member.send(CoordinatorMessage::Assignment(piece));
            }
        }
        let ready = |_, _, say| Ok(matches!(say, AgentMessage::Ready(_)).then_some(()));
        self.collect("become ready", limit, stop, ready).await?;
        self.stage = AgentStage::Prepared;
        Ok(())
    }

    pub(super) async fn start_all(
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
            member.send(CoordinatorMessage::Start(messages::Start { round, begin_ns }));
        }
        let addresses = self.addresses();
        let accepted = |n: usize, _, say| match say {
            AgentMessage::Accepted(accepted) => match u64::try_from(accepted.margin_ns) {
                Ok(margin) => Ok(Some(Duration::from_nanos(margin))),
                Err(_) => Err(AgentError::Late {
                    address: addresses[n].clone(),
                    by: Duration::from_nanos(accepted.margin_ns.unsigned_abs()),
                }),
            },
            _ => Ok(None),
        };
        let limit = self.options.timing.silence;
        let margins = self.collect("accept the start", limit, stop, accepted).await?;
        self.stage = AgentStage::Started;
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

    pub(super) async fn gather(
        &mut self,
        limit: Duration,
        progress: &mut dyn FnMut(&TaskProgress, &[Option<TaskProgress>]),
        stop: &AtomicBool,
    ) -> Result<Vec<Vec<u8>>, AgentError> {
        let addresses = self.addresses();
        let mut each_progress: Vec<Option<TaskProgress>> = vec![None; addresses.len()];
        let mut parts: Vec<PayloadAssembler> =
            addresses.iter().map(|_| PayloadAssembler::default()).collect();
        let outcome = |n: usize, _, say| match say {
            AgentMessage::Progress(now) => {
                each_progress[n] = Some(TaskProgress {
                    stage: now.stage,
                    operations: now.operations,
                    elapsed_s: now.elapsed_s,
                    done: now.done,
                    live_ops_s: now.live_ops_s,
                    live_p99_ns: now.live_p99_ns,
                    newest_interval: Arc::from(&now.newest_interval[..]),
                });
                if let Some(all) = TaskProgress::sum(each_progress.iter().flatten()) {
                    progress(&all, &each_progress);
                }
                Ok(None)
            }
            AgentMessage::Outcome(piece) => {
                let most = pieces::LARGEST_OUTCOME;
                let what = || format!("the outcome of agent {}", addresses[n]);
                parts[n].add(&piece, most).map_err(|_| AgentError::TooLarge { what: what(), most })
            }
            _ => Ok(None),
        };
        let outcomes = self.collect("finish", limit, stop, outcome).await?;
        self.stage = AgentStage::Idle;
        Ok(outcomes)
    }

    /// The clock of each agent, now.
    pub(super) async fn read_clocks(
        &mut self,
        stop: &AtomicBool,
    ) -> Result<Vec<ClockEstimate>, AgentError> {
        self.check_connected()?;
        let clock = self.clock;
        let senders: Vec<_> = self.members.iter().map(AgentConnection::sender).collect();
        let mut samples: Vec<Vec<ClockSample>> = vec![Vec::new(); self.members.len()];
        // The number and the time of the last probe of each.
        let mut sent = vec![(0, 0); self.members.len()];
        let mut last_number = self.probes;
        self.probes += (PROBES * self.members.len()) as u64;
        let mut probe = |n: usize, sent: &mut (u64, u64)| {
            last_number += 1;
            *sent = (last_number, clock.now());
            let probe = CoordinatorMessage::Probe(messages::Probe { number: last_number });
            if let Some(out) = senders[n].as_ref().and_then(|out| out.upgrade()) {
                // A lost connection is reported on the receiving side.
                let _ = out.send(probe.into());
            }
        };
        for (n, sent) in sent.iter_mut().enumerate() {
            probe(n, sent);
        }
        let echo = |n: usize, at, say| {
            let AgentMessage::Echo(echo) = say else { return Ok(None) };
            let (number, sent_ns) = sent[n];
            if echo.number != number {
                return Ok(None);
            }
            samples[n].push(ClockSample {
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
        self.collect("answer probes of its clock", self.options.timing.silence, stop, echo).await
    }

    fn addresses(&self) -> Vec<Address> {
        self.members.iter().map(|member| member.address.clone()).collect()
    }
}
