//! A copy of a store as it is at one moment: hard links of what is complete, and a manifest.

use std::io::ErrorKind;
use std::path::Path;

use crate::error::{Error, Result};
use crate::inner::{Inner, Rest, lock, state_of};
use crate::level::file;
use crate::level::merge::Dead;
use crate::log::Staging;
use crate::log::segment;
use crate::manifest::{self, Manifest};
use crate::recover::{INDEX, LOG, is_empty, make_folder};
use crate::stream::{Point, Stream};
use std::sync::atomic::Ordering;

/// Marks the directory of a checkpoint that is not complete.
pub(crate) const UNFINISHED: &str = "UNFINISHED";

impl Inner {
    pub(crate) fn checkpoint(&self, into: &Path) -> Result<()> {
        let failed = |error| Error::io(into, error);
        self.may_write()?;
        let _waiting = self.niceness.wait();
        // Nothing is merged or removed meanwhile, and no batch of copies is half entered.
        let mut collector = lock(&self.collector);
        let merging = lock(&self.merging);
        let durable = lock(&self.durable);
        make_folder(&self.around, into)?;
        // Until the copy is complete it is not taken for a store.
        let unfinished = into.join(UNFINISHED);
        let names = self.around.list(into).map_err(failed)?;
        // What is left of another one is not ours to remove: it may have become a store.
        if names.iter().any(|name| name == UNFINISHED) {
            return Err(Error::Unfinished { path: into.to_owned() });
        }
        if !is_empty(&names) {
            return Err(Error::NotEmpty { path: into.to_owned() });
        }
        let link = |from: &Path, to: &Path| {
            self.log.fs.hard_link(from, to).map_err(|error| match error.kind() {
                ErrorKind::CrossesDevices => {
                    let what = "a checkpoint is made on the file system of its store";
                    Error::io(into, std::io::Error::new(error.kind(), what))
                }
                _ => Error::io(to, error),
            })
        };
        // The mark is a link itself: where none can be made nothing is begun.
        link(&manifest::path(&self.dir), &unfinished)?;
        self.around.sync_dir(into).map_err(failed)?;
        let (version, mut places) = {
            let mut writer = lock(&self.writer);
            // What is linked must not grow any more.
            let places = writer.end_segments(&mut |stream| self.take_segment(stream))?;
            (self.version.load_full(), places)
        };
        if let Some(copies) = collector.end_segment() {
            copies.complete(copies.written());
        }
        self.sync_to(places)?;
        self.sync_copies()?;
        let (log_dir, index_dir) = (into.join(LOG), into.join(INDEX));
        for dir in [&log_dir, &index_dir] {
            self.around.create_dir(dir).map_err(|error| Error::io(dir, error))?;
        }
        // Those that were begun for what comes now are not.
        let segments = version.segments.only(|segment| {
            segment.stream == Stream::Copies || segment.id < places.of(segment.stream).segment
        });
        for found in segments.iter() {
            if found.stream == Stream::Copies {
                places.copies = Point { segment: found.id, offset: found.written() };
            }
            link(found.path(), &log_dir.join(segment::name(found.id)))?;
        }
        let tables = version.tables.iter().flatten();
        let levels = tables.flat_map(|table| table.levels.iter().flatten());
        let mut linked = std::collections::HashSet::new();
        for (found, _) in levels.flat_map(|level| &level.files) {
            if linked.insert(found.id) {
                link(found.path(), &index_dir.join(file::name(found.id)))?;
            }
        }
        Staging::create(&self.around, into)?;
        for dir in [&log_dir, &index_dir, &into.to_path_buf()] {
            self.around.sync_dir(dir).map_err(|error| Error::io(dir, error))?;
        }
        let rest = Rest {
            next_segment: *lock(&self.next_segment),
            next_index: self.next_index.load(Ordering::Relaxed),
            next_table: durable.next_table,
            state: 0,
            store: self.log.store,
            synced: places,
            dead: &Dead::default(),
        };
        let mut version = crate::version::Version::clone(&version);
        version.segments = segments;
        Manifest::create(&self.around, into, &state_of(&version, &rest))?;
        self.around.remove(&unfinished).map_err(failed)?;
        self.around.sync_dir(into).map_err(failed)?;
        drop((collector, merging, durable));
        Ok(())
    }
}
