//! Ends the process when a call into a plug-in does not return: no other thread can end the call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How often calls are looked at.
const INTERVAL: Duration = Duration::from_millis(200);

/// The functions that may be in progress; 0 is none.
const NAMES: [&str; 13] = [
    "",
    "open",
    "close",
    "session_open",
    "session_close",
    "get",
    "put",
    "insert",
    "remove",
    "scan",
    "settle",
    "statistics",
    "multi_get",
];

/// A function of a plug-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Function {
    Open = 1,
    Close,
    SessionOpen,
    SessionClose,
    Get,
    Put,
    Insert,
    Remove,
    Scan,
    Settle,
    Statistics,
    MultiGet,
}

impl Function {
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// The call that a thread is in, on a cache line of its own.
#[repr(align(128))]
pub struct CallSlot {
    /// A count of calls, and in the lowest byte the function, 0 outside of calls.
    state: AtomicU64,
    limit: Duration,
    /// Who is named if the call does not return.
    plugin: String,
}

impl CallSlot {
    /// A slot that is watched until it is dropped.
    pub fn new(plugin: &str, limit: Duration) -> Arc<CallSlot> {
        let slot = CallSlot { state: AtomicU64::new(0), limit, plugin: plugin.to_owned() };
        let slot = Arc::new(slot);
        watch(&slot);
        slot
    }

    /// Runs a call of one thread. The slot is this thread's alone.
    #[inline]
    pub fn call<R>(&self, function: Function, call: impl FnOnce() -> R) -> R {
        let count = self.state.load(Ordering::Relaxed) & !0xff;
        self.state.store(count | function as u64, Ordering::Relaxed);
        let answer = call();
        self.state.store(count.wrapping_add(0x100), Ordering::Relaxed);
        answer
    }
}

/// A slot, and since when it has been in one call.
struct Watched {
    slot: Weak<CallSlot>,
    state: u64,
    since: Instant,
}

static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());

fn watch(slot: &Arc<CallSlot>) {
    static STARTED: Once = Once::new();
    let watched = Watched { slot: Arc::downgrade(slot), state: 0, since: Instant::now() };
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner).push(watched);
    STARTED.call_once(|| {
        // Without a thread for it calls are not watched, and nothing else is lost.
        let _ = std::thread::Builder::new().name("plug-in calls".to_owned()).spawn(|| {
            loop {
                std::thread::sleep(INTERVAL);
                if let Some(words) = stuck(Instant::now()) {
                    end_process(&words);
                }
            }
        });
    });
}

/// What to say of a call that has lasted longer than its limit.
fn stuck(now: Instant) -> Option<String> {
    let mut all = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|watched| watched.slot.strong_count() > 0);
    for watched in all.iter_mut() {
        let Some(slot) = watched.slot.upgrade() else { continue };
        let state = slot.state.load(Ordering::Relaxed);
        if state != watched.state || state & 0xff == 0 {
            (watched.state, watched.since) = (state, now);
        } else if now.duration_since(watched.since) > slot.limit {
            return Some(format!(
                "error: {}: its function `{}` has not returned for {} s, the option `limit`; the \
                 runs that were finished are kept\n",
                slot.plugin,
                NAMES[(state & 0xff) as usize % NAMES.len()],
                slot.limit.as_secs_f64()
            ));
        }
    }
    None
}

/// Ends it without destructors, which might wait for the same call.
fn end_process(words: &str) -> ! {
    use std::io::Write as _;
    let _ = std::io::stderr().write_all(words.as_bytes());
    // SAFETY: it ends the process.
    #[allow(unsafe_code)]
    unsafe {
        libc::_exit(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_functions() {
        for (function, name) in [
            (Function::Open, "open"),
            (Function::SessionClose, "session_close"),
            (Function::Get, "get"),
            (Function::Statistics, "statistics"),
            (Function::MultiGet, "multi_get"),
        ] {
            assert_eq!(function.name(), name);
        }
    }

    #[test]
    fn a_call_that_does_not_return_is_told_by_its_name() {
        let limit = Duration::from_secs(3600);
        let slot = CallSlot::new("plug-in x", limit);
        slot.call(Function::Put, || ());
        let begin = Instant::now();
        slot.call(Function::Get, || {
            assert_eq!(stuck(begin), None);
            assert_eq!(stuck(begin + limit), None);
            let words = stuck(begin + limit + Duration::from_secs(1)).unwrap();
            assert!(words.contains("plug-in x: its function `get`"), "{words}");
        });
        assert_eq!(stuck(begin + 3 * limit), None);
    }
}
