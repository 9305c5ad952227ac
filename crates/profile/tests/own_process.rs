//! Functions of this very program that are known to take its time.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::{ProfiledSide, RunProfile, Stack, StackSet, ThreadState};
use profile::{ProfileError, Profiler, Target};

#[inline(never)]
fn busy_leaf(rounds: u64) -> u64 {
    let mut sum = 0u64;
    for i in 0..rounds {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(i));
    }
    sum
}

#[inline(never)]
fn busy_caller(rounds: u64) -> u64 {
    black_box(busy_leaf(rounds)) + 1
}

/// One at a time: each sees all threads of the process.
static ALONE: Mutex<()> = Mutex::new(());

fn profiled(work: impl FnOnce() + Send) -> Option<RunProfile> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let own =
        Target { pid: std::process::id(), side: ProfiledSide::Client, name: "test".to_owned() };
    // The thread that starts the profiler is left out, with those that it starts afterwards.
    let begins = Barrier::new(2);
    let profile = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            begins.wait();
            work();
        });
        let profiler = Profiler::start(vec![own], 997);
        begins.wait();
        worker.join().unwrap();
        match profiler {
            Ok(profiler) => profiler.stop(),
            Err(error @ ProfileError::Privilege { .. }) => {
                eprintln!("SKIPPED: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    })?;
    assert_eq!(profile.lost, 0);
    Some(profile)
}

fn set(profile: &RunProfile, state: ThreadState) -> StackSet<'_> {
    profile.sets().into_iter().find(|set| set.state == state).unwrap()
}

fn folded(set: &StackSet<'_>) -> String {
    let lines = set
        .stacks
        .iter()
        .map(|stack| format!("{} {} {:.4}\n", stack.folded(), stack.samples, stack.seconds));
    lines.collect()
}

fn calls(stack: &Stack, caller: &str, callee: &str) -> bool {
    let at = |name: &str| stack.frames.iter().position(|frame| frame.contains(name));
    at(caller).zip(at(callee)).is_some_and(|(caller, callee)| caller < callee)
}

#[test]
fn a_busy_function_is_found_with_its_caller() {
    let Some(profile) = profiled(|| {
        busy_caller(300_000_000);
    }) else {
        return;
    };
    let own = set(&profile, ThreadState::OnCpu);
    // Some tenths of a second of CPU time.
    assert!(own.samples() >= 100, "{profile:?}");
    assert!(own.share(|s| calls(s, "busy_caller", "busy_leaf")) > 0.8, "{}", folded(&own));
    assert!(own.by_function()[0].0.contains("busy_leaf"), "{:?}", own.by_function());
}

#[inline(never)]
fn waits_for_a_lock(times: u32, held_for: Duration) -> Duration {
    let mut waited = Duration::ZERO;
    for _ in 0..times {
        let (lock, held) = (Mutex::new(()), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let guard = lock.lock().unwrap();
                held.wait();
                std::thread::sleep(held_for);
                drop(guard);
            });
            held.wait();
            let begun = Instant::now();
            drop(black_box(lock.lock().unwrap()));
            waited += begun.elapsed();
        });
    }
    waited
}

#[test]
fn the_time_of_a_wait_is_that_of_its_stack() {
    let mut waited = Duration::ZERO;
    let work = || waited = waits_for_a_lock(20, Duration::from_millis(15));
    let Some(profile) = profiled(work) else { return };
    if !profile.kernel {
        eprintln!("SKIPPED: this user may not see switches");
        return;
    }
    let blocked = set(&profile, ThreadState::Blocked);
    // Frames of a spawned thread are beneath those of its own start.
    let lock = |stack: &Stack| {
        calls(stack, "waits_for_a_lock", "futex") && !calls(stack, "waits_for_a_lock", "sleep")
    };
    let found: f64 = blocked.stacks.iter().filter(|s| lock(s)).map(|s| s.seconds).sum();
    let truth = waited.as_secs_f64();
    // The barrier and the end of the threads are waits of the same function.
    assert!(found > 0.5 * truth && found < 2.0 * truth, "{found} {truth}\n{}", folded(&blocked));
}

#[test]
fn a_process_that_is_not_there_is_named() {
    let none = Target { pid: u32::MAX, side: ProfiledSide::Server, name: "none".to_owned() };
    let error = Profiler::start(vec![none], 99).err().unwrap();
    assert!(matches!(error, ProfileError::NoProcess(u32::MAX)), "{error}");
}
