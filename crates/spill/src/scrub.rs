//! Scrub: reads everything on disk and verifies checksums and cross references.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::level::Level;
use crate::level::page::Page;
use crate::locks::lock;
use crate::record::hash;
use crate::value_log::reader::{ReadBuffer, SegmentReader};
use crate::value_log::segment::FILE_HEADER_LEN;
use crate::value_pointer::{Tag, ValuePointer};
use crate::version::{Lookup, Version};

/// What a scrub has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScrubReport {
    /// Bytes of segments, each up to the end of its records.
    pub log_bytes: u64,
    /// Records, including dead and internal ones.
    pub records: u64,
    /// Bytes of index files, including unused pages.
    pub index_bytes: u64,
    /// Entries of all levels; a key counts once per level.
    pub index_entries: u64,
}

impl Engine {
    pub(crate) fn scrub(&self) -> Result<ScrubReport> {
        self.flush_staging()?;
        lock(&self.durable).manifest.check()?;
        let version = self.version.load_full();
        let mut report = ScrubReport::default();
        let mut buffer = ReadBuffer::default();
        for segment in version.segments.iter() {
            segment.check_header()?;
            // A complete segment may not be written completely yet.
            let end = segment.written();
            let mut reader = SegmentReader::new(segment, FILE_HEADER_LEN, end, &mut buffer);
            while reader.next()?.is_some() {
                report.records += 1;
            }
            if !reader.is_at_end() {
                return Err(segment.damaged(reader.offset(), "a record is not what was written"));
            }
            report.log_bytes += u64::from(end);
        }
        for table in version.tables.iter().flatten() {
            for level in table.levels.iter().flatten() {
                for (file, _) in &level.files {
                    report.index_bytes += file.scrub()?;
                }
                self.scrub_level(&version, level, &mut report)?;
            }
        }
        Ok(report)
    }

    /// Every entry must point to a record whose key belongs there, in order.
    fn scrub_level(
        &self,
        version: &Version,
        level: &Level,
        report: &mut ScrubReport,
    ) -> Result<()> {
        let mut scratch = Vec::new();
        let mut last: Option<Vec<u8>> = None;
        let mut entries = 0;
        for leaf in level.leaves() {
            let (id, _) = leaf?;
            let page = level.leaf(id)?;
            let damaged = |what: &str| {
                let path = level.files.iter().find(|(file, _)| file.id == id.file);
                let path = path.map(|(file, _)| file.path().to_owned()).unwrap_or_default();
                let offset = u64::from(id.number) * crate::level::page::PAGE_SIZE as u64;
                Error::Damaged { path, offset, what: what.to_owned() }
            };
            for slot in 0..page.count() {
                entries += 1;
                let pointer = ValuePointer::from_bits(page.value(slot));
                let lookup =
                    version.read_record(&self.staging, pointer, true, &mut scratch, |record| {
                        let matches = matches_entry(page, slot, record.key, pointer);
                        (matches, record.key.to_vec())
                    })?;
                let Lookup::Found((matches, key)) = lookup else { continue };
                if !level.may_contain(hash(&key))? {
                    return Err(damaged("the filter lacks the key of an entry"));
                }
                if !matches {
                    return Err(damaged("an entry points to a record of another key"));
                }
                if last.as_ref().is_some_and(|last| *last >= key) {
                    return Err(damaged("keys are not in order"));
                }
                last = Some(key);
            }
        }
        if entries != level.entries {
            let path = level.files.first().map(|(file, _)| file.path().to_owned());
            let what = format!("{entries} entries, but {} are recorded", level.entries);
            return Err(Error::Damaged { path: path.unwrap_or_default(), offset: 0, what });
        }
        report.index_entries += entries;
        Ok(())
    }
}

/// Whether a key matches its entry.
fn matches_entry(page: Page<'_>, slot: usize, key: &[u8], pointer: ValuePointer) -> bool {
    page.compare_prefix(key) == std::cmp::Ordering::Equal
        && crate::bytes::head_at(key, page.prefix_len()) == page.head(slot)
        && pointer.may_match(Tag::of_key(key))
}
