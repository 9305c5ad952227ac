//! One coordinator's hold of the agent, from its hello to its end.
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tonic::{Status, Streaming};

use super::desk::SlotGuard;
use super::door::AuthenticatedPeer;
use super::worker::{Worker, WorkerMessage};
use super::{Agent, AgentLogEvent};
use crate::clock::wall_ns;
use crate::messages::{
    self, AgentMessage, CoordinatorMessage, Heartbeat, Piece, ToAgent, ToCoordinator,
};
use crate::pieces::{self, PayloadAssembler};
use crate::silence::SilenceTimer;
use crate::work::TaskProgress;

pub type Out = UnboundedSender<Result<ToCoordinator, Status>>;

/// How often progress is passed on.
const PROGRESS: Duration = Duration::from_millis(100);
/// A start that lies further ahead is a mistake.
const FARTHEST_START: Duration = Duration::from_secs(60);

pub struct Session {
    agent: Arc<Agent>,
    hold: Arc<SlotGuard>,
    out: Out,
    worker: Option<Worker>,
    said: UnboundedSender<(u32, WorkerMessage)>,
    gather: PayloadAssembler,
}

impl Session {
    /// Serves the coordinator until it leaves, is lost or breaks the rules; then ends its work and
    /// gives the agent back.
    pub async fn serve(
        agent: Arc<Agent>,
        (known, hold): (AuthenticatedPeer, Arc<SlotGuard>),
        who: String,
        mut inbound: Streaming<ToAgent>,
        out: Out,
    ) {
        let (said, mut heard) = unbounded_channel();
        let mut session =
            Session { agent, hold, out, worker: None, said, gather: PayloadAssembler::default() };
        let why = session.until_the_end(&mut inbound, &mut heard).await;
        session.hold.leave();
        session.hold.tell(AgentLogEvent::Left { who, why });
        session.end_the_work(&mut heard).await;
        // Who takes the agent next over the same connection is known anew.
        drop(known);
        // The hold goes before the stream ends: who waits for that may call again.
        let Session { hold, out, .. } = session;
        drop(hold);
        drop(out);
    }

    /// Why it ended.
    async fn until_the_end(
        &mut self,
        inbound: &mut Streaming<ToAgent>,
        heard: &mut UnboundedReceiver<(u32, WorkerMessage)>,
    ) -> String {
        let mut closing = self.agent.closing.subscribe();
        let mut silence = SilenceTimer::new(self.agent.options.pace.silence);
        let mut beat = interval(self.agent.options.pace.beat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut progress = interval(PROGRESS);
        progress.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => {
                    self.refuse(Status::unavailable("the agent was ended"));
                    return "the agent was told to end".to_owned();
                }
                message = inbound.message() => {
                    silence.heard();
                    match message {
                        Ok(Some(ToAgent { what: Some(ask) })) => {
                            if let Err(why) = self.answer(ask) {
                                self.refuse(Status::invalid_argument(why));
                                return why.to_owned();
                            }
                        }
                        // Of a later minor version: nothing that must be understood.
                        Ok(Some(ToAgent { what: None })) => {}
                        Ok(None) => return "it hung up".to_owned(),
                        Err(status) => {
                            return format!("the connection broke: {}", status.message());
                        }
                    }
                }
                Some((round, said)) = heard.recv() => self.pass_on(round, said),
                () = silence.too_long() => {
                    let why = silence.words();
                    self.refuse(Status::deadline_exceeded(why.clone()));
                    return why;
                }
                _ = progress.tick(), if self.worker.is_some() => self.pass_on_progress(),
                _ = beat.tick() => self.say(AgentMessage::Beat(Heartbeat {})),
            }
        }
    }

    fn answer(&mut self, ask: CoordinatorMessage) -> Result<(), &'static str> {
        let received_ns = self.agent.clock.now();
        match ask {
            CoordinatorMessage::Hello(_) => return Err("a second hello"),
            CoordinatorMessage::Beat(_) => {}
            CoordinatorMessage::Probe(probe) => {
                let wall_ns = wall_ns();
                let answered_ns = self.agent.clock.now();
                let number = probe.number;
                self.say(AgentMessage::Echo(messages::Echo {
                    number,
                    received_ns,
                    answered_ns,
                    wall_ns,
                }));
            }
            CoordinatorMessage::Assignment(piece) => return self.gather(&piece),
            CoordinatorMessage::Start(start) => return self.start(start, received_ns),
            // One that has just ended by itself says so already.
            CoordinatorMessage::Stop(stop) => {
                if let Some(worker) = self.of_round(stop.round) {
                    worker.stop();
                }
            }
        }
        Ok(())
    }

    fn gather(&mut self, piece: &Piece) -> Result<(), &'static str> {
        if self.worker.is_some() {
            return Err("the last assignment has not ended");
        }
        let whole = self.gather.add(piece, pieces::LARGEST_ASSIGNMENT);
        let Some(assignment) = whole.map_err(|_| "the assignment is too large")? else {
            return Ok(());
        };
        self.hold.tell(AgentLogEvent::Preparing { bytes: assignment.len() });
        let (work, hold, said) = (self.agent.work.clone(), self.hold.clone(), self.said.clone());
        match Worker::begin(piece.round, work, assignment, hold, said) {
            Ok(worker) => self.worker = Some(worker),
            Err(error) => {
                self.pass_on(
                    piece.round,
                    WorkerMessage::Failed(format!("no thread for the work: {error}")),
                );
            }
        }
        Ok(())
    }

    fn start(&mut self, start: messages::Start, now_ns: u64) -> Result<(), &'static str> {
        // It may have failed meanwhile, and has said so.
        let Some(worker) = self.of_round(start.round) else { return Ok(()) };
        let begin: Instant =
            self.agent.clock.at(start.begin_ns).ok_or("a start beyond the clock")?;
        let margin_ns = start.begin_ns.wrapping_sub(now_ns) as i64;
        if margin_ns > FARTHEST_START.as_nanos() as i64 {
            return Err("a start that is minutes ahead");
        }
        // Late: the coordinator stops all.
        if margin_ns >= 0 {
            worker.start(begin);
            self.hold.tell(AgentLogEvent::Started);
        }
        self.say(AgentMessage::Accepted(messages::Accepted { round: start.round, margin_ns }));
        Ok(())
    }

    fn of_round(&self, round: u32) -> Option<&Worker> {
        self.worker.as_ref().filter(|worker| worker.round == round)
    }

    fn pass_on(&mut self, round: u32, said: WorkerMessage) {
        match said {
            WorkerMessage::Ready => {
                self.hold.tell(AgentLogEvent::Ready);
                return self.say(AgentMessage::Ready(messages::Ready { round }));
            }
            WorkerMessage::Outcome(payload) => {
                self.pass_on_progress();
                self.hold.tell(AgentLogEvent::Done { bytes: payload.len() });
                for piece in pieces::cut(round, payload) {
                    self.say(AgentMessage::Outcome(piece));
                }
            }
            WorkerMessage::Failed(words) => {
                self.hold.tell(AgentLogEvent::Failed { words: words.clone() });
                self.say(AgentMessage::Failed(messages::Failed { round, words }));
            }
            WorkerMessage::Stopped => {
                self.hold.tell(AgentLogEvent::Stopped);
                self.say(AgentMessage::Stopped(messages::Stopped { round }));
            }
        }
        self.worker = None;
    }

    fn pass_on_progress(&mut self) {
        let Some(worker) = &mut self.worker else { return };
        // An error says that the work has ended, which it says itself.
        if !worker.progress.has_changed().unwrap_or(false) {
            return;
        }
        let round = worker.round;
        let now: Option<TaskProgress> = worker.progress.borrow_and_update().clone();
        if let Some(now) = now {
            self.say(AgentMessage::Progress(messages::Progress {
                round,
                stage: now.stage,
                operations: now.operations,
                elapsed_s: now.elapsed_s,
                done: now.done,
                live_ops_s: now.live_ops_s,
                live_p99_ns: now.live_p99_ns,
            }));
        }
    }

    /// Stops what is at work and waits for it, a while.
    async fn end_the_work(&mut self, heard: &mut UnboundedReceiver<(u32, WorkerMessage)>) {
        let Some(worker) = &self.worker else { return };
        worker.stop();
        let last = async {
            while let Some((_, said)) = heard.recv().await {
                if !matches!(said, WorkerMessage::Ready) {
                    break;
                }
            }
        };
        // Longer, and the work's own hold keeps the agent taken.
        let _ = timeout(self.agent.options.pace.wind_down, last).await;
    }

    // A stream that nobody reads any more is noticed on the way in.
    fn say(&self, say: AgentMessage) {
        let _ = self.out.send(Ok(say.into()));
    }

    fn refuse(&self, status: Status) {
        let _ = self.out.send(Err(status));
    }
}
