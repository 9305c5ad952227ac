//! Who does what at what time, and an eye on everyone: an operation that takes too long ends the
//! test, whether it comes back or not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// No operation may take longer.
const LONGEST: Duration = Duration::from_secs(5);

type Doing = Arc<Mutex<Option<(Instant, &'static str)>>>;

/// Looks at all threads of a test until it is dropped.
pub struct Watch {
    start: Instant,
    all: Arc<Mutex<Vec<Doing>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub fn new() -> Watch {
        let (all, is_over) =
            (Arc::<Mutex<Vec<Doing>>>::default(), Arc::new(AtomicBool::new(false)));
        let (watched, ended) = (Arc::clone(&all), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                for doing in watched.lock().unwrap().iter() {
                    if let Some((since, what)) = *doing.lock().unwrap()
                        && since.elapsed() > LONGEST
                    {
                        // The thread may hang for ever: this ends the process with it.
                        eprintln!("{what} has not come back for {:?}", since.elapsed());
                        std::process::abort();
                    }
                }
                thread::sleep(Duration::from_millis(50));
            }
        });
        Watch { start: Instant::now(), all, is_over, thread: Some(thread) }
    }

    /// One more thread that is looked at.
    pub fn hand(&self) -> Hand {
        let doing = Doing::default();
        self.all.lock().unwrap().push(Arc::clone(&doing));
        Hand { start: self.start, doing }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// With it a thread does things that are looked at.
pub struct Hand {
    start: Instant,
    doing: Doing,
}

impl Hand {
    /// Does it; answers what it does, and when it began and ended, in nanoseconds.
    pub fn time<R>(&self, what: &'static str, act: impl FnOnce() -> R) -> (R, u64, u64) {
        let began = Instant::now();
        *self.doing.lock().unwrap() = Some((began, what));
        let begin = self.start.elapsed().as_nanos() as u64;
        let answer = act();
        let end = self.start.elapsed().as_nanos() as u64;
        *self.doing.lock().unwrap() = None;
        assert!(began.elapsed() <= LONGEST, "{what} took {:?}", began.elapsed());
        (answer, begin, end)
    }

    /// Does it, for its answer alone.
    pub fn does<R>(&self, what: &'static str, act: impl FnOnce() -> R) -> R {
        self.time(what, act).0
    }
}
