//! Collected segments are deleted once the copies of their live records are durable.

use crate::engine::Engine;
use crate::error::Result;
use crate::group_commit::sync;
use crate::level::merge::DeadBytes;
use crate::locks::lock;
use crate::stream::{LogPosition, Stream};

/// A running compaction, until dropped.
pub(crate) struct CompactionPin<'a>(&'a Engine);

impl Drop for CompactionPin<'_> {
    fn drop(&mut self) {
        if lock(&self.0.collected).pinned.take() > Some(0) {
            // The collector may be waiting for it.
            self.0.work.notify();
        }
    }
}

/// Retired versions that are left to the reclaiming thread.
const MAX_UNUSED_VERSIONS: usize = 4;

impl Engine {
    /// Pins the files of the current version for a compaction.
    pub(crate) fn pin_for_compaction(&self) -> CompactionPin<'_> {
        lock(&self.collected).pinned = Some(0);
        CompactionPin(self)
    }

    /// Releases the segments collected so far, with one sync; returns whether there were any. The
    /// collector continues meanwhile and waits for no device.
    pub(crate) fn release_collected(&self) -> Result<bool> {
        let gone = lock(&self.collected).waiting();
        if gone.is_empty() {
            return Ok(false);
        }
        self.check_writable()?;
        self.sync_copies()?;
        // What made the other records dead must be durable too.
        self.sync_all()?;
        self.publish(&mut lock(&self.durable), &DeadBytes::default(), |version| {
            version.segments = version.segments.filtered(|segment| !gone.contains(&segment.id));
        })?;
        let released = lock(&self.collected).remove(&gone);
        self.counters.collected.add(released as u64);
        // Further collection waits for their files.
        self.reclaim_if_behind();
        self.update_write_delay();
        Ok(true)
    }

    /// A thread of its own frees retired versions and their files. If it is far behind or missing,
    /// the caller helps.
    pub(crate) fn reclaim_if_behind(&self) {
        if self.unused_versions() > MAX_UNUSED_VERSIONS {
            self.reclaim_versions();
        }
    }

    /// Makes all copies durable.
    pub(crate) fn sync_copies(&self) -> Result<()> {
        let version = self.version.load();
        let synced = self.group_commit.positions().copies;
        let mut last = synced;
        let done = (|| {
            for segment in version.segments.iter() {
                let position = LogPosition { segment: segment.id, offset: segment.written() };
                if segment.stream == Stream::Copies && position > synced {
                    sync(segment)?;
                    last = last.max(position);
                }
            }
            if last.segment > synced.segment {
                self.log.sync()?;
            }
            Ok(())
        })();
        match &done {
            Ok(()) => self.group_commit.note_copies_synced(last),
            Err(error) => self.halt_after_failed_sync(error),
        }
        done
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::{Options, Store};

    fn options() -> Options {
        Options { background: false, segment: 64 << 10, ..Options::default() }
    }

    #[test]
    fn segments_pinned_by_compaction_count_until_it_ends() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path(), options()).unwrap();
        let engine = store.engine();
        let segment = || engine.create_segment(Stream::Copies, 0).unwrap();
        let count = || lock(&engine.collected).count();
        lock(&engine.collected).add(segment());
        assert_eq!(count(), 1);
        assert!(engine.release_collected().unwrap());
        assert_eq!(count(), 0);
        let pin = engine.pin_for_compaction();
        lock(&engine.collected).add(segment());
        lock(&engine.collected).add(segment());
        assert!(engine.release_collected().unwrap());
        assert_eq!(count(), 2);
        drop(pin);
        assert_eq!(count(), 0);
        assert!(!engine.release_collected().unwrap());
    }

    #[test]
    fn snapshot_does_not_stop_garbage_collection() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path(), options()).unwrap();
        let table = store.table("t").unwrap();
        let write_all = |round: u8| {
            for key in 0..200_u32 {
                table.put(&key.to_be_bytes(), &[round; 1000]).unwrap();
            }
        };
        write_all(0);
        let snapshot = store.snapshot();
        for round in 1..30 {
            write_all(round);
            store.flush().unwrap();
        }
        let collected = store.statistics().collected_segments;
        assert!(collected > 20, "{collected}");
        assert_eq!(snapshot.get(&table, &7_u32.to_be_bytes()).unwrap().unwrap(), [0; 1000]);
        assert_eq!(table.get(&7_u32.to_be_bytes()).unwrap().unwrap(), [29; 1000]);
    }

    #[test]
    fn creating_tables_retires_few_versions() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path(), options()).unwrap();
        let most = |count: u32| {
            let unused = (0..count).map(|number| {
                store.table(&number.to_string()).unwrap();
                store.engine().unused_versions()
            });
            unused.max().unwrap()
        };
        // The caller of `drop_table` still holds the last one.
        assert!(most(50) <= MAX_UNUSED_VERSIONS + 1);
        let unused = (0..50).map(|number| {
            store.drop_table(&number.to_string()).unwrap();
            store.engine().unused_versions()
        });
        assert!(unused.max().unwrap() <= MAX_UNUSED_VERSIONS + 1);
    }
}
