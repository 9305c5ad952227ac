//! Makes a thread wait until its next request is due.

use std::time::Duration;

use model::random::{Draws, RandomStream};
use model::{Arrivals, Pacing, ProfileCursor, RateProfile};

use crate::clock::Ticks;
use crate::frontier::PhaseGate;
use crate::plan::LoadPlan;

/// One gap with mean 1, from a uniform draw in [0, 1).
fn gap(arrivals: Arrivals, uniform: f64) -> f64 {
    match arrivals {
        Arrivals::Constant => 1.0,
        Arrivals::Poisson => -(-uniform).ln_1p(),
        // Inverse of the CDF with location 0 and scale (1 - k), whose mean is 1.
        Arrivals::Pareto { shape: k } => (1.0 - k) / k * ((1.0 - uniform).powf(-k) - 1.0),
    }
}

/// Yields the due instants of a thread's requests.
pub(crate) trait Pacer {
    /// Waits until the next request is due and returns that instant. None when the window
    /// closes before it, or when the phase was stopped. `at`: the due instant of a source with a
    /// schedule, in ticks after the start of the threads.
    fn wait(&mut self, at: u64, clock: &Ticks, gate: &PhaseGate) -> Option<u64>;
    /// Time spent waiting so far.
    fn waited(&self) -> PaceWait;
    /// Counts the requests that are due before `end` and will not be sent.
    fn count_skipped(&mut self, end: u64) -> u64;
    /// Whether latency counts from the due instant.
    const OPEN: bool;
}

/// Ticks spent waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PaceWait {
    pub(crate) idle: u64,
    /// The part of them that was spent spinning.
    pub(crate) spinning: u64,
}

impl std::ops::Add for PaceWait {
    type Output = PaceWait;
    fn add(self, other: PaceWait) -> PaceWait {
        PaceWait { idle: self.idle + other.idle, spinning: self.spinning + other.spinning }
    }
}

impl std::ops::Sub for PaceWait {
    type Output = PaceWait;
    fn sub(self, before: PaceWait) -> PaceWait {
        PaceWait {
            idle: self.idle.saturating_sub(before.idle),
            spinning: self.spinning.saturating_sub(before.spinning),
        }
    }
}

pub(crate) struct ClosedLoop {
    think: Duration,
    /// The first request was sent: from then on each is preceded by the think time.
    started: bool,
    waited: PaceWait,
}

impl ClosedLoop {
    pub(crate) fn new(think: Duration) -> Self {
        ClosedLoop { think, started: false, waited: PaceWait::default() }
    }
}

impl Pacer for ClosedLoop {
    const OPEN: bool = false;

    #[inline(always)]
    fn wait(&mut self, _at: u64, clock: &Ticks, gate: &PhaseGate) -> Option<u64> {
        if gate.closed() {
            return None;
        }
        if self.think.is_zero() || !std::mem::replace(&mut self.started, true) {
            return Some(0);
        }
        let begin = clock.now();
        let due = begin + clock.ticks_of(self.think);
        let reached = wait_until(clock, due, &mut self.waited.spinning, gate);
        self.waited.idle += clock.now() - begin;
        (reached && !gate.closed()).then_some(due)
    }

    fn waited(&self) -> PaceWait {
        self.waited
    }

    fn count_skipped(&mut self, _end: u64) -> u64 {
        0
    }
}

/// Ticks by which rounding may put a due instant too early.
const ROUNDING: u64 = 2;

/// Seed of the arrivals' random stream.
const ARRIVALS: u64 = 0x6172_7269_7661_6c73;

/// The rate of the window, and its profile.
struct WindowLoad {
    rate: f64,
    profile: Option<RateProfile>,
}

/// A thread's share of the arrivals: one process a thread at rate / threads. Poisson shares
/// add up to a Poisson process of the whole rate; constant ones are staggered to be evenly spaced.
pub(crate) struct OpenLoop {
    arrivals: Arrivals,
    mean_gap_ticks: f64,
    /// Ticks since `origin` at which the next request is due, kept in floating point so that
    /// rounding does not add up to a drift.
    due: f64,
    /// The same for all threads.
    origin: u64,
    /// This thread's number and how many threads share the rate.
    share: (usize, usize),
    /// What the window has where the warm-up has another rate.
    window_load: Option<WindowLoad>,
    /// Where the rate moves: the time in which an arrival's gap at the constant rate passes.
    profile: Option<ProfileCursor>,
    ticks_per_s: f64,
    random: Draws,
    waited: PaceWait,
}

impl OpenLoop {
    /// A thread's part of an open plan, with the warm-up's own rate until the window opens.
    pub(crate) fn of(plan: &LoadPlan, thread: usize, clock: &Ticks, origin: u64) -> Self {
        let (rate, arrivals) = match plan.shape.pacing {
            Pacing::Open { rate, arrivals } => (rate, arrivals),
            // As fast as possible: everything is due at once.
            Pacing::Closed { .. } | Pacing::Recorded { .. } => (f64::INFINITY, Arrivals::Constant),
        };
        let profile = plan.shape.profile.clone();
        // A profile begins with the window; the load before it is that of its first instant.
        let steadily = |profile: &RateProfile| match profile.first() {
            0.0 => rate * profile.mean(),
            first => rate * first,
        };
        let first = plan
            .shape
            .warm_up
            .and(plan.shape.warm_up_rate.or_else(|| profile.as_ref().map(steadily)));
        // Threads are numbered over all clients, so that no two have the same arrivals.
        let (share, rate_of_all) = match plan.share {
            Some(share) => {
                let part = share.threads as f64 / plan.threads as f64;
                ((share.first_thread + thread, share.threads), part)
            }
            None => ((thread, plan.threads), 1.0),
        };
        let (rate, first) = (rate * rate_of_all, first.map(|rate| rate * rate_of_all));
        let load = WindowLoad { rate, profile };
        match first {
            Some(first) => OpenLoop {
                window_load: Some(load),
                ..OpenLoop::new(clock, origin, (first, arrivals), share, plan.seed)
            },
            None => OpenLoop::moving(clock, origin, (load, arrivals), share, plan.seed),
        }
    }

    /// A constant rate.
    pub(crate) fn new(
        clock: &Ticks,
        origin: u64,
        (rate, arrivals): (f64, Arrivals),
        share: (usize, usize),
        seed: u64,
    ) -> Self {
        let load = WindowLoad { rate, profile: None };
        OpenLoop::moving(clock, origin, (load, arrivals), share, seed)
    }

    fn moving(
        clock: &Ticks,
        origin: u64,
        (load, arrivals): (WindowLoad, Arrivals),
        share: (usize, usize),
        seed: u64,
    ) -> Self {
        // Threads begin at unrelated points, so that no two draw the same gaps.
        let random = Draws::from(RandomStream::new(seed, ARRIVALS).at(share.0 as u64));
        let mut new = OpenLoop {
            arrivals,
            mean_gap_ticks: 0.0,
            due: 0.0,
            origin,
            share,
            window_load: None,
            profile: None,
            ticks_per_s: clock.per_second(),
            random,
            waited: PaceWait::default(),
        };
        new.begin(load);
        new
    }

    /// Arrivals begin at the origin.
    fn begin(&mut self, load: WindowLoad) {
        self.mean_gap_ticks = self.ticks_per_s * self.share.1 as f64 / load.rate;
        self.profile = load.profile.map(ProfileCursor::new);
        self.due = 0.0;
        let (thread, threads) = self.share;
        let gap = match self.arrivals {
            Arrivals::Constant => self.mean_gap_ticks * thread as f64 / threads as f64,
            Arrivals::Poisson | Arrivals::Pareto { .. } => self.gap(),
        };
        self.pass(gap);
    }

    /// The window opens: where the warm-up had another rate, arrivals restart at the window's, and
    /// requests due before are dropped. Returns whether they restarted.
    pub(crate) fn enter_window(&mut self, opened_at: u64) -> bool {
        let Some(load) = self.window_load.take() else { return false };
        self.origin = opened_at;
        self.begin(load);
        true
    }

    /// The instant at which the next request is due; None when that is after the window.
    #[inline]
    pub(crate) fn next_due(&self, gate: &PhaseGate) -> Option<u64> {
        let due = self.origin + self.due as u64;
        still_due(due, gate).then_some(due)
    }

    /// The same in ticks after the origin, regardless of the gate.
    pub(crate) fn due_after_origin(&self) -> u64 {
        self.due as u64
    }

    /// The request that was due next is taken.
    #[inline]
    pub(crate) fn take(&mut self) {
        let gap = self.gap();
        self.pass(gap);
    }

    /// The next request is due when so many ticks have passed at the constant rate.
    #[inline]
    fn pass(&mut self, gap: f64) {
        match &mut self.profile {
            None => self.due += gap,
            Some(cursor) => self.due = cursor.advance(gap / self.ticks_per_s) * self.ticks_per_s,
        }
    }

    fn gap(&mut self) -> f64 {
        self.mean_gap_ticks * gap(self.arrivals, self.random.unit())
    }
}

impl Pacer for OpenLoop {
    const OPEN: bool = true;

    #[inline]
    fn wait(&mut self, _at: u64, clock: &Ticks, gate: &PhaseGate) -> Option<u64> {
        if self.window_load.is_some() && gate.opened() {
            self.enter_window(gate.opened_at());
        }
        let due = self.next_due(gate)?;
        let begin = clock.now();
        if begin < due {
            let reached = match self.window_load {
                None => wait_until(clock, due, &mut self.waited.spinning, gate),
                // The window's first arrivals do not wait for the warm-up's next one.
                Some(_) => {
                    sleep_until(clock, due, gate, WARM_UP_SLICE, || gate.opened())
                        && wait_until(clock, due, &mut self.waited.spinning, gate)
                }
            };
            self.waited.idle += clock.now() - begin;
            if self.window_load.is_some() && gate.opened() {
                return self.wait(0, clock, gate);
            }
            if !reached {
                return None;
            }
        }
        self.take();
        Some(due)
    }

    fn waited(&self) -> PaceWait {
        self.waited
    }

    fn count_skipped(&mut self, end: u64) -> u64 {
        let end_ticks = end.saturating_sub(self.origin) as f64;
        let left = end_ticks - self.due;
        if end == u64::MAX || left <= 0.0 {
            return 0;
        }
        let left = match &self.profile {
            None => left,
            Some(cursor) => {
                cursor.integral_until(end_ticks / self.ticks_per_s).max(0.0) * self.ticks_per_s
            }
        };
        // The next one is due before the end; those after it at the mean gap.
        1 + (left / self.mean_gap_ticks) as u64
    }
}

/// Whether a request that is due then is still sent.
#[inline]
pub(crate) fn still_due(due: u64, gate: &PhaseGate) -> bool {
    due.saturating_add(ROUNDING) < gate.closes_at() && !gate.stopped()
}

/// Requests whose source has their due instants.
pub(crate) struct Scheduled {
    /// Zero of the source's due instants.
    origin: u64,
    /// Due instant of a request that was not sent.
    unsent: Option<u64>,
    waited: PaceWait,
}

impl Scheduled {
    pub(crate) fn new(origin: u64) -> Self {
        Scheduled { origin, unsent: None, waited: PaceWait::default() }
    }
}

impl Pacer for Scheduled {
    const OPEN: bool = true;

    #[inline]
    fn wait(&mut self, at: u64, clock: &Ticks, gate: &PhaseGate) -> Option<u64> {
        let due = self.origin.saturating_add(at);
        let begin = clock.now();
        let reached = still_due(due, gate)
            && (begin >= due || wait_until(clock, due, &mut self.waited.spinning, gate));
        self.waited.idle += if begin < due { clock.now() - begin } else { 0 };
        self.unsent = (!reached).then_some(due);
        reached.then_some(due)
    }

    fn waited(&self) -> PaceWait {
        self.waited
    }

    fn count_skipped(&mut self, end: u64) -> u64 {
        u64::from(self.unsent.is_some_and(|due| due < end))
    }
}

/// The last stretch before a due instant is spun: a sleeping thread wakes late by idle state exit
/// and hypervisor (22 us at the median, 64 us at p99, without timer slack).
pub(crate) const SPIN: Duration = Duration::from_micros(80);
/// Longest single sleep, so that a phase can end within a pause.
const SLICE: Duration = Duration::from_millis(20);

/// The same in a warm-up that the window interrupts.
const WARM_UP_SLICE: Duration = Duration::from_millis(1);

/// Sleeps until shortly before `due`; false if the gate closed or `interrupted` before that.
fn sleep_until(
    clock: &Ticks,
    due: u64,
    gate: &PhaseGate,
    slice: Duration,
    interrupted: impl Fn() -> bool,
) -> bool {
    loop {
        let left = Duration::from_nanos(clock.nanos(clock.now(), due));
        if left <= SPIN {
            return true;
        }
        if gate.stopped() || due >= gate.closes_at() || interrupted() {
            return false;
        }
        std::thread::sleep((left - SPIN).min(slice));
    }
}

/// Waits until `due`; false if the gate closed before that.
fn wait_until(clock: &Ticks, due: u64, spun: &mut u64, gate: &PhaseGate) -> bool {
    if !sleep_until(clock, due, gate, SLICE, || false) {
        return false;
    }
    let begin = clock.now();
    let mut now = begin;
    while now < due {
        std::hint::spin_loop();
        now = clock.now();
    }
    *spun += now - begin;
    true
}

#[cfg(test)]
mod tests {
    mod moving;

    use super::*;

    fn gaps(arrivals: Arrivals, n: usize) -> Vec<f64> {
        let clock = Ticks::new();
        let mut pacer = OpenLoop::new(&clock, 0, (1e6, arrivals), (0, 1), 7);
        let scale = pacer.mean_gap_ticks;
        (0..n).map(|_| pacer.gap() / scale).collect()
    }

    #[test]
    fn every_arrival_process_has_the_target_rate() {
        for name in Arrivals::NAMES.into_iter().chain(["pareto:0.25"]) {
            let arrivals = Arrivals::parse(name).expect(name);
            assert_eq!(arrivals.to_string(), name);
            let gaps = gaps(arrivals, 400_000);
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            assert!((mean - 1.0).abs() < 0.015, "{name}: {mean}");
        }
    }

    /// Kolmogorov-Smirnov against the definition; 1.95 / sqrt(n) is passed by chance once in 1000.
    fn fits(arrivals: Arrivals, cdf: impl Fn(f64) -> f64) {
        let mut gaps = gaps(arrivals, 100_000);
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(i, gap)| (cdf(*gap) - (i as f64 + 0.5) / n).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / n.sqrt(), "{arrivals:?}: {distance}");
    }

    #[test]
    fn gaps_follow_their_distributions() {
        fits(Arrivals::Poisson, |x| 1.0 - (-x).exp());
        let k = Arrivals::ETC_SHAPE;
        fits(Arrivals::Pareto { shape: k }, |x| 1.0 - (1.0 + k * x / (1.0 - k)).powf(-1.0 / k));
    }

    #[test]
    fn poisson_threads_add_up_to_a_poisson_process() {
        const THREADS: usize = 8;
        let clock = Ticks::new();
        for seed in [0, 1, 2, 42] {
            let mut arrivals = Vec::new();
            for thread in 0..THREADS {
                let rate = (1e6, Arrivals::Poisson);
                let mut pacer = OpenLoop::new(&clock, 0, rate, (thread, THREADS), seed);
                for _ in 0..20_000 {
                    arrivals.push(pacer.due * 1e6 / clock.per_second());
                    pacer.due += pacer.gap();
                }
            }
            // Arrivals in windows of unit mean: variance and mean of a Poisson process agree.
            let windows = 150_000;
            let mut counts = vec![0.0_f64; windows];
            for at in arrivals {
                if let Some(count) = counts.get_mut(at as usize) {
                    *count += 1.0;
                }
            }
            let n = windows as f64;
            let mean = counts.iter().sum::<f64>() / n;
            let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / n;
            // The index of dispersion has a standard deviation of sqrt(2 / n).
            assert!((variance / mean - 1.0).abs() < 5.0 * (2.0 / n).sqrt(), "{variance} {mean}");
        }
    }

    #[test]
    fn skipped_requests_are_counted_in_constant_time() {
        let clock = Ticks::new();
        let rate = (1e9, Arrivals::Constant);
        let mut pacer = OpenLoop::new(&clock, 0, rate, (0, 1), 1);
        let hour = clock.ticks(3.6e12);
        assert!((pacer.count_skipped(hour) as f64 / 3.6e12 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn threads_interleave_constant_arrivals_evenly() {
        let clock = Ticks::new();
        let due = |thread| {
            let rate = (1000.0, Arrivals::Constant);
            let mut pacer = OpenLoop::new(&clock, 0, rate, (thread, 4), 1);
            let mut dues = Vec::new();
            for _ in 0..3 {
                dues.push(pacer.wait(0, &clock, &PhaseGate::new()).unwrap());
            }
            dues
        };
        let mut all: Vec<u64> = (0..4).flat_map(due).collect();
        all.sort_unstable();
        let gap = clock.ticks(1e6) as f64;
        for pair in all.windows(2) {
            assert!(((pair[1] - pair[0]) as f64 - gap).abs() <= 2.0, "{all:?}");
        }
    }
}
