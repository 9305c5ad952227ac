//! Handing work to another thread and waiting for it: over a pipe, as LMBench's `lat_ctx` does,
//! and over a futex, on one CPU and between two.
#![allow(unsafe_code, reason = "futexes have no safe form")]

use std::fmt;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde::Serialize;

use crate::batches::{self, BatchSpread};
use crate::error::MicroError;
use crate::pin;

/// Limit on waiting for the peer.
const MAX_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SwitchMethod {
    /// One byte each way.
    Pipe,
    /// A word that the peer waits on.
    Futex,
}

impl fmt::Display for SwitchMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SwitchMethod::Pipe => "pipe",
            SwitchMethod::Futex => "futex",
        })
    }
}

/// The cost of handing a turn between two threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Switch {
    pub means: SwitchMethod,
    pub cpus: [u32; 2],
    /// One hand-over: half of there and back. On one CPU it has one context switch; between two
    /// it has a wake-up of the other CPU.
    pub hand_over: BatchSpread,
    /// The cost of a hand-over's system calls where no thread waits.
    pub calls: BatchSpread,
    /// The hand-over without them.
    pub switch: BatchSpread,
    /// Times that the first thread left its CPU for each turn there and back. On one CPU it is 1 at
    /// least: it sleeps, or the other one takes its place when it is woken. Between two CPUs less
    /// than 1 says that some answers came before the thread slept.
    pub switches: f64,
}

/// Measures both means for `time` each: on the first CPU alone and, where there is a second one,
/// between both.
///
/// # Errors
/// A call failed, a CPU may not be used, or it was stopped before the first result.
pub fn run(
    cpus: &[u32],
    time: Duration,
    stop: &(dyn Fn() -> bool + Sync),
    each: &mut dyn FnMut(&Switch),
) -> Result<Vec<Switch>, MicroError> {
    let first = *cpus
        .first()
        .ok_or_else(|| MicroError::request("cpus", "is an empty list; name one CPU at least"))?;
    let second = cpus.iter().copied().find(|cpu| *cpu != first);
    let pairs: Vec<[u32; 2]> =
        [Some(first), second].into_iter().flatten().map(|other| [first, other]).collect();
    let mut switches = Vec::new();
    for pair in pairs {
        for means in [SwitchMethod::Pipe, SwitchMethod::Futex] {
            let Some(switch) = measure(means, pair, time, stop)? else { break };
            each(&switch);
            switches.push(switch);
        }
    }
    if switches.is_empty() { Err(MicroError::Stopped) } else { Ok(switches) }
}

fn measure(
    means: SwitchMethod,
    cpus: [u32; 2],
    time: Duration,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Switch>, MicroError> {
    match means {
        SwitchMethod::Pipe => {
            let failed = |error| MicroError::Failed(format!("pipe: {error}"));
            let ((there_out, there_in), (back_out, back_in)) =
                (io::pipe().map_err(failed)?, io::pipe().map_err(failed)?);
            let (mut own_out, mut own_in) = io::pipe().map_err(failed)?;
            let ends = [PipeEnd(there_in, back_out), PipeEnd(back_in, there_out)];
            let alone = move || -> io::Result<()> {
                own_in.write_all(&[1])?;
                own_out.read_exact(&mut [0])
            };
            between(means, ends, alone, cpus, time, stop)
        }
        SwitchMethod::Futex => {
            let words = [AtomicU32::new(0), AtomicU32::new(0)];
            let [there, back] = &words;
            let ends = [FutexEnd { own: back, peer: there }, FutexEnd { own: there, peer: back }];
            // Wakes no thread, and waits for a value that is there already.
            let own = AtomicU32::new(0);
            let alone = || -> io::Result<()> {
                wake(&own);
                wait_while(&own, 1).map(drop)
            };
            between(means, ends, alone, cpus, time, stop)
        }
    }
}

/// One thread's end: wakes its peer, and waits for its own turn.
trait SwitchEnd: Send {
    fn wake_peer(&mut self) -> io::Result<()>;
    /// `false`: the peer has ended.
    fn await_turn(&mut self, ended: &AtomicBool) -> io::Result<bool>;
}

struct PipeEnd(PipeWriter, PipeReader);

impl SwitchEnd for PipeEnd {
    fn wake_peer(&mut self) -> io::Result<()> {
        self.0.write_all(&[1])
    }

    fn await_turn(&mut self, _: &AtomicBool) -> io::Result<bool> {
        // End of file: the peer dropped its end.
        Ok(self.1.read(&mut [0])? == 1)
    }
}

struct FutexEnd<'a> {
    own: &'a AtomicU32,
    peer: &'a AtomicU32,
}

impl SwitchEnd for FutexEnd<'_> {
    fn wake_peer(&mut self) -> io::Result<()> {
        self.peer.store(1, Ordering::Release);
        wake(self.peer);
        Ok(())
    }

    fn await_turn(&mut self, ended: &AtomicBool) -> io::Result<bool> {
        while self.own.swap(0, Ordering::Acquire) == 0 {
            if ended.load(Ordering::Relaxed) {
                return Ok(false);
            }
            wait_while(self.own, 0)?;
        }
        Ok(true)
    }
}

impl Drop for FutexEnd<'_> {
    fn drop(&mut self) {
        // A waiting peer checks whether this thread has ended.
        wake(self.peer);
    }
}

fn between<E: SwitchEnd>(
    means: SwitchMethod,
    ends: [E; 2],
    mut alone: impl FnMut() -> io::Result<()> + Send,
    cpus: [u32; 2],
    time: Duration,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Switch>, MicroError> {
    let failed = |error: io::Error| MicroError::Failed(format!("{means}: {error}"));
    let [mut here, mut there] = ends;
    let ended = AtomicBool::new(false);
    let ended = &ended;
    std::thread::scope(|scope| {
        let peer = std::thread::Builder::new().name("switch peer".to_owned());
        let peer = peer.spawn_scoped(scope, move || {
            let _gone = ExitGuard(ended);
            let there = &mut there;
            pin::pin(cpus[1])?;
            while there.await_turn(ended).map_err(failed)? {
                there.wake_peer().map_err(failed)?;
            }
            Ok::<(), MicroError>(())
        });
        let first = std::thread::Builder::new().name("switch".to_owned());
        let first = first.spawn_scoped(scope, move || {
            let _gone = ExitGuard(ended);
            let here = &mut here;
            pin::pin(cpus[0])?;
            let calls = batches::measure(time / 4, stop, |n| (0..n).try_for_each(|_| alone()));
            let Some(calls) = calls.map_err(failed)? else { return Ok(None) };
            let mut turns = 0;
            let left_before = switches();
            let hand_over = batches::measure(time, stop, |n| {
                for _ in 0..n {
                    here.wake_peer()?;
                    if !here.await_turn(ended)? {
                        return Err(io::Error::other("the other thread is ended"));
                    }
                }
                turns += n;
                Ok(())
            });
            let switches_gained = switches() - left_before;
            let Some(hand_over) = hand_over.map_err(failed)? else { return Ok(None) };
            let hand_over = hand_over.per(2);
            Ok(Some(Switch {
                means,
                cpus,
                hand_over,
                calls,
                switch: hand_over.less(calls.median_ns),
                switches: switches_gained as f64 / turns as f64,
            }))
        });
        let panicked = |_| MicroError::Failed(format!("{means}: a thread panicked"));
        let result = first.map_err(failed)?.join().map_err(panicked)?;
        // The peer's error is the cause of the first thread's, if both failed.
        peer.map_err(failed)?.join().map_err(panicked)??;
        result
    })
}

/// Marks a thread as ended before its end is dropped.
struct ExitGuard<'a>(&'a AtomicBool);

impl Drop for ExitGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Context switches of the calling thread so far, voluntary or not.
fn switches() -> i64 {
    // SAFETY: plain numbers, of which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives through the call, which fills it.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_nvcsw + usage.ru_nivcsw
}

fn wake(word: &AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives through the call, which does not write it.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1) };
}

/// Sleeps while the word holds a value, until it is woken.
fn wait_while(word: &AtomicU32, value: u32) -> io::Result<()> {
    let limit = libc::timespec { tv_sec: MAX_WAIT.as_secs() as libc::time_t, tv_nsec: 0 };
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the time live through the call, which writes neither.
    let answer = unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, &raw const limit)
    };
    let error = io::Error::last_os_error();
    match (answer, error.raw_os_error()) {
        // Another value already, or a signal: the caller checks again.
        (0, _) | (_, Some(libc::EAGAIN | libc::EINTR)) => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hand_over_is_a_switch() {
        let mut reported = 0;
        let cpu = affinity::current_cpu().unwrap();
        let results = run(&[cpu], Duration::ZERO, &|| false, &mut |_| reported += 1).unwrap();
        assert_eq!((results.len(), reported), (2, 2));
        for (switch, means) in results.iter().zip([SwitchMethod::Pipe, SwitchMethod::Futex]) {
            assert_eq!((switch.means, switch.cpus), (means, [cpu, cpu]));
            assert!(switch.hand_over.min_ns > 0.0);
            // On one CPU the other thread can only answer while this one does not run.
            assert!(switch.switches >= 1.0, "{switch:?}");
        }
    }

    #[test]
    fn refuses_impossible_settings_and_obeys_a_stop() {
        let run = |cpus: &[u32], stop: bool| run(cpus, Duration::ZERO, &|| stop, &mut |_| {});
        assert!(run(&[], false).is_err_and(|fault| fault.is_request()));
        let cpu = affinity::current_cpu().unwrap();
        for cpus in [[1 << 20, cpu], [cpu, 1 << 20]] {
            let fault = run(&cpus, false).unwrap_err();
            assert!(fault.to_string().contains("CPU 1048576"), "{fault}");
        }
        assert_eq!(run(&[cpu], true), Err(MicroError::Stopped));
    }
}
