//! A store: its tables, and what is done with all of them at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::background;
use crate::batch::Batch;
use crate::engine::{Engine, lock};
use crate::error::{Error, Result};
use crate::fs::{Fs, Os};
use crate::level::merge::{DeadBytes, LevelInput, MergeInput};
use crate::memtable::Memtable;
use crate::options::Options;
use crate::record::MAX_TABLES;
use crate::recovery;
use crate::schedule::Mutex;
use crate::schedule::thread::JoinHandle;
use crate::scrub::ScrubReport;
use crate::snapshot::Snapshot;
use crate::statistics::Statistics;
use crate::table::Table;
use crate::version::{LogView, MemtableSet, TableVersion};

/// An opening takes no longer for making few segments of many small ones.
const MAX_TIDYING: Duration = Duration::from_secs(2);

/// The longest name of a table, in bytes: each state of the manifest has all names.
pub const MAX_TABLE_NAME_LEN: usize = 1024;

/// An open store. Clones are handles of the same one; it is closed with the last of them, of its
/// tables, of its batches and of its snapshots. A range alone keeps its directory locked.
///
/// Closing syncs, and tells nobody if that fails: [`Store::sync`] does.
#[derive(Clone)]
pub struct Store {
    pub(crate) open: Arc<OpenStore>,
}

/// The store and its threads.
pub(crate) struct OpenStore {
    pub(crate) engine: Arc<Engine>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for OpenStore {
    fn drop(&mut self) {
        self.engine.work.is_closing.store(true, Ordering::Release);
        self.engine.work.notify();
        self.engine.flusher.close();
        let _boost = self.engine.priority.boost();
        for thread in lock(&self.threads).drain(..) {
            // A thread that panicked has nothing left to do.
            let _ = thread.join();
        }
        // In no mode is it left to chance what a loss of power takes from a store that is closed; the next
        // opening has less work, and knows what of the log is damage. A failure is what a loss of power
        // just before would have been.
        let _ = self.engine.sync_all();
    }
}

impl Store {
    /// Opens a directory, and recovers what an earlier process left.
    ///
    /// # Errors
    /// - [`Error::Option`]: an option is out of its range.
    /// - [`Error::NoStore`]: there is none, and by the options none is to be made.
    /// - [`Error::Foreign`]: the directory holds something else.
    /// - [`Error::Unfinished`]: it is a checkpoint that was not completed.
    /// - [`Error::Locked`]: it is in use.
    /// - [`Error::Format`]: it was written in a format that this version does not read.
    /// - [`Error::Damaged`]: something is not what was written.
    /// - [`Error::Full`]: there is no room for what opening writes, at most two segments and the
    ///   staging file; never with [`Options::read_only`].
    /// - [`Error::Io`]: it cannot be made, read or written, or a thread cannot be started.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Store> {
        Store::open_on(Arc::new(Os::new()), absolute(path.as_ref())?, options)
    }

    /// The same on another file system.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(fs: Arc<dyn Fs>, path: impl AsRef<Path>, options: Options) -> Result<Store> {
        let engine = Arc::new(recovery::open(fs, path.as_ref(), options)?);
        // Dropped if not all threads can be started, it ends those that were.
        let open = Arc::new(OpenStore { engine, threads: Mutex::default() });
        if open.engine.options.background {
            background::start(&open.engine, &mut lock(&open.threads))?;
        }
        let store = Store { open };
        let engine = store.engine();
        // This session may be too short for it as well.
        let begin = Instant::now();
        while engine.has_many_small(&engine.version.load()) && begin.elapsed() < MAX_TIDYING {
            let stuck = store.statistics().stuck_segments;
            // What hinders it is told where it matters; the others are collected beside one that cannot be.
            if store.settle(MAX_TIDYING).is_ok() || store.statistics().stuck_segments == stuck {
                break;
            }
        }
        Ok(store)
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.open.engine
    }

    /// A table by its name, made if there is none, durably.
    ///
    /// # Errors
    /// Only where it is to be made: [`Error::ReadOnly`]; [`Error::Halted`] after an earlier
    /// failure; [`Error::NameTooLong`]; [`Error::TooManyTables`]; [`Error::Full`] or [`Error::Io`]
    /// if the manifest cannot be written.
    pub fn table(&self, name: &str) -> Result<Table> {
        let engine = self.engine();
        let find_id = || {
            let version = engine.version.load();
            let named = |table: &Option<Arc<TableVersion>>| {
                table.as_ref().is_some_and(|table| table.name == name)
            };
            let id = version.tables.iter().position(named)? as u32;
            // One that is being made has no L0 yet.
            version.active.memtable(id).map(|_| id)
        };
        if let Some(id) = find_id() {
            return Ok(Table::new(self.clone(), id, name));
        }
        let mut durable = lock(&engine.durable);
        if let Some(id) = find_id() {
            return Ok(Table::new(self.clone(), id, name));
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
        // Writers go on while the device takes it.
        let published = engine.publish(&mut durable, &DeadBytes::default(), |version| {
            version.tables.resize(id as usize + 1, None);
            version.tables[id as usize] = Some(Arc::clone(&table));
        });
        if published.is_err() && engine.check_writable().is_ok() {
            // Nobody has seen the number.
            durable.next_table = id;
        }
        published?;
        // Its L0 is made with the writer held, for it belongs to the generation that is written then; one
        // that began meanwhile has it.
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
        Ok(Table::new(self.clone(), id, name))
    }

    /// The names of all tables, in the order of their making.
    pub fn tables(&self) -> Vec<String> {
        let version = self.engine().version.load();
        version.tables.iter().flatten().map(|table| table.name.clone()).collect()
    }

    /// Drops a table and all that is in it. It flushes, then walks over the table's index to find
    /// what becomes garbage. Handles of the table that are kept find nothing, and writes with them
    /// answer [`Error::NoTable`]; snapshots and ranges have what they had.
    ///
    /// # Errors
    /// As [`Store::flush`], also of what the walk reads; [`Error::NoTable`] if there is none of
    /// this name.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        let engine = self.engine();
        let _boost = engine.priority.boost();
        // What of it is in memory is in the levels then.
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

    /// Writes all of a batch, or nothing of it.
    ///
    /// # Errors
    /// As [`Table::put`], for each of its writes; [`Error::NoTable`] also for a table of another
    /// store; [`Error::BatchTooLong`]; [`Error::TooManyWrites`].
    pub fn write(&self, batch: &Batch) -> Result<()> {
        self.engine().write_batch(batch)
    }

    /// The store as it is now, for reading.
    pub fn snapshot(&self) -> Snapshot {
        let (version, sequence) = self.engine().view();
        Snapshot { store: self.clone(), version, sequence }
    }

    /// Returns when everything that was acknowledged is on the device.
    ///
    /// # Errors
    /// Only where something is not yet: [`Error::ReadOnly`]; [`Error::Halted`] after an earlier
    /// failure; [`Error::Full`] or [`Error::Io`] if it cannot be written or synced. A sync that
    /// fails halts the store.
    pub fn sync(&self) -> Result<()> {
        self.engine().sync_all()
    }

    /// Returns when all that is in memory has been merged into the levels, durably.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Halted`] after an earlier failure; [`Error::Full`] or
    /// [`Error::Io`] if the log, an index or the manifest cannot be written or synced;
    /// [`Error::Damaged`] or [`Error::Io`] if something that is merged is not what was written, or
    /// cannot be read.
    pub fn flush(&self) -> Result<()> {
        let engine = self.engine();
        let _boost = engine.priority.boost();
        // Where merges fail no more are frozen, as for writes.
        let has_failed = || engine.version.load().frozen.len() > engine.options.frozen;
        if has_failed() {
            engine.compact_if(has_failed)?;
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
        // Merged here or by the background, whoever comes first; what is frozen meanwhile is not waited for.
        let waits = || engine.version.load().frozen.iter().any(|one| Arc::ptr_eq(one, &last));
        while waits() && engine.compact_if(waits)? {}
        Ok(())
    }

    /// Flushes, and collects what garbage is due; false if the limit passed before that was done.
    /// The limit is looked at after each segment.
    ///
    /// # Errors
    /// As [`Store::flush`], also of what is collected.
    pub fn settle(&self, limit: Duration) -> Result<bool> {
        let begin = Instant::now();
        let _boost = self.engine().priority.boost();
        loop {
            self.flush()?;
            let collected = self.engine().collect_garbage()?;
            // Those that wait for this keep others from being collected.
            if !self.engine().release_collected()? && !collected {
                if self.engine().next_victim().is_none() {
                    break;
                }
                // So do those that a merge keeps, until it ends.
                drop(lock(&self.engine().compaction));
            }
            if begin.elapsed() > limit {
                return Ok(false);
            }
        }
        self.sync()?;
        Ok(true)
    }

    /// Makes a copy of the store as it is now in a new directory on the same file system. What is
    /// complete is shared by hard links. A directory that is there must be empty. No two may be made
    /// into one at the same time. Writers go on meanwhile; merging, collecting and the making of
    /// tables wait.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Halted`] after an earlier failure; [`Error::NotEmpty`] if the
    /// directory has something in it; [`Error::Unfinished`] if that is a checkpoint that was not
    /// completed, which is removed by hand; [`Error::Full`] or [`Error::Io`] if the log or the copy
    /// cannot be written, linked or synced: on another file system with
    /// [`CrossesDevices`](std::io::ErrorKind::CrossesDevices). What was begun may stay: opening it
    /// answers [`Error::Unfinished`].
    pub fn checkpoint(&self, into: impl AsRef<Path>) -> Result<()> {
        let (engine, into) = (self.engine(), into.as_ref());
        match engine.dir.is_absolute() {
            true => engine.checkpoint(&absolute(into)?),
            // The file system has names of its own.
            false => engine.checkpoint(into),
        }
    }

    /// Reads everything that is on the disk and checks it.
    ///
    /// # Errors
    /// [`Error::Damaged`] with file and offset of the first thing that is not as it was written;
    /// [`Error::Io`] if something cannot be read; [`Error::Full`] or [`Error::Io`] if what is in
    /// the staging file cannot be written to the log, which comes first.
    pub fn scrub(&self) -> Result<ScrubReport> {
        self.engine().scrub()
    }

    /// What the store has now, and what it has done since it was opened.
    pub fn statistics(&self) -> Statistics {
        self.engine().statistics()
    }
}

/// The process may go on in another directory.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::io(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a merge keeps is not gone, and holds back what is due.
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
            // Nothing of the first segments is copied, so that there is nothing to flush.
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
