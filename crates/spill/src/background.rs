//! What is done beside the callers' threads: merging, collecting, and syncing at an interval.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::inner::{Inner, lock};
use crate::options::Durability;

/// How long to wait before trying again what failed.
const PAUSE: Duration = Duration::from_millis(100);
/// How long to wait for news, lest some are missed.
const LONG: Duration = Duration::from_secs(1);

type Piece = fn(&Inner) -> Result<bool>;

pub(crate) fn start(inner: &Arc<Inner>) -> Result<Vec<JoinHandle<()>>> {
    let mut threads = Vec::new();
    let pieces: [(&str, Piece); 2] =
        [("spill-merge", Inner::spill), ("spill-collect", Inner::collect)];
    for (name, piece) in pieces {
        threads.push(spawn(inner, name, move |inner| work_on(inner, piece))?);
    }
    if let Durability::Interval(interval) = inner.options.durability {
        threads.push(spawn(inner, "spill-sync", move |inner| sync_at(inner, interval))?);
    }
    Ok(threads)
}

fn spawn(
    inner: &Arc<Inner>,
    name: &str,
    work: impl FnOnce(&Inner) + Send + 'static,
) -> Result<JoinHandle<()>> {
    let inner = Arc::clone(inner);
    let dir = inner.dir.clone();
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || work(&inner))
        .map_err(|error| Error::io(&dir, error))
}

fn is_closing(inner: &Inner) -> bool {
    inner.work.is_closing.load(Ordering::Acquire)
}

/// Does pieces of work as long as there are any, then waits for news.
fn work_on(inner: &Inner, piece: Piece) {
    while !is_closing(inner) {
        let news = inner.work.news();
        let done = piece(inner);
        match done {
            Ok(true) => inner.work.ended(&done),
            Ok(false) => {
                inner.work.wait(news, LONG);
            }
            Err(_) if is_closing(inner) => {}
            Err(_) => {
                inner.work.ended(&done);
                let news = inner.work.news();
                inner.work.wait(news, PAUSE);
            }
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
            left -= step;
        }
        let point = lock(&inner.writer).point();
        // A failure halts the store, and then every write says so.
        let _ = inner.sync_to(point);
    }
}

impl Inner {
    /// All that is due, in this thread.
    pub(crate) fn maintain(&self) {
        for piece in [Inner::spill as Piece, Inner::collect] {
            loop {
                let done = piece(self);
                let goes_on = matches!(done, Ok(true));
                if !matches!(done, Ok(false)) {
                    self.work.ended(&done);
                }
                if !goes_on {
                    break;
                }
            }
        }
    }
}
