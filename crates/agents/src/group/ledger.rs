//! Keeps track of agents: working, answered, lost.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::time::{sleep_until, timeout};

use super::connection::{AgentConnection, Delivery, ReceivedMessage};
use super::{AgentGroup, AgentStage};
use crate::error::AgentError;
use crate::messages::{self, AgentMessage, CoordinatorMessage};

/// How often the stop flag is checked.
const LOOK: Duration = Duration::from_millis(50);

impl AgentGroup {
    /// Waits until `take` has a result from each agent's messages.
    pub(super) async fn collect<T>(
        &mut self,
        what: &'static str,
        limit: Duration,
        stop: &AtomicBool,
        mut take: impl FnMut(usize, Instant, AgentMessage) -> Result<Option<T>, AgentError>,
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
            let Ok(Some(message)) = timeout(LOOK, self.messages.recv()).await else { continue };
            let (from, at) = (message.from, message.at);
            let Some(say) = self.track(message) else {
                self.check_connected()?;
                continue;
            };
            let failed = |words| {
                let address = self.members[from].address.clone();
                Err(AgentError::Failed { address, words })
            };
            match say {
                AgentMessage::Failed(say) => return failed(say.words),
                AgentMessage::Stopped(_) => return failed("it stopped by itself".to_owned()),
                say => taken[from] = take(from, at, say)?.or(taken[from].take()),
            }
        }
        Ok(taken.into_iter().flatten().collect())
    }

    /// Updates the state of a member; None for messages without further use.
    fn track(&mut self, message: ReceivedMessage) -> Option<AgentMessage> {
        let member = &mut self.members[message.from];
        let say = match message.what {
            Delivery::Lost(why) => {
                member.working = false;
                member.lost.get_or_insert(why);
                return None;
            }
            Delivery::Message(say) => say,
        };
        let (round, ends) = match &say {
            AgentMessage::Ready(say) => (say.round, false),
            AgentMessage::Accepted(say) => (say.round, false),
            AgentMessage::Progress(say) => (say.round, false),
            AgentMessage::Outcome(piece) => (piece.round, piece.last),
            AgentMessage::Failed(say) => (say.round, true),
            AgentMessage::Stopped(say) => (say.round, true),
            AgentMessage::Welcome(_) | AgentMessage::Echo(_) | AgentMessage::Beat(_) => {
                return Some(say);
            }
        };
        if round != self.round {
            return None;
        }
        if ends {
            member.working = false;
        }
        Some(say)
    }

    /// Stops all tasks. An agent that does not stop in time is given up.
    pub(super) async fn halt(&mut self) {
        self.stage = AgentStage::Idle;
        let round = self.round;
        for member in self.members.iter().filter(|member| member.working) {
            member.send(CoordinatorMessage::Stop(messages::Stop { round }));
        }
        let until = tokio::time::Instant::now() + self.options.timing.wind_down;
        while self.members.iter().any(|member| member.working) {
            tokio::select! {
                Some(message) = self.messages.recv() => {
                    self.track(message);
                }
                () = sleep_until(until) => break,
            }
        }
        for member in self.members.iter_mut().filter(|member| member.working) {
            member.working = false;
            member.lost = Some("it did not stop in time".to_owned());
            member.hang_up();
        }
    }

    pub(super) fn check_connected(&self) -> Result<(), AgentError> {
        let lost = |member: &AgentConnection| {
            let why = member.lost.clone()?;
            Some(AgentError::Lost { address: member.address.clone(), why })
        };
        self.members.iter().find_map(lost).map_or(Ok(()), Err)
    }
}
