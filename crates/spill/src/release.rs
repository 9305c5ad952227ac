//! Segments that were collected go, once the copies of what lived in them are durable.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use crate::error::{Error, Result};
use crate::inner::{Inner, lock};
use crate::level::merge::Dead;
use crate::log::Segment;
use crate::stream::{Point, Stream};
use crate::sync::sync;

/// Segments from which all that lives was copied, and whose files are there.
#[derive(Default)]
pub(crate) struct Collected {
    /// The copies are not known to be durable.
    waiting: Vec<Arc<Segment>>,
    /// The current version does not have them; one that is read from may.
    released: Vec<Weak<Segment>>,
}

impl Collected {
    pub(crate) fn add(&mut self, segment: Arc<Segment>) {
        self.waiting.push(segment);
    }

    /// The numbers of those that are not released.
    pub(crate) fn waiting(&self) -> HashSet<u32> {
        self.waiting.iter().map(|segment| segment.id).collect()
    }

    pub(crate) fn count(&mut self) -> usize {
        self.released.retain(|segment| segment.strong_count() > 0);
        self.waiting.len() + self.released.len()
    }

    fn release(&mut self, gone: &HashSet<u32>) {
        let released = self.waiting.extract_if(.., |segment| gone.contains(&segment.id));
        self.released.extend(released.map(|segment| Arc::downgrade(&segment)));
    }
}

impl Inner {
    /// Lets go of the segments that were collected by now, all with one sync; answers whether there
    /// were any. The collector goes on meanwhile: it waits for no device.
    pub(crate) fn release(&self) -> Result<bool> {
        let gone = lock(&self.collected).waiting();
        if gone.is_empty() {
            return Ok(false);
        }
        self.may_write()?;
        self.sync_copies()?;
        // What made the other records dead must be durable too.
        let places = lock(&self.writer).places();
        self.sync_to(places)?;
        self.publish(&mut lock(&self.durable), &Dead::default(), |version| {
            version.segments = version.segments.without(&gone);
        })?;
        lock(&self.collected).release(&gone);
        self.counters.collected.add(gone.len() as u64);
        self.update_pressure();
        Ok(true)
    }

    /// Everything that was copied is on the device.
    pub(crate) fn sync_copies(&self) -> Result<()> {
        let version = self.version.load();
        let synced = self.synced.places().copies;
        let mut last = synced;
        let done = (|| {
            for segment in version.segments.iter() {
                let point = Point { segment: segment.id, offset: segment.written() };
                if segment.stream == Stream::Copies && point > synced {
                    sync(segment)?;
                    last = last.max(point);
                }
            }
            if last.segment > synced.segment {
                let dir = self.log_dir();
                self.fs.sync_dir(&dir).map_err(|error| Error::io(&dir, error))?;
            }
            Ok(())
        })();
        match &done {
            Ok(()) => self.synced.copies_synced(last),
            Err(error) => self.halt_unsynced(error),
        }
        done
    }
}
