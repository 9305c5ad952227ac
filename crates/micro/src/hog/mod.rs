//! A co-runner that takes memory bandwidth at a given rate, so that the bandwidth left to a store
//! can be a factor of a study.
//!
//! Each thread owns a buffer larger than the caches and moves it piece by piece, as a common
//! schedule makes pieces due. Only bytes that were really moved are counted.

mod schedule;
mod serve;
mod traffic;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::MicroError;
use crate::region::{PageSize, Placement};
use schedule::Schedule;
use worker::{PIECE, Tally, Worker};

pub use serve::{HogCounters, READY, serve};
pub use traffic::Traffic;

/// Limit on touching all buffers, at 1 GiB/s at worst.
const MAX_START: Duration = Duration::from_secs(120);
/// The share of the target rate that a hog must reach.
pub const MIN_RATE_SHARE: f64 = 0.99;

#[derive(Debug, Clone, PartialEq)]
pub struct HogSpec {
    /// One thread is pinned to each.
    pub cpus: Vec<u32>,
    /// Bytes a second of all threads together; `None` for as many as they can move.
    pub bytes_s: Option<f64>,
    pub traffic: Traffic,
    /// Bytes of each thread's buffer: several times what the caches hold.
    pub buffer: u64,
    pub pages: PageSize,
    pub placement: Placement,
}

/// A running hog; it ends when this is dropped.
pub struct Hog {
    spec: HogSpec,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    begun: Instant,
    schedule: Schedule,
    stop: AtomicBool,
    /// One per thread, each on a cache line of its own.
    tallies: Vec<Tally>,
}

impl Shared {
    fn bytes(&self) -> u64 {
        self.tallies.iter().map(Tally::bytes).sum()
    }
}

/// A point in time from which [`Hog::since`] counts.
#[derive(Debug, Clone, Copy)]
pub struct HogMark {
    at: Instant,
    bytes: u64,
}

/// The traffic of a hog over some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AchievedTraffic {
    pub bytes: u64,
    pub seconds: f64,
    /// 10^9 bytes a second.
    pub gb_s: f64,
    /// The target rate; `None` for as much as possible.
    pub target_gb_s: Option<f64>,
    /// Whether the target rate was reached, by [`MIN_RATE_SHARE`].
    #[serde(rename = "held")]
    pub reached_target: bool,
}

impl AchievedTraffic {
    fn over(bytes: u64, seconds: f64, target: Option<f64>) -> AchievedTraffic {
        let gb_s = if seconds > 0.0 { bytes as f64 / seconds / 1e9 } else { 0.0 };
        let target_gb_s = target.map(|target| target / 1e9);
        let reached_target = target_gb_s.is_none_or(|target| gb_s >= target * MIN_RATE_SHARE);
        AchievedTraffic { bytes, seconds, gb_s, target_gb_s, reached_target }
    }
}

impl Hog {
    /// Starts the threads; when this returns every buffer has been touched and traffic flows.
    ///
    /// # Errors
    /// A setting cannot be met.
    pub fn start(spec: &HogSpec) -> Result<Hog, MicroError> {
        check(spec)?;
        let cpus = spec.cpus.clone();
        let shared = Arc::new(Shared {
            begun: Instant::now(),
            schedule: Schedule::new(PIECE * spec.traffic.crossings(), spec.bytes_s),
            stop: AtomicBool::new(false),
            tallies: cpus.iter().map(|_| Tally::default()).collect(),
        });
        let (ready, when_ready) = mpsc::channel();
        let mut hog = Hog { spec: spec.clone(), shared: Arc::clone(&shared), threads: Vec::new() };
        for (i, cpu) in cpus.into_iter().enumerate() {
            let (spec, shared, ready) = (spec.clone(), Arc::clone(&shared), ready.clone());
            let thread = std::thread::Builder::new().name(format!("hog {cpu}"));
            let thread = thread.spawn(move || match Worker::prepare(cpu, &spec) {
                Ok(worker) => {
                    let _ = ready.send(Ok(()));
                    drop(ready);
                    worker.run(&shared.tallies[i], &shared);
                }
                Err(fault) => {
                    let _ = ready.send(Err(fault));
                }
            });
            let failed = |error| MicroError::Failed(format!("thread of the hog: {error}"));
            hog.threads.push(thread.map_err(failed)?);
        }
        drop(ready);
        for _ in 0..hog.threads.len() {
            when_ready.recv_timeout(MAX_START).map_err(|_| {
                MicroError::Failed(
                    "a thread of the hog did not get its memory in two minutes".into(),
                )
            })??;
        }
        Ok(hog)
    }

    /// Sets the rate from now on, as [`HogSpec::bytes_s`].
    ///
    /// # Errors
    /// The rate is less than one byte a second.
    pub fn set_rate(&mut self, bytes_s: Option<f64>) -> Result<(), MicroError> {
        let spec = HogSpec { bytes_s, ..self.spec.clone() };
        check(&spec)?;
        self.spec = spec;
        self.shared.schedule.set_rate(bytes_s);
        Ok(())
    }

    /// The present count of bytes.
    pub fn mark(&self) -> HogMark {
        HogMark { at: Instant::now(), bytes: self.shared.bytes() }
    }

    /// The traffic since a mark.
    pub fn since(&self, mark: &HogMark) -> AchievedTraffic {
        let now = self.mark();
        let seconds = (now.at - mark.at).as_secs_f64();
        AchievedTraffic::over(now.bytes - mark.bytes, seconds, self.spec.bytes_s)
    }

    /// Ends the threads.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread checks the flag often, and ends by a panic too, so this wait is short.
            let _ = thread.join();
        }
    }
}

fn check(spec: &HogSpec) -> Result<(), MicroError> {
    if spec.cpus.is_empty() {
        return Err(MicroError::request("cpus", "is an empty list; name one CPU at least"));
    }
    if spec.buffer < 2 * PIECE {
        return Err(MicroError::request("size", format!("must be {} B or more", 2 * PIECE)));
    }
    match spec.bytes_s {
        Some(rate) if !(rate.is_finite() && rate >= 1.0) => {
            Err(MicroError::request("rate", "must be one byte a second or more"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> HogSpec {
        HogSpec {
            cpus: vec![affinity::current_cpu().unwrap()],
            bytes_s: Some(50e6),
            traffic: Traffic::Read,
            buffer: 4 << 20,
            pages: PageSize::System,
            placement: Placement::FirstTouch,
        }
    }

    #[test]
    fn moves_what_it_counts_until_it_is_stopped() {
        for traffic in [Traffic::Read, Traffic::Update] {
            let hog = Hog::start(&HogSpec { traffic, ..spec() }).unwrap();
            let mark = hog.mark();
            let limit = Instant::now() + Duration::from_secs(20);
            while hog.since(&mark).bytes == 0 && Instant::now() < limit {
                std::thread::sleep(Duration::from_millis(1));
            }
            let achieved = hog.since(&mark);
            assert!(achieved.bytes > 0, "it never began");
            assert!(achieved.bytes.is_multiple_of(PIECE * traffic.crossings()));
            assert_eq!(achieved.target_gb_s, Some(0.05));
            let shared = Arc::clone(&hog.shared);
            hog.stop();
            assert_eq!(Arc::strong_count(&shared), 1, "a thread lives on");
        }
    }

    #[test]
    fn achieved_rate_is_bytes_over_time() {
        let achieved = AchievedTraffic::over(2_000_000_000, 0.5, Some(4.01e9));
        assert_eq!(
            (achieved.gb_s, achieved.target_gb_s, achieved.reached_target),
            (4.0, Some(4.01), true)
        );
        assert!(!AchievedTraffic::over(2_000_000_000, 0.5, Some(5e9)).reached_target);
        assert!(AchievedTraffic::over(2_000_000_000, 0.5, None).reached_target);
        assert_eq!(AchievedTraffic::over(0, 0.0, None).gb_s, 0.0);
    }

    #[test]
    fn refuses_impossible_settings() {
        let key = |spec: HogSpec| match Hog::start(&spec).err() {
            Some(MicroError::Request { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        assert_eq!(key(HogSpec { cpus: Vec::new(), ..spec() }), "cpus");
        assert_eq!(key(HogSpec { cpus: vec![0, 1 << 20], ..spec() }), "cpus");
        assert_eq!(key(HogSpec { bytes_s: Some(0.0), ..spec() }), "rate");
        assert_eq!(key(HogSpec { bytes_s: Some(f64::NAN), ..spec() }), "rate");
        assert_eq!(key(HogSpec { buffer: 1, ..spec() }), "size");
        let mut hog = Hog::start(&spec()).unwrap();
        assert!(hog.set_rate(Some(-1.0)).is_err());
        assert!(hog.set_rate(Some(1e6)).is_ok());
    }
}
