//! Who of a fleet is at work, who has answered, who is lost.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::time::{sleep_until, timeout};

use super::member::{AgentConnection, ReceivedMessage, What};
use super::{AgentGroup, AgentStage};
use crate::error::AgentError;
use crate::messages::{self, AgentMessage, CoordinatorMessage};

/// How often the flag that stops is looked at.
const LOOK: Duration = Duration::from_millis(50);

impl AgentGroup {
    /// Waits until `take` has made something of what each agent said.
    pub(super) async fn each<T>(
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
                AgentMessage::Failed(say) => return failed(say.words),
                AgentMessage::Stopped(_) => return failed("it stopped by itself".to_owned()),
                say => taken[from] = take(from, at, say)?.or(taken[from].take()),
            }
        }
        Ok(taken.into_iter().flatten().collect())
    }

    /// Keeps the books on a member; None of what is of no more use.
    fn note(&mut self, heard: ReceivedMessage) -> Option<AgentMessage> {
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

    /// Ends what is at work. An agent that does not end in time is given up.
    pub(super) async fn halt(&mut self) {
        self.stage = AgentStage::Idle;
        let round = self.round;
        for member in self.members.iter().filter(|member| member.working) {
            member.ask(CoordinatorMessage::Stop(messages::Stop { round }));
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

    pub(super) fn all_there(&self) -> Result<(), AgentError> {
        let lost = |member: &AgentConnection| {
            let why = member.lost.clone()?;
            Some(AgentError::Lost { address: member.address.clone(), why })
        };
        self.members.iter().find_map(lost).map_or(Ok(()), Err)
    }
}
