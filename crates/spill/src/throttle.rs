//! Waiting a little, in a way that suits how busy the processors are.

use std::cell::Cell;
use std::fs;
use std::time::{Duration, Instant};

use crate::schedule::thread;

/// Waits that are longer are slept, however free the processors are. A sleep takes some 50 us more
/// than was asked for.
const SHORT: Duration = Duration::from_micros(20);
/// Where processors are scarce, short waits are added up to a sleep of so much.
const SLEEP: Duration = Duration::from_micros(100);
/// How often, at most, a thread finds out how scarce processors are.
const LOOK: Duration = Duration::from_millis(100);
/// What lies longer ago says nothing of now.
const STALE: Duration = Duration::from_secs(1);
/// They get scarce where a thread that could have run waited for more than this share of the time,
/// and stay so until it is less than the other: sleeping makes it less.
const SCARCE: f64 = 0.2;
const PLENTY: f64 = 0.08;

thread_local! {
    static OWN: Cell<Own> = const { Cell::new(Own { looked: None, scarce: false, owed: Duration::ZERO }) };
}

/// What a thread knows of its own waits.
#[derive(Clone, Copy)]
struct Own {
    /// When it last looked, and how long it had waited for processors by then.
    looked: Option<(Instant, Duration)>,
    scarce: bool,
    /// Short waits that were not waited yet.
    owed: Duration,
}

/// Waits so long, on average.
///
/// A thread that has a processor for itself stays on it: it would have it back late. One that
/// competes for it sleeps, so that those that do the work that is waited for get it; without that
/// they would wait for a tick of the scheduler to take it by force, and for as long.
pub(crate) fn pause(wait: Duration) {
    let mut own = OWN.get();
    let begin = Instant::now();
    own.look(begin);
    if own.scarce || wait > SHORT {
        own.owed += wait;
        if own.owed >= SLEEP || wait > SHORT {
            thread::sleep(std::mem::take(&mut own.owed));
        }
        return OWN.set(own);
    }
    OWN.set(own);
    while begin.elapsed() < wait {
        std::hint::spin_loop();
    }
}

impl Own {
    fn look(&mut self, now: Instant) {
        let age = self.looked.map(|(at, _)| now.duration_since(at));
        if age.is_some_and(|age| age < LOOK) {
            return;
        }
        // Without an answer it is not known to be scarce.
        let waited = waited_for_processors();
        if let (Some((at, before)), Some(waited)) = (self.looked, waited) {
            let span = now.duration_since(at);
            if span < STALE {
                let share = waited.saturating_sub(before).as_secs_f64() / span.as_secs_f64();
                self.scarce = share > if self.scarce { PLENTY } else { SCARCE };
            } else {
                self.scarce = false;
            }
        }
        self.looked = Some((now, waited.unwrap_or_default()));
    }
}

/// How long this thread has waited for a processor since it began (the second number of
/// `/proc/PID/task/TID/schedstat`, kernel document `scheduler/sched-stats`); None where the kernel
/// does not say.
fn waited_for_processors() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let waited = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(waited))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_waits_add_up() {
        let begin = Instant::now();
        for _ in 0..100 {
            pause(Duration::from_micros(10));
        }
        let took = begin.elapsed();
        assert!(took >= Duration::from_micros(900), "{took:?}");
    }

    #[test]
    fn a_thread_that_competes_sleeps() {
        let at = Instant::now();
        let mut own =
            Own { looked: Some((at, Duration::ZERO)), scarce: false, owed: Duration::ZERO };
        own.look(at + LOOK / 2);
        assert!(!own.scarce && own.looked == Some((at, Duration::ZERO)));
        // Whatever this thread waited so far came since: more than a tenth of nothing.
        let Some(waited) = waited_for_processors() else { return };
        own.look(at + LOOK);
        assert_eq!(own.scarce, waited.as_secs_f64() > SCARCE * LOOK.as_secs_f64());
        own.scarce = true;
        own.look(at + LOOK + STALE);
        assert!(!own.scarce);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_kernel_says_how_long_a_thread_waited() {
        assert!(waited_for_processors().is_some());
    }
}
