//! The parts of an open store, and how they change together.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, TryLockError};

use crate::collect::Collector;
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::fs::Fs;
use crate::l0::Blocks;
use crate::lately::Lately;
use crate::level::file::IndexFile;
use crate::level::merge::Dead;
use crate::log::flush::Flusher;
use crate::log::segment::{self, FILE_HEADER};
use crate::log::{Segment, Staging, Writer};
use crate::manifest::{LevelState, Manifest, SegmentState, State, TableState, Unwritten};
use crate::niceness::Niceness;
use crate::options::Options;
use crate::release::Collected;
use crate::schedule::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::schedule::{Condvar, Mutex, MutexGuard, Shared};
use crate::spares::Spares;
use crate::statistics::Counters;
use crate::stream::{Places, Stream};
use crate::sync::Synced;
use crate::updates::DeadBelow;
use crate::version::{Covers, Generation, Version};

/// What all handles of a store share. Locks are taken in the order of the fields: `collector`,
/// `merging`, `durable`, `writer`, `spares`, `making`, `next_segment`, `collected`.
pub(crate) struct Inner {
    /// Where paths lead that are not the store's: a checkpoint's.
    pub(crate) around: Arc<dyn Fs>,
    pub(crate) dir: PathBuf,
    pub(crate) log: Folder,
    pub(crate) index: Folder,
    pub(crate) options: Options,
    pub(crate) staging: Arc<Staging>,
    pub(crate) flusher: Arc<Flusher>,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) version: Shared<Version>,
    pub(crate) collector: Mutex<Collector>,
    /// Held while levels are merged, or must stay as they are.
    pub(crate) merging: Mutex<()>,
    pub(crate) durable: Mutex<Durable>,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) lately: Lately,
    pub(crate) dead_below: DeadBelow,
    pub(crate) spares: Spares,
    /// Held while a segment is made: nobody else waits for the file system.
    making: Mutex<()>,
    /// Held while the version changes.
    pub(crate) next_segment: Mutex<u32>,
    pub(crate) collected: Mutex<Collected>,
    pub(crate) next_index: AtomicU32,
    /// Writes up to this sequence are seen by readers.
    pub(crate) visible: AtomicU64,
    /// How often the active generation was frozen.
    pub(crate) rotations: AtomicU64,
    /// Copies that writers are to enter.
    pub(crate) to_enter: AtomicUsize,
    pub(crate) synced: Synced,
    pub(crate) counters: Counters,
    pub(crate) work: Work,
    pub(crate) niceness: Niceness,
    /// Why nothing is written any more.
    halted: OnceLock<Error>,
    /// Versions of before, kept until nobody else has them: what goes with them takes a while to
    /// free, and no reader should have to do that.
    buried: Mutex<Vec<Arc<Version>>>,
    pub(crate) _lock: Box<dyn Send + Sync>,
}

/// What is in the manifest beside the version.
pub(crate) struct Durable {
    pub(crate) manifest: Manifest,
    pub(crate) next_table: u32,
}

/// What is done beside the writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    Spill,
    Collect,
    Release,
}

/// What the background is told, and tells.
#[derive(Default)]
pub(crate) struct Work {
    state: Mutex<WorkState>,
    changed: Condvar,
    /// Writers are to slow down: nanoseconds for each write.
    pub(crate) pressure: AtomicU32,
    /// The collector was told that there is garbage.
    pub(crate) is_garbage_due: AtomicBool,
    pub(crate) is_closing: AtomicBool,
    /// Small segments are to become few.
    pub(crate) has_many_small: AtomicBool,
}

#[derive(Default)]
struct WorkState {
    /// Rises with everything that may be work.
    news: u64,
    /// Why the last merge failed.
    merge_failure: Option<Error>,
}

impl Work {
    /// There may be something to do, or something was done.
    pub(crate) fn tell(&self) {
        lock(&self.state).news += 1;
        self.changed.notify_all();
    }

    /// Waits for news after those that were seen, for the end, or so long; the news that were seen.
    pub(crate) fn wait(&self, seen: u64, limit: std::time::Duration) -> u64 {
        let state = lock(&self.state);
        let waited = self
            .changed
            .wait_timeout_while(state, limit, |state| {
                // The end may have been told of before `seen` was asked for.
                state.news == seen && !self.is_closing.load(Ordering::Acquire)
            })
            .unwrap_or_else(PoisonError::into_inner);
        waited.0.news
    }

    pub(crate) fn news(&self) -> u64 {
        lock(&self.state).news
    }

    /// Notes how a merge ended, before another one begins that may make up for it.
    pub(crate) fn merged(&self, _merging: &MutexGuard<'_, ()>, how: &Result<bool>) {
        lock(&self.state).merge_failure = how.as_ref().err().map(Error::again);
    }

    /// Why nothing is merged, if that is so.
    pub(crate) fn merge_failure(&self) -> Option<Error> {
        lock(&self.state).merge_failure.as_ref().map(Error::again)
    }
}

/// A lock that a panic of another holder does not poison: what is under these locks is only
/// changed in steps that leave it whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same, if nobody holds it.
#[inline]
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

pub(crate) struct Parts {
    pub(crate) around: Arc<dyn Fs>,
    pub(crate) dir: PathBuf,
    pub(crate) log: Folder,
    pub(crate) index: Folder,
    pub(crate) options: Options,
    pub(crate) staging: Arc<Staging>,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) version: Version,
    pub(crate) durable: Durable,
    pub(crate) writer: Writer,
    pub(crate) next_segment: u32,
    pub(crate) next_index: u32,
    pub(crate) lock: Box<dyn Send + Sync>,
}

impl Inner {
    pub(crate) fn new(parts: Parts) -> Inner {
        let sequence = parts.writer.sequence;
        Inner {
            around: parts.around,
            dir: parts.dir,
            log: parts.log,
            index: parts.index,
            options: parts.options,
            staging: parts.staging,
            flusher: Arc::clone(parts.writer.flusher()),
            blocks: parts.blocks,
            version: Shared::from_pointee(parts.version),
            collector: Mutex::default(),
            collected: Mutex::default(),
            merging: Mutex::default(),
            durable: Mutex::new(parts.durable),
            synced: Synced::new(parts.writer.places()),
            writer: Mutex::new(parts.writer),
            lately: Lately::default(),
            dead_below: DeadBelow::default(),
            spares: Spares::default(),
            making: Mutex::default(),
            next_segment: Mutex::new(parts.next_segment),
            next_index: AtomicU32::new(parts.next_index),
            visible: AtomicU64::new(sequence),
            rotations: AtomicU64::new(0),
            to_enter: AtomicUsize::new(0),
            counters: Counters::default(),
            work: Work::default(),
            niceness: Niceness::default(),
            halted: OnceLock::new(),
            buried: Mutex::default(),
            _lock: parts.lock,
        }
    }

    /// Nothing is written any more: it is unknown what is on the device.
    pub(crate) fn halt(&self, why: &Error) {
        let _ = self.halted.set(why.lasting());
    }

    /// The same after a sync that failed: what it could not write may be in the page cache as if it
    /// had, and the next opening must not take it for granted.
    pub(crate) fn halt_unsynced(&self, why: &Error) {
        self.staging.note_failure(true);
        self.halt(why);
    }

    pub(crate) fn may_write(&self) -> Result<()> {
        match self.halted.get() {
            Some(why) => Err(why.again()),
            None => Ok(()),
        }
    }

    /// Swaps in a changed version.
    pub(crate) fn change(&self, edit: impl FnOnce(&mut Version)) {
        let guard = lock(&self.next_segment);
        let mut version = Version::clone(&self.version.load());
        edit(&mut version);
        self.version.store(Arc::new(version));
        drop(guard);
    }

    /// A new segment with room for `least` bytes, which readers know of when this returns.
    pub(crate) fn make_segment(&self, stream: Stream, least: usize) -> Result<Arc<Segment>> {
        let making = lock(&self.making);
        let id = *lock(&self.next_segment);
        let least = (least + FILE_HEADER as usize).next_multiple_of(4096);
        let capacity = self.options.segment.max(least);
        segment::check_number(id)?;
        let segment = Segment::create(&self.log, id, stream, capacity)?;
        let segment = Arc::new(segment);
        let mut next = lock(&self.next_segment);
        *next += 1;
        let mut version = Version::clone(&self.version.load());
        version.segments = version.segments.with(Arc::clone(&segment));
        self.version.store(Arc::new(version));
        drop((next, making));
        Ok(segment)
    }

    pub(crate) fn next_index(&self) -> u32 {
        self.next_index.fetch_add(1, Ordering::Relaxed)
    }

    /// Freezes what is being written. The caller holds the writer.
    pub(crate) fn rotate(&self, writer: &mut Writer) {
        let places = Places { copies: writer.copies_begin, ..writer.places() };
        let covers = Covers { sequence: writer.sequence, places };
        let hidden = writer.since_freeze.replaced + self.dead_below.take();
        writer.rotated();
        self.change(|version| {
            let l0s = version.active.l0s.clone();
            let frozen = Generation { l0s, covers: Some(covers), hidden: hidden.into() };
            version.frozen.insert(0, Arc::new(frozen));
            version.active = Arc::new(Generation::new(version.tables.len(), &self.blocks));
        });
        self.rotations.fetch_add(1, Ordering::Release);
        self.update_pressure();
        self.work.tell();
    }

    /// Versions of before that no reader has any more.
    pub(crate) fn unused_versions(&self) -> usize {
        lock(&self.buried).iter().filter(|version| Arc::strong_count(version) == 1).count()
    }

    /// Frees what no reader has any more.
    pub(crate) fn free_unused(&self) {
        // One that is not current is never lent again.
        let (free, kept) = std::mem::take(&mut *lock(&self.buried))
            .into_iter()
            .partition(|version| Arc::strong_count(version) == 1);
        lock(&self.buried).extend(kept);
        drop::<Vec<_>>(free);
    }

    /// Makes a change durable and visible: `edit` is applied to the version as it is when the
    /// manifest is written, and again to the one that is current then. `dead` is what the change
    /// found to be dead.
    pub(crate) fn publish(
        &self,
        durable: &mut Durable,
        dead: &Dead,
        edit: impl Fn(&mut Version),
    ) -> Result<()> {
        self.may_write()?;
        // Of segments that the version has: one that comes meanwhile is not told of as complete.
        let synced = self.synced.places();
        let (version, next_segment) = {
            let next = lock(&self.next_segment);
            let mut version = Version::clone(&self.version.load());
            edit(&mut version);
            (version, *next)
        };
        let next_index = self.next_index.load(Ordering::Relaxed);
        let state = state_of(
            &version,
            &Rest {
                next_segment,
                next_index,
                next_table: durable.next_table,
                state: durable.manifest.number() + 1,
                store: self.log.store,
                synced,
                dead,
            },
        );
        durable.manifest.append(&state).map_err(|unwritten| match unwritten {
            Unwritten::Unchanged(error) => error,
            Unwritten::Unknown(error) => {
                self.halt(&error);
                error
            }
        })?;
        self.staging.note_state(durable.manifest.number());
        for (&segment, &bytes) in &dead.0 {
            if let Some(segment) = version.segments.get(segment) {
                segment.add_dead(bytes);
            }
        }
        let before = self.version.load_full();
        self.change(edit);
        self.retire_unused(&before);
        lock(&self.buried).push(before);
        Ok(())
    }

    /// Files of an index that the current version does not have go with their last user.
    pub(crate) fn retire_unless_used<'a>(&self, files: impl Iterator<Item = &'a Arc<IndexFile>>) {
        let now = self.version.load();
        let used: HashSet<u32> = index_files(&now).map(|file| file.id).collect();
        for file in files.filter(|file| !used.contains(&file.id)) {
            file.retire();
        }
    }

    /// Files that the version of before has and the current one has not go with their last user.
    fn retire_unused(&self, before: &Version) {
        self.retire_unless_used(index_files(before));
        let now = self.version.load();
        for segment in before.segments.iter() {
            if now.segments.get(segment.id).is_none() {
                segment.retire();
            }
        }
    }
}

fn index_files(version: &Version) -> impl Iterator<Item = &Arc<IndexFile>> {
    let tables = version.tables.iter().flatten();
    let levels = tables.flat_map(|table| table.levels.iter().flatten());
    levels.flat_map(|level| level.files.iter().map(|(file, _)| file))
}

/// What a state has beside the version.
pub(crate) struct Rest<'a> {
    pub(crate) next_segment: u32,
    pub(crate) next_index: u32,
    pub(crate) next_table: u32,
    /// The number of the state.
    pub(crate) state: u64,
    /// The number of the store.
    pub(crate) store: u64,
    pub(crate) synced: Places,
    pub(crate) dead: &'a Dead,
}

/// The durable state of a version.
pub(crate) fn state_of(version: &Version, rest: &Rest<'_>) -> State {
    let tables = (0..).zip(&version.tables).filter_map(|(id, table)| {
        let table = table.as_ref()?;
        let levels = table.levels.iter().map(|level| {
            let level = level.as_ref()?;
            let files = level.files.iter().map(|(file, used)| (file.id, file.pages(), *used));
            Some(LevelState {
                root: level.root,
                height: level.height,
                entries: level.entries,
                files: files.collect(),
                filter_pages: level.filter.map_or(0, |filter| filter.pages),
            })
        });
        Some(TableState { id, name: table.name.clone(), levels: levels.collect() })
    });
    let segments = version.segments.iter().map(|segment| {
        let point = rest.synced.of(segment.stream);
        let synced = match segment.id.cmp(&point.segment) {
            std::cmp::Ordering::Less => segment.end().unwrap_or(0),
            std::cmp::Ordering::Equal => point.offset,
            std::cmp::Ordering::Greater => 0,
        };
        let dead = segment.dead() + rest.dead.0.get(&segment.id).copied().unwrap_or(0);
        // An end counts when everything before it does.
        let end = segment.end().filter(|&end| end <= synced);
        SegmentState { id: segment.id, end, synced, dead }
    });
    State {
        next_segment: rest.next_segment,
        next_index: rest.next_index,
        next_table: rest.next_table,
        covers: version.covers,
        synced: rest.synced,
        tables: tables.collect(),
        segments: segments.collect(),
        hidden_in_levels: version.hidden_in_levels,
        number: rest.state,
        store: rest.store,
    }
}
