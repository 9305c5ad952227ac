//! The parts of an open store, and how they change together.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError};

use crate::collected_segments::CollectedSegments;
use crate::collector::GarbageCollector;
use crate::counters::Counters;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::group_commit_state::GroupCommit;
use crate::hot_keys::HotKeyFilter;
use crate::level::file::IndexFile;
use crate::level::merge::DeadBytes;
use crate::locks::lock;
use crate::manifest::{AppendError, LevelState, Manifest, SegmentState, State, TableState};
use crate::memtable::BlockPool;
use crate::options::Options;
use crate::overwrite_estimate::OverwriteEstimate;
use crate::preallocated_segments::PreallocatedSegments;
use crate::priority::BackgroundPriority;
use crate::schedule::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::schedule::{AtomicArc, Condvar, Mutex, MutexGuard};
use crate::stream::{Stream, StreamPositions};
use crate::value_log::flush::Flusher;
use crate::value_log::segment::{self, FILE_HEADER_LEN};
use crate::value_log::{LogWriter, Segment, Staging};
use crate::version::{Coverage, MemtableSet, Version};

/// What all handles of a store share. Lock order: `collector`, `compaction`, `durable`, `writer`,
/// `preallocated`, `segment_creation`, `next_segment`, `collected`.
pub(crate) struct Engine {
    /// File system for paths outside the store, such as a checkpoint's.
    pub(crate) outer_fs: Arc<dyn Fs>,
    pub(crate) dir: PathBuf,
    pub(crate) log: Directory,
    pub(crate) index: Directory,
    pub(crate) options: Options,
    pub(crate) staging: Arc<Staging>,
    pub(crate) flusher: Arc<Flusher>,
    pub(crate) blocks: Arc<BlockPool>,
    pub(crate) version: AtomicArc<Version>,
    pub(crate) collector: Mutex<GarbageCollector>,
    /// Held while levels are compacted or must stay as they are.
    pub(crate) compaction: Mutex<()>,
    pub(crate) durable: Mutex<DurableState>,
    pub(crate) writer: Mutex<LogWriter>,
    pub(crate) hot_keys: HotKeyFilter,
    pub(crate) overwrite_estimate: OverwriteEstimate,
    pub(crate) preallocated: PreallocatedSegments,
    /// Held while a segment is created, so that nobody else waits for the file system.
    segment_creation: Mutex<()>,
    /// Held while the version changes.
    pub(crate) next_segment: Mutex<u32>,
    pub(crate) collected: Mutex<CollectedSegments>,
    pub(crate) next_index: AtomicU32,
    /// Readers see writes up to this sequence.
    pub(crate) visible_sequence: AtomicU64,
    /// How often the active memtables were frozen.
    pub(crate) freezes: AtomicU64,
    /// Number of copies that writers have to insert.
    pub(crate) pending_insertions: AtomicUsize,
    pub(crate) group_commit: GroupCommit,
    pub(crate) counters: Counters,
    pub(crate) work: WorkSignal,
    pub(crate) priority: BackgroundPriority,
    /// Why the store no longer accepts writes.
    halted: OnceLock<Error>,
    /// Replaced versions, kept until no reader holds them. Freeing one takes time, which no reader
    /// should spend.
    retired_versions: Mutex<Vec<Arc<Version>>>,
    pub(crate) _lock: Box<dyn Send + Sync>,
}

/// What the manifest holds besides the version.
pub(crate) struct DurableState {
    pub(crate) manifest: Manifest,
    pub(crate) next_table: u32,
}

/// Kinds of background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    Compact,
    CollectGarbage,
    ReleaseSegments,
}

/// Signals between callers and background threads.
#[derive(Default)]
pub(crate) struct WorkSignal {
    state: Mutex<WorkSignalState>,
    changed: Condvar,
    /// Nanoseconds that each write is delayed.
    pub(crate) write_delay: AtomicU32,
    /// The collector was told that garbage is due.
    pub(crate) is_gc_due: AtomicBool,
    pub(crate) is_closing: AtomicBool,
    /// Small segments are being gathered into few.
    pub(crate) has_many_small: AtomicBool,
}

#[derive(Default)]
struct WorkSignalState {
    /// Counts everything that may create work.
    events: u64,
    /// Why the last compaction failed.
    compaction_error: Option<Error>,
}

impl WorkSignal {
    /// Announces possible work or finished work.
    pub(crate) fn notify(&self) {
        lock(&self.state).events += 1;
        self.changed.notify_all();
    }

    /// Waits for an event after those that were `seen`, for closing, or for the limit; returns the
    /// event count.
    pub(crate) fn wait(&self, seen: u64, limit: std::time::Duration) -> u64 {
        let state = lock(&self.state);
        let waited = self
            .changed
            .wait_timeout_while(state, limit, |state| {
                // Closing may have been announced before `seen` was read.
                state.events == seen && !self.is_closing.load(Ordering::Acquire)
            })
            .unwrap_or_else(PoisonError::into_inner);
        waited.0.events
    }

    pub(crate) fn events(&self) -> u64 {
        lock(&self.state).events
    }

    /// Records how a compaction ended, before the next one can supersede it.
    pub(crate) fn record_compaction(
        &self,
        _compaction: &MutexGuard<'_, ()>,
        result: &Result<bool>,
    ) {
        lock(&self.state).compaction_error = result.as_ref().err().map(Error::duplicate);
    }

    /// Why compaction fails, if it does.
    pub(crate) fn compaction_error(&self) -> Option<Error> {
        lock(&self.state).compaction_error.as_ref().map(Error::duplicate)
    }
}

pub(crate) struct EngineParts {
    pub(crate) outer_fs: Arc<dyn Fs>,
    pub(crate) dir: PathBuf,
    pub(crate) log: Directory,
    pub(crate) index: Directory,
    pub(crate) options: Options,
    pub(crate) staging: Arc<Staging>,
    pub(crate) blocks: Arc<BlockPool>,
    pub(crate) version: Version,
    pub(crate) durable: DurableState,
    pub(crate) writer: LogWriter,
    pub(crate) next_segment: u32,
    pub(crate) next_index: u32,
    pub(crate) lock: Box<dyn Send + Sync>,
}

impl Engine {
    pub(crate) fn new(parts: EngineParts) -> Engine {
        let sequence = parts.writer.sequence;
        Engine {
            outer_fs: parts.outer_fs,
            dir: parts.dir,
            log: parts.log,
            index: parts.index,
            options: parts.options,
            staging: parts.staging,
            flusher: Arc::clone(parts.writer.flusher()),
            blocks: parts.blocks,
            version: AtomicArc::from_pointee(parts.version),
            collector: Mutex::default(),
            collected: Mutex::default(),
            compaction: Mutex::default(),
            durable: Mutex::new(parts.durable),
            group_commit: GroupCommit::new(parts.writer.positions()),
            writer: Mutex::new(parts.writer),
            hot_keys: HotKeyFilter::default(),
            overwrite_estimate: OverwriteEstimate::default(),
            preallocated: PreallocatedSegments::default(),
            segment_creation: Mutex::default(),
            next_segment: Mutex::new(parts.next_segment),
            next_index: AtomicU32::new(parts.next_index),
            visible_sequence: AtomicU64::new(sequence),
            freezes: AtomicU64::new(0),
            pending_insertions: AtomicUsize::new(0),
            counters: Counters::default(),
            work: WorkSignal::default(),
            priority: BackgroundPriority::default(),
            halted: OnceLock::new(),
            retired_versions: Mutex::default(),
            _lock: parts.lock,
        }
    }

    /// Refuses all further writes, since the state on the device is unknown.
    pub(crate) fn halt(&self, why: &Error) {
        let _ = self.halted.set(why.as_halted());
    }

    /// The same after a failed sync. The page cache may show unwritten data as written, so recovery
    /// must not trust it.
    pub(crate) fn halt_after_failed_sync(&self, why: &Error) {
        self.staging.note_failure(true);
        self.halt(why);
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.halted.get() {
            Some(why) => Err(why.duplicate()),
            None => Ok(()),
        }
    }

    /// Publishes a changed version.
    pub(crate) fn update_version(&self, edit: impl FnOnce(&mut Version)) {
        let guard = lock(&self.next_segment);
        let mut version = Version::clone(&self.version.load());
        edit(&mut version);
        self.version.store(Arc::new(version));
        drop(guard);
    }

    /// Creates a segment with space for at least `least` bytes and adds it to the version.
    pub(crate) fn create_segment(&self, stream: Stream, least: usize) -> Result<Arc<Segment>> {
        let segment_creation = lock(&self.segment_creation);
        let id = *lock(&self.next_segment);
        let least = (least + FILE_HEADER_LEN as usize).next_multiple_of(4096);
        let capacity = self.options.segment.max(least);
        segment::check_number(id)?;
        let segment = Segment::create(&self.log, id, stream, capacity)?;
        let segment = Arc::new(segment);
        let mut next = lock(&self.next_segment);
        *next += 1;
        let mut version = Version::clone(&self.version.load());
        version.segments = version.segments.with(Arc::clone(&segment));
        self.version.store(Arc::new(version));
        drop((next, segment_creation));
        Ok(segment)
    }

    pub(crate) fn next_index(&self) -> u32 {
        self.next_index.fetch_add(1, Ordering::Relaxed)
    }

    /// Freezes the active memtables. The caller holds the writer.
    pub(crate) fn freeze_memtables(&self, writer: &mut LogWriter) {
        let positions = StreamPositions { copies: writer.copies_begin, ..writer.positions() };
        let coverage = Coverage { sequence: writer.sequence, positions };
        let hidden = writer.since_freeze.replaced + self.overwrite_estimate.take();
        writer.on_freeze();
        self.update_version(|version| {
            let memtables = version.active.memtables.clone();
            let frozen = MemtableSet { memtables, coverage: Some(coverage), hidden: hidden.into() };
            version.frozen.insert(0, Arc::new(frozen));
            version.active = Arc::new(MemtableSet::new(version.tables.len(), &self.blocks));
        });
        self.freezes.fetch_add(1, Ordering::Release);
        self.update_write_delay();
        self.work.notify();
    }

    /// Number of retired versions that no reader holds.
    pub(crate) fn unused_versions(&self) -> usize {
        lock(&self.retired_versions)
            .iter()
            .filter(|version| Arc::strong_count(version) == 1)
            .count()
    }

    /// Frees the retired versions that no reader holds.
    pub(crate) fn reclaim_versions(&self) {
        // A version that is not current is never handed out again.
        let (free, kept) = std::mem::take(&mut *lock(&self.retired_versions))
            .into_iter()
            .partition(|version| Arc::strong_count(version) == 1);
        lock(&self.retired_versions).extend(kept);
        drop::<Vec<_>>(free);
    }

    /// Makes a change durable, then visible. `edit` is applied twice: to the version written to the
    /// manifest, and to the version that is current afterwards. `dead` holds what the change found
    /// dead.
    pub(crate) fn publish(
        &self,
        durable: &mut DurableState,
        dead: &DeadBytes,
        edit: impl Fn(&mut Version),
    ) -> Result<()> {
        self.check_writable()?;
        // Read before the version: a segment added later must not count as complete.
        let synced = self.group_commit.positions();
        let (version, next_segment) = {
            let next = lock(&self.next_segment);
            let mut version = Version::clone(&self.version.load());
            edit(&mut version);
            (version, *next)
        };
        let next_index = self.next_index.load(Ordering::Relaxed);
        let state = state_of(
            &version,
            &StateContext {
                next_segment,
                next_index,
                next_table: durable.next_table,
                state: durable.manifest.number() + 1,
                store: self.log.store,
                synced,
                dead,
            },
        );
        durable.manifest.append(&state).map_err(|failure| match failure {
            AppendError::Unchanged(error) => error,
            AppendError::Unknown(error) => {
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
        self.update_version(edit);
        self.retire_unused(&before);
        lock(&self.retired_versions).push(before);
        Ok(())
    }

    /// Marks index files that the current version does not use for deletion with their last user.
    pub(crate) fn retire_unless_used<'a>(&self, files: impl Iterator<Item = &'a Arc<IndexFile>>) {
        let now = self.version.load();
        let in_use: HashSet<u32> = index_files(&now).map(|file| file.id).collect();
        for file in files.filter(|file| !in_use.contains(&file.id)) {
            file.retire();
        }
    }

    /// Marks files that only the previous version uses for deletion with their last user.
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

/// What a manifest state holds besides the version.
pub(crate) struct StateContext<'a> {
    pub(crate) next_segment: u32,
    pub(crate) next_index: u32,
    pub(crate) next_table: u32,
    /// Number of the state.
    pub(crate) state: u64,
    /// Number of the store.
    pub(crate) store: u64,
    pub(crate) synced: StreamPositions,
    pub(crate) dead: &'a DeadBytes,
}

/// The manifest state of a version.
pub(crate) fn state_of(version: &Version, context: &StateContext<'_>) -> State {
    let tables = (0..).zip(&version.tables).filter_map(|(id, table)| {
        let table = table.as_ref()?;
        let levels = table.levels.iter().map(|level| {
            let level = level.as_ref()?;
            let files = level.files.iter().map(|(file, in_use)| (file.id, file.pages(), *in_use));
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
        let position = context.synced.of(segment.stream);
        let synced = match segment.id.cmp(&position.segment) {
            std::cmp::Ordering::Less => segment.end().unwrap_or(0),
            std::cmp::Ordering::Equal => position.offset,
            std::cmp::Ordering::Greater => 0,
        };
        let dead = segment.dead() + context.dead.0.get(&segment.id).copied().unwrap_or(0);
        // The end counts only once everything before it is durable.
        let end = segment.end().filter(|&end| end <= synced);
        SegmentState { id: segment.id, end, synced, dead }
    });
    State {
        next_segment: context.next_segment,
        next_index: context.next_index,
        next_table: context.next_table,
        coverage: version.coverage,
        synced: context.synced,
        tables: tables.collect(),
        segments: segments.collect(),
        hidden_in_levels: version.hidden_in_levels,
        number: context.state,
        store: context.store,
    }
}
