//! Reading everything on the disk and checking it, against its checksums and each against the
//! other.

use crate::error::{Error, Result};
use crate::inner::{Inner, lock};
use crate::level::Level;
use crate::level::page::Page;
use crate::log::reader::{Buffer, Reader};
use crate::log::segment::FILE_HEADER;
use crate::position::{Position, Tag};
use crate::record::hash;
use crate::version::{Look, Version};

/// What a scrub has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scrubbed {
    /// Bytes of the segments, each from its begin to the end of its records.
    pub log_bytes: u64,
    /// Records in them: those that are dead too, and those that are no write's.
    pub records: u64,
    /// Bytes of the index files, those of pages that are not in use too.
    pub index_bytes: u64,
    /// Entries of all levels: a key that is in several counts as often.
    pub index_entries: u64,
}

impl Inner {
    pub(crate) fn scrub(&self) -> Result<Scrubbed> {
        self.write_out()?;
        lock(&self.durable).manifest.check()?;
        let version = self.version.load_full();
        let mut scrubbed = Scrubbed::default();
        let mut buffer = Buffer::default();
        for segment in version.segments.iter() {
            segment.check_header()?;
            // What is complete may be on its way still.
            let end = segment.written();
            let mut reader = Reader::new(segment, FILE_HEADER, end, &mut buffer);
            while reader.next()?.is_some() {
                scrubbed.records += 1;
            }
            if !reader.is_at_end() {
                return Err(segment.damaged(reader.at(), "a record is not what was written"));
            }
            scrubbed.log_bytes += u64::from(end);
        }
        for table in version.tables.iter().flatten() {
            for level in table.levels.iter().flatten() {
                for (file, _) in &level.files {
                    scrubbed.index_bytes += file.scrub()?;
                }
                self.scrub_level(&version, level, &mut scrubbed)?;
            }
        }
        Ok(scrubbed)
    }

    /// Every entry leads to a record with a key that belongs there, in order.
    fn scrub_level(&self, version: &Version, level: &Level, scrubbed: &mut Scrubbed) -> Result<()> {
        let mut scratch = Vec::new();
        let mut last: Option<Vec<u8>> = None;
        let mut entries = 0;
        for leaf in level.leaves() {
            let (id, _) = leaf?;
            let page = level.leaf(id)?;
            let wrong = |what: &str| {
                let path = level.files.iter().find(|(file, _)| file.id == id.file);
                let path = path.map(|(file, _)| file.path().to_owned()).unwrap_or_default();
                let offset = u64::from(id.number) * crate::level::page::PAGE as u64;
                Error::Damaged { path, offset, what: what.to_owned() }
            };
            for place in 0..page.count() {
                entries += 1;
                let position = Position::from_bits(page.value(place));
                let looked =
                    version.look(&self.staging, position, true, &mut scratch, |record| {
                        let is_right = belongs(page, place, record.key, position);
                        (is_right, record.key.to_vec())
                    })?;
                let Look::Found((is_right, key)) = looked else { continue };
                if !level.may_have(hash(&key))? {
                    return Err(wrong("the filter lacks the key of an entry"));
                }
                if !is_right {
                    return Err(wrong("an entry leads to a record of another key"));
                }
                if last.as_ref().is_some_and(|last| *last >= key) {
                    return Err(wrong("keys are not in order"));
                }
                last = Some(key);
            }
        }
        if entries != level.entries {
            let path = level.files.first().map(|(file, _)| file.path().to_owned());
            let what = format!("{entries} entries where {} are told of", level.entries);
            return Err(Error::Damaged { path: path.unwrap_or_default(), offset: 0, what });
        }
        scrubbed.index_entries += entries;
        Ok(())
    }
}

/// Whether a key is what an entry says of it.
fn belongs(page: Page<'_>, place: usize, key: &[u8], position: Position) -> bool {
    page.side(key) == std::cmp::Ordering::Equal
        && crate::bytes::head_at(key, page.skip()) == page.head(place)
        && position.may_be(Tag::of_key(key))
}
