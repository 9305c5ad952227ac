//! What is done beside the callers' threads: merging, collecting, and syncing at an interval.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::inner::{Inner, Piece, try_lock};
use crate::niceness::{IN_TIME, LATE};
use crate::options::Durability;
use crate::schedule::thread::{self, JoinHandle};
use crate::stint;
use crate::throttle;

/// How long to wait before trying again what failed.
const PAUSE: Duration = Duration::from_millis(100);
/// How long to wait for news, lest some are missed.
const LONG: Duration = Duration::from_secs(1);

/// Adds those that were started to `threads`, also when one cannot be.
pub(crate) fn start(inner: &Arc<Inner>, threads: &mut Vec<JoinHandle<()>>) -> Result<()> {
    throttle::count_processors();
    let pieces = [
        ("spill-merge", Piece::Spill, LATE),
        ("spill-collect", Piece::Collect, LATE),
        ("spill-release", Piece::Release, IN_TIME),
    ];
    for (name, piece, nicer) in pieces {
        threads.push(spawn(inner, name, nicer, move |inner| work_on(inner, piece))?);
    }
    // Deleting a large file waits for its pages on their way to the device: nobody else should.
    threads.push(spawn(inner, "spill-free", IN_TIME, free)?);
    let flusher = Arc::clone(&inner.flusher);
    threads.push(spawn(inner, "spill-write", IN_TIME, move |_| flusher.run())?);
    if let Durability::Interval(interval) = inner.options.durability {
        threads.push(spawn(inner, "spill-sync", IN_TIME, move |inner| sync_at(inner, interval))?);
    }
    Ok(())
}

fn spawn(
    inner: &Arc<Inner>,
    name: &'static str,
    nicer: i32,
    work: impl FnOnce(&Inner) + Send + 'static,
) -> Result<JoinHandle<()>> {
    let inner = Arc::clone(inner);
    let dir = inner.dir.clone();
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let _member = inner.niceness.join(nicer);
            stint::begin();
            let done = catch_unwind(AssertUnwindSafe(|| work(&inner)));
            if let Err(panic) = done {
                // What it did is not done any more; nobody should wait for it.
                inner.halt(&Error::Halted { why: format!("its thread {name} panicked") });
                inner.work.tell();
                resume_unwind(panic);
            }
        })
        .map_err(|error| {
            let what = format!("its thread {name} cannot be started: {error}");
            Error::io(&dir, std::io::Error::new(error.kind(), what))
        })
}

fn is_closing(inner: &Inner) -> bool {
    inner.work.is_closing.load(Ordering::Acquire)
}

/// Does pieces of work as long as there are any, then waits for news.
fn work_on(inner: &Inner, piece: Piece) {
    while !is_closing(inner) {
        let news = inner.work.news();
        let done = inner.do_piece(piece);
        match done {
            Ok(true) => inner.work.tell(),
            Ok(false) => {
                inner.work.wait(news, LONG);
            }
            Err(_) => {
                let news = inner.work.news();
                inner.work.wait(news, PAUSE);
            }
        }
    }
}

/// Frees what is not used any more, and makes memory and segments ready, as it comes.
fn free(inner: &Inner) {
    while !is_closing(inner) {
        let news = inner.work.news();
        inner.blocks.prepare();
        inner.make_spares();
        inner.free_unused();
        if inner.work.wait(news, LONG) == news {
            inner.blocks.free_used();
        }
    }
}

fn sync_at(inner: &Inner, interval: Duration) {
    loop {
        let mut left = interval;
        while !left.is_zero() {
            if is_closing(inner) {
                return;
            }
            let step = left.min(PAUSE);
            thread::sleep(step);
            // Writes are refused while it is late, whoever's sync failed.
            if inner.synced.is_late() {
                break;
            }
            left -= step;
        }
        // Writes answer a failure.
        let _ = inner.sync_all();
    }
}

impl Inner {
    /// Answers whether there was such a piece to do.
    fn do_piece(&self, piece: Piece) -> Result<bool> {
        match piece {
            Piece::Spill => self.spill(),
            Piece::Collect => self.collect(),
            Piece::Release => self.release(),
        }
    }

    /// Whether nobody does such a piece, or keeps what it changes as it is.
    fn may_do(&self, piece: Piece) -> bool {
        match piece {
            Piece::Spill => try_lock(&self.merging).is_some(),
            Piece::Collect => try_lock(&self.collector).is_some(),
            Piece::Release => try_lock(&self.durable).is_some(),
        }
    }

    /// All that is due, in this thread; what others keep from being done, as a checkpoint does, only if
    /// it `waits` for them.
    pub(crate) fn maintain(&self, waits: bool) {
        self.free_unused();
        self.make_spares();
        for piece in [Piece::Spill, Piece::Collect, Piece::Release] {
            while (waits || self.may_do(piece)) && matches!(self.do_piece(piece), Ok(true)) {
                self.work.tell();
            }
        }
    }
}
