//! How much garbage the log has beside what lives, and what follows from that: when it is
//! collected, when L0 is frozen for it, and how much writers are slowed down.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::inner::Inner;
use crate::log::Segment;
use crate::version::Version;

/// Of the garbage that is allowed for, collecting begins when so much is there.
const COLLECT: f64 = 0.81;
/// Nobody is slowed down for so much of it. The less, the more has to be copied; the rest of what is
/// allowed for is what the files take beside: indexes, two of them during a merge, heads of records,
/// and segments that were collected and are not gone yet.
const BEARABLE: f64 = 0.8;
/// Nobody is slowed down for less than so many segments: those that are being filled are not
/// collected, however little of them lives, nor are those that no merge has looked at.
const FEWEST: u64 = 4;
/// Writers are slowed down where there is more, at first by next to nothing, and as much as they may
/// be from so many times that on.
const SLOWEST: f64 = 1.15;
/// Between them the pause doubles so many times.
const DOUBLINGS: f64 = 12.0;
/// L0 and upper levels may hide this part of what can be borne.
const HIDDEN: f64 = 2.0;
/// How often it is weighed: after so many bytes were written, or such a part of what lives if that
/// is more, as each segment is looked at.
const WEIGH: u64 = 1 << 20;
const WEIGH_PART: u64 = 1024;

/// Bytes of the log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Garbage {
    pub(crate) live: f64,
    pub(crate) dead: f64,
    /// Dead bytes that may be there.
    pub(crate) allowed: f64,
    /// Dead bytes from which writers are slowed down.
    pub(crate) bearable: f64,
}

impl Garbage {
    /// Of all bytes, which share is dead.
    pub(crate) fn share(self) -> f64 {
        self.dead / (self.live + self.dead).max(1.0)
    }

    /// Whether some of it should be collected.
    pub(crate) fn is_due(self) -> bool {
        self.dead > COLLECT * self.allowed
    }

    /// How long each write has to wait, as a share of the longest pause. It rises by the same factor
    /// with each step, so that any rate of collecting finds its pause in a narrow range of garbage.
    fn pause(self) -> f64 {
        let late = (self.dead / self.bearable - 1.0) / (SLOWEST - 1.0);
        if late <= 0.0 { 0.0 } else { (DOUBLINGS * (late - 1.0)).exp2().min(1.0) }
    }
}

impl Inner {
    /// What the log has, as far as merges and L0 know. What of a segment was collected does not
    /// count any more, though its file is still there.
    pub(crate) fn garbage(&self, version: &Version) -> Garbage {
        let (mut all, mut known) = (0.0, 0.0);
        // What cannot be collected is not waited for.
        let stuck = |segment: &&Arc<Segment>| segment.stuck.load(Ordering::Relaxed);
        for segment in version.segments.iter().filter(|segment| !stuck(segment)) {
            let left = segment.bytes().saturating_sub(segment.collected()) as f64;
            all += left;
            known += share_of_dead(segment) * left;
        }
        let dead = (known + version.hidden_bytes() as f64).min(all);
        let live = all - dead;
        let allowed = self.allowed(live);
        Garbage { live, dead, allowed, bearable: self.bearable(allowed) }
    }

    fn allowed(&self, live: f64) -> f64 {
        (self.options.space_amplification - 1.0) * live
    }

    fn bearable(&self, allowed: f64) -> f64 {
        (BEARABLE * allowed).max((FEWEST * self.options.segment as u64) as f64)
    }

    /// Notes how much lives, as far as merges know.
    pub(crate) fn note_live(&self) {
        let version = self.version.load();
        let dead = version.dead_bytes() + version.hidden_in_levels;
        let live = version.log_bytes().saturating_sub(dead);
        self.counters.live_bytes.store(live, Ordering::Relaxed);
    }

    pub(crate) fn live_of_last_merge(&self) -> u64 {
        self.counters.live_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of garbage that L0 and upper levels may hide before they are merged.
    #[inline]
    pub(crate) fn may_hide(&self) -> u64 {
        let allowed = self.allowed(self.live_of_last_merge() as f64);
        (self.bearable(allowed) / HIDDEN) as u64
    }

    /// Bytes that are written until garbage is weighed again.
    #[inline]
    pub(crate) fn weigh_after(&self) -> u64 {
        let least = WEIGH.min(self.options.segment as u64 / 2);
        least.max(self.live_of_last_merge() / WEIGH_PART)
    }

    /// Slows writers down while more is waiting than should, and tells the collector when it
    /// has something to do.
    pub(crate) fn update_pressure(&self) {
        let version = self.version.load();
        let limit = self.options.throttle.as_nanos().min(u128::from(u32::MAX)) as f64;
        let garbage = self.garbage(&version);
        // Little for long: it makes a few times as many writes wait as are too many.
        let late = version.frozen.len().saturating_sub(self.options.frozen) as f64;
        let for_merges = limit / 64.0 * late;
        // Where merges are late a write looks whether they fail, however short it is to wait.
        let least = late.min(1.0);
        let pressure = for_merges.max(limit * garbage.pause()).min(limit).max(least) as u32;
        self.work.pressure.store(pressure, Ordering::Relaxed);
        // Who is refused until a merge succeeds waits for nothing else, whatever the limit.
        let are_refused = late > 0.0 && self.work.merge_failure().is_some();
        let wait = if are_refused { u32::MAX } else { pressure };
        self.niceness.writers_wait(wait, limit as u32);
        let is_due = garbage.is_due();
        let was_due = self.work.is_garbage_due.swap(is_due, Ordering::Relaxed);
        if is_due && !was_due {
            self.work.tell();
        }
    }
}

/// Of a segment's bytes, how many nothing refers to, as far as merges have found out.
pub(crate) fn share_of_dead(segment: &Segment) -> f64 {
    segment.dead() as f64 / segment.bytes().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Store};

    fn pause(dead: f64) -> f64 {
        Garbage { live: 1000.0, dead, allowed: 500.0, bearable: 600.0 }.pause()
    }

    #[test]
    fn what_is_dead_is_known_or_estimated_wherever_it_hides() {
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
        let inner = store.inner();
        let live = inner.version.load().log_bytes() as f64;
        let (mut most_in_levels, mut most_hidden) = (0, 0);
        for round in 1..=3 * KEYS {
            put(round * 7919);
            let version = inner.version.load();
            most_in_levels = most_in_levels.max(version.hidden_in_levels);
            most_hidden = most_hidden.max(version.hidden_bytes());
            let garbage = inner.garbage(&version);
            // What was hidden and has been collected still counts until levels are merged.
            let share = garbage.live / live;
            assert!((0.95..1.02).contains(&share), "{round}: {share} {garbage:?}");
        }
        assert!(most_in_levels > inner.may_hide() / 3, "{most_in_levels}");
        assert!(most_hidden < inner.may_hide() * 11 / 10, "{most_hidden} {}", inner.may_hide());
        let in_levels = |store: &Store| store.inner().version.load().hidden_in_levels;
        (0..KEYS).take_while(|_| in_levels(&store) < most_in_levels / 2).for_each(put);
        let before = in_levels(&store);
        assert!(before > 0);
        drop((table, store));
        assert_eq!(in_levels(&Store::open(home.path(), options).unwrap()), before);
    }

    #[test]
    fn pauses_grow_from_next_to_nothing_to_the_longest() {
        let at = |step: f64| pause(600.0 * (1.0 + (SLOWEST - 1.0) * step));
        assert_eq!(pause(0.0), 0.0);
        assert_eq!(at(0.0), 0.0);
        assert!(at(0.01) < 1e-3);
        for step in [0.1, 0.3, 0.5, 0.7] {
            let factor = at(step + 0.25) / at(step);
            assert!((factor - 8.0).abs() < 1e-6, "{factor}");
        }
        assert!(at(0.999) > 0.99);
        assert_eq!(at(1.1), 1.0);
        assert_eq!(pause(5000.0), 1.0);
    }
}
