//! The session of one coordinator, from its hello to its end.
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tonic::{Status, Streaming};

use super::connection_gate::AuthenticatedPeer;
use super::session_slot::SlotGuard;
use super::worker::{Worker, WorkerMessage};
use super::{Agent, AgentLogEvent};
use crate::clock::wall_ns;
use crate::messages::{
    self, AgentMessage, CoordinatorMessage, Heartbeat, Piece, ToAgent, ToCoordinator,
};
use crate::pieces::{self, PayloadAssembler};
use crate::silence_timer::SilenceTimer;
use crate::task::TaskProgress;

pub type Out = UnboundedSender<Result<ToCoordinator, Status>>;

/// How often progress is forwarded.
const PROGRESS: Duration = Duration::from_millis(100);
/// A start that lies further ahead is a mistake.
const FARTHEST_START: Duration = Duration::from_secs(60);

pub struct Session {
    agent: Arc<Agent>,
    guard: Arc<SlotGuard>,
    out: Out,
    worker: Option<Worker>,
    worker_sender: UnboundedSender<(u32, WorkerMessage)>,
    assembler: PayloadAssembler,
}

impl Session {
    /// Serves the coordinator until it disconnects, is lost or violates the protocol; then ends its
    /// task and frees the agent.
    pub async fn serve(
        agent: Arc<Agent>,
        (authenticated, guard): (AuthenticatedPeer, Arc<SlotGuard>),
        coordinator: String,
        mut inbound: Streaming<ToAgent>,
        out: Out,
    ) {
        let (worker_sender, mut worker_receiver) = unbounded_channel();
        let mut session = Session {
            agent,
            guard,
            out,
            worker: None,
            worker_sender,
            assembler: PayloadAssembler::default(),
        };
        let why = session.serve_until_end(&mut inbound, &mut worker_receiver).await;
        session.guard.disconnect();
        session.guard.log(AgentLogEvent::Left { coordinator, why });
        session.stop_worker(&mut worker_receiver).await;
        // The next session over the same connection authenticates again.
        drop(authenticated);
        // The slot is freed before the stream ends, because the coordinator may call again then.
        let Session { guard, out, .. } = session;
        drop(guard);
        drop(out);
    }

    /// Returns why it ended.
    async fn serve_until_end(
        &mut self,
        inbound: &mut Streaming<ToAgent>,
        worker_receiver: &mut UnboundedReceiver<(u32, WorkerMessage)>,
    ) -> String {
        let mut closing = self.agent.closing.subscribe();
        let mut silence = SilenceTimer::new(self.agent.options.timing.silence);
        let mut beat = interval(self.agent.options.timing.beat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut progress = interval(PROGRESS);
        progress.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => {
                    self.refuse(Status::unavailable("the agent was stopped"));
                    return "the agent is shutting down".to_owned();
                }
                message = inbound.message() => {
                    silence.reset();
                    match message {
                        Ok(Some(ToAgent { what: Some(request) })) => {
                            if let Err(why) = self.handle(request) {
                                self.refuse(Status::invalid_argument(why));
                                return why.to_owned();
                            }
                        }
                        // A message of a later minor version is ignored.
                        Ok(Some(ToAgent { what: None })) => {}
                        Ok(None) => return "it closed the connection".to_owned(),
                        Err(status) => {
                            return format!("the connection broke: {}", status.message());
                        }
                    }
                }
                Some((round, message)) = worker_receiver.recv() => self.forward(round, message),
                () = silence.expired() => {
                    let why = silence.message();
                    self.refuse(Status::deadline_exceeded(why.clone()));
                    return why;
                }
                _ = progress.tick(), if self.worker.is_some() => self.forward_progress(),
                _ = beat.tick() => self.send(AgentMessage::Beat(Heartbeat {})),
            }
        }
    }

    fn handle(&mut self, request: CoordinatorMessage) -> Result<(), &'static str> {
        let received_ns = self.agent.clock.now();
        match request {
            CoordinatorMessage::Hello(_) => return Err("a second hello"),
            CoordinatorMessage::Beat(_) => {}
            CoordinatorMessage::Probe(probe) => {
                let wall_ns = wall_ns();
                let answered_ns = self.agent.clock.now();
                let number = probe.number;
                self.send(AgentMessage::Echo(messages::Echo {
                    number,
                    received_ns,
                    answered_ns,
                    wall_ns,
                }));
            }
            CoordinatorMessage::Assignment(piece) => return self.gather(&piece),
            CoordinatorMessage::Start(start) => return self.start(start, received_ns),
            // A task that has just ended has reported so already.
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
        let whole = self.assembler.add(piece, pieces::LARGEST_ASSIGNMENT);
        let Some(assignment) = whole.map_err(|_| "the assignment is too large")? else {
            return Ok(());
        };
        self.guard.log(AgentLogEvent::Preparing { bytes: assignment.len() });
        let (work, guard, worker_sender) =
            (self.agent.work.clone(), self.guard.clone(), self.worker_sender.clone());
        match Worker::begin(piece.round, work, assignment, guard, worker_sender) {
            Ok(worker) => self.worker = Some(worker),
            Err(error) => {
                self.forward(
                    piece.round,
                    WorkerMessage::Failed(format!("cannot start the worker thread: {error}")),
                );
            }
        }
        Ok(())
    }

    fn start(&mut self, start: messages::Start, now_ns: u64) -> Result<(), &'static str> {
        // It may have failed meanwhile, and has reported so.
        let Some(worker) = self.of_round(start.round) else { return Ok(()) };
        let begin: Instant = self
            .agent
            .clock
            .at(start.begin_ns)
            .ok_or("the start instant is beyond the range of the clock")?;
        let margin_ns = start.begin_ns.wrapping_sub(now_ns) as i64;
        if margin_ns > FARTHEST_START.as_nanos() as i64 {
            return Err("the start instant is minutes ahead");
        }
        // If it is too late, the coordinator stops all agents.
        if margin_ns >= 0 {
            worker.start(begin);
            self.guard.log(AgentLogEvent::Started);
        }
        self.send(AgentMessage::Accepted(messages::Accepted { round: start.round, margin_ns }));
        Ok(())
    }

    fn of_round(&self, round: u32) -> Option<&Worker> {
        self.worker.as_ref().filter(|worker| worker.round == round)
    }

    fn forward(&mut self, round: u32, message: WorkerMessage) {
        match message {
            WorkerMessage::Ready => {
                self.guard.log(AgentLogEvent::Ready);
                return self.send(AgentMessage::Ready(messages::Ready { round }));
            }
            WorkerMessage::Outcome(payload) => {
                self.forward_progress();
                self.guard.log(AgentLogEvent::Done { bytes: payload.len() });
                for piece in pieces::cut(round, payload) {
                    self.send(AgentMessage::Outcome(piece));
                }
            }
            WorkerMessage::Failed(words) => {
                self.guard.log(AgentLogEvent::Failed { words: words.clone() });
                self.send(AgentMessage::Failed(messages::Failed { round, words }));
            }
            WorkerMessage::Stopped => {
                self.guard.log(AgentLogEvent::Stopped);
                self.send(AgentMessage::Stopped(messages::Stopped { round }));
            }
        }
        self.worker = None;
    }

    fn forward_progress(&mut self) {
        let Some(worker) = &mut self.worker else { return };
        // An error means that the task has ended, which it reports itself.
        if !worker.progress.has_changed().unwrap_or(false) {
            return;
        }
        let round = worker.round;
        let now: Option<TaskProgress> = worker.progress.borrow_and_update().clone();
        if let Some(now) = now {
            self.send(AgentMessage::Progress(messages::Progress {
                round,
                stage: now.stage,
                operations: now.operations,
                elapsed_s: now.elapsed_s,
                done: now.done,
                live_ops_s: now.live_ops_s,
                live_p99_ns: now.live_p99_ns,
                newest_interval: Bytes::copy_from_slice(&now.newest_interval),
            }));
        }
    }

    /// Stops a running task and waits for its end for a limited time.
    async fn stop_worker(&mut self, worker_receiver: &mut UnboundedReceiver<(u32, WorkerMessage)>) {
        let Some(worker) = &self.worker else { return };
        worker.stop();
        let last = async {
            while let Some((_, message)) = worker_receiver.recv().await {
                if !matches!(message, WorkerMessage::Ready) {
                    break;
                }
            }
        };
        // If it takes longer, the task's own guard keeps the agent taken.
        let _ = timeout(self.agent.options.timing.wind_down, last).await;
    }

    // A closed stream is noticed on the receiving side.
    fn send(&self, message: AgentMessage) {
        let _ = self.out.send(Ok(message.into()));
    }

    fn refuse(&self, status: Status) {
        let _ = self.out.send(Err(status));
    }
}
