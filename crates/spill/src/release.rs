//! Segments that were collected go, once the copies of what lived in them are durable.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::inner::{Inner, lock};
use crate::level::merge::Dead;
use crate::stream::{Point, Stream};
use crate::sync::sync;

impl Inner {
    /// Lets go of the segments that were collected by now, all with one sync; answers whether there
    /// were any. The collector goes on meanwhile: it waits for no device.
    pub(crate) fn release(&self) -> Result<bool> {
        let gone: HashSet<u32> = lock(&self.collected).iter().map(|segment| segment.id).collect();
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
        lock(&self.collected).retain(|segment| !gone.contains(&segment.id));
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
