//! Recovery: opens what the manifest names, then replays the log behind what the levels contain.

mod directory;
mod files;
mod memtable_replay;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::directory::Directory;
use crate::engine::{DurableState, Engine, EngineParts, StateContext, state_of};
use crate::error::{Error, Result};
use crate::fs::{Fs, Overlay};
use crate::level::merge::DeadBytes;
use crate::locks::lock;
use crate::manifest::{self, LatestState, Manifest, State};
use crate::memtable::BlockPool;
use crate::options::{Durability, MIN_SEGMENT_LEN, Options};
use crate::segment_map::SegmentMap;
use crate::stream::{LogPosition, Stream, StreamPositions};
use crate::value_log::replay::LogEnd;
use crate::value_log::segment::{self, FILE_HEADER_LEN};
use crate::value_log::staging::StagingLeftovers;
use crate::value_log::{ColdReadMode, LogWriter, Segment, Staging};
use crate::version::{Coverage, MemtableSet, Version};

pub(crate) use directory::{INDEX, LOG, UNFINISHED, create_directories, is_empty};
use directory::{check_directory, directory_error};
use files::{LogSegments, make_durable, open_segments, open_tables, remove_unused};
use memtable_replay::{Replayed, replay_log};

/// Opens a directory, creates it if the options say so, and recovers it.
///
/// Nothing is deleted until the manifest durably describes the recovered state, so recovery can be
/// repeated after a second failure.
pub(crate) fn open(fs: Arc<dyn Fs>, dir: &Path, options: Options) -> Result<Engine> {
    options.check()?;
    if options.create && !options.read_only {
        create_directories(&fs, dir)?;
    }
    // The directory may be renamed meanwhile, and its old name given to another.
    let held = fs.hold(dir, &[LOG, INDEX]).map_err(|error| directory_error(dir, error))?;
    let held = held.unwrap_or_else(|| Arc::clone(&fs));
    if !options.read_only {
        return recover(held, fs, dir, options);
    }
    // Nothing is written that would have to be synced, compacted or collected.
    let durability = Durability::None;
    // New segments stay empty and in memory.
    let segment = MIN_SEGMENT_LEN;
    let options = Options { create: false, background: false, durability, segment, ..options };
    let engine = recover(Arc::new(Overlay::new(held)), fs, dir, options)?;
    engine.halt(&Error::ReadOnly);
    Ok(engine)
}

/// Locks the directory and loads or creates its manifest.
fn lock_and_load(
    fs: &Arc<dyn Fs>,
    dir: &Path,
    create: bool,
) -> Result<(Box<dyn Send + Sync>, LatestState)> {
    let lock = fs.lock(dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked { path: dir.to_owned() },
        _ => directory_error(dir, error),
    })?;
    let is_new = check_directory(fs, dir, create)?;
    let last = match Manifest::read(fs, dir)? {
        Some(state) => {
            // The creator may have been killed before the name was durable, and a log without a
            // manifest is not taken for a store.
            fs.sync_dir(dir).map_err(|error| Error::io(dir, error))?;
            directory::create_missing(fs, dir, &state.state)?;
            state
        }
        None if is_new => directory::create_store(fs, dir)?,
        // A dangling link has the name.
        None => return Err(Error::damaged(&manifest::path(dir), 0, "the file is missing")),
    };
    Ok((lock, last))
}

/// Recovers on `fs`, where the directory stays the same one; `outer_fs` resolves other paths.
fn recover(fs: Arc<dyn Fs>, outer_fs: Arc<dyn Fs>, dir: &Path, options: Options) -> Result<Engine> {
    let (dir_lock, last) = lock_and_load(&fs, dir, options.create)?;
    let state = &last.state;
    let directory = |name| Directory::new(&fs, dir.join(name), state.store);
    let (log_directory, index) = (directory(LOG), directory(INDEX));
    let (staging, leftovers) = Staging::open(&fs, dir, state.store)?;
    if state.number < leftovers.state {
        return Err(last.stale_error(dir, "a later state was durable"));
    }
    let staging = Arc::new(staging);
    let tables = open_tables(&index, dir, state)?;
    let found = open_segments(&log_directory, state)?;
    let blocks = Arc::new(BlockPool::new(if options.background { options.memory } else { 0 }));
    let memtables = MemtableSet::new(tables.len(), &blocks);
    let log = replay_log(&found, dir, &last, &leftovers, &tables, &memtables)?;
    let next_segment = next_segment(state, &found, &leftovers, &log.end);
    let (segments, unused) = retain_segments(found, &log.end, state, leftovers.sync_failed)
        .inspect_err(|_| staging.note_failure(true))?;
    let new = NewSegments::create(&log_directory, next_segment, &options)?;
    let positions = new.positions(&segments);
    let version = Version {
        active: Arc::new(memtables),
        frozen: Vec::new(),
        tables,
        segments: segments.with(Arc::clone(&new.main)).with(Arc::clone(&new.hot)),
        coverage: coverage_beyond(state.coverage, &log.end, positions),
        hidden_in_levels: state.hidden_in_levels,
        cold_read_mode: ColdReadMode::Around,
    };
    let context = StateContext {
        next_segment: new.next,
        next_index: state.next_index,
        next_table: state.next_table,
        state: state.number + 1,
        store: state.store,
        synced: positions,
        dead: &DeadBytes::default(),
    };
    let manifest = Manifest::create(&fs, dir, &state_of(&version, &context))?;
    staging.note_state(manifest.number());
    staging.note_synced(positions);
    if !options.read_only {
        staging.clear(leftovers.sync_failed).inspect_err(|_| staging.note_failure(true))?;
    }
    staging.note_failure(false);
    if !options.read_only {
        remove_unused(&index, state, unused)?;
    }
    let next_segment = new.next;
    let mut writer = new.into_writer(&staging, log.end.sequence, &options);
    writer.memory = version.active.bytes();
    writer.copies_begin = positions.copies;
    let engine = Engine::new(EngineParts {
        outer_fs,
        dir: dir.to_owned(),
        log: log_directory,
        index,
        options,
        staging,
        blocks,
        version,
        durable: DurableState { manifest, next_table: state.next_table },
        writer,
        next_segment,
        next_index: state.next_index,
        lock: dir_lock,
    });
    engine.group_commit.note_copies_synced(positions.copies);
    complete(&engine, &log)?;
    Ok(engine)
}

/// The number of the next segment. Numbers are never reused: an old slot, file or seal might be
/// taken for the new segment's. A lost segment may be known from the seal before it alone.
fn next_segment(
    state: &State,
    found: &LogSegments,
    leftovers: &StagingLeftovers,
    log_end: &LogEnd,
) -> u32 {
    let slots = leftovers.slots.iter().map(|slot| slot.segment);
    let ends = Stream::WRITTEN.map(|stream| log_end.positions.of(stream).segment);
    let used = slots.chain(ends).map(|segment| segment + 1);
    used.chain([state.next_segment, found.next]).max().unwrap_or(0)
}

/// The segments of the writers' streams that follow the recovered ones.
struct NewSegments {
    main: Arc<Segment>,
    hot: Arc<Segment>,
    /// The number of the next one.
    next: u32,
}

impl NewSegments {
    fn create(directory: &Directory, first: u32, options: &Options) -> Result<NewSegments> {
        let create = |number, stream| {
            if !options.read_only {
                segment::check_number(number)?;
            }
            let segment = Arc::new(Segment::create(directory, number, stream, options.segment)?);
            crate::group_commit::sync(&segment)?;
            Ok(segment)
        };
        let (main, hot) = (create(first, Stream::Main)?, create(first + 1, Stream::Hot)?);
        directory.sync()?;
        Ok(NewSegments { main, hot, next: first + 2 })
    }

    /// Where each stream goes on; copies, behind those in the recovered segments.
    fn positions(&self, recovered: &SegmentMap) -> StreamPositions {
        let begin =
            |segment: &Segment| LogPosition { segment: segment.id, offset: FILE_HEADER_LEN };
        let copies = recovered
            .iter()
            .filter(|segment| segment.stream == Stream::Copies)
            .map(|segment| LogPosition { segment: segment.id, offset: segment.written() })
            .next_back()
            .unwrap_or_default();
        StreamPositions { main: begin(&self.main), hot: begin(&self.hot), copies }
    }

    fn into_writer(self, staging: &Arc<Staging>, sequence: u64, options: &Options) -> LogWriter {
        LogWriter::new(
            self.main,
            self.hot,
            staging,
            sequence,
            // With `Sync` a write must reach its segment before it counts, so that this cannot fail
            // later during the sync.
            options.durability == Durability::Sync,
            options.background,
            options.cached_writes,
        )
    }
}

/// The coverage, moved to where writers go on if nothing was behind it: its segment may be gone.
fn coverage_beyond(mut coverage: Coverage, log_end: &LogEnd, next: StreamPositions) -> Coverage {
    for stream in Stream::WRITTEN {
        let covered = coverage.positions.of_mut(stream);
        if *covered == log_end.positions.of(stream) {
            *covered = next.of(stream);
        }
    }
    coverage
}

/// What a recovered engine has to know before it serves.
fn complete(engine: &Engine, log: &Replayed) -> Result<()> {
    // Copies may have sequences that the log does not know.
    let unknown = log.highest - log.end.sequence;
    if unknown > 0 {
        engine.reserve_sequences(&mut lock(&engine.writer), unknown)?;
    }
    engine.update_version(|version| version.cold_read_mode = engine.cold_read_mode(version));
    engine.record_live_bytes();
    engine.estimate_recovered();
    Ok(())
}

/// The non-empty segments, made durable as recovered, and the files to delete.
fn retain_segments(
    found: LogSegments,
    log_end: &LogEnd,
    state: &State,
    sync_failed: bool,
) -> Result<(SegmentMap, Vec<PathBuf>)> {
    let mut unused = found.unused;
    let mut segments = Vec::new();
    for segment in found.segments {
        if segment.stream != Stream::Copies {
            // Segments behind the end, and an empty last one, are dropped.
            let tail = log_end.positions.of(segment.stream);
            let is_empty = segment.id == tail.segment && tail.offset <= FILE_HEADER_LEN;
            if segment.id > tail.segment || is_empty {
                unused.push(segment.path().to_owned());
                continue;
            }
            if segment.id == tail.segment {
                segment.complete(segment.written());
            }
        }
        make_durable(&segment, state, sync_failed)?;
        segments.push(segment);
    }
    Ok((segments.into_iter().collect(), unused))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Store;

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &to);
            } else {
                fs::copy(entry.path(), to).unwrap();
            }
        }
    }

    fn numbers(dir: &Path) -> Vec<u32> {
        let names = fs::read_dir(dir.join(LOG)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut numbers: Vec<u32> = names.filter_map(|name| segment::number(&name)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Power fails when a seal is durable but the segments it precedes are not. The process that
    /// recovers is killed before its manifest counts.
    #[test]
    fn segment_numbers_named_by_seals_are_not_reused() {
        let home = tempfile::tempdir().unwrap();
        let [dir, leftovers, again] = ["store", "left", "again"].map(|name| home.path().join(name));
        let options =
            || Options { background: false, segment: MIN_SEGMENT_LEN, ..Options::default() };
        let store = Store::open(&dir, options()).unwrap();
        store.table("t").unwrap().put(b"key", b"value").unwrap();
        store.sync().unwrap();
        let before = numbers(&dir);
        let [manifest, staging] = ["MANIFEST", "staging"].map(|name| fs::read(dir.join(name)));
        let engine = store.engine();
        // No seal names these.
        engine.create_segment(Stream::Copies, 0).unwrap();
        engine.create_segment(Stream::Copies, 0).unwrap();
        let mut make = |stream| engine.create_segment(stream, 0);
        lock(&engine.writer).seal_segments(&mut make).unwrap();
        engine.flush_staging().unwrap();
        let all = numbers(&dir);
        copy(&dir, &leftovers);
        fs::write(leftovers.join("staging"), staging.as_ref().unwrap()).unwrap();
        for lost in all.iter().filter(|number| !before.contains(number)) {
            fs::remove_file(leftovers.join(LOG).join(segment::name(*lost))).unwrap();
        }

        let _killed = Store::open(&leftovers, options()).unwrap();
        let made: Vec<u32> =
            numbers(&leftovers).into_iter().filter(|number| !before.contains(number)).collect();
        assert_eq!(made.len(), 2);
        assert!(made.iter().min() > all.iter().max(), "{made:?} is of {all:?}");
        copy(&leftovers, &again);
        fs::write(again.join("MANIFEST"), manifest.unwrap()).unwrap();
        fs::write(again.join("staging"), staging.unwrap()).unwrap();
        let store = Store::open(&again, options()).unwrap();
        assert_eq!(store.table("t").unwrap().get(b"key").unwrap().unwrap(), b"value");
        store.scrub().unwrap();
    }
}
