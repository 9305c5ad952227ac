//! How much of what is written replaces something. Merges find that out exactly, and late; so some of
//! the keys that are new to an L0 are looked for below it.

use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::inner::{Inner, lock};
use crate::position::Tag;
use crate::record::hash;
use crate::version::{TableId, Version};

/// One key is looked for of those that come with so many bytes: some 2 us for 64 records of 1 KiB.
const EVERY: u64 = 64 << 10;
/// The weight of a new answer: those of the last 4 MiB count most.
const NEW: f64 = 1.0 / 64.0;
/// Keys of a recovered L0 that are looked for.
const RECOVERED: usize = 128;

/// Of the keys that are new to the L0 that is written, which share is in what is below it: the bits
/// of a floating-point number.
#[derive(Debug, Default)]
pub(crate) struct Updates(AtomicU64);

impl Updates {
    #[inline]
    pub(crate) fn share(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, share: f64) {
        self.0.store(share.to_bits(), Ordering::Relaxed);
    }

    /// Another key was looked for. Of two at once one may be lost.
    fn found(&self, is_there: bool) {
        let share = self.share();
        self.set(share + NEW * (f64::from(u8::from(is_there)) - share));
    }
}

/// Whether a key is to be looked for, when `bytes` come with one that is new to the L0; `unseen`
/// came since the last one was.
#[inline]
pub(crate) fn is_due(unseen: &mut u64, bytes: u64) -> bool {
    *unseen += bytes;
    let is_due = *unseen >= EVERY;
    if is_due {
        *unseen = 0;
    }
    is_due
}

impl Inner {
    /// Looks for a key below the L0 that was written in a version.
    pub(crate) fn look_below(&self, version: &Version, table: TableId, key: &[u8]) {
        let mut frozen = version.frozen.iter().filter_map(|generation| generation.l0(table));
        let is_there = frozen.any(|l0| l0.get(key).is_some()) || is_in_levels(version, table, key);
        self.updates.found(is_there);
    }

    /// Tells the writer of the L0 that was recovered: how much was replayed into it, and what that
    /// made dead, by some of its keys.
    pub(crate) fn weigh_recovered(&self) {
        let version = self.version.load();
        let (mut fresh, mut replaced, mut there, mut asked) = (0, 0, 0, 0);
        for (table, l0) in (0..).zip(&version.active.l0s) {
            let step = (l0.keys() / RECOVERED).max(1);
            for (at, (key, newest)) in l0.entries().enumerate() {
                fresh += u64::from(newest.size);
                let older = iter::successors(newest.older(), |version| version.older());
                replaced += older.map(|version| u64::from(version.size)).sum::<u64>();
                if at % step == 0 {
                    asked += 1;
                    there += usize::from(is_in_levels(&version, table, key));
                }
            }
        }
        let share = there as f64 / asked.max(1) as f64;
        self.updates.set(share);
        let mut writer = lock(&self.writer);
        writer.since_freeze.bytes = fresh + replaced;
        writer.since_freeze.replaced = replaced as f64 + share * fresh as f64;
        version.active.hidden.store(self.hidden_by(&writer), Ordering::Relaxed);
    }
}

/// Whether indexes tell of a key. What cannot be read is told when it is needed.
fn is_in_levels(version: &Version, table: TableId, key: &[u8]) -> bool {
    let levels = version.table(table).map(|table| table.levels.iter().flatten());
    let key_hash = hash(key);
    let mut leaves =
        levels.into_iter().flatten().filter_map(|level| level.leaf_of(key, key_hash).ok()?);
    leaves.any(|leaf| leaf.may_have(key, Tag::of(key_hash)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Store};

    #[test]
    fn the_share_follows_what_is_found() {
        let updates = Updates::default();
        let find = |is_there, times| {
            for _ in 0..times {
                updates.found(is_there);
            }
            updates.share()
        };
        assert_eq!(find(false, 16), 0.0);
        assert!(find(true, 512) > 0.99);
        assert!((0.3..0.45).contains(&find(false, 64)), "{}", updates.share());
    }

    #[test]
    fn a_load_and_updates_are_told_apart_also_after_opening() {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, ..Options::default() };
        let open = || Store::open(home.path(), options.clone()).unwrap();
        let hidden = |store: &Store| {
            let inner = store.inner();
            (inner.updates.share(), inner.hidden_by(&lock(&inner.writer)) >> 20)
        };
        let write = |store: &Store, keys: std::ops::Range<u32>| {
            let table = store.table("t").unwrap();
            for key in keys {
                table.put(&key.to_be_bytes(), &[7; 4 << 10]).unwrap();
            }
        };
        let store = open();
        write(&store, 0..4096);
        assert_eq!(hidden(&store), (0.0, 0), "a load");
        store.flush().unwrap();
        write(&store, 0..3072);
        let (share, most) = hidden(&store);
        assert!(share > 0.9 && (7..12).contains(&most), "updates: {share}, {most} MiB");
        write(&store, 0..1024);
        write(&store, 4096..5120);
        drop(store);
        // Of 4096 new to the L0, three quarters are below it; 1024 are in it twice.
        let (share, most) = hidden(&open());
        assert!((0.7..0.8).contains(&share), "{share}");
        assert!((15..=17).contains(&most), "{most} MiB");
    }

    #[test]
    fn one_key_of_so_many_bytes_is_looked_for() {
        let mut unseen = 0;
        let looked = (0..1024).filter(|_| is_due(&mut unseen, 1 << 10)).count();
        assert_eq!(looked as u64, (1024 << 10) / EVERY);
        assert!(is_due(&mut unseen, 10 * EVERY), "a long one");
    }
}
