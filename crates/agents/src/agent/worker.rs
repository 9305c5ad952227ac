//! The thread that does one assignment.
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc::UnboundedSender, watch};

use super::desk::SlotGuard;
use crate::work::{AgentTask, TaskProgress};

/// How soon a thread that waits for its start sees that it is told to stop.
const LOOK: Duration = Duration::from_millis(20);

/// What the thread says. All but `Ready` end the assignment.
pub enum WorkerMessage {
    Ready,
    Outcome(Vec<u8>),
    Failed(String),
    Stopped,
}

/// A hand on the thread. Dropped, it tells the thread to stop.
pub struct Worker {
    pub round: u32,
    stop: Arc<AtomicBool>,
    start: Sender<Instant>,
    pub progress: watch::Receiver<Option<TaskProgress>>,
}

impl Worker {
    /// Begins an assignment in a thread of its own, which keeps the agent held until it ends.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn begin(
        round: u32,
        work: Arc<dyn AgentTask>,
        assignment: Vec<u8>,
        hold: Arc<SlotGuard>,
        said: UnboundedSender<(u32, WorkerMessage)>,
    ) -> std::io::Result<Worker> {
        let stop = Arc::new(AtomicBool::new(false));
        let (start, started) = channel();
        let (tell, progress) = watch::channel(None);
        let stopping = stop.clone();
        thread::Builder::new().name("agent-work".to_owned()).spawn(move || {
            let last = {
                let ready = || _ = said.send((round, WorkerMessage::Ready));
                let work = || do_it(&*work, &assignment, &started, &tell, &stopping, ready);
                match catch_unwind(AssertUnwindSafe(work)) {
                    Ok(Ok(Some(payload))) => WorkerMessage::Outcome(payload),
                    Ok(Ok(None)) => WorkerMessage::Stopped,
                    Ok(Err(words)) => WorkerMessage::Failed(words),
                    Err(panic) => {
                        WorkerMessage::Failed(format!("the work panicked: {}", words_of(&*panic)))
                    }
                }
            };
            // What a stopped work says of itself is of no use to anybody.
            let last = if stopping.load(Ordering::Relaxed) { WorkerMessage::Stopped } else { last };
            // Before the last word: who hears it may take the agent again.
            drop(hold);
            // The session may be gone, and nobody asks any more.
            let _ = said.send((round, last));
        })?;
        Ok(Worker { round, stop, start, progress })
    }

    pub fn start(&self, begin: Instant) {
        // The thread may have ended: then it has said why.
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
fn do_it(
    work: &dyn AgentTask,
    assignment: &[u8],
    started: &Receiver<Instant>,
    tell: &watch::Sender<Option<TaskProgress>>,
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
    let mut progress = |progress| _ = tell.send_replace(Some(progress));
    prepared.run(begin, &mut progress, stop).map(Some)
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(words), _) => (*words).to_owned(),
        (_, Some(words)) => words.clone(),
        _ => "no reason given".to_owned(),
    }
}
