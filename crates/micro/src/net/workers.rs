//! The threads of one end during one phase.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use super::clock::{CpuTime, now_ns};
use super::error::NetError;
use super::outcome::{EndMeter, EndOutcome};
use crate::pin::pin;

/// State that the threads of an end share.
pub struct EndPhase<'a> {
    /// The user wants to stop.
    pub stop: &'a AtomicBool,
    /// A thread failed, or the other end is gone: the others stop.
    pub failed: AtomicBool,
    /// Messages sent on each connection, set when the client has sent all.
    pub sent: OnceLock<Vec<u64>>,
    /// Threads that can receive.
    ready: AtomicU32,
    /// Tells this phase's frames from earlier ones.
    pub number: u64,
}

impl<'a> EndPhase<'a> {
    pub fn new(stop: &'a AtomicBool, number: u64) -> EndPhase<'a> {
        EndPhase {
            stop,
            failed: AtomicBool::new(false),
            sent: OnceLock::new(),
            ready: AtomicU32::new(0),
            number,
        }
    }

    /// Called by each thread of a server when it can receive.
    pub fn set_up(&self) {
        self.ready.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until this many threads can receive.
    ///
    /// # Errors
    /// One of them failed, or the user stopped it.
    pub fn await_set_up(&self, threads: u32) -> Result<(), NetError> {
        while self.ready.load(Ordering::Relaxed) < threads {
            self.check_running()?;
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }

    /// # Errors
    /// The phase must end at once.
    pub fn check_running(&self) -> Result<(), NetError> {
        let over = self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed);
        if over { Err(NetError::Stopped) } else { Ok(()) }
    }
}

/// When a client stops sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendUntil {
    /// Of [`now_ns`].
    pub instant_ns: u64,
    /// Messages on each connection.
    pub messages: u64,
}

/// The result of a thread, and its first and last instant.
pub struct ThreadPart {
    pub end: EndOutcome,
    pub first_ns: u64,
    pub last_ns: u64,
}

impl ThreadPart {
    pub fn new(end: EndOutcome) -> ThreadPart {
        let now = now_ns();
        ThreadPart { end, first_ns: now, last_ns: now }
    }
}

/// Between two checks of flags and deadlines.
pub fn tick(timeout_s: f64) -> Duration {
    Duration::from_secs_f64((timeout_s / 4.0).clamp(0.001, 0.05))
}

/// Runs each of `works` on a thread pinned to `cpus` in turn, and adds up the results.
///
/// # Errors
/// The first failure that is not the consequence of another.
pub fn run<W>(
    works: Vec<W>,
    cpus: &[u32],
    phase: &EndPhase<'_>,
    meter: &mut dyn EndMeter,
    meanwhile: impl FnOnce() -> Result<(), NetError>,
) -> Result<EndOutcome, NetError>
where
    W: FnOnce() -> Result<ThreadPart, NetError> + Send,
{
    meter.begin();
    let outcome = std::thread::scope(|scope| {
        let start = |(at, work): (usize, W)| {
            let cpu = cpus.get(at % cpus.len().max(1)).copied();
            scope.spawn(move || {
                let outcome = pinned(cpu, work);
                if outcome.is_err() {
                    phase.failed.store(true, Ordering::Relaxed);
                }
                outcome
            })
        };
        let threads: Vec<_> = works.into_iter().enumerate().map(start).collect();
        let aside = meanwhile();
        if aside.is_err() {
            phase.failed.store(true, Ordering::Relaxed);
        }
        let parts: Vec<Result<ThreadPart, NetError>> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Err(NetError::Port("a thread panicked".into()))))
            .collect();
        join_parts(parts, aside)
    });
    let readings = meter.end();
    outcome.map(|end| EndOutcome { readings, ..end })
}

fn join_parts(
    parts: Vec<Result<ThreadPart, NetError>>,
    aside: Result<(), NetError>,
) -> Result<EndOutcome, NetError> {
    let mut whole: Option<ThreadPart> = None;
    let mut failure = None;
    for part in parts {
        match part {
            Ok(part) => match &mut whole {
                None => whole = Some(part),
                Some(whole) => {
                    whole.end.add(&part.end);
                    whole.first_ns = whole.first_ns.min(part.first_ns);
                    whole.last_ns = whole.last_ns.max(part.last_ns);
                }
            },
            Err(NetError::Stopped) => {
                failure.get_or_insert(NetError::Stopped);
            }
            Err(error) => {
                if matches!(failure, None | Some(NetError::Stopped)) {
                    failure = Some(error);
                }
            }
        }
    }
    match (failure, aside) {
        (None | Some(NetError::Stopped), Err(error)) => return Err(error),
        (Some(error), _) => return Err(error),
        (None, Ok(())) => {}
    }
    let Some(part) = whole else { return Err(NetError::Port("no thread was started".into())) };
    let seconds = part.last_ns.saturating_sub(part.first_ns) as f64 * 1e-9;
    Ok(EndOutcome { seconds, ..part.end })
}

fn pinned(
    cpu: Option<u32>,
    work: impl FnOnce() -> Result<ThreadPart, NetError>,
) -> Result<ThreadPart, NetError> {
    if let Some(cpu) = cpu {
        pin(cpu)?;
    }
    let before = CpuTime::now();
    let mut part = work()?;
    let gained = before.gained();
    part.end.cpu_user_ns = gained.map(|(user, _)| user);
    part.end.cpu_system_ns = gained.map(|(_, system)| system);
    Ok(part)
}
