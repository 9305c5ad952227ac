//! The threads of one measurement; the first one takes the times.

use std::slice::ChunksExactMut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use super::check;
use super::kernels::{self, ArrayPart, StreamKernel, Vectors};
use super::{MIN_TIMED, STAGGER, StreamSpec};
use crate::barrier::Barrier;
use crate::error::MicroError;
use crate::pin;
use crate::region::Region;

/// Times of the kernels.
pub(super) struct Timed {
    /// Seconds of one pass of each kernel, one a round.
    pub seconds: [Vec<f64>; 4],
    /// Passes in one timing.
    pub passes: usize,
    pub vectors: Vectors,
    /// The largest relative error of any element.
    pub worst_error: f64,
}

/// State that the threads share.
struct Shared {
    barrier: Barrier,
    /// Another round follows.
    more: AtomicBool,
    passes: AtomicUsize,
}

pub(super) fn run(
    spec: &StreamSpec,
    cpus: &[u32],
    each: usize,
    arrays: &mut [Region; 3],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Timed, MicroError> {
    let [a, b, c] = arrays;
    let parts = parts_of(a, 0, each).zip(parts_of(b, 1, each)).zip(parts_of(c, 2, each));
    let parts = parts.map(|((a, b), c)| ArrayPart { a, b, c });
    let shared = Shared {
        barrier: Barrier::new(cpus.len()),
        more: AtomicBool::new(true),
        passes: AtomicUsize::new(1),
    };
    let (shared, vectors) = (&shared, Vectors::detect());
    std::thread::scope(|scope| {
        let begun: Vec<_> = parts
            .zip(cpus)
            .enumerate()
            .map(|(i, (part, cpu))| {
                let thread = std::thread::Builder::new().name(format!("stream {i}"));
                let thread = thread.spawn_scoped(scope, move || {
                    let _guard = shared.barrier.guard();
                    work(spec, *cpu, i == 0, part, shared, vectors, stop)
                });
                if thread.is_err() {
                    shared.barrier.break_up();
                }
                thread
            })
            .collect();
        let mut timed = Err(MicroError::Stopped);
        let mut worst_error: f64 = 0.0;
        let mut fault = None;
        for (i, thread) in begun.into_iter().enumerate() {
            let thread = thread.map_err(|e| MicroError::Failed(format!("thread {i}: {e}")))?;
            match thread.join() {
                Ok(Ok(Some((seconds, error)))) => {
                    worst_error = worst_error.max(error);
                    if i == 0 {
                        timed = Ok(seconds);
                    }
                }
                // It ended because another one did.
                Ok(Ok(None)) => {}
                Ok(Err(why)) => fault = Some(why),
                Err(_) => fault = Some(MicroError::Failed(format!("thread {i} panicked"))),
            }
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
        let seconds = timed?;
        if !check::passes(worst_error) {
            return Err(MicroError::Failed(format!(
                "the arrays hold wrong results, off by up to {worst_error:e}: the machine or the \
                 compiler computes wrongly"
            )));
        }
        if seconds[0].is_empty() {
            return Err(MicroError::Stopped);
        }
        let passes = shared.passes.load(Ordering::Relaxed);
        Ok(Timed { seconds, passes, vectors, worst_error })
    })
}

/// The threads' parts of the first, second or third array.
fn parts_of(region: &mut Region, array: usize, each: usize) -> ChunksExactMut<'_, f64> {
    region.as_mut_slice()[array * STAGGER as usize..].chunks_exact_mut(each)
}

type Seconds = [Vec<f64>; 4];

/// One thread's work; `None` where another thread has ended. The first thread returns the seconds,
/// each the error of its part.
fn work(
    spec: &StreamSpec,
    cpu: u32,
    first: bool,
    mut part: ArrayPart<'_>,
    shared: &Shared,
    vectors: Vectors,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<(Seconds, f64)>, MicroError> {
    if let Err(fault) = pin::pin(cpu) {
        shared.barrier.break_up();
        return Err(fault);
    }
    let [a, b, c] = check::START;
    part.a.fill(a);
    part.b.fill(b);
    part.c.fill(c);
    let mut seconds = Seconds::default();
    let mut rounds = 0;
    let mut counted_from = Instant::now();
    loop {
        if first {
            if rounds == 1 {
                counted_from = Instant::now();
            }
            let counted = rounds.max(1) - 1;
            let more = counted < spec.rounds || counted_from.elapsed() < spec.time;
            shared.more.store(more && !stop(), Ordering::Relaxed);
        }
        if !shared.barrier.wait() {
            return Ok(None);
        }
        if !shared.more.load(Ordering::Relaxed) {
            break;
        }
        let passes = shared.passes.load(Ordering::Relaxed);
        let mut longest: f64 = 0.0;
        for (i, kernel) in StreamKernel::ALL.into_iter().enumerate() {
            // The others wait already, or are about to.
            let before = Instant::now();
            if !shared.barrier.wait() {
                return Ok(None);
            }
            for _ in 0..passes {
                kernels::run(kernel, spec.stores, vectors, std::hint::black_box(&mut part));
            }
            if !shared.barrier.wait() {
                return Ok(None);
            }
            let pass = before.elapsed().as_secs_f64() / passes as f64;
            longest = longest.max(pass);
            if first && rounds > 0 {
                seconds[i].push(pass);
            }
        }
        if first && rounds == 0 {
            let passes = (MIN_TIMED.as_secs_f64() / longest.max(1e-9)).ceil();
            shared.passes.store(passes.max(1.0) as usize, Ordering::Relaxed);
        }
        rounds += 1;
    }
    let arrays = [&*part.a, &*part.b, &*part.c];
    let errors = arrays.into_iter().zip(check::expected(rounds));
    let worst = errors.map(|(array, expected)| check::worst(array, expected)).fold(0.0, f64::max);
    Ok(Some((seconds, worst)))
}
