//! Opens the files that a manifest state names.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::fs::write_all_at;
use crate::level::Level;
use crate::level::file::{self, IndexFile};
use crate::manifest::{self, LevelState, SegmentState, State};
use crate::value_log::Segment;
use crate::value_log::segment;
use crate::version::TableVersion;

pub(super) fn remove_unused(
    index: &Directory,
    state: &State,
    mut unused: Vec<PathBuf>,
) -> Result<()> {
    let levels = state.tables.iter().flat_map(|table| table.levels.iter().flatten());
    let used: Vec<u32> = levels.flat_map(|level| level.files.iter().map(|file| file.0)).collect();
    for name in index.names()? {
        if file::number(&name).is_some_and(|number| !used.contains(&number)) {
            unused.push(index.join(&name));
        }
    }
    for path in unused {
        index.fs.remove(&path).map_err(|error| Error::io(&path, error))?;
    }
    Ok(())
}

pub(super) fn open_tables(
    index: &Directory,
    dir: &Path,
    state: &State,
) -> Result<Vec<Option<Arc<TableVersion>>>> {
    let mut tables = vec![None; state.next_table as usize];
    for table in &state.tables {
        let levels = table.levels.iter().map(|level| {
            let level = level.as_ref();
            level.map(|level| open_level(index, level).map(Arc::new)).transpose()
        });
        let levels = levels.collect::<Result<_>>()?;
        let slot = tables.get_mut(table.id as usize).ok_or_else(|| {
            Error::damaged(&manifest::path(dir), 0, "a table has an unassigned number")
        })?;
        *slot = Some(Arc::new(TableVersion { name: table.name.clone(), levels }));
    }
    Ok(tables)
}

pub(super) fn open_level(index: &Directory, state: &LevelState) -> Result<Level> {
    let files = state
        .files
        .iter()
        .map(|&(id, pages, used)| Ok((Arc::new(IndexFile::open(index, id, pages)?), used)));
    Ok(Level {
        root: state.root,
        height: state.height,
        entries: state.entries,
        filter: state.filter(),
        files: files.collect::<Result<_>>()?,
    })
}

/// Content of the log directory.
pub(super) struct LogSegments {
    /// Segments of the state, and newer ones, in order.
    pub(super) segments: Vec<Arc<Segment>>,
    /// A number above all existing ones.
    pub(super) next: u32,
    /// Files to delete.
    pub(super) unused: Vec<PathBuf>,
    /// Why files with segment names were not opened.
    pub(super) broken: HashMap<u32, Error>,
}

pub(super) fn open_segments(log: &Directory, state: &State) -> Result<LogSegments> {
    let names = log.names()?;
    let mut there: Vec<u32> = names.iter().filter_map(|name| segment::number(name)).collect();
    there.sort_unstable();
    for known in &state.segments {
        // It may be missing if its name was not durable.
        if known.synced > 0 && there.binary_search(&known.id).is_err() {
            let path = log.join(segment::name(known.id));
            return Err(Error::damaged(&path, 0, "the file is missing"));
        }
    }
    let next = there.last().map_or(0, |last| last + 1);
    let mut found =
        LogSegments { segments: Vec::new(), next, unused: Vec::new(), broken: HashMap::new() };
    for id in there {
        let known = state.segment(id);
        let is_new = id >= state.next_segment;
        let fresh = SegmentState { id, end: None, synced: 0, dead: 0 };
        let Some(known) = known.copied().or(is_new.then_some(fresh)) else {
            found.unused.push(log.join(segment::name(id)));
            continue;
        };
        match Segment::open(log, id, known.end, known.synced) {
            Ok(segment) => {
                segment.add_dead(known.dead);
                found.segments.push(Arc::new(segment));
            }
            // Its header was never durable; if it should have been, replay reports it.
            Err(error @ Error::Damaged { .. }) if known.synced == 0 => {
                found.broken.insert(id, error);
                found.unused.push(log.join(segment::name(id)));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Makes a recovered segment durable.
pub(super) fn make_durable(segment: &Segment, state: &State, sync_failed: bool) -> Result<()> {
    let known = state.segment(segment.id);
    if known.is_some_and(|known| known.end.is_some()) {
        return Ok(());
    }
    if sync_failed {
        // After a failed sync the page cache may hold unwritten data as clean.
        let bytes = segment.read(0, segment.written())?;
        write_all_at(&*segment.file, &bytes, 0)
            .map_err(|error| Error::io(segment.path(), error))?;
    }
    segment.file.sync().map_err(|error| Error::io(segment.path(), error))
}
