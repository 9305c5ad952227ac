//! Checkpoints: hard links to complete files, plus a manifest.

use std::io::ErrorKind;
use std::path::Path;

use crate::engine::{Engine, StateContext, state_of};
use crate::error::{Error, Result};
use crate::level::file;
use crate::level::merge::DeadBytes;
use crate::locks::lock;
use crate::manifest::{self, Manifest};
use crate::recovery::{INDEX, LOG, UNFINISHED, create_directories, is_empty};
use crate::stream::{LogPosition, Stream};
use crate::value_log::Staging;
use crate::value_log::segment;
use std::sync::atomic::Ordering;

impl Engine {
    pub(crate) fn checkpoint(&self, into: &Path) -> Result<()> {
        let failed = |error| Error::io(into, error);
        self.check_writable()?;
        let _boost = self.priority.boost();
        // Nothing is compacted or deleted meanwhile, and no batch of copies is half inserted.
        let mut collector = lock(&self.collector);
        let compaction = lock(&self.compaction);
        let durable = lock(&self.durable);
        create_directories(&self.outer_fs, into)?;
        // Until it is complete, the copy must not be taken for a store.
        let unfinished = into.join(UNFINISHED);
        let names = self.outer_fs.list(into).map_err(failed)?;
        // Leftovers of another checkpoint are not ours to delete: it may have become a store.
        if names.iter().any(|name| name == UNFINISHED) {
            return Err(Error::Unfinished { path: into.to_owned() });
        }
        if !is_empty(&names) {
            return Err(Error::NotEmpty { path: into.to_owned() });
        }
        let link = |from: &Path, to: &Path| {
            self.log.fs.hard_link(from, to).map_err(|error| match error.kind() {
                ErrorKind::CrossesDevices => {
                    let what = "a checkpoint must be on the file system of its store";
                    Error::io(into, std::io::Error::new(error.kind(), what))
                }
                _ => Error::io(to, error),
            })
        };
        // The mark is a link itself: where links fail, nothing is begun.
        link(&manifest::path(&self.dir), &unfinished)?;
        self.outer_fs.sync_dir(into).map_err(failed)?;
        let (version, mut positions) = {
            let mut writer = lock(&self.writer);
            // Linked segments must not grow any more.
            let positions = writer.seal_segments(&mut |stream| self.take_segment(stream))?;
            (self.version.load_full(), positions)
        };
        if let Some(copies) = collector.end_segment() {
            copies.complete(copies.written());
        }
        self.sync_to(positions)?;
        self.sync_copies()?;
        let (log_dir, index_dir) = (into.join(LOG), into.join(INDEX));
        for dir in [&log_dir, &index_dir] {
            self.outer_fs.create_dir(dir).map_err(|error| Error::io(dir, error))?;
        }
        // Segments begun for later writes are left out.
        let segments = version.segments.filtered(|segment| {
            segment.stream == Stream::Copies || segment.id < positions.of(segment.stream).segment
        });
        for file in segments.iter() {
            if file.stream == Stream::Copies {
                positions.copies = LogPosition { segment: file.id, offset: file.written() };
            }
            link(file.path(), &log_dir.join(segment::name(file.id)))?;
        }
        let tables = version.tables.iter().flatten();
        let levels = tables.flat_map(|table| table.levels.iter().flatten());
        let mut linked = std::collections::HashSet::new();
        for (file, _) in levels.flat_map(|level| &level.files) {
            if linked.insert(file.id) {
                link(file.path(), &index_dir.join(file::name(file.id)))?;
            }
        }
        Staging::create(&self.outer_fs, into)?;
        for dir in [&log_dir, &index_dir, &into.to_path_buf()] {
            self.outer_fs.sync_dir(dir).map_err(|error| Error::io(dir, error))?;
        }
        let context = StateContext {
            next_segment: *lock(&self.next_segment),
            next_index: self.next_index.load(Ordering::Relaxed),
            next_table: durable.next_table,
            state: 0,
            store: self.log.store,
            synced: positions,
            dead: &DeadBytes::default(),
        };
        let mut version = crate::version::Version::clone(&version);
        version.segments = segments;
        Manifest::create(&self.outer_fs, into, &state_of(&version, &context))?;
        self.outer_fs.remove(&unfinished).map_err(failed)?;
        self.outer_fs.sync_dir(into).map_err(failed)?;
        drop((collector, compaction, durable));
        Ok(())
    }
}
