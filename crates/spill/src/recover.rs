//! Opening a directory: what is in the manifest, then the log behind what the levels have.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::inner::{Durable, Inner, Parts, Rest, state_of};
use crate::level::Level;
use crate::level::file::{self, IndexFile};
use crate::level::merge::Dead;
use crate::log::replay::{Tail, replay};
use crate::log::segment::{self, FILE_HEADER};
use crate::log::staging::Left;
use crate::log::{Cold, Segment, Staging, Stream, Writer};
use crate::manifest::{self, LevelState, Manifest, SegmentState, State};
use crate::options::Options;
use crate::position::{Point, Position, Tag};
use crate::record::{Hashes, Kind, Record};
use crate::version::{Generation, Segments, TableVersion, Version};

const FIRST_SEGMENT: u32 = 1;

/// Opens a directory, made if the options say so, and recovers what an earlier process left.
pub(crate) fn open(fs: Arc<dyn Fs>, dir: &Path, options: Options) -> Result<Inner> {
    options.check()?;
    let failed = |error| Error::io(dir, error);
    if options.create {
        fs.create_dir(dir).map_err(failed)?;
    }
    check_is_ours(&fs, dir)?;
    let lock = fs.lock(&dir.join("LOCK")).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked { path: dir.to_owned() },
        _ => Error::io(&dir.join("LOCK"), error),
    })?;
    let state = match Manifest::read(&fs, dir)? {
        Some(state) => state,
        None => create(&fs, dir)?,
    };
    let (log_dir, index_dir) = (dir.join("log"), dir.join("index"));
    remove_unused_indexes(&fs, &index_dir, &state)?;
    let mut tables: Vec<Option<Arc<TableVersion>>> = vec![None; state.next_table as usize];
    for table in &state.tables {
        let levels = table.levels.iter().map(|level| {
            let level = level.as_ref();
            level.map(|level| open_level(&fs, &index_dir, level).map(Arc::new)).transpose()
        });
        let levels = levels.collect::<Result<_>>()?;
        let slot = tables.get_mut(table.id as usize).ok_or_else(|| {
            Error::damaged(&manifest::path(dir), 0, "a table has a number never given")
        })?;
        *slot = Some(Arc::new(TableVersion { name: table.name.clone(), levels }));
    }
    let (staging, left) = Staging::open(&fs, dir)?;
    let staging = Arc::new(staging);
    let found = open_segments(&fs, &log_dir, &state)?;
    let generation = Generation::new(tables.len());
    let log = replay_log(&found, &state, &left, &tables, &generation)?;
    // What was recovered is made durable before anything new is written: it must not be lost by
    // a second failure, and what was cut off must not come back.
    let mut segments = Segments::default();
    let mut next_segment = state.next_segment.max(FIRST_SEGMENT);
    for segment in found {
        next_segment = next_segment.max(segment.id + 1);
        if segment.stream == Stream::Main && segment.id > log.tail.segment {
            segment.retire();
            continue;
        }
        if segment.stream == Stream::Main && segment.id == log.tail.segment {
            segment.complete(segment.written());
        }
        let was_synced = state.segments.iter().any(|known| {
            known.id == segment.id && known.end.is_some_and(|end| known.synced >= end)
        });
        if !was_synced {
            crate::sync::sync(&segment)?;
        }
        segments = segments.with(segment);
    }
    let first = Segment::create(&fs, &log_dir, next_segment, Stream::Main, options.segment)?;
    let first = Arc::new(first);
    crate::sync::sync(&first)?;
    fs.sync_dir(&log_dir).map_err(|error| Error::io(&log_dir, error))?;
    segments = segments.with(Arc::clone(&first));
    let version = Version {
        active: Arc::new(generation),
        frozen: Vec::new(),
        tables,
        segments,
        cold: Cold::Around,
    };
    let main = Point { segment: first.id, offset: FILE_HEADER };
    let copies = version
        .segments
        .iter()
        .filter(|segment| segment.stream == Stream::Copies)
        .map(|segment| Point { segment: segment.id, offset: segment.written() })
        .next_back()
        .unwrap_or_default();
    let rest = Rest {
        next_segment: next_segment + 1,
        next_index: state.next_index,
        next_table: state.next_table,
        covers: state.covers,
        main,
        copies,
        dead: &Dead::default(),
    };
    let manifest = Manifest::create(&fs, dir, &state_of(&version, &rest))?;
    let memory = version.active.bytes();
    let mut writer = Writer::new(first, Arc::clone(&staging), log.sequence);
    writer.memory = memory;
    let inner = Inner::new(Parts {
        fs,
        dir: dir.to_owned(),
        options,
        staging,
        version,
        durable: Durable { manifest, covers: state.covers, next_table: state.next_table },
        writer,
        next_segment: next_segment + 1,
        next_index: state.next_index,
        lock,
    });
    inner.synced.copies_synced(copies);
    inner.change(|version| version.cold = inner.cold(version));
    Ok(inner)
}

/// A directory without a manifest is ours only if there is nothing in it but what an earlier
/// attempt to make one left.
fn check_is_ours(fs: &Arc<dyn Fs>, dir: &Path) -> Result<()> {
    let names = fs.list(dir).map_err(|error| Error::io(dir, error))?;
    if names.iter().any(|name| name == "MANIFEST") {
        return Ok(());
    }
    let is_own = |name: &String| {
        manifest::is_own_name(name) || matches!(name.as_str(), "LOCK" | "staging" | "log" | "index")
    };
    let logs = if names.iter().any(|name| name == "log") {
        fs.list(&dir.join("log")).map_err(|error| Error::io(dir, error))?
    } else {
        Vec::new()
    };
    if !names.iter().all(is_own) || !logs.is_empty() {
        return Err(Error::Foreign { path: dir.to_owned() });
    }
    Ok(())
}

fn create(fs: &Arc<dyn Fs>, dir: &Path) -> Result<State> {
    for sub in [dir.join("log"), dir.join("index")] {
        fs.create_dir(&sub).map_err(|error| Error::io(&sub, error))?;
    }
    Staging::create(fs, dir)?;
    fs.sync_dir(dir).map_err(|error| Error::io(dir, error))?;
    let mut state = State { next_segment: FIRST_SEGMENT, next_index: 1, ..State::default() };
    state.covers.main = Point { segment: FIRST_SEGMENT, offset: FILE_HEADER };
    Manifest::create(fs, dir, &state)?;
    Ok(state)
}

fn remove_unused_indexes(fs: &Arc<dyn Fs>, dir: &Path, state: &State) -> Result<()> {
    let levels = state.tables.iter().flat_map(|table| table.levels.iter().flatten());
    let used: Vec<u32> = levels.flat_map(|level| level.files.iter().map(|file| file.0)).collect();
    for name in fs.list(dir).map_err(|error| Error::io(dir, error))? {
        if file::number(&name).is_some_and(|number| !used.contains(&number)) {
            let path = dir.join(&name);
            fs.remove(&path).map_err(|error| Error::io(&path, error))?;
        }
    }
    Ok(())
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
        files: files.collect::<Result<_>>()?,
    })
}

/// All segments that belong to the state, or came after it, in order; others are removed.
fn open_segments(fs: &Arc<dyn Fs>, dir: &Path, state: &State) -> Result<Vec<Arc<Segment>>> {
    let names = fs.list(dir).map_err(|error| Error::io(dir, error))?;
    let mut there: Vec<u32> = names.iter().filter_map(|name| segment::number(name)).collect();
    there.sort_unstable();
    let mut found = Vec::new();
    for known in &state.segments {
        // One whose name was not yet on the device may be missing.
        if known.synced > 0 && there.binary_search(&known.id).is_err() {
            let path = dir.join(segment::name(known.id));
            return Err(Error::damaged(&path, 0, "the file is missing"));
        }
    }
    for id in there {
        let known = state.segments.iter().find(|known| known.id == id);
        let is_new = id >= state.next_segment;
        let path = dir.join(segment::name(id));
        let remove = || fs.remove(&path).map_err(|error| Error::io(&path, error));
        let Some(known) =
            known.copied().or(is_new.then_some(SegmentState { id, end: None, synced: 0, dead: 0 }))
        else {
            remove()?;
            continue;
        };
        match Segment::open(fs, dir, id, known.end) {
            Ok(segment) => {
                segment.add_dead(known.dead);
                found.push(Arc::new(segment));
            }
            // Its begin was never on the device.
            Err(Error::Damaged { .. }) if known.synced == 0 => remove()?,
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

struct Replayed {
    tail: Point,
    /// The highest sequence that was seen.
    sequence: u64,
}

/// Fills the L0s with what the levels do not have.
fn replay_log(
    segments: &[Arc<Segment>],
    state: &State,
    left: &[Left],
    tables: &[Option<Arc<TableVersion>>],
    generation: &Generation,
) -> Result<Replayed> {
    let covers = state.covers;
    let mut sequence = covers.sequence;
    let mut take = |point: Point, record: &Record<'_>| {
        let header = record.header;
        sequence = sequence.max(header.sequence);
        if header.sequence <= covers.sequence {
            return;
        }
        let is_there = tables.get(header.table as usize).is_some_and(Option::is_some);
        if let Some(l0) = generation.l0(header.table).filter(|_| is_there) {
            let tombstone = header.kind == Kind::Delete;
            let tag = Tag::of(Hashes::of(record.key, b"").key);
            let position = Position::new(point.segment, point.offset, tombstone, tag);
            // SAFETY: nobody else has this generation yet.
            unsafe {
                let size = header.record_len() as u32;
                l0.insert(record.key, header.sequence, position, size);
            }
        }
    };
    // Copies first: a copy says what was true at its sequence, and nothing of the main stream
    // that is replayed here, of the same key, came before it.
    for segment in segments.iter().filter(|segment| segment.stream == Stream::Copies) {
        let is_covered = segment.id < covers.copies.segment;
        if is_covered && segment.end().is_some() {
            continue;
        }
        let from = if segment.id == covers.copies.segment {
            covers.copies.offset.max(FILE_HEADER)
        } else {
            FILE_HEADER
        };
        let known_end = segment.end();
        let to = known_end.unwrap_or(segment.capacity() as u32);
        let end = segment.walk(from, to, |offset, record| {
            if matches!(record.header.kind, Kind::Put | Kind::Delete) {
                take(Point { segment: segment.id, offset }, record);
            }
            Ok(true)
        })?;
        let synced = state.segments.iter().find(|known| known.id == segment.id);
        if known_end.is_some_and(|known| end < known)
            || synced.is_some_and(|known| end < known.synced)
        {
            return Err(segment.damaged(end, "a record is not what was written"));
        }
        segment.set_written(end);
        segment.complete(end);
    }
    let main: Vec<Arc<Segment>> =
        segments.iter().filter(|segment| segment.stream == Stream::Main).cloned().collect();
    let Tail(tail) = replay(covers.main, state.synced, left, &main, |point, record| {
        take(point, record);
        Ok(())
    })?;
    Ok(Replayed { tail, sequence })
}
