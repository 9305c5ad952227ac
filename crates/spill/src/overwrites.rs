//! Estimates how much of the log new writes make dead. Compactions find out exactly, but late. So
//! some keys that are new to a memtable are looked up below it and extrapolated to the others.

use std::iter;
use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::locks::lock;
use crate::overwrite_estimate::{SAMPLE_INTERVAL, max_dead, weight};
use crate::record::{self, Header, RecordKind, hash};
use crate::value_pointer::Tag;
use crate::version::{TableId, Version};

/// Sampled keys of a recovered memtable.
const RECOVERED_SAMPLES: usize = 128;

/// A key to look up.
pub(crate) struct SampledKey<'k> {
    pub(crate) key: &'k [u8],
    pub(crate) header: Header,
    pub(crate) sample_weight: u64,
}

impl Engine {
    /// Looks up a key below its memtable and adds to the estimate.
    pub(crate) fn estimate_overwrite(&self, version: &Version, sampled: &SampledKey<'_>) {
        let &SampledKey { key, header, sample_weight } = sampled;
        let table = header.table;
        let mut frozen =
            version.frozen.iter().filter_map(|memtable_set| memtable_set.memtable(table));
        let size = header.record_len() as u32;
        let default_len = || match header.kind {
            RecordKind::Put => size,
            _ => self.mean_live_len(version),
        };
        let dead = match frozen.find_map(|memtable| memtable.get(key)) {
            Some(newest) => newest.size,
            None => self.overwritten_len(version, table, key, default_len),
        };
        let (dead, weight) = (u64::from(dead), weight(size));
        self.overwrite_estimate.add(match sample_weight > weight {
            true => dead.min(max_dead(weight)) * sample_weight / weight,
            false => dead,
        });
    }

    /// The length of the record that the indexes have for a key, 0 if none. Nothing is read from
    /// the device: for a record that is not in memory the default counts.
    fn overwritten_len(
        &self,
        version: &Version,
        table: TableId,
        key: &[u8],
        default_len: impl FnOnce() -> u32,
    ) -> u32 {
        let levels = version.table(table).map(|table| table.levels.iter().flatten());
        let key_hash = hash(key);
        // Unreadable pages are reported when they are needed.
        let mut leaves =
            levels.into_iter().flatten().filter_map(|level| level.leaf_of(key, key_hash).ok()?);
        let Some(pointer) = leaves.find_map(|leaf| leaf.find_likely(key, Tag::of(key_hash))) else {
            return 0;
        };
        match version.segments.get(pointer.segment()) {
            Some(_) if pointer.is_tombstone() => record::encoded_len(key.len(), 0) as u32,
            Some(segment) => {
                segment.record_len_if_resident(pointer.offset()).unwrap_or_else(default_len)
            }
            None => 0,
        }
    }

    /// The mean length of live records, as far as compactions know.
    fn mean_live_len(&self, version: &Version) -> u32 {
        let levels =
            version.tables.iter().flatten().flat_map(|table| table.levels.iter().flatten());
        let entries: u64 = levels.map(|level| level.entries).sum();
        (self.live_bytes() / entries.max(1)).min(u32::MAX.into()) as u32
    }

    /// Sets the counters for a recovered memtable: the bytes replayed into it, and, by sampling,
    /// the bytes it made dead.
    pub(crate) fn estimate_recovered(&self) {
        let version = self.version.load();
        let live = self.mean_live_len(&version);
        let (mut bytes, mut replaced, mut dead) = (0, 0, 0);
        for (table, memtable) in (0..).zip(&version.active.memtables) {
            let sample_every = (memtable.keys() / RECOVERED_SAMPLES).max(1) as u64;
            let (mut found, mut sampled_weight, mut total_weight) = (0, 0, 0);
            for (key, newest) in memtable.entries() {
                let older = iter::successors(newest.older(), |version| version.older());
                let older = older.map(|version| u64::from(version.size)).sum::<u64>();
                let weight = weight(newest.size);
                bytes += u64::from(newest.size) + older;
                replaced += older;
                let below = || {
                    let default_len =
                        if newest.pointer.is_tombstone() { live } else { newest.size };
                    u64::from(self.overwritten_len(&version, table, key, || default_len))
                };
                if sample_every == 1 || weight >= SAMPLE_INTERVAL {
                    dead += below();
                    continue;
                }
                total_weight += weight;
                // At random, since keys may have a pattern.
                if hash(key).is_multiple_of(sample_every) {
                    found += below().min(max_dead(weight));
                    sampled_weight += weight;
                }
            }
            dead += (found as f64 / sampled_weight.max(1) as f64 * total_weight as f64) as u64;
        }
        let mut writer = lock(&self.writer);
        writer.since_freeze.bytes = bytes;
        writer.since_freeze.replaced = replaced;
        self.overwrite_estimate.add(dead);
        version.active.hidden.store(self.hidden_bytes(&writer), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overwrite_estimate::MIN_WEIGHT;
    use crate::{Batch, Options, Store};

    fn key(number: u32) -> [u8; 4] {
        number.to_be_bytes()
    }

    /// A store that compacts nothing for garbage.
    fn store_without_gc(dir: &std::path::Path) -> Store {
        let options =
            Options { background: false, space_amplification: 1000.0, ..Options::default() };
        Store::open(dir, options).unwrap()
    }

    /// KiB that the memtable is known to have made dead.
    fn hidden(store: &Store) -> u64 {
        let engine = store.engine();
        engine.hidden_bytes(&lock(&engine.writer)) >> 10
    }

    /// Short records may replace long ones, in the same memtable and below.
    #[test]
    fn deletes_and_short_values_are_estimated() {
        const KEYS: u32 = 4000;
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, ..Options::default() };
        let store = Store::open(home.path(), options.clone()).unwrap();
        let table = store.table("t").unwrap();
        let long = |number: u32| table.put(&key(number), &[7; 8 << 10]).unwrap();
        (0..500).for_each(long);
        (0..250).for_each(|number| table.delete(&key(number)).unwrap());
        (250..500).for_each(|number| table.put(&key(number), b"").unwrap());
        assert!(
            (4000..4100).contains(&hidden(&store)),
            "{} KiB in the same memtable",
            hidden(&store)
        );
        (0..KEYS).for_each(long);
        store.flush().unwrap();
        (0..KEYS).for_each(|number| assert!(table.get(&key(number)).unwrap().is_some()));
        // Some are missed until the ratio is known.
        (0..KEYS / 2).for_each(|number| table.delete(&key(number)).unwrap());
        assert!(hidden(&store) > 4000, "{} KiB of 16,000 in levels", hidden(&store));
        store.flush().unwrap();
        (KEYS / 2..KEYS).for_each(|number| table.put(&key(number), b"").unwrap());
        let found = hidden(&store);
        assert!((10_000..18_000).contains(&found), "{found} KiB of 16,000 in levels");
        store.flush().unwrap();
        (0..KEYS).for_each(long);
        store.flush().unwrap();
        (0..KEYS / 2).for_each(|number| table.delete(&key(number)).unwrap());
        drop((table, store));
        // Nothing is in memory yet.
        let open = || Store::open(home.path(), options.clone()).unwrap();
        let store = open();
        let recovered = hidden(&store);
        assert!((14_000..18_000).contains(&recovered), "{recovered} KiB of 16,000 when recovered");
        store.flush().unwrap();
        drop(store);
        let store = open();
        let table = store.table("t").unwrap();
        (KEYS / 2..KEYS).for_each(|number| table.delete(&key(number)).unwrap());
        let found = hidden(&store);
        assert!((2000..18_000).contains(&found), "{found} KiB of 16,000 when not resident");
    }

    /// Whatever the pattern of deletes and short records.
    #[test]
    fn samples_include_every_kind_of_write() {
        for phase in 0..4 {
            let home = tempfile::tempdir().unwrap();
            let store = store_without_gc(home.path());
            let (long, short) = (store.table("long").unwrap(), store.table("short").unwrap());
            (0..8000).for_each(|number| long.put(&key(number), &[7; 4 << 10]).unwrap());
            store.flush().unwrap();
            (0..8000).for_each(|number| assert!(long.get(&key(number)).unwrap().is_some()));
            for number in 0..32_000 {
                match number % 4 == phase {
                    true => long.delete(&key(number / 4)).unwrap(),
                    false => short.put(&key(number), b"row").unwrap(),
                }
            }
            let hidden = hidden(&store);
            assert!((16_000..56_000).contains(&hidden), "{phase}: {hidden} KiB of 32,000");
        }
    }

    /// A few deletes of long values must not affect many rows.
    #[test]
    fn recovered_memtables_are_estimated_per_table() {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, ..Options::default() };
        {
            let store = Store::open(home.path(), options.clone()).unwrap();
            let (long, rows) = (store.table("long").unwrap(), store.table("rows").unwrap());
            (0..100).for_each(|number| long.put(&key(number), &[7; 100 << 10]).unwrap());
            store.flush().unwrap();
            (20..100).for_each(|number| long.delete(&key(number)).unwrap());
            store.flush().unwrap();
            (0..20).for_each(|number| long.delete(&key(number)).unwrap());
            (0..50_000).for_each(|number| rows.put(&key(number), b"row").unwrap());
        }
        let store = Store::open(home.path(), options).unwrap();
        assert!((1500..5000).contains(&hidden(&store)), "{} KiB of 2,000", hidden(&store));
    }

    /// Whichever kind comes last.
    #[test]
    fn mixed_batches_are_estimated() {
        for deletes_first in [false, true] {
            let home = tempfile::tempdir().unwrap();
            let store = store_without_gc(home.path());
            let (long, rows) = (store.table("long").unwrap(), store.table("rows").unwrap());
            (0..8000).for_each(|number| long.put(&key(number), &[7; 4 << 10]).unwrap());
            store.flush().unwrap();
            (0..8000).for_each(|number| assert!(long.get(&key(number)).unwrap().is_some()));
            for numbers in (0..8).map(|at| at * 1000..at * 1000 + 1000) {
                let mut batch = Batch::new();
                for deletes in [deletes_first, !deletes_first] {
                    for number in numbers.clone() {
                        match deletes {
                            true => batch.delete(&long, &key(number)),
                            false => batch.put(&rows, &key(number), b"row"),
                        }
                    }
                }
                store.write(&batch).unwrap();
            }
            let hidden = hidden(&store);
            assert!((16_000..56_000).contains(&hidden), "{deletes_first}: {hidden} KiB of 32,000");
        }
    }

    /// Alternating, as in a queue.
    #[test]
    fn queue_workload_is_estimated() {
        const KEYS: u32 = 6000;
        for len in [1000, 4 << 10, 10_000] {
            let home = tempfile::tempdir().unwrap();
            let store = store_without_gc(home.path());
            let (table, value) = (store.table("t").unwrap(), vec![7; len]);
            (0..KEYS).for_each(|number| table.put(&key(number), &value).unwrap());
            store.flush().unwrap();
            for number in 0..KEYS {
                table.delete(&key(number)).unwrap();
                table.put(&key(KEYS + number), &value).unwrap();
            }
            let (found, dead) = (hidden(&store), (u64::from(KEYS) * len as u64) >> 10);
            assert!((dead / 2..dead * 3 / 2).contains(&found), "{len}: {found} KiB of {dead}");
        }
    }

    /// A batch predicts nothing about the next.
    #[test]
    fn uniform_batches_are_estimated() {
        for (len, each) in [(4 << 10, 500), (4 << 10, 3000), (32 << 10, 450)] {
            let home = tempfile::tempdir().unwrap();
            let store = store_without_gc(home.path());
            let (table, value) = (store.table("t").unwrap(), vec![7; len]);
            let all = 4 * each;
            (0..all).for_each(|number| table.put(&key(number), &value).unwrap());
            store.flush().unwrap();
            (0..all).for_each(|number| assert!(table.get(&key(number)).unwrap().is_some()));
            for first in (0..all).step_by(each as usize) {
                let numbers = first..first + each;
                let mut batch = Batch::new();
                numbers.clone().for_each(|number| batch.delete(&table, &key(number)));
                store.write(&batch).unwrap();
                batch.clear();
                numbers.for_each(|number| batch.put(&table, &key(all + number), &value));
                store.write(&batch).unwrap();
            }
            let (found, dead) = (hidden(&store), (u64::from(all) * len as u64) >> 10);
            let about = dead / 2..dead * 3 / 2;
            assert!(about.contains(&found), "{len}, {each}: {found} KiB of {dead}");
        }
    }

    /// One long value equals many rows in bytes.
    #[test]
    fn long_values_among_small_rows_are_estimated() {
        for rows_of_each in [0, 256, 2048] {
            let home = tempfile::tempdir().unwrap();
            let store = store_without_gc(home.path());
            let (long, rows) = (store.table("long").unwrap(), store.table("rows").unwrap());
            let value = vec![7; 1 << 20];
            (0..50).for_each(|number| long.put(&key(number), &value).unwrap());
            store.flush().unwrap();
            for number in 0..50 {
                long.put(&key(number), &value).unwrap();
                let numbers = number * rows_of_each..(number + 1) * rows_of_each;
                numbers.for_each(|number| rows.put(&key(number), b"row").unwrap());
            }
            let hidden = hidden(&store);
            assert!((30_000..60_000).contains(&hidden), "{rows_of_each}: {hidden} KiB of 51,200");
        }
    }

    /// One long value must not affect the rows behind it, wherever it lies, and a few deleted ones
    /// hardly.
    #[test]
    fn recovered_memtables_are_estimated_by_bytes() {
        // Of 90,000 keys.
        let sampled = (1..)
            .find(|&number| hash(&key(number)).is_multiple_of(90_000 / RECOVERED_SAMPLES as u64));
        for (long, is_deleted) in [(0, false), (77, false), (77, true), (sampled.unwrap(), true)] {
            let home = tempfile::tempdir().unwrap();
            let options = Options { background: false, ..Options::default() };
            {
                let store = Store::open(home.path(), options.clone()).unwrap();
                let table = store.table("t").unwrap();
                let value = vec![7; 10 << 20];
                (0..4).for_each(|more| table.put(&key(long + more * 100_000), &value).unwrap());
                store.flush().unwrap();
                match is_deleted {
                    true => table.delete(&key(long)).unwrap(),
                    false => table.put(&key(long), &value).unwrap(),
                }
                let rows = (0..90_000).filter(|number| *number != long);
                rows.for_each(|number| table.put(&key(number), b"row").unwrap());
            }
            let store = Store::open(home.path(), options).unwrap();
            let found = hidden(&store);
            // A delete among many rows is missed, or counts as 64 KiB for each key it stands for.
            let least = if is_deleted { 0 } else { 10_240 };
            assert!(
                (least..50_000).contains(&found),
                "{long}, {is_deleted}: {found} KiB of 10,240"
            );
        }
    }

    #[test]
    fn recovered_deletes_do_not_inflate_row_estimates() {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, ..Options::default() };
        {
            let store = Store::open(home.path(), options.clone()).unwrap();
            let table = store.table("long").unwrap();
            let value = vec![7; 10 << 20];
            (0..20).for_each(|number| table.put(&key(number), &value).unwrap());
            store.flush().unwrap();
            (0..2).for_each(|number| table.delete(&key(number)).unwrap());
        }
        let store = Store::open(home.path(), options).unwrap();
        let found = hidden(&store);
        assert!((20_000..21_000).contains(&found), "{found} KiB of 20,480");
        let rows = store.table("rows").unwrap();
        (0..20_000).for_each(|number| rows.put(&key(number), b"row").unwrap());
        let merges = store.statistics().spills;
        assert!(merges <= 2, "{merges} merges");
    }

    /// The mean length of live records is computed once.
    #[test]
    fn estimating_many_tables_takes_linear_time() {
        let weighing = |tables: u32| {
            let home = tempfile::tempdir().unwrap();
            let options = Options { background: false, ..Options::default() };
            {
                let store = Store::open(home.path(), options.clone()).unwrap();
                let mut batch = Batch::new();
                for number in 0..tables {
                    let table = store.table(&number.to_string()).unwrap();
                    (0..100).for_each(|number| batch.put(&table, &key(number), b"row"));
                    store.write(&batch).unwrap();
                    batch.clear();
                }
                store.flush().unwrap();
                for number in 0..tables {
                    let table = store.table(&number.to_string()).unwrap();
                    (0..100).for_each(|number| batch.delete(&table, &key(number)));
                    store.write(&batch).unwrap();
                    batch.clear();
                }
            }
            let store = Store::open(home.path(), options).unwrap();
            let times = (0..8).map(|_| {
                let begin = std::time::Instant::now();
                store.engine().estimate_recovered();
                begin.elapsed()
            });
            times.min().unwrap()
        };
        let (few, many) = (weighing(100), weighing(1600));
        assert!(many < 64 * few, "{few:?}, {many:?}");
    }

    #[test]
    fn deleted_keys_do_not_count_twice() {
        let home = tempfile::tempdir().unwrap();
        let open = |memory| {
            let options = Options {
                background: false,
                memory,
                growth: 2,
                space_amplification: 1000.0,
                ..Options::default()
            };
            let store = Store::open(home.path(), options).unwrap();
            let table = store.table("t").unwrap();
            (store, table)
        };
        {
            let (_store, table) = open(64 << 10);
            (0..4000).for_each(|number| table.put(&key(number), &[7; 4 << 10]).unwrap());
        }
        {
            let (store, table) = open(32 << 20);
            (0..1500).for_each(|number| table.delete(&key(number)).unwrap());
            store.flush().unwrap();
            assert!(store.statistics().levels > 1, "an upper one has the tombstones");
        }
        // With nothing in memory only value pointers tell tombstones.
        let (store, table) = open(32 << 20);
        (0..1500).for_each(|number| table.delete(&key(number)).unwrap());
        let hidden = hidden(&store);
        assert!(hidden < 200, "{hidden} KiB of nothing");
    }

    #[test]
    fn inserts_and_updates_are_distinguished_after_reopening() {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, ..Options::default() };
        let open = || Store::open(home.path(), options.clone()).unwrap();
        let write = |store: &Store, keys: std::ops::Range<u32>| {
            let table = store.table("t").unwrap();
            for key in keys {
                table.put(&key.to_be_bytes(), &[7; 4 << 10]).unwrap();
            }
        };
        let store = open();
        write(&store, 0..4096);
        assert_eq!(hidden(&store), 0, "a load");
        store.flush().unwrap();
        write(&store, 0..3072);
        let found = hidden(&store) >> 10;
        assert!((11..14).contains(&found), "updates: {found} MiB of 12");
        write(&store, 0..1024);
        write(&store, 4096..5120);
        let found = hidden(&store) >> 10;
        assert!((15..=17).contains(&found), "{found} MiB of 16");
        drop(store);
        // Of 4096 keys new to the memtable, three quarters exist below it; 1024 are in it twice.
        let found = hidden(&open()) >> 10;
        assert!((15..=17).contains(&found), "{found} MiB of 16 when recovered");
    }

    #[test]
    fn sample_extrapolation_is_capped() {
        let home = tempfile::tempdir().unwrap();
        let store = store_without_gc(home.path());
        let table = store.table("t").unwrap();
        table.put(&key(1), &vec![7; 4 << 20]).unwrap();
        store.flush().unwrap();
        let version = store.engine().version.load_full();
        let sequence = store.engine().visible_sequence.load(Ordering::Relaxed);
        let header = Header {
            kind: RecordKind::Delete,
            in_batch: false,
            key_len: 4,
            value_len: 0,
            table: table.id,
            sequence,
        };
        for (total_weight, expected) in [(0, 4 << 10), (99, 100 * 64)] {
            let sample_weight = u64::from(MIN_WEIGHT) * (1 + total_weight);
            let sampled = SampledKey { key: &key(1), header, sample_weight };
            store.engine().overwrite_estimate.take();
            store.engine().estimate_overwrite(&version, &sampled);
            assert_eq!(hidden(&store), expected, "beside {total_weight}");
        }
    }
}
