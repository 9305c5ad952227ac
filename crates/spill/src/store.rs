//! The store: its tables, and operations on all of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::background;
use crate::batch::Batch;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fs::{Fs, Os};
use crate::level::merge::{DeadBytes, LevelInput, MergeInput};
use crate::locks::lock;
use crate::memtable::Memtable;
use crate::open_store::OpenStore;
use crate::options::Options;
use crate::record::MAX_TABLES;
use crate::recovery;
use crate::schedule::Mutex;
use crate::scrub::ScrubReport;
use crate::snapshot::Snapshot;
use crate::statistics::Statistics;
use crate::table::Table;
use crate::version::{LogView, MemtableSet, TableVersion};

/// The longest that an opening spends on gathering small segments.
const MAX_TIDYING: Duration = Duration::from_secs(2);

/// The longest table name in bytes: each manifest state holds all names.
pub const MAX_TABLE_NAME_LEN: usize = 1024;

/// An open store. Clones share it; it closes with the last of them and of its tables, batches and
/// snapshots. A range alone keeps the directory locked.
///
/// Closing syncs, but does not report a failed sync; call [`Store::sync`] first.
#[derive(Clone)]
pub struct Store {
    pub(crate) open: Arc<OpenStore>,
}

impl Store {
    /// Opens a directory and recovers its store.
    ///
    /// # Errors
    /// - [`Error::Option`]: an option is out of range.
    /// - [`Error::NoStore`]: there is none, and the options do not allow to create one.
    /// - [`Error::Foreign`]: the directory holds something else.
    /// - [`Error::Unfinished`]: it is an incomplete checkpoint.
    /// - [`Error::Locked`]: it is in use.
    /// - [`Error::Format`]: this version does not read its format.
    /// - [`Error::Damaged`]: something is not what was written.
    /// - [`Error::Full`]: no space for what opening writes, at most two segments and the staging
    ///   file; never with [`Options::read_only`].
    /// - [`Error::Io`]: it cannot be created, read or written, or a thread cannot be started.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Store> {
        Store::open_on(Arc::new(Os::new()), absolute(path.as_ref())?, options)
    }

    /// The same on another file system.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(fs: Arc<dyn Fs>, path: impl AsRef<Path>, options: Options) -> Result<Store> {
        let engine = Arc::new(recovery::open(fs, path.as_ref(), options)?);
        // On an error its drop stops the threads that started.
        let open = Arc::new(OpenStore { engine, threads: Mutex::default() });
        if open.engine.options.background {
            background::start(&open.engine, &mut lock(&open.threads))?;
        }
        let store = Store { open };
        let engine = store.engine();
        // Background threads may not get to it in a short session.
        let begin = Instant::now();
        while engine.has_many_small(&engine.version.load()) && begin.elapsed() < MAX_TIDYING {
            let stuck = store.statistics().stuck_segments;
            // Errors are reported where they matter; a stuck segment does not stop the others.
            if store.settle(MAX_TIDYING).is_ok() || store.statistics().stuck_segments == stuck {
                break;
            }
        }
        Ok(store)
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.open.engine
    }

    /// Opens a table, and creates it durably if it does not exist.
    ///
    /// # Errors
    /// Only for a new table: [`Error::ReadOnly`]; [`Error::Halted`] after an earlier failure;
    /// [`Error::NameTooLong`]; [`Error::TooManyTables`]; [`Error::Full`] or [`Error::Io`] if the
    /// manifest cannot be written.
    pub fn table(&self, name: &str) -> Result<Table> {
        let engine = self.engine();
        let find_id = || {
            let version = engine.version.load();
            let named = |table: &Option<Arc<TableVersion>>| {
                table.as_ref().is_some_and(|table| table.name == name)
            };
            let id = version.tables.iter().position(named)? as u32;
            // A table under creation has no memtable yet.
            version.active.memtable(id).map(|_| id)
        };
        if let Some(id) = find_id() {
            return Ok(Table::new(Arc::clone(&self.open), id, name));
        }
        let mut durable = lock(&engine.durable);
        if let Some(id) = find_id() {
            return Ok(Table::new(Arc::clone(&self.open), id, name));
        }
        engine.check_writable()?;
        if name.len() > MAX_TABLE_NAME_LEN {
            return Err(Error::NameTooLong { len: name.len(), limit: MAX_TABLE_NAME_LEN });
        }
        let id = durable.next_table;
        if id >= MAX_TABLES {
            return Err(Error::TooManyTables { limit: MAX_TABLES });
        }
        durable.next_table += 1;
        let table = Arc::new(TableVersion { name: name.to_owned(), levels: vec![None] });
        // Writers continue during this I/O.
        let published = engine.publish(&mut durable, &DeadBytes::default(), |version| {
            version.tables.resize(id as usize + 1, None);
            version.tables[id as usize] = Some(Arc::clone(&table));
        });
        if published.is_err() && engine.check_writable().is_ok() {
            // Nobody has seen the number.
            durable.next_table = id;
        }
        published?;
        // Its memtable belongs to the active set, so the writer is held; a set frozen and replaced
        // meanwhile already has it.
        let writer = lock(&engine.writer);
        engine.update_version(|version| {
            let mut memtables = version.active.memtables.clone();
            if memtables.len() <= id as usize {
                memtables.resize_with(id as usize + 1, || Arc::new(Memtable::new(&engine.blocks)));
                let hidden = version.active.hidden().into();
                version.active = Arc::new(MemtableSet { memtables, coverage: None, hidden });
            }
        });
        drop((writer, durable));
        engine.reclaim_if_behind();
        Ok(Table::new(Arc::clone(&self.open), id, name))
    }

    /// Names of all tables, in the order of their creation.
    pub fn tables(&self) -> Vec<String> {
        let version = self.engine().version.load();
        version.tables.iter().flatten().map(|table| table.name.clone()).collect()
    }

    /// Drops a table with its content. It flushes, then scans the table's index for what becomes
    /// garbage. Other handles of the table find nothing, and their writes return
    /// [`Error::NoTable`]; snapshots and ranges are unaffected.
    ///
    /// # Errors
    /// As [`Store::flush`], also for what the scan reads; [`Error::NoTable`] if there is no such
    /// table.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        let engine = self.engine();
        let _boost = engine.priority.boost();
        // Moves its memtable content into the levels.
        self.flush()?;
        let compaction = lock(&engine.compaction);
        let version = engine.version.load_full();
        let found = version
            .tables
            .iter()
            .position(|table| table.as_ref().is_some_and(|table| table.name == name));
        let Some((id, table)) = found.and_then(|id| Some((id, version.tables[id].as_ref()?)))
        else {
            return Err(Error::NoTable { name: name.to_owned() });
        };
        let mut dead = DeadBytes::default();
        let records = LogView { version: &version, staging: &engine.staging };
        for level in table.levels.iter().flatten() {
            let mut entries = LevelInput::new(level, &records)?;
            while let Some((_, pointer)) = entries.current() {
                let ((), size) =
                    crate::level::merge::RecordReader::read_key(&records, pointer, |_| ())?;
                dead.add(pointer, size);
                entries.advance(&records, &mut DeadBytes::default())?;
            }
        }
        engine.publish(&mut lock(&engine.durable), &dead, |version| version.tables[id] = None)?;
        drop(compaction);
        engine.reclaim_if_behind();
        engine.work.notify();
        Ok(())
    }

    /// Applies a batch atomically.
    ///
    /// # Errors
    /// As [`Table::put`], for each of its writes; [`Error::NoTable`] also for a table of another
    /// store; [`Error::BatchTooLong`]; [`Error::TooManyWrites`].
    pub fn write(&self, batch: &Batch) -> Result<()> {
        self.engine().write_batch(batch)
    }

    /// A read view of the store as of now.
    pub fn snapshot(&self) -> Snapshot {
        let (version, sequence) = self.engine().view();
        Snapshot { open: Arc::clone(&self.open), version, sequence }
    }

    /// Makes all acknowledged writes durable.
    ///
    /// # Errors
    /// Only if something is not durable yet: [`Error::ReadOnly`]; [`Error::Halted`] after an
    /// earlier failure; [`Error::Full`] or [`Error::Io`] if it cannot be written or synced. A
    /// failed sync halts the store.
    pub fn sync(&self) -> Result<()> {
        self.engine().sync_all()
    }

    /// Compacts all memtables into the levels, durably.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Halted`] after an earlier failure; [`Error::Full`] or
    /// [`Error::Io`] if the log, an index or the manifest cannot be written or synced;
    /// [`Error::Damaged`] or [`Error::Io`] if an input is damaged or unreadable.
    pub fn flush(&self) -> Result<()> {
        let engine = self.engine();
        let _boost = engine.priority.boost();
        // While compactions fail, no more memtables are frozen, as for writes.
        let is_behind = || engine.version.load().frozen.len() > engine.options.frozen;
        if is_behind() {
            engine.compact_if(is_behind)?;
        }
        let last = {
            let mut writer = lock(&engine.writer);
            engine.check_writable()?;
            if !engine.version.load().active.is_empty() {
                engine.freeze_memtables(&mut writer);
            }
            engine.version.load().frozen.first().cloned()
        };
        let Some(last) = last else { return Ok(()) };
        // Compacted here or in the background; memtables frozen meanwhile are not waited for.
        let waits = || engine.version.load().frozen.iter().any(|one| Arc::ptr_eq(one, &last));
        while waits() && engine.compact_if(waits)? {}
        Ok(())
    }

    /// Flushes and collects due garbage; returns false if the limit passed first. The limit is
    /// checked after each segment.
    ///
    /// # Errors
    /// As [`Store::flush`], also for what is collected.
    pub fn settle(&self, limit: Duration) -> Result<bool> {
        let begin = Instant::now();
        let _boost = self.engine().priority.boost();
        loop {
            self.flush()?;
            let collected = self.engine().collect_garbage()?;
            // Unreleased segments block further collection.
            if !self.engine().release_collected()? && !collected {
                if self.engine().next_victim().is_none() {
                    break;
                }
                // So do segments pinned by a compaction, until it ends.
                drop(lock(&self.engine().compaction));
            }
            if begin.elapsed() > limit {
                return Ok(false);
            }
        }
        self.sync()?;
        Ok(true)
    }

    /// Creates a checkpoint in a new or empty directory on the same file system. Complete files are
    /// shared by hard links. No two checkpoints may go to one directory at the same time. Writers
    /// continue meanwhile; compaction, garbage collection and table creation wait.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Halted`] after an earlier failure; [`Error::NotEmpty`];
    /// [`Error::Unfinished`] if the directory is an incomplete checkpoint, which must be removed by
    /// hand; [`Error::Full`] or [`Error::Io`] if the log or the copy cannot be written, linked or
    /// synced, on another file system with [`CrossesDevices`](std::io::ErrorKind::CrossesDevices).
    /// A failed checkpoint may leave files behind; opening them returns [`Error::Unfinished`].
    pub fn checkpoint(&self, into: impl AsRef<Path>) -> Result<()> {
        let (engine, into) = (self.engine(), into.as_ref());
        match engine.dir.is_absolute() {
            true => engine.checkpoint(&absolute(into)?),
            // Such a file system has its own names.
            false => engine.checkpoint(into),
        }
    }

    /// Reads and verifies everything on disk.
    ///
    /// # Errors
    /// [`Error::Damaged`] with file and offset of the first damage; [`Error::Io`] if something is
    /// unreadable; [`Error::Full`] or [`Error::Io`] if staged records cannot be written to the log
    /// first.
    pub fn scrub(&self) -> Result<ScrubReport> {
        self.engine().scrub()
    }

    /// The current state of the store, and its counters since opening.
    pub fn statistics(&self) -> Statistics {
        self.engine().statistics()
    }
}

/// The process may change its working directory.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::io(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pinned segments still exist and block due collection.
    #[test]
    fn settle_waits_for_compaction_to_release_segments() {
        let home = tempfile::tempdir().unwrap();
        let options = |space_amplification| Options {
            background: false,
            segment: 64 << 10,
            space_amplification,
            ..Options::default()
        };
        {
            let store = Store::open(home.path(), options(10.0)).unwrap();
            let table = store.table("t").unwrap();
            // The first segments are wholly dead, so nothing is copied and nothing must be flushed.
            for number in (0..1000_u32).chain(0..1000) {
                table.put(&number.to_be_bytes(), &[7; 1000]).unwrap();
            }
            store.flush().unwrap();
        }
        let store = Store::open(home.path(), options(1.1)).unwrap();
        let engine = store.engine();
        let compaction = lock(&engine.compaction);
        let pin = engine.pin_for_compaction();
        while engine.collect_garbage().unwrap() || engine.release_collected().unwrap() {}
        assert!(engine.next_victim().is_some());
        std::thread::scope(|scope| {
            let settled = scope.spawn(|| store.settle(Duration::from_secs(60)));
            std::thread::sleep(Duration::from_millis(50));
            drop((pin, compaction));
            assert!(settled.join().unwrap().unwrap());
        });
        assert!(engine.next_victim().is_none());
    }

    #[test]
    fn table_numbers_are_limited() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path(), Options::default()).unwrap();
        lock(&store.engine().durable).next_table = MAX_TABLES - 1;
        let last = store.table("last").unwrap();
        last.put(b"key", b"value").unwrap();
        let refused = store.table("one more").map(|table| table.id);
        assert!(matches!(refused, Err(Error::TooManyTables { limit: MAX_TABLES })), "{refused:?}");
        drop((last, store));
        let store = Store::open(home.path(), Options::default()).unwrap();
        assert_eq!(store.table("last").unwrap().get(b"key").unwrap().unwrap(), b"value");
        assert!(store.table("one more").is_err());
    }
}
