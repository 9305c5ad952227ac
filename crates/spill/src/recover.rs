//! Opening a directory: what is in the manifest, then the log behind what the levels have.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checkpoint::UNFINISHED;
use crate::error::{Error, Result};
use crate::fs::{Fs, Overlay, write_whole};
use crate::inner::{Durable, Inner, Parts, Rest, state_of};
use crate::l0::Blocks;
use crate::level::Level;
use crate::level::file::{self, IndexFile};
use crate::level::merge::Dead;
use crate::log::reader::{Buffer, Found, Reader};
use crate::log::replay::{Tails, replay};
use crate::log::segment::{self, FILE_HEADER};
use crate::log::staging::LeftBehind;
use crate::log::{Cold, Segment, Staging, Writer};
use crate::manifest::{self, Last, LevelState, Manifest, SegmentState, State};
use crate::options::{Durability, Options, SMALLEST_SEGMENT};
use crate::position::{Position, Tag};
use crate::record::{Kind, Record};
use crate::stream::{Places, Point, Stream};
use crate::version::{Generation, Segments, TableVersion, Version};

/// Held by who has the store open.
pub(crate) const LOCK: &str = "LOCK";

/// Opens a directory, made if the options say so, and recovers what an earlier process left.
///
/// Nothing is removed before the manifest tells of what was recovered, durably: until then a
/// second failure finds everything as it was.
pub(crate) fn open(fs: Arc<dyn Fs>, dir: &Path, options: Options) -> Result<Inner> {
    options.check()?;
    if options.create && !options.read_only {
        make_folder(&fs, dir)?;
    }
    // The folder may get another name meanwhile, and what it had be given to another.
    let fs = fs.hold(dir).map_err(|error| no_folder(dir, error))?.unwrap_or(fs);
    if !options.read_only {
        return recover(fs, dir, options);
    }
    // Nothing is written that would have to be durable, merged or collected.
    let durability = Durability::None;
    // New segments, which stay empty, are in memory.
    let segment = SMALLEST_SEGMENT;
    let options = Options { create: false, background: false, durability, segment, ..options };
    let inner = recover(Arc::new(Overlay::new(fs)), dir, options)?;
    inner.halt(&Error::ReadOnly);
    Ok(inner)
}

fn recover(fs: Arc<dyn Fs>, dir: &Path, options: Options) -> Result<Inner> {
    let take_lock = || {
        fs.lock(&dir.join(LOCK)).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => Error::Locked { path: dir.to_owned() },
            _ => Error::io(&dir.join(LOCK), error),
        })
    };
    let is_new = match check_is_ours(&fs, dir, options.create) {
        // Somebody may have been making it: what is there without him counts.
        Err(_) if fs.list(dir).is_ok_and(|names| names.iter().any(|name| name == LOCK)) => {
            let _alone = take_lock()?;
            check_is_ours(&fs, dir, options.create)?
        }
        other => other?,
    };
    let lock = take_lock()?;
    let last = match Manifest::read(&fs, dir)? {
        Some(read) => {
            // Who made it may have been killed before its name was durable, and a log without one is
            // not taken for a store.
            fs.sync_dir(dir).map_err(|error| Error::io(dir, error))?;
            read
        }
        None if is_new => create(&fs, dir)?,
        None => return Err(Error::NoStore { path: dir.to_owned() }),
    };
    let state = &last.state;
    let (log_dir, index_dir) = (dir.join("log"), dir.join("index"));
    let (staging, left) = Staging::open(&fs, dir)?;
    if state.number < left.state {
        return Err(last.is_not_last(dir, "a later state was on the device"));
    }
    let staging = Arc::new(staging);
    let tables = open_tables(&fs, dir, state)?;
    let found = open_segments(&fs, &log_dir, state)?;
    let blocks = Arc::new(Blocks::new(if options.background { options.memory } else { 0 }));
    let generation = Generation::new(tables.len(), &blocks);
    let log = replay_log(&found, dir, &last, &left, &tables, &generation)?;
    // Numbers that were ever given are not given again: a slot or a file of before might be
    // taken for one of the new segment.
    let slots = left.slots.iter().map(|slot| slot.segment + 1);
    let mut next_segment = slots.chain([state.next_segment, found.next]).max().unwrap_or(0);
    let mut unused = found.unused;
    let mut segments = Segments::default();
    for segment in found.segments {
        if segment.stream != Stream::Copies {
            // What lies behind the end, and a last one without records, is nothing.
            let tail = log.tails.places.of(segment.stream);
            let is_empty = segment.id == tail.segment && tail.offset <= FILE_HEADER;
            if segment.id > tail.segment || is_empty {
                unused.push(segment.path().to_owned());
                continue;
            }
            if segment.id == tail.segment {
                segment.complete(segment.written());
            }
        }
        make_durable(&segment, state, left.sync_failed)
            .inspect_err(|_| staging.note_failure(true))?;
        segments = segments.with(segment);
    }
    let mut begin = |stream| {
        let segment = Segment::create(&fs, &log_dir, next_segment, stream, options.segment)?;
        let segment = Arc::new(segment);
        next_segment += 1;
        crate::sync::sync(&segment)?;
        segments = segments.with(Arc::clone(&segment));
        Ok(segment)
    };
    let (main, hot) = (begin(Stream::Main)?, begin(Stream::Hot)?);
    fs.sync_dir(&log_dir).map_err(|error| Error::io(&log_dir, error))?;
    let mut version = Version {
        active: Arc::new(generation),
        frozen: Vec::new(),
        tables,
        segments,
        covers: state.covers,
        hidden_in_levels: state.hidden_in_levels,
        cold: Cold::Around,
    };
    let copies = version
        .segments
        .iter()
        .filter(|segment| segment.stream == Stream::Copies)
        .map(|segment| Point { segment: segment.id, offset: segment.written() })
        .next_back()
        .unwrap_or_default();
    let begin_of = |segment: &Segment| Point { segment: segment.id, offset: FILE_HEADER };
    let places = Places { main: begin_of(&main), hot: begin_of(&hot), copies };
    for stream in Stream::WRITTEN {
        let covered = version.covers.places.of_mut(stream);
        if *covered == log.tails.places.of(stream) {
            // Nothing was behind it; its segment may be gone.
            *covered = places.of(stream);
        }
    }
    let rest = Rest {
        next_segment,
        next_index: state.next_index,
        next_table: state.next_table,
        state: state.number + 1,
        synced: places,
        dead: &Dead::default(),
    };
    let manifest = Manifest::create(&fs, dir, &state_of(&version, &rest))?;
    staging.note_state(manifest.number());
    staging.note_synced(places);
    staging.note_failure(false);
    remove_unused(&fs, &index_dir, state, unused)?;
    let memory = version.active.bytes();
    let mut writer = Writer::new(
        main,
        hot,
        &staging,
        log.tails.sequence,
        // With `Sync` a write must be in its segment before it counts: then that cannot fail
        // later, when it is synced.
        options.durability == Durability::Sync,
        options.background,
        options.cached_writes,
    );
    writer.memory = memory;
    writer.copies_begin = copies;
    let inner = Inner::new(Parts {
        fs,
        dir: dir.to_owned(),
        options,
        staging,
        blocks,
        version,
        durable: Durable { manifest, next_table: state.next_table },
        writer,
        next_segment,
        next_index: state.next_index,
        lock,
    });
    inner.synced.copies_synced(copies);
    // Copies may have sequences of which the log knows nothing.
    let unknown = log.highest - log.tails.sequence;
    if unknown > 0 {
        inner.set_aside(&mut crate::inner::lock(&inner.writer), unknown)?;
    }
    inner.change(|version| version.cold = inner.cold(version));
    inner.note_live();
    inner.weigh_recovered();
    Ok(inner)
}

/// Makes a folder and those above it, durably.
pub(crate) fn make_folder(fs: &Arc<dyn Fs>, dir: &Path) -> Result<()> {
    use std::io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    let all: Vec<&Path> = dir.ancestors().filter(|dir| !dir.as_os_str().is_empty()).collect();
    let missing = all.iter().take_while(|dir| fs.list(dir).is_err()).count();
    // An earlier attempt may have ended before the name of what it made was durable.
    if let Some(parent) = all.get(missing).and_then(|dir| folder_of(dir)) {
        match fs.sync_dir(parent).map_err(|error| (error.kind(), error)) {
            // One that cannot be read, written or synced by us is not where we made anything.
            Ok(())
            | Err((PermissionDenied | ReadOnlyFilesystem | InvalidInput | Unsupported, _)) => {}
            Err((_, error)) => return Err(Error::io(parent, error)),
        }
    }
    for dir in all[..missing].iter().rev() {
        fs.create_dir(dir).map_err(|error| Error::io(dir, error))?;
        let parent = folder_of(dir).unwrap_or(dir);
        fs.sync_dir(parent).map_err(|error| Error::io(parent, error))?;
    }
    Ok(())
}

/// The folder that a path is in; None: it is the root.
fn folder_of(path: &Path) -> Option<&Path> {
    let parent = path.parent()?;
    Some(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

/// A segment as it was recovered is on the device when this returns.
fn make_durable(segment: &Segment, state: &State, sync_failed: bool) -> Result<()> {
    let known = state.segments.iter().find(|known| known.id == segment.id);
    if known.is_some_and(|known| known.end.is_some()) {
        return Ok(());
    }
    if sync_failed {
        // The page cache may hold as clean what never was written.
        let bytes = segment.read(0, segment.written())?;
        write_whole(&*segment.file, &bytes, 0).map_err(|error| Error::io(segment.path(), error))?;
    }
    segment.file.sync().map_err(|error| Error::io(segment.path(), error))
}

/// Made by file systems in their root.
const LOST_AND_FOUND: &str = "lost+found";

/// Whether a folder with these names has nothing of anybody.
pub(crate) fn is_empty(names: &[String]) -> bool {
    names.iter().all(|name| name == LOST_AND_FOUND)
}

fn no_folder(dir: &Path, error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => Error::NoStore { path: dir.to_owned() },
        _ => Error::io(dir, error),
    }
}

/// Whether a store is to be made here. A directory without a manifest is ours only if there is
/// nothing in it but what an earlier attempt to make one left.
fn check_is_ours(fs: &Arc<dyn Fs>, dir: &Path, create: bool) -> Result<bool> {
    let failed = |error| no_folder(dir, error);
    let names = fs.list(dir).map_err(failed)?;
    let is_there = |name: &str| names.iter().any(|there| there == name);
    if is_there("MANIFEST") {
        return Ok(false);
    }
    let is_own = |name: &String| {
        manifest::is_own_name(name)
            || matches!(
                name.as_str(),
                LOCK | UNFINISHED | "staging" | "log" | "index" | LOST_AND_FOUND
            )
    };
    let foreign = || Err(Error::Foreign { path: dir.to_owned() });
    if !names.iter().all(is_own) {
        return foreign();
    }
    if is_there(UNFINISHED) {
        return Err(Error::Unfinished { path: dir.to_owned() });
    }
    let is_filled = |name: &str| match fs.list(&dir.join(name)) {
        _ if !is_there(name) => Ok(false),
        Ok(names) => Ok(!names.is_empty()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(true),
        Err(error) => Err(failed(error)),
    };
    // The manifest comes last, behind what is empty.
    let (has_log, has_index) = (is_filled("log")?, is_filled("index")?);
    if has_log && is_there("staging") && is_there("index") {
        return Err(Error::damaged(&manifest::path(dir), 0, "the file is missing"));
    }
    if has_log || has_index || !Staging::is_new(fs, dir)? {
        return foreign();
    }
    if !create {
        return Err(Error::NoStore { path: dir.to_owned() });
    }
    Ok(true)
}

fn create(fs: &Arc<dyn Fs>, dir: &Path) -> Result<Last> {
    for sub in [dir.join("log"), dir.join("index")] {
        fs.create_dir(&sub).map_err(|error| Error::io(&sub, error))?;
    }
    Staging::create(fs, dir)?;
    fs.sync_dir(dir).map_err(|error| Error::io(dir, error))?;
    let state = State { next_segment: 1, next_index: 1, ..State::default() };
    Ok(Manifest::create(fs, dir, &state)?.last())
}

fn remove_unused(
    fs: &Arc<dyn Fs>,
    index_dir: &Path,
    state: &State,
    mut unused: Vec<PathBuf>,
) -> Result<()> {
    let levels = state.tables.iter().flat_map(|table| table.levels.iter().flatten());
    let used: Vec<u32> = levels.flat_map(|level| level.files.iter().map(|file| file.0)).collect();
    for name in fs.list(index_dir).map_err(|error| Error::io(index_dir, error))? {
        if file::number(&name).is_some_and(|number| !used.contains(&number)) {
            unused.push(index_dir.join(&name));
        }
    }
    for path in unused {
        fs.remove(&path).map_err(|error| Error::io(&path, error))?;
    }
    Ok(())
}

fn open_tables(
    fs: &Arc<dyn Fs>,
    dir: &Path,
    state: &State,
) -> Result<Vec<Option<Arc<TableVersion>>>> {
    let mut tables = vec![None; state.next_table as usize];
    for table in &state.tables {
        let levels = table.levels.iter().map(|level| {
            let level = level.as_ref();
            level.map(|level| open_level(fs, &dir.join("index"), level).map(Arc::new)).transpose()
        });
        let levels = levels.collect::<Result<_>>()?;
        let slot = tables.get_mut(table.id as usize).ok_or_else(|| {
            Error::damaged(&manifest::path(dir), 0, "a table has a number never given")
        })?;
        *slot = Some(Arc::new(TableVersion { name: table.name.clone(), levels }));
    }
    Ok(tables)
}

fn open_level(fs: &Arc<dyn Fs>, dir: &Path, state: &LevelState) -> Result<Level> {
    let files = state
        .files
        .iter()
        .map(|&(id, pages, used)| Ok((Arc::new(IndexFile::open(fs, dir, id, pages)?), used)));
    Ok(Level {
        root: state.root,
        height: state.height,
        entries: state.entries,
        filter: state.filter(),
        files: files.collect::<Result<_>>()?,
    })
}

/// What is in the folder of the log.
struct FoundSegments {
    /// Those that belong to the state, or came after it, in order.
    segments: Vec<Arc<Segment>>,
    /// A number above all that are there.
    next: u32,
    /// Files that are nothing.
    unused: Vec<PathBuf>,
    /// Why those are not opened that have the name of a segment.
    broken: HashMap<u32, Error>,
}

fn open_segments(fs: &Arc<dyn Fs>, dir: &Path, state: &State) -> Result<FoundSegments> {
    let names = fs.list(dir).map_err(|error| Error::io(dir, error))?;
    let mut there: Vec<u32> = names.iter().filter_map(|name| segment::number(name)).collect();
    there.sort_unstable();
    for known in &state.segments {
        // One whose name was not yet on the device may be missing.
        if known.synced > 0 && there.binary_search(&known.id).is_err() {
            let path = dir.join(segment::name(known.id));
            return Err(Error::damaged(&path, 0, "the file is missing"));
        }
    }
    let next = there.last().map_or(0, |last| last + 1);
    let mut found =
        FoundSegments { segments: Vec::new(), next, unused: Vec::new(), broken: HashMap::new() };
    for id in there {
        let known = state.segments.iter().find(|known| known.id == id);
        let is_new = id >= state.next_segment;
        let fresh = SegmentState { id, end: None, synced: 0, dead: 0 };
        let Some(known) = known.copied().or(is_new.then_some(fresh)) else {
            found.unused.push(dir.join(segment::name(id)));
            continue;
        };
        match Segment::open(fs, dir, id, known.end) {
            Ok(segment) => {
                segment.add_dead(known.dead);
                found.segments.push(Arc::new(segment));
            }
            // Its begin was never on the device; if it should have been, replaying misses it.
            Err(error @ Error::Damaged { .. }) if known.synced == 0 => {
                found.broken.insert(id, error);
                found.unused.push(dir.join(segment::name(id)));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

struct Replayed {
    tails: Tails,
    /// The highest sequence that was seen, be it a copy's.
    highest: u64,
}

/// Fills the L0s with what the levels do not have.
fn replay_log(
    found: &FoundSegments,
    dir: &Path,
    last: &Last,
    left: &LeftBehind,
    tables: &[Option<Arc<TableVersion>>],
    generation: &Generation,
) -> Result<Replayed> {
    let (state, log_dir) = (&last.state, dir.join("log"));
    let segments = &found.segments;
    let covers = state.covers;
    let mut highest = covers.sequence;
    let mut take = |point: Point, record: &Record<'_>| {
        let header = record.header;
        highest = highest.max(header.sequence);
        if header.sequence <= covers.sequence {
            return Ok(());
        }
        let Some(table) = tables.get(header.table as usize) else {
            // A table is in the manifest, durably, before anything is written to it.
            return Err(last.is_not_last(dir, "the log has records of a table that is not told of"));
        };
        // Of one that was dropped nothing counts.
        if let Some(l0) = generation.l0(header.table).filter(|_| table.is_some()) {
            let tombstone = header.kind == Kind::Delete;
            let tag = Tag::of_key(record.key);
            let position = Position::new(point.segment, point.offset, tombstone, tag);
            // SAFETY: nobody else has this generation yet.
            unsafe {
                let size = header.record_len() as u32;
                l0.insert(record.key, header.sequence, position, size);
            }
        }
        Ok(())
    };
    // Copies first: a copy says what was true at its sequence, and nothing of what is replayed behind
    // it, of the same key, came before it.
    let mut buffer = Buffer::default();
    for segment in segments.iter().filter(|segment| segment.stream == Stream::Copies) {
        let covered = covers.places.copies;
        let is_covered = segment.id < covered.segment;
        if is_covered && segment.end().is_some() {
            continue;
        }
        let from = if segment.id == covered.segment {
            covered.offset.max(FILE_HEADER)
        } else {
            FILE_HEADER
        };
        let known_end = segment.end();
        let to = known_end.unwrap_or(segment.capacity() as u32);
        let mut reader = Reader::new(segment, from, to, &mut buffer);
        while let Some(Found { offset, record, .. }) = reader.next()? {
            if matches!(record.header.kind, Kind::Put | Kind::Delete) {
                take(Point { segment: segment.id, offset }, &record)?;
            }
        }
        let end = reader.at();
        let synced = state.segments.iter().find(|known| known.id == segment.id);
        if known_end.is_some_and(|known| end < known)
            || synced.is_some_and(|known| end < known.synced)
        {
            return Err(segment.damaged(end, "a record is not what was written"));
        }
        segment.set_written(end);
        segment.complete(end);
    }
    let synced = state.synced.max(left.synced);
    let missing = |id| {
        let why = found.broken.get(&id).map(Error::again);
        why.unwrap_or_else(|| {
            Error::damaged(&log_dir.join(segment::name(id)), 0, "the file is missing")
        })
    };
    let tails = replay(covers, synced, &left.slots, segments, missing, take)?;
    Ok(Replayed { tails, highest: highest.max(tails.sequence) })
}
