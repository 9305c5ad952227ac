//! Background threads: compaction, garbage collection, and syncs at an interval.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::engine::{Engine, Job};
use crate::error::{Error, Result};
use crate::locks::try_lock;
use crate::options::Durability;
use crate::priority::{DEFERRABLE, PROMPT};
use crate::schedule::thread::{self, JoinHandle};
use crate::throttle;
use crate::time_slice;

/// How long a failed job waits before it is tried again.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// The longest wait for an event, in case a wake-up is lost.
const MAX_IDLE: Duration = Duration::from_secs(1);

/// Starts the threads; those that started are in `threads` even when one fails.
pub(crate) fn start(engine: &Arc<Engine>, threads: &mut Vec<JoinHandle<()>>) -> Result<()> {
    throttle::count_cpus();
    let jobs = [
        ("spill-merge", Job::Compact, DEFERRABLE),
        ("spill-collect", Job::CollectGarbage, DEFERRABLE),
        ("spill-release", Job::ReleaseSegments, PROMPT),
    ];
    for (name, job, nice_offset) in jobs {
        threads.push(spawn(engine, name, nice_offset, move |engine| run_jobs(engine, job))?);
    }
    // Deleting a large file waits for its pages to reach the device, so it has a thread of its own.
    threads.push(spawn(engine, "spill-free", PROMPT, run_reclaimer)?);
    let flusher = Arc::clone(&engine.flusher);
    threads.push(spawn(engine, "spill-write", PROMPT, move |_| flusher.run())?);
    if let Durability::Interval(interval) = engine.options.durability {
        threads.push(spawn(engine, "spill-sync", PROMPT, move |engine| {
            sync_at_interval(engine, interval)
        })?);
    }
    Ok(())
}

fn spawn(
    engine: &Arc<Engine>,
    name: &'static str,
    nice_offset: i32,
    work: impl FnOnce(&Engine) + Send + 'static,
) -> Result<JoinHandle<()>> {
    let engine = Arc::clone(engine);
    let dir = engine.dir.clone();
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let _registration = engine.priority.register(nice_offset);
            time_slice::enable();
            let done = catch_unwind(AssertUnwindSafe(|| work(&engine)));
            if let Err(panic) = done {
                // Its job is no longer done, so nobody must wait for it.
                engine.halt(&Error::Halted { why: format!("the thread {name} panicked") });
                engine.work.notify();
                resume_unwind(panic);
            }
        })
        .map_err(|error| {
            let what = format!("the thread {name} cannot be started: {error}");
            Error::io(&dir, std::io::Error::new(error.kind(), what))
        })
}

fn is_closing(engine: &Engine) -> bool {
    engine.work.is_closing.load(Ordering::Acquire)
}

/// Runs jobs while there are any, then waits for events.
fn run_jobs(engine: &Engine, job: Job) {
    while !is_closing(engine) {
        let events = engine.work.events();
        let done = engine.run_job(job);
        match done {
            Ok(true) => engine.work.notify(),
            Ok(false) => {
                engine.work.wait(events, MAX_IDLE);
            }
            Err(_) => {
                let events = engine.work.events();
                engine.work.wait(events, RETRY_DELAY);
            }
        }
    }
}

/// Frees retired versions, and refills memory blocks and preallocated segments.
fn run_reclaimer(engine: &Engine) {
    while !is_closing(engine) {
        let events = engine.work.events();
        engine.blocks.refill();
        engine.preallocate_segments();
        engine.reclaim_versions();
        if engine.work.wait(events, MAX_IDLE) == events {
            engine.blocks.free_idle();
        }
    }
}

fn sync_at_interval(engine: &Engine, interval: Duration) {
    loop {
        let mut left = interval;
        while !left.is_zero() {
            if is_closing(engine) {
                return;
            }
            let step = left.min(RETRY_DELAY);
            thread::sleep(step);
            // Writes are refused after any failed sync, so retry early.
            if engine.group_commit.has_failed() {
                break;
            }
            left -= step;
        }
        // A failure is reported to writers.
        let _ = engine.sync_all();
    }
}

impl Engine {
    /// Returns whether there was such a job.
    fn run_job(&self, job: Job) -> Result<bool> {
        match job {
            Job::Compact => self.compact(),
            Job::CollectGarbage => self.collect_garbage(),
            Job::ReleaseSegments => self.release_collected(),
        }
    }

    /// Whether nobody runs such a job or holds what it changes.
    fn can_run(&self, job: Job) -> bool {
        match job {
            Job::Compact => try_lock(&self.compaction).is_some(),
            Job::CollectGarbage => try_lock(&self.collector).is_some(),
            Job::ReleaseSegments => try_lock(&self.durable).is_some(),
        }
    }

    /// Runs all due jobs in this thread. Jobs blocked by others, such as a checkpoint, are waited
    /// for only if `waits` is set.
    pub(crate) fn maintain(&self, waits: bool) {
        self.reclaim_versions();
        self.preallocate_segments();
        for job in [Job::Compact, Job::CollectGarbage, Job::ReleaseSegments] {
            while (waits || self.can_run(job)) && matches!(self.run_job(job), Ok(true)) {
                self.work.notify();
            }
        }
    }
}
