//! Short loads that show the effect of a knob.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Shorter than a tick and longer than the exit of any idle state.
const NAP: Duration = Duration::from_micros(500);

/// Lets every CPU idle `naps` times, all at once. CPUs on which this process may not run are not
/// woken.
pub(super) fn nap(cpus: &[u32], naps: u32) {
    thread::scope(|scope| {
        for &cpu in cpus {
            scope.spawn(move || {
                // If it may not run there, it sleeps elsewhere: the time passes all the same.
                let _ = affinity::pin(cpu);
                for _ in 0..naps {
                    thread::sleep(NAP);
                }
            });
        }
    });
}

/// Keeps a CPU busy for `time` between two calls of `look`. `None` if it cannot run there.
pub(super) fn busy<T: Send>(
    cpu: u32,
    time: Duration,
    look: impl Fn() -> T + Send,
) -> Option<(T, T)> {
    thread::scope(|scope| {
        let work = scope.spawn(move || {
            affinity::pin(cpu).ok()?;
            spin(time / 4);
            let before = look();
            spin(time);
            Some((before, look()))
        });
        work.join().ok().flatten()
    })
}

/// Keeps CPUs busy with arithmetic while `work` runs. Those on which this process may not run stay
/// idle.
pub(super) fn while_busy<T>(cpus: &[u32], work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for &cpu in cpus {
            let done = &done;
            scope.spawn(move || {
                if affinity::pin(cpu).is_err() {
                    return;
                }
                // Independent chains keep the vector units at work, which draws the most power.
                let mut lanes = [1.0f64; 64];
                while !done.load(Ordering::Relaxed) {
                    for _ in 0..1000 {
                        for lane in &mut lanes {
                            *lane = *lane * 0.999_999 + 0.5;
                        }
                        lanes = black_box(lanes);
                    }
                }
            });
        }
        // A panic in the work must end the load, too.
        let guard = EndOfLoad(&done);
        let result = work();
        drop(guard);
        result
    })
}

struct EndOfLoad<'a>(&'a AtomicBool);

impl Drop for EndOfLoad<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Computes until the time is over.
pub(super) fn spin(time: Duration) {
    let end = Instant::now() + time;
    let mut x = 1u64;
    while Instant::now() < end {
        for _ in 0..1000 {
            x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}
