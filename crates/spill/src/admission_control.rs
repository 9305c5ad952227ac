//! Admission control: how much garbage the log holds beside live data, and what follows from it.
//! That is when garbage is collected, when memtables are frozen early, and how long writers are
//! delayed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::value_log::Segment;
use crate::version::Version;

/// Share of the allowed garbage at which collection starts.
const GC_TRIGGER: f64 = 0.81;
/// Share of the allowed garbage up to which no write is delayed. A lower value means more copying.
/// The rest pays for what else takes space: index files (two during a compaction), record headers,
/// and collected segments that are not deleted yet.
const DELAY_THRESHOLD: f64 = 0.8;
/// In segments: no write is delayed for less garbage than this. Segments that are being filled, or
/// that no compaction has looked at, are not collected however little of them is live.
const MIN_DELAY_SEGMENTS: u64 = 4;
/// Multiple of the threshold at which the delay reaches its maximum; it starts near zero at the
/// threshold.
const FULL_DELAY_RATIO: f64 = 1.15;
/// How often the delay doubles between the threshold and that multiple.
const DELAY_DOUBLINGS: f64 = 12.0;
/// Memtables and upper levels may hide the tolerable garbage divided by this.
const HIDDEN_DIVISOR: f64 = 2.0;
/// Bytes written between two updates of the write delay. An update visits every segment, so a large
/// store updates less often: after its live bytes divided by `UPDATE_DIVISOR`.
const MIN_UPDATE_INTERVAL: u64 = 1 << 20;
const UPDATE_DIVISOR: u64 = 1024;

/// Bytes of the log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SpaceUsage {
    pub(crate) live: f64,
    pub(crate) dead: f64,
    /// Dead bytes that the options allow.
    pub(crate) allowed: f64,
    /// Dead bytes from which writers are delayed.
    pub(crate) delay_threshold: f64,
}

impl SpaceUsage {
    /// The share of all bytes that is dead.
    pub(crate) fn share(self) -> f64 {
        self.dead / (self.live + self.dead).max(1.0)
    }

    /// Whether garbage should be collected.
    pub(crate) fn is_due(self) -> bool {
        self.dead > GC_TRIGGER * self.allowed
    }

    /// How long each write is delayed, as a share of the maximum. The delay grows exponentially, so
    /// any rate of collection finds its equilibrium in a narrow range of garbage.
    fn delay_share(self) -> f64 {
        let excess = (self.dead / self.delay_threshold - 1.0) / (FULL_DELAY_RATIO - 1.0);
        if excess <= 0.0 { 0.0 } else { (DELAY_DOUBLINGS * (excess - 1.0)).exp2().min(1.0) }
    }
}

impl Engine {
    /// Space usage of the log as far as compactions and memtables know it. The collected part of a
    /// segment no longer counts, although its file still exists.
    pub(crate) fn space_usage(&self, version: &Version) -> SpaceUsage {
        let (mut total, mut known_dead) = (0.0, 0.0);
        // Stuck segments cannot be collected, so no write waits for them.
        let stuck = |segment: &&Arc<Segment>| segment.stuck.load(Ordering::Relaxed);
        for segment in version.segments.iter().filter(|segment| !stuck(segment)) {
            let remaining = segment.bytes().saturating_sub(segment.collected()) as f64;
            total += remaining;
            known_dead += dead_share(segment) * remaining;
        }
        let dead = (known_dead + version.hidden_bytes() as f64).min(total);
        let live = total - dead;
        let allowed = self.allowed(live);
        SpaceUsage { live, dead, allowed, delay_threshold: self.delay_threshold(allowed) }
    }

    fn allowed(&self, live: f64) -> f64 {
        (self.options.space_amplification - 1.0) * live
    }

    fn delay_threshold(&self, allowed: f64) -> f64 {
        (DELAY_THRESHOLD * allowed).max((MIN_DELAY_SEGMENTS * self.options.segment as u64) as f64)
    }

    /// Records how many bytes are live, as far as compactions know.
    pub(crate) fn record_live_bytes(&self) {
        let version = self.version.load();
        let dead = version.dead_bytes() + version.hidden_in_levels;
        let live = version.log_bytes().saturating_sub(dead);
        self.counters.live_bytes.store(live, Ordering::Relaxed);
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.counters.live_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of garbage that memtables and upper levels may hide before they are compacted.
    #[inline]
    pub(crate) fn max_hidden(&self) -> u64 {
        let allowed = self.allowed(self.live_bytes() as f64);
        (self.delay_threshold(allowed) / HIDDEN_DIVISOR) as u64
    }

    /// Bytes to write until the write delay is updated again.
    #[inline]
    pub(crate) fn delay_update_interval(&self) -> u64 {
        let min_delay = MIN_UPDATE_INTERVAL.min(self.options.segment as u64 / 2);
        min_delay.max(self.live_bytes() / UPDATE_DIVISOR)
    }

    /// Sets the write delay from the backlog, and wakes the collector when garbage is due.
    pub(crate) fn update_write_delay(&self) {
        let version = self.version.load();
        let max_delay = self.options.throttle.as_nanos().min(u128::from(u32::MAX)) as f64;
        let usage = self.space_usage(&version);
        // A small delay per excess memtable: it holds back a few times as many writes as are in
        // excess.
        let excess = version.frozen.len().saturating_sub(self.options.frozen) as f64;
        let for_compactions = max_delay / 64.0 * excess;
        // While compactions lag, every write checks whether they fail, so its delay is never zero.
        let min_delay = excess.min(1.0);
        let delay_ns =
            for_compactions.max(max_delay * usage.delay_share()).min(max_delay).max(min_delay)
                as u32;
        self.work.write_delay.store(delay_ns, Ordering::Relaxed);
        // A writer that is refused until a compaction succeeds waits for nothing else, whatever its
        // limit.
        let are_refused = excess > 0.0 && self.work.compaction_error().is_some();
        let priority_delay = if are_refused { u32::MAX } else { delay_ns };
        self.priority.set_write_delay(priority_delay, max_delay as u32);
        let is_due = usage.is_due();
        let was_due = self.work.is_gc_due.swap(is_due, Ordering::Relaxed);
        if is_due && !was_due {
            self.work.notify();
        }
    }
}

/// The share of a segment's bytes that nothing refers to, as far as compactions have found out.
pub(crate) fn dead_share(segment: &Segment) -> f64 {
    segment.dead() as f64 / segment.bytes().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Store};

    fn delay_share(dead: f64) -> f64 {
        SpaceUsage { live: 1000.0, dead, allowed: 500.0, delay_threshold: 600.0 }.delay_share()
    }

    #[test]
    fn space_accounting_includes_hidden_garbage() {
        const KEYS: u32 = 12_000;
        let home = tempfile::tempdir().unwrap();
        // A memtable takes some 1,000 keys, and an upper level a quarter of all: more than may stay
        // hidden.
        let options = Options {
            background: false,
            memory: 96 << 10,
            segment: 256 << 10,
            growth: 4,
            ..Options::default()
        };
        let store = Store::open(home.path(), options.clone()).unwrap();
        let table = store.table("t").unwrap();
        let put = |number: u32| table.put(&(number % KEYS).to_be_bytes(), &[7; 2000]).unwrap();
        (0..KEYS).for_each(put);
        let engine = store.engine();
        let live = engine.version.load().log_bytes() as f64;
        let (mut most_in_levels, mut most_hidden) = (0, 0);
        for round in 1..=3 * KEYS {
            put(round * 7919);
            let version = engine.version.load();
            most_in_levels = most_in_levels.max(version.hidden_in_levels);
            most_hidden = most_hidden.max(version.hidden_bytes());
            let usage = engine.space_usage(&version);
            // Hidden garbage that was collected still counts until the levels are compacted.
            let share = usage.live / live;
            assert!((0.95..1.02).contains(&share), "{round}: {share} {usage:?}");
        }
        assert!(most_in_levels > engine.max_hidden() / 3, "{most_in_levels}");
        assert!(
            most_hidden < engine.max_hidden() * 11 / 10,
            "{most_hidden} {}",
            engine.max_hidden()
        );
        let in_levels = |store: &Store| store.engine().version.load().hidden_in_levels;
        (0..KEYS).take_while(|_| in_levels(&store) < most_in_levels / 2).for_each(put);
        let before = in_levels(&store);
        assert!(before > 0);
        drop((table, store));
        assert_eq!(in_levels(&Store::open(home.path(), options).unwrap()), before);
    }

    #[test]
    fn delay_grows_exponentially_to_the_maximum() {
        let at = |step: f64| delay_share(600.0 * (1.0 + (FULL_DELAY_RATIO - 1.0) * step));
        assert_eq!(delay_share(0.0), 0.0);
        assert_eq!(at(0.0), 0.0);
        assert!(at(0.01) < 1e-3);
        for step in [0.1, 0.3, 0.5, 0.7] {
            let factor = at(step + 0.25) / at(step);
            assert!((factor - 8.0).abs() < 1e-6, "{factor}");
        }
        assert!(at(0.999) > 0.99);
        assert_eq!(at(1.1), 1.0);
        assert_eq!(delay_share(5000.0), 1.0);
    }
}
