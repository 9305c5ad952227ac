//! Short loads that show the effect of a knob.

use std::hint::black_box;
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
