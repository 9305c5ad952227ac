//! A segment: one mapped file of the log.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::file_names;
use crate::fs::{Access, File, Fs, Map, Mode, Part, read_exact_at, write_all_at};
use crate::record::{HEADER_LEN, Header, Record};
use crate::schedule::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::stream::Stream;
use crate::value_pointer::{MAX_SEGMENTS, RECORD_ALIGN};

/// Records begin behind the file header.
pub(crate) const FILE_HEADER_LEN: u32 = 64;
const MAGIC: &[u8; 8] = b"spill\0lg";
const FORMAT: u32 = 4;
const EXTENSION: &str = ".log";

/// Bytes populated when a record is first read.
const READ_AROUND: usize = 64 << 10;
const PAGE_SIZE: usize = 4 << 10;
/// Reads in flight at once, 2 MiB at most: that keeps a device busy.
const MAX_PARALLEL_READS: usize = 32;

/// How a record that may not be in memory is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColdReadMode {
    Around,
    Page,
}

/// A file of the log. What lies behind `written` is still staged.
pub(crate) struct Segment {
    pub(crate) id: u32,
    pub(crate) stream: Stream,
    pub(crate) file: Arc<dyn File>,
    path: PathBuf,
    pub(super) map: Map,
    fs: Arc<dyn Fs>,
    store: u64,
    written: AtomicU32,
    /// End of its records; `u32::MAX` while it is being written.
    end: AtomicU32,
    /// Dead record bytes, as far as compactions have found out.
    dead: AtomicU64,
    /// Bytes whose live records were copied elsewhere.
    collected: AtomicU32,
    /// One bit for each [`PAGE_SIZE`] that was read before or written through the page cache.
    resident: Vec<AtomicU64>,
    /// The file is deleted with its last user.
    obsolete: AtomicBool,
    /// Collection failed, because something in it or referred to by it is damaged or unreadable.
    pub(crate) stuck: AtomicBool,
}

pub(crate) fn name(id: u32) -> String {
    file_names::name(id, EXTENSION)
}

/// The number in a segment's file name.
pub(crate) fn number(name: &str) -> Option<u32> {
    file_names::number(name, EXTENSION).filter(|&number| number < MAX_SEGMENTS)
}

/// Whether a segment may have this number.
pub(crate) fn check_number(id: u32) -> Result<()> {
    if id >= MAX_SEGMENTS {
        return Err(Error::TooManySegments { limit: MAX_SEGMENTS });
    }
    Ok(())
}

impl Segment {
    /// A new, empty segment of `capacity` bytes. Its name is not durable yet.
    pub(crate) fn create(
        directory: &Directory,
        id: u32,
        stream: Stream,
        capacity: usize,
    ) -> Result<Segment> {
        let path = directory.join(name(id));
        let failed = |error| Error::io(&path, error);
        let make = || directory.fs.open(&path, Mode::New);
        let file = match make() {
            // Left by an attempt that failed below and could not be cleaned up.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                directory.fs.remove(&path).and_then(|()| make())
            }
            made => made,
        };
        let file = file.map_err(failed)?;
        let made = (|| {
            file.set_len(capacity as u64)?;
            write_all_at(&*file, &file_header(directory.store, id, stream), 0)?;
            file.map(capacity, Access::Read)
        })();
        let map = match made {
            Ok(map) => map,
            Err(error) => {
                // Best effort: a leftover is deleted by the next attempt or opening.
                let _ = directory.fs.remove(&path);
                return Err(failed(error));
            }
        };
        // What this process writes is in the page cache, so it is not cold.
        let segment = Segment::from_parts(
            directory,
            path,
            id,
            stream,
            file,
            map,
            FILE_HEADER_LEN,
            u32::MAX,
            u64::MAX,
        );
        segment.map.set_readahead(false);
        Ok(segment)
    }

    /// An existing segment. `end` is the end of its records, if known; everything before `synced`
    /// was durable.
    pub(crate) fn open(
        directory: &Directory,
        id: u32,
        end: Option<u32>,
        synced: u32,
    ) -> Result<Segment> {
        let path = directory.join(name(id));
        let failed = |error| Error::io(&path, error);
        let file = directory
            .fs
            .open(&path, Mode::Write)
            .map_err(|error| Error::missing_file(&path, error))?;
        let len = file.len().map_err(failed)?;
        let least = end.unwrap_or(FILE_HEADER_LEN).max(synced);
        if len < u64::from(least) || len > u64::from(u32::MAX) {
            let what = format!("the file has {len} bytes, but at least {least} are expected");
            return Err(Error::damaged(&path, len, what));
        }
        let stream = read_header(&*file, directory.store, id, &path)?;
        let map = file.map(len as usize, Access::Read).map_err(failed)?;
        let end = end.unwrap_or(u32::MAX);
        Ok(Segment::from_parts(directory, path, id, stream, file, map, end.min(len as u32), end, 0))
    }

    #[allow(clippy::too_many_arguments)]
    fn from_parts(
        directory: &Directory,
        path: PathBuf,
        id: u32,
        stream: Stream,
        file: Arc<dyn File>,
        map: Map,
        written: u32,
        end: u32,
        resident: u64,
    ) -> Segment {
        let words = map.len().div_ceil(PAGE_SIZE).div_ceil(64);
        Segment {
            id,
            stream,
            file,
            path,
            resident: (0..words).map(|_| AtomicU64::new(resident)).collect(),
            map,
            fs: Arc::clone(&directory.fs),
            store: directory.store,
            written: AtomicU32::new(written),
            end: AtomicU32::new(end),
            dead: AtomicU64::new(0),
            collected: AtomicU32::new(0),
            obsolete: AtomicBool::new(false),
            stuck: AtomicBool::new(false),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The most bytes it may have.
    pub(crate) fn capacity(&self) -> usize {
        self.map.len()
    }

    /// The file holds its records up to here.
    #[inline]
    pub(crate) fn written(&self) -> u32 {
        self.written.load(Ordering::Acquire)
    }

    pub(crate) fn set_written(&self, written: u32) {
        self.written.store(written, Ordering::Release);
        self.allow_readahead_if_finished();
    }

    /// End of its records, if it is complete.
    pub(crate) fn end(&self) -> Option<u32> {
        let end = self.end.load(Ordering::Acquire);
        (end != u32::MAX).then_some(end)
    }

    pub(crate) fn complete(&self, end: u32) {
        self.end.store(end, Ordering::Release);
        self.allow_readahead_if_finished();
    }

    pub(crate) fn dead(&self) -> u64 {
        self.dead.load(Ordering::Relaxed)
    }

    pub(crate) fn add_dead(&self, bytes: u64) {
        self.dead.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Record bytes whose live records were copied elsewhere.
    pub(crate) fn collected(&self) -> u64 {
        u64::from(self.collected.load(Ordering::Relaxed))
    }

    /// The live records before this offset were copied.
    pub(crate) fn set_collected(&self, before: u32) {
        self.collected.store(before.saturating_sub(FILE_HEADER_LEN), Ordering::Relaxed);
    }

    /// Bytes of its records.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(
            self.end().unwrap_or_else(|| self.written()).max(FILE_HEADER_LEN) - FILE_HEADER_LEN,
        )
    }

    /// Deletes the file with its last user.
    pub(crate) fn retire(&self) {
        self.obsolete.store(true, Ordering::Release);
    }

    /// The error for a failed read from `offset` on.
    pub(super) fn read_error(&self, offset: usize, error: std::io::Error) -> Error {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            return self.damaged(offset as u32, "the file is truncated");
        }
        Error::io(&self.path, error)
    }

    /// Reads a part of the file without the mapping.
    pub(crate) fn read(&self, from: u32, to: u32) -> Result<Vec<u8>> {
        let mut bytes = vec![0; to.saturating_sub(from) as usize];
        self.read_at(&mut bytes, from as usize)
            .map_err(|error| self.read_error(from as usize, error))?;
        Ok(bytes)
    }

    /// Verifies the header again.
    pub(crate) fn check_header(&self) -> Result<()> {
        read_header(&*self.file, self.store, self.id, &self.path).map(|_| ())
    }

    pub(crate) fn damaged(&self, offset: u32, what: &str) -> Error {
        Error::damaged(&self.path, u64::from(offset), what)
    }

    /// The written part of the file. Accessing it may fault.
    #[inline]
    pub(super) fn mapped(&self) -> &[u8] {
        // SAFETY: bytes below `written` are in the file and never change again; the mapping
        // lives as long as this.
        unsafe { std::slice::from_raw_parts(self.map.start().as_ptr(), self.written() as usize) }
    }

    /// Prefetches the start of a record, if it is written.
    #[inline]
    pub(crate) fn prefetch(&self, offset: u32, lines: usize) {
        if offset < self.written() && self.is_resident(offset as usize / PAGE_SIZE) {
            // SAFETY: the offset is in the mapping.
            let start = unsafe { self.map.start().as_ptr().add(offset as usize) };
            crate::prefetch::lines(start, lines);
        }
    }

    #[inline]
    fn is_resident(&self, page: usize) -> bool {
        self.resident[page / 64].load(Ordering::Relaxed) & 1 << (page % 64) != 0
    }

    #[inline]
    fn mark_resident(&self, page: usize) {
        self.resident[page / 64].fetch_or(1 << (page % 64), Ordering::Relaxed);
    }

    /// A part of the file was written directly.
    pub(super) fn clear_resident(&self, part: Range<usize>) {
        for page in part.start / PAGE_SIZE..part.end.div_ceil(PAGE_SIZE) {
            self.resident[page / 64].fetch_and(!(1 << (page % 64)), Ordering::Relaxed);
        }
    }

    /// Whether reading the record may wait for the device.
    pub(crate) fn is_cold(&self, offset: u32) -> bool {
        offset < self.written() && !self.is_resident(offset as usize / PAGE_SIZE)
    }

    /// The length in the header of the record at `offset`, which is below `written`; `None` if
    /// reading it may wait for the device.
    pub(crate) fn record_len_if_resident(&self, offset: u32) -> Option<u32> {
        let (from, end) = (offset as usize, offset as usize + HEADER_LEN);
        if !(from / PAGE_SIZE..end.div_ceil(PAGE_SIZE)).all(|page| self.is_resident(page)) {
            return None;
        }
        let header = Header::parse(self.mapped().get(from..end)?)?;
        Some(header.record_len().min(self.capacity()) as u32)
    }

    /// The unverified record at `offset`, which is below `written`, and the bytes from its start
    /// on: from the mapping, or read into `scratch`.
    #[inline]
    pub(crate) fn record<'a>(
        &'a self,
        offset: u32,
        cold_read_mode: ColdReadMode,
        scratch: &'a mut Vec<u8>,
    ) -> Result<(&'a [u8], Option<Record<'a>>)> {
        if self.is_resident(offset as usize / PAGE_SIZE) {
            let bytes = &self.mapped()[offset as usize..];
            // A record that spans pages may have cold ones.
            let in_page = PAGE_SIZE - offset as usize % PAGE_SIZE;
            if in_page >= HEADER_LEN {
                let record = Record::parse_unchecked(bytes);
                let len = record.map_or(0, |record| record.header.record_len());
                let mut others =
                    offset as usize / PAGE_SIZE + 1..(offset as usize + len).div_ceil(PAGE_SIZE);
                if others.all(|page| self.is_resident(page)) {
                    return Ok((bytes, record));
                }
            }
        }
        let bytes = self.first_read(offset, cold_read_mode, scratch)?;
        Ok((bytes, Record::parse_unchecked(bytes)))
    }

    #[cold]
    fn first_read<'a>(
        &'a self,
        offset: u32,
        cold_read_mode: ColdReadMode,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        let failed = |error| self.read_error(offset as usize, error);
        let (offset, written) = (offset as usize, self.written() as usize);
        let settled = self.settled();
        // A failure may be due to the surroundings, which are not needed.
        if cold_read_mode == ColdReadMode::Around
            && self.populate_record(offset, settled).is_ok_and(|populated| populated)
        {
            return Ok(&self.mapped()[offset..]);
        }
        let mut end = (offset + HEADER_LEN).next_multiple_of(PAGE_SIZE).min(written);
        scratch.clear();
        loop {
            let have = scratch.len();
            scratch.resize(end - offset, 0);
            self.read_at(&mut scratch[have..], offset + have).map_err(failed)?;
            let header = Header::parse(scratch);
            let whole = header.map_or(0, |header| offset + header.record_len());
            if whole <= end || whole > written {
                break;
            }
            end = whole.next_multiple_of(PAGE_SIZE).min(written);
        }
        for page in offset / PAGE_SIZE..end.div_ceil(PAGE_SIZE).min(settled / PAGE_SIZE) {
            self.mark_resident(page);
        }
        Ok(scratch)
    }

    /// Populates a record and its surroundings; false if it is not wholly settled.
    fn populate_record(&self, offset: usize, settled: usize) -> std::io::Result<bool> {
        let mut len = PAGE_SIZE.min(self.written() as usize - offset);
        // At most twice: for the header, then for the whole record.
        for _ in 0..2 {
            if offset + len > settled {
                return Ok(false);
            }
            self.populate(offset, offset + len)?;
            let record = Record::parse_unchecked(&self.mapped()[offset..]);
            len = record.map_or(0, |record| record.header.record_len());
            if len <= PAGE_SIZE {
                break;
            }
        }
        Ok(true)
    }

    /// Reads the record at an offset without its value, and without the mapping.
    #[cold]
    pub(crate) fn read_key_only<'a>(
        &self,
        offset: u32,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Option<Record<'a>>> {
        *scratch = self.read(offset, offset + HEADER_LEN as u32)?;
        let Some(header) = Header::parse(scratch) else { return Ok(None) };
        let key = offset + HEADER_LEN as u32;
        scratch.extend(self.read(key, key + u32::from(header.key_len))?);
        Ok(Some(Record { header, key: &scratch[HEADER_LEN..], value: &[] }))
    }

    /// Populates the surroundings of a settled part.
    pub(super) fn populate(&self, from: usize, to: usize) -> std::io::Result<()> {
        let start = from / READ_AROUND * READ_AROUND;
        let end = to.next_multiple_of(READ_AROUND).min(self.settled());
        for block in (start..end).step_by(READ_AROUND) {
            let part = block..(block + READ_AROUND).min(end);
            let pages = part.start / PAGE_SIZE..part.end.div_ceil(PAGE_SIZE);
            if pages.clone().all(|page| self.is_resident(page)) {
                continue;
            }
            self.map.populate(part)?;
            for page in pages {
                self.mark_resident(page);
            }
        }
        Ok(())
    }

    /// Reads the surroundings of many records into the page cache, in parallel and in the order of
    /// their offsets. Errors are ignored: the reader of a record will see its own.
    pub(crate) fn populate_many(&self, offsets: &[u32], cold_read_mode: ColdReadMode) {
        let size = match cold_read_mode {
            ColdReadMode::Around => READ_AROUND,
            ColdReadMode::Page => PAGE_SIZE,
        };
        let settled = self.settled().min(self.written() as usize);
        let mut starts: Vec<usize> =
            offsets.iter().map(|&offset| offset as usize / size * size).collect();
        starts.dedup();
        starts.retain(|&start| start < settled);
        let mut bytes = vec![0; starts.len().min(MAX_PARALLEL_READS) * size];
        for starts in starts.chunks(MAX_PARALLEL_READS) {
            let mut parts: Vec<Part<'_>> = starts
                .iter()
                .zip(bytes.chunks_mut(size))
                .map(|(&start, into)| {
                    let len = size.min(settled - start);
                    Part { offset: start as u64, into: &mut into[..len] }
                })
                .collect();
            if self.file.read_many(&mut parts).is_err() {
                continue;
            }
            for start in starts {
                for page in start / PAGE_SIZE..(start + size).min(settled).div_ceil(PAGE_SIZE) {
                    self.mark_resident(page);
                }
            }
        }
    }

    /// Whether at least half of a part is resident.
    pub(crate) fn is_mostly_resident(&self, from: usize, to: usize) -> bool {
        let pages = from / PAGE_SIZE..to.min(self.map.len()).div_ceil(PAGE_SIZE);
        let resident = pages.clone().filter(|&page| self.is_resident(page)).count();
        resident * 2 >= pages.len()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if *self.obsolete.get_mut() {
            self.map.discard();
            // A leftover file is deleted at the next opening.
            let _ = self.fs.remove(&self.path);
        }
    }
}

/// The stream in a segment's header.
fn read_header(file: &dyn File, store: u64, id: u32, path: &Path) -> Result<Stream> {
    let mut header = [0; FILE_HEADER_LEN as usize];
    read_exact_at(file, &mut header, 0).map_err(|error| Error::truncated(path, error))?;
    let stream = Stream::ALL.into_iter().find(|&stream| file_header(store, id, stream) == header);
    stream.ok_or_else(|| {
        Error::damaged(path, 0, "the header is not that of this segment of this store")
    })
}

fn file_header(store: u64, id: u32, stream: Stream) -> [u8; FILE_HEADER_LEN as usize] {
    let mut header = [0; FILE_HEADER_LEN as usize];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    header[12..16].copy_from_slice(&id.to_le_bytes());
    header[16] = match stream {
        Stream::Main => 1,
        Stream::Copies => 2,
        Stream::Hot => 3,
    };
    header[24..32].copy_from_slice(&store.to_le_bytes());
    let check = xxh3_64(&header[..56]);
    header[56..].copy_from_slice(&check.to_le_bytes());
    header
}

/// Rounds down to where a record may begin.
pub(crate) fn align_down(offset: u32) -> u32 {
    offset / RECORD_ALIGN as u32 * RECORD_ALIGN as u32
}
