//! How much garbage the log has beside what lives, and what follows from that: when it is
//! collected, when L0 is frozen for it, and how much writers are slowed down.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::value_log::Segment;
use crate::version::Version;

/// Of the garbage that is allowed for, collecting begins when so much is there.
const GC_TRIGGER: f64 = 0.81;
/// Nobody is slowed down for so much of it. The less, the more has to be copied; the rest of what is
/// allowed for is what the files take beside: indexes, two of them during a merge, heads of records,
/// and segments that were collected and are not gone yet.
const DELAY_THRESHOLD: f64 = 0.8;
/// Nobody is slowed down for less than so many segments: those that are being filled are not
/// collected, however little of them lives, nor are those that no merge has looked at.
const MIN_DELAY_SEGMENTS: u64 = 4;
/// Writers are slowed down where there is more, at first by next to nothing, and as much as they may
/// be from so many times that on.
const FULL_DELAY_RATIO: f64 = 1.15;
/// Between them the pause doubles so many times.
const DELAY_DOUBLINGS: f64 = 12.0;
/// L0 and upper levels may hide this part of what can be borne.
const HIDDEN_DIVISOR: f64 = 2.0;
/// How often it is weighed: after so many bytes were written, or such a part of what lives if that
/// is more, as each segment is looked at.
const MIN_UPDATE_INTERVAL: u64 = 1 << 20;
const UPDATE_DIVISOR: u64 = 1024;

/// Bytes of the log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SpaceUsage {
    pub(crate) live: f64,
    pub(crate) dead: f64,
    /// Dead bytes that may be there.
    pub(crate) allowed: f64,
    /// Dead bytes from which writers are slowed down.
    pub(crate) delay_threshold: f64,
}

impl SpaceUsage {
    /// Of all bytes, which share is dead.
    pub(crate) fn share(self) -> f64 {
        self.dead / (self.live + self.dead).max(1.0)
    }

    /// Whether some of it should be collected.
    pub(crate) fn is_due(self) -> bool {
        self.dead > GC_TRIGGER * self.allowed
    }

    /// How long each write has to wait, as a share of the longest pause. It rises by the same factor
    /// with each step, so that any rate of collecting finds its pause in a narrow range of garbage.
    fn delay_share(self) -> f64 {
        let excess = (self.dead / self.delay_threshold - 1.0) / (FULL_DELAY_RATIO - 1.0);
        if excess <= 0.0 { 0.0 } else { (DELAY_DOUBLINGS * (excess - 1.0)).exp2().min(1.0) }
    }
}

impl Engine {
    /// What the log has, as far as merges and L0 know. What of a segment was collected does not
    /// count any more, though its file is still there.
    pub(crate) fn space_usage(&self, version: &Version) -> SpaceUsage {
        let (mut total, mut known_dead) = (0.0, 0.0);
        // What cannot be collected is not waited for.
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

    /// Notes how much lives, as far as merges know.
    pub(crate) fn record_live_bytes(&self) {
        let version = self.version.load();
        let dead = version.dead_bytes() + version.hidden_in_levels;
        let live = version.log_bytes().saturating_sub(dead);
        self.counters.live_bytes.store(live, Ordering::Relaxed);
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.counters.live_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of garbage that L0 and upper levels may hide before they are merged.
    #[inline]
    pub(crate) fn max_hidden(&self) -> u64 {
        let allowed = self.allowed(self.live_bytes() as f64);
        (self.delay_threshold(allowed) / HIDDEN_DIVISOR) as u64
    }

    /// Bytes that are written until garbage is weighed again.
    #[inline]
    pub(crate) fn delay_update_interval(&self) -> u64 {
        let min_delay = MIN_UPDATE_INTERVAL.min(self.options.segment as u64 / 2);
        min_delay.max(self.live_bytes() / UPDATE_DIVISOR)
    }

    /// Slows writers down while more is waiting than should, and tells the collector when it
    /// has something to do.
    pub(crate) fn update_write_delay(&self) {
        let version = self.version.load();
        let max_delay = self.options.throttle.as_nanos().min(u128::from(u32::MAX)) as f64;
        let usage = self.space_usage(&version);
        // Little for long: it makes a few times as many writes wait as are too many.
        let excess = version.frozen.len().saturating_sub(self.options.frozen) as f64;
        let for_compactions = max_delay / 64.0 * excess;
        // Where merges are late a write looks whether they fail, however short it is to wait.
        let min_delay = excess.min(1.0);
        let delay_ns =
            for_compactions.max(max_delay * usage.delay_share()).min(max_delay).max(min_delay)
                as u32;
        self.work.write_delay.store(delay_ns, Ordering::Relaxed);
        // Who is refused until a merge succeeds waits for nothing else, whatever the limit.
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

/// Of a segment's bytes, how many nothing refers to, as far as merges have found out.
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
        // An L0 takes some 1,000 keys, and an upper level a quarter of all: more than what may be
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
            // What was hidden and has been collected still counts until levels are merged.
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
