use std::collections::BTreeSet;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use model::{Reading, Scope, Signal, Unavailable, Unit};
use nix::time::{ClockId, clock_gettime};

use super::SamplerTask;

pub(in crate::probe) const COST: Signal = Signal::new(
    "probe.sampler.cost",
    Unit::Nanoseconds,
    Scope::Harness,
    "clock_gettime(CLOCK_THREAD_CPUTIME_ID)",
);

/// The one thread that samples for all probes, until it is dropped.
pub(in crate::probe) struct Sampler {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<SamplerShared>,
    /// CPU time of the thread when the window began.
    before_ns: u64,
}

#[derive(Default)]
struct SamplerShared {
    /// CPU time of the thread so far, updated between two rounds.
    cpu_ns: AtomicU64,
    /// The CPUs on which it runs, in words.
    place: OnceLock<String>,
}

impl Sampler {
    /// Starts the thread, off the CPUs of the load where this process may use others.
    pub fn start(tasks: Vec<SamplerTask>, load: &[u32]) -> Result<Sampler, Unavailable> {
        if tasks.is_empty() {
            return Err(Unavailable::new(
                "no probe here has anything to sample, so no sampler ran",
                "nothing to do: it costs nothing",
            ));
        }
        let shared = Arc::new(SamplerShared::default());
        let (stop, stopped) = mpsc::channel();
        let (own, load) = (shared.clone(), load.to_vec());
        let thread = thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || {
                let _ = own.place.set(move_away(&load));
                run(tasks, &stopped, &own);
            })
            .map_err(|error| {
                Unavailable::new(
                    format!("the sampler thread could not be started: {error}"),
                    "raise the limit on threads (`ulimit -u`)",
                )
            })?;
        Ok(Sampler { stop: Some(stop), thread: Some(thread), shared, before_ns: 0 })
    }

    /// The window begins.
    pub fn open(&mut self) {
        self.before_ns = self.shared.cpu_ns.load(Ordering::Relaxed);
    }

    /// Tells the thread to end after its present task, and does not wait.
    pub fn close(&mut self) {
        self.stop = None;
    }

    /// Waits for the thread, and returns its CPU time since `open`.
    pub fn cost(&mut self, window: Duration) -> Reading {
        self.join();
        let spent = self.shared.cpu_ns.load(Ordering::Relaxed).saturating_sub(self.before_ns);
        let mut reading = COST.value(spent as f64, window.as_secs_f64());
        if let Some(place) = self.shared.place.get() {
            reading.source = format!("{}, {place}", reading.source);
        }
        reading
    }

    fn join(&mut self) {
        self.close();
        if let Some(thread) = self.thread.take() {
            // A task that panicked has written its reason to standard error.
            let _ = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.join();
    }
}

fn run(tasks: Vec<SamplerTask>, stop: &Receiver<()>, shared: &SamplerShared) {
    let began = Instant::now();
    let mut tasks: Vec<(Instant, SamplerTask)> =
        tasks.into_iter().map(|task| (began, task)).collect();
    loop {
        for (due, task) in &mut tasks {
            let now = Instant::now();
            if *due > now {
                continue;
            }
            (task.look)(now);
            *due += task.every;
            // Missed samples are skipped, as each carries its own time.
            if *due <= Instant::now() {
                *due = Instant::now() + task.every;
            }
            shared.cpu_ns.store(cpu_ns(), Ordering::Relaxed);
            // A slow task must not delay the end.
            if !matches!(stop.try_recv(), Err(mpsc::TryRecvError::Empty)) {
                return;
            }
        }
        let Some(next) = tasks.iter().map(|(due, _)| *due).min() else { return };
        let wait = next.saturating_duration_since(Instant::now());
        match stop.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                shared.cpu_ns.store(cpu_ns(), Ordering::Relaxed);
                return;
            }
        }
    }
}

/// CPU time of the calling thread.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

/// Moves off the load's CPUs, if this process may use others.
fn move_away(load: &[u32]) -> String {
    let load: BTreeSet<u32> = load.iter().copied().collect();
    // The starting thread may itself be pinned; the first thread has the process's CPUs.
    let allowed = affinity::of_process(process::id()).unwrap_or_default();
    let free: Vec<u32> = allowed.into_iter().filter(|cpu| !load.contains(cpu)).collect();
    match (load.is_empty(), free.is_empty()) {
        (true, _) => "not pinned: the load's CPUs are not known".to_owned(),
        (false, true) => "not pinned: the load may run on every CPU of this process".to_owned(),
        (false, false) => match affinity::restrict(&free) {
            Ok(()) => format!("on CPUs {free:?}, away from the load"),
            Err(error) => format!("not pinned: {error}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn runs_every_task_until_the_end_and_reports_the_cost() {
        let (told, looks) = mpsc::channel();
        let task = |name: &'static str| {
            let told = told.clone();
            SamplerTask::new(Duration::from_millis(20), move |_| {
                black_box((0..20_000u64).fold(0, |sum, n| black_box(sum ^ n)));
                let _ = told.send(name);
            })
        };
        let mut sampler = Sampler::start(vec![task("a"), task("b")], &[]).unwrap();
        sampler.open();
        // Samples that a busy machine missed are skipped, so one may have more than the other.
        let (mut a, mut b) = (0, 0);
        while a < 3 || b < 3 {
            match looks.recv_timeout(Duration::from_secs(30)).unwrap() {
                "a" => a += 1,
                _ => b += 1,
            }
            assert!(a + b < 1000, "{a} of one, {b} of the other");
        }
        let cost = sampler.cost(Duration::from_millis(60));
        assert!(cost.value().unwrap() > 0.0, "{cost:?}");
        assert!(cost.source.contains("not known"), "{}", cost.source);
        drop(told);
        drop(sampler);
        while looks.try_recv().is_ok() {}
        assert_eq!(looks.try_recv(), Err(mpsc::TryRecvError::Disconnected), "it still runs");
    }

    #[test]
    fn the_sampler_avoids_the_load_s_cpus() {
        let allowed = affinity::of_process(process::id()).unwrap();
        let (told, place) = mpsc::channel();
        let of_all = allowed.clone();
        thread::spawn(move || told.send((move_away(&of_all), move_away(&of_all[..1]))).unwrap());
        let (none_left, some_left) = place.recv().unwrap();
        assert!(none_left.contains("every CPU"), "{none_left}");
        match allowed.len() {
            1 => assert!(some_left.contains("every CPU"), "{some_left}"),
            _ => assert_eq!(some_left, format!("on CPUs {:?}, away from the load", &allowed[1..])),
        }
    }

    #[test]
    fn starts_no_thread_without_tasks() {
        assert!(Sampler::start(Vec::new(), &[0]).is_err_and(|why| why.reason.contains("sampler")));
    }
}
