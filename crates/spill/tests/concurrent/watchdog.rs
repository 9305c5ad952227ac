//! Watches the operations of all threads: one that takes too long fails the test, even if it never
//! returns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The longest allowed operation.
const MAX_DURATION: Duration = Duration::from_secs(5);

type CurrentOperation = Arc<Mutex<Option<(Instant, &'static str)>>>;

/// Watches all threads of a test until dropped.
pub struct Watchdog {
    start: Instant,
    all: Arc<Mutex<Vec<CurrentOperation>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    pub fn new() -> Watchdog {
        let (all, is_over) =
            (Arc::<Mutex<Vec<CurrentOperation>>>::default(), Arc::new(AtomicBool::new(false)));
        let (watched, take_effect) = (Arc::clone(&all), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            while !take_effect.load(Ordering::Relaxed) {
                for doing in watched.lock().unwrap().iter() {
                    if let Some((since, what)) = *doing.lock().unwrap()
                        && since.elapsed() > MAX_DURATION
                    {
                        // The thread may hang for ever, so the process ends.
                        eprintln!("{what} has not returned for {:?}", since.elapsed());
                        std::process::abort();
                    }
                }
                thread::sleep(Duration::from_millis(50));
            }
        });
        Watchdog { start: Instant::now(), all, is_over, thread: Some(thread) }
    }

    /// Registers a thread.
    pub fn register(&self) -> Operations {
        let doing = CurrentOperation::default();
        self.all.lock().unwrap().push(Arc::clone(&doing));
        Operations { start: self.start, doing }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Runs watched operations of a thread.
pub struct Operations {
    start: Instant,
    doing: CurrentOperation,
}

impl Operations {
    /// Runs an operation; returns its result, and its start and end in nanoseconds.
    pub fn time<R>(&self, what: &'static str, act: impl FnOnce() -> R) -> (R, u64, u64) {
        let began = Instant::now();
        *self.doing.lock().unwrap() = Some((began, what));
        let begin = self.start.elapsed().as_nanos() as u64;
        let answer = act();
        let end = self.start.elapsed().as_nanos() as u64;
        *self.doing.lock().unwrap() = None;
        assert!(began.elapsed() <= MAX_DURATION, "{what} took {:?}", began.elapsed());
        (answer, begin, end)
    }

    /// Runs an operation and returns its result alone.
    pub fn run<R>(&self, what: &'static str, act: impl FnOnce() -> R) -> R {
        self.time(what, act).0
    }
}
