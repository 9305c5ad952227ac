//! Opening a directory: what is in the manifest, then the log behind what the levels have.

mod files;
mod fill;
mod folder;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::fs::{Fs, Overlay};
use crate::inner::{Durable, Inner, Parts, Rest, state_of};
use crate::l0::Blocks;
use crate::level::merge::Dead;
use crate::log::replay::Tails;
use crate::log::segment::{self, FILE_HEADER};
use crate::log::{Cold, Segment, Staging, Writer};
use crate::manifest::{self, Last, Manifest, State};
use crate::options::{Durability, Options, SMALLEST_SEGMENT};
use crate::segments::Segments;
use crate::stream::{Places, Point, Stream};
use crate::version::{Generation, Version};

use files::{FoundSegments, make_durable, open_segments, open_tables, remove_unused};
use fill::replay_log;
pub(crate) use folder::{INDEX, LOG, is_empty, make_folder};
use folder::{check_is_ours, no_folder};

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
    let held = fs.hold(dir, &[LOG, INDEX]).map_err(|error| no_folder(dir, error))?;
    let held = held.unwrap_or_else(|| Arc::clone(&fs));
    if !options.read_only {
        return recover(held, fs, dir, options);
    }
    // Nothing is written that would have to be durable, merged or collected.
    let durability = Durability::None;
    // New segments, which stay empty, are in memory.
    let segment = SMALLEST_SEGMENT;
    let options = Options { create: false, background: false, durability, segment, ..options };
    let inner = recover(Arc::new(Overlay::new(held)), fs, dir, options)?;
    inner.halt(&Error::ReadOnly);
    Ok(inner)
}

/// Takes the directory for this process; what is there, or is made.
fn take(fs: &Arc<dyn Fs>, dir: &Path, create: bool) -> Result<(Box<dyn Send + Sync>, Last)> {
    let lock = fs.lock(dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked { path: dir.to_owned() },
        _ => no_folder(dir, error),
    })?;
    let is_new = check_is_ours(fs, dir, create)?;
    let last = match Manifest::read(fs, dir)? {
        Some(read) => {
            // Who made it may have been killed before its name was durable, and a log without one is
            // not taken for a store.
            fs.sync_dir(dir).map_err(|error| Error::io(dir, error))?;
            folder::complete(fs, dir, &read.state)?;
            read
        }
        None if is_new => folder::create(fs, dir)?,
        // A link that leads nowhere has its name.
        None => return Err(Error::damaged(&manifest::path(dir), 0, "the file is missing")),
    };
    Ok((lock, last))
}

/// Recovers on `fs`, in which the directory stays what it is; `around` is where other paths lead.
fn recover(fs: Arc<dyn Fs>, around: Arc<dyn Fs>, dir: &Path, options: Options) -> Result<Inner> {
    let (lock, last) = take(&fs, dir, options.create)?;
    let state = &last.state;
    let folder = |name| Folder::new(&fs, dir.join(name), state.store);
    let (log_folder, index) = (folder(LOG), folder(INDEX));
    let (staging, left) = Staging::open(&fs, dir, state.store)?;
    if state.number < left.state {
        return Err(last.is_not_last(dir, "a later state was on the device"));
    }
    let staging = Arc::new(staging);
    let tables = open_tables(&index, dir, state)?;
    let found = open_segments(&log_folder, state)?;
    let blocks = Arc::new(Blocks::new(if options.background { options.memory } else { 0 }));
    let generation = Generation::new(tables.len(), &blocks);
    let log = replay_log(&found, dir, &last, &left, &tables, &generation)?;
    // Numbers that were ever given are not given again: a slot, a file or a seal of before might be
    // taken for one of the new segment. Of one whose name was lost the seal before it may tell alone.
    let slots = left.slots.iter().map(|slot| slot.segment);
    let ends = Stream::WRITTEN.map(|stream| log.tails.places.of(stream).segment);
    let given = slots.chain(ends).map(|segment| segment + 1);
    let mut next_segment = given.chain([state.next_segment, found.next]).max().unwrap_or(0);
    let (mut segments, unused) = keep(found, &log.tails, state, left.sync_failed)
        .inspect_err(|_| staging.note_failure(true))?;
    let mut begin = |stream| {
        if !options.read_only {
            segment::check_number(next_segment)?;
        }
        let segment = Segment::create(&log_folder, next_segment, stream, options.segment)?;
        let segment = Arc::new(segment);
        next_segment += 1;
        crate::sync::sync(&segment)?;
        segments = segments.with(Arc::clone(&segment));
        Ok(segment)
    };
    let (main, hot) = (begin(Stream::Main)?, begin(Stream::Hot)?);
    log_folder.sync()?;
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
        store: state.store,
        synced: places,
        dead: &Dead::default(),
    };
    let manifest = Manifest::create(&fs, dir, &state_of(&version, &rest))?;
    staging.note_state(manifest.number());
    staging.note_synced(places);
    if !options.read_only {
        staging.clear(left.sync_failed).inspect_err(|_| staging.note_failure(true))?;
    }
    staging.note_failure(false);
    if !options.read_only {
        remove_unused(&index, state, unused)?;
    }
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
        around,
        dir: dir.to_owned(),
        log: log_folder,
        index,
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

/// The segments that have something, on the device as they were recovered, and the files of others.
fn keep(
    found: FoundSegments,
    tails: &Tails,
    state: &State,
    sync_failed: bool,
) -> Result<(Segments, Vec<PathBuf>)> {
    let mut unused = found.unused;
    let mut segments = Vec::new();
    for segment in found.segments {
        if segment.stream != Stream::Copies {
            // What lies behind the end, and a last one without records, is nothing.
            let tail = tails.places.of(segment.stream);
            let is_empty = segment.id == tail.segment && tail.offset <= FILE_HEADER;
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
    use crate::inner::lock;

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

    /// The power goes when a seal is on the device and the names of the segments that came then are not,
    /// and the process that opens what is left is killed before its manifest counts.
    #[test]
    fn numbers_that_seals_name_are_not_given_again() {
        let home = tempfile::tempdir().unwrap();
        let [dir, left, again] = ["store", "left", "again"].map(|name| home.path().join(name));
        let options =
            || Options { background: false, segment: SMALLEST_SEGMENT, ..Options::default() };
        let store = Store::open(&dir, options()).unwrap();
        store.table("t").unwrap().put(b"key", b"value").unwrap();
        store.sync().unwrap();
        let before = numbers(&dir);
        let [manifest, staging] = ["MANIFEST", "staging"].map(|name| fs::read(dir.join(name)));
        let inner = store.inner();
        // Of these no seal tells.
        inner.make_segment(Stream::Copies, 0).unwrap();
        inner.make_segment(Stream::Copies, 0).unwrap();
        let mut make = |stream| inner.make_segment(stream, 0);
        lock(&inner.writer).end_segments(&mut make).unwrap();
        inner.write_out().unwrap();
        let all = numbers(&dir);
        copy(&dir, &left);
        fs::write(left.join("staging"), staging.as_ref().unwrap()).unwrap();
        for lost in all.iter().filter(|number| !before.contains(number)) {
            fs::remove_file(left.join(LOG).join(segment::name(*lost))).unwrap();
        }

        let _killed = Store::open(&left, options()).unwrap();
        let made: Vec<u32> =
            numbers(&left).into_iter().filter(|number| !before.contains(number)).collect();
        assert_eq!(made.len(), 2);
        assert!(made.iter().min() > all.iter().max(), "{made:?} is of {all:?}");
        copy(&left, &again);
        fs::write(again.join("MANIFEST"), manifest.unwrap()).unwrap();
        fs::write(again.join("staging"), staging.unwrap()).unwrap();
        let store = Store::open(&again, options()).unwrap();
        assert_eq!(store.table("t").unwrap().get(b"key").unwrap().unwrap(), b"value");
        store.scrub().unwrap();
    }
}
