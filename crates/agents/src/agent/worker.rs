//! The thread that executes one assignment.
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc::UnboundedSender, watch};

use super::session_slot::SlotGuard;
use crate::task::{AgentTask, TaskProgress};

/// How often a thread that waits for its start checks for a stop.
const LOOK: Duration = Duration::from_millis(20);

/// Messages of the thread. All but `Ready` end the assignment.
pub enum WorkerMessage {
    Ready,
    Outcome(Vec<u8>),
    Failed(String),
    Stopped,
}

/// A handle of the thread, which stops it on drop.
pub struct Worker {
    pub round: u32,
    stop: Arc<AtomicBool>,
    start: Sender<Instant>,
    pub progress: watch::Receiver<Option<TaskProgress>>,
}

impl Worker {
    /// Begins an assignment in its own thread, which keeps the agent taken until it ends.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn begin(
        round: u32,
        work: Arc<dyn AgentTask>,
        assignment: Vec<u8>,
        guard: Arc<SlotGuard>,
        messages: UnboundedSender<(u32, WorkerMessage)>,
    ) -> std::io::Result<Worker> {
        let stop = Arc::new(AtomicBool::new(false));
        let (start, started) = channel();
        let (progress_sender, progress) = watch::channel(None);
        let stopping = stop.clone();
        thread::Builder::new().name("agent-work".to_owned()).spawn(move || {
            let last = {
                let ready = || _ = messages.send((round, WorkerMessage::Ready));
                let work =
                    || run_task(&*work, &assignment, &started, &progress_sender, &stopping, ready);
                match catch_unwind(AssertUnwindSafe(work)) {
                    Ok(Ok(Some(payload))) => WorkerMessage::Outcome(payload),
                    Ok(Ok(None)) => WorkerMessage::Stopped,
                    Ok(Err(words)) => WorkerMessage::Failed(words),
                    Err(panic) => WorkerMessage::Failed(format!(
                        "the work panicked: {}",
                        panic_message(&*panic)
                    )),
                }
            };
            // The result of a stopped task is discarded.
            let last = if stopping.load(Ordering::Relaxed) { WorkerMessage::Stopped } else { last };
            // Before the last message: its receiver may take the agent again.
            drop(guard);
            // The session may have ended.
            let _ = messages.send((round, last));
        })?;
        Ok(Worker { round, stop, start, progress })
    }

    pub fn start(&self, begin: Instant) {
        // The thread may have ended, and has reported why.
        let _ = self.start.send(begin);
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The outcome; None where it was stopped before it started.
fn run_task(
    work: &dyn AgentTask,
    assignment: &[u8],
    started: &Receiver<Instant>,
    progress_sender: &watch::Sender<Option<TaskProgress>>,
    stop: &Arc<AtomicBool>,
    ready: impl FnOnce(),
) -> Result<Option<Vec<u8>>, String> {
    let prepared = work.prepare(assignment, stop)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    ready();
    let begin = loop {
        match started.recv_timeout(LOOK) {
            Ok(begin) => break begin,
            Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
            Err(_) => return Ok(None),
        }
    };
    let mut progress = |progress| _ = progress_sender.send_replace(Some(progress));
    prepared.run(begin, &mut progress, stop).map(Some)
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(words), _) => (*words).to_owned(),
        (_, Some(words)) => words.clone(),
        _ => "no reason given".to_owned(),
    }
}
