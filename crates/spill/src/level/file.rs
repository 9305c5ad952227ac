//! A file of index pages: written once, then only read.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::page::{self, PAGE_SIZE, Page, PageId};
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::file_names;
use crate::fs::{Access, File, Fs, Map, Mode, read_exact_at, write_all_at};
use crate::time_slice;

/// Bytes populated when a page is first read.
const READ_AROUND: usize = 64 << 10;
/// Bytes read at once by a scrub.
const SCRUB_CHUNK: usize = 1 << 20;

/// A complete file of pages.
pub(crate) struct IndexFile {
    pub(crate) id: u32,
    path: PathBuf,
    file: Arc<dyn File>,
    map: Map,
    fs: Arc<dyn Fs>,
    store: u64,
    /// One bit for each page that was read and checked since opening.
    checked: Vec<AtomicU64>,
    obsolete: AtomicBool,
}

const EXTENSION: &str = ".idx";

pub(crate) fn name(id: u32) -> String {
    file_names::name(id, EXTENSION)
}

/// The number in an index file's name.
pub(crate) fn number(name: &str) -> Option<u32> {
    file_names::number(name, EXTENSION)
}

impl IndexFile {
    pub(crate) fn open(directory: &Directory, id: u32, pages: u32) -> Result<IndexFile> {
        let path = directory.join(name(id));
        let failed = |error| Error::io(&path, error);
        let file = directory
            .fs
            .open(&path, Mode::Read)
            .map_err(|error| Error::missing_file(&path, error))?;
        let len = file.len().map_err(failed)?;
        if len != u64::from(pages) * PAGE_SIZE as u64 {
            let what = format!("the file has {len} bytes instead of {pages} pages");
            return Err(Error::damaged(&path, len, what));
        }
        let map = file.map(len as usize, Access::Read).map_err(failed)?;
        Ok(IndexFile {
            id,
            file,
            map,
            fs: Arc::clone(&directory.fs),
            store: directory.store,
            checked: (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            obsolete: AtomicBool::new(false),
            path,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn pages(&self) -> u32 {
        (self.map.len() / PAGE_SIZE) as u32
    }

    /// Makes its content durable, but not its name.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync().map_err(|error| Error::io(&self.path, error))
    }

    /// Deletes the file with its last user.
    pub(crate) fn retire(&self) {
        self.obsolete.store(true, Ordering::Release);
    }

    /// A page; its checksum is verified on first read.
    #[inline]
    pub(crate) fn page(&self, number: u32) -> Result<Page<'_>> {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        let checked = self.checked.get(word).map_or(0, |word| word.load(Ordering::Relaxed));
        if checked & bit != 0 {
            return Ok(self.page_unchecked(number));
        }
        self.first_read(number)
    }

    #[inline]
    fn page_unchecked(&self, number: u32) -> Page<'_> {
        debug_assert!(number < self.pages());
        // SAFETY: `number` is below `pages`, the file never changes, and the mapping lives as long
        // as this. A page has the alignment of a byte.
        unsafe { Page::new(&*self.map.start().as_ptr().add(number as usize * PAGE_SIZE).cast()) }
    }

    #[cold]
    fn first_read(&self, number: u32) -> Result<Page<'_>> {
        if number >= self.pages() {
            let what = "a page is referenced that the file does not have";
            return Err(Error::damaged(&self.path, u64::from(number) * PAGE_SIZE as u64, what));
        }
        let start = number as usize * PAGE_SIZE / READ_AROUND * READ_AROUND;
        self.map
            .populate(start..(start + READ_AROUND).min(self.map.len()))
            .map_err(|error| Error::io(&self.path, error))?;
        let page = self.page_unchecked(number);
        if let Some(what) = page.defect(PageId { file: self.id, number }, self.store) {
            return Err(Error::damaged(&self.path, u64::from(number) * PAGE_SIZE as u64, what));
        }
        self.checked[number as usize / 64].fetch_or(1 << (number % 64), Ordering::Relaxed);
        Ok(page)
    }

    /// Maps freshly written pages before anyone reads them, which would cost a reader two system
    /// calls per page. They need no verification.
    fn populate_written(&self) {
        time_slice::for_each_chunk(0..self.map.len(), time_slice::SYSCALL_CHUNK, |part| {
            // A page that cannot be mapped is reported when it is read.
            if self.map.populate(part.clone()).is_ok() {
                for number in part.start / PAGE_SIZE..part.end / PAGE_SIZE {
                    self.checked[number / 64].fetch_or(1 << (number % 64), Ordering::Relaxed);
                }
            }
        });
    }

    /// Reads and verifies every page without the mapping.
    pub(crate) fn scrub(&self) -> Result<u64> {
        let mut bytes = vec![0; SCRUB_CHUNK];
        let mut number = 0;
        while number < self.pages() {
            let start = number as usize * PAGE_SIZE;
            let len = SCRUB_CHUNK.min(self.map.len() - start);
            let failed = |error| Error::truncated(&self.path, error);
            read_exact_at(&*self.file, &mut bytes[..len], start as u64).map_err(failed)?;
            for page in bytes[..len].as_chunks::<PAGE_SIZE>().0 {
                if let Some(what) =
                    Page::new(page).defect(PageId { file: self.id, number }, self.store)
                {
                    let offset = u64::from(number) * PAGE_SIZE as u64;
                    return Err(Error::damaged(&self.path, offset, what));
                }
                number += 1;
            }
        }
        Ok(self.map.len() as u64)
    }
}

impl Drop for IndexFile {
    fn drop(&mut self) {
        if *self.obsolete.get_mut() {
            self.map.discard();
            // A leftover file is deleted at the next opening.
            let _ = self.fs.remove(&self.path);
        }
    }
}

/// An index file being written; deleted if dropped unfinished.
pub(crate) struct IndexWriter {
    id: u32,
    directory: Directory,
    path: PathBuf,
    file: Option<Arc<dyn File>>,
    buffer: Vec<u8>,
    written: u64,
    pages: u32,
}

impl IndexWriter {
    pub(crate) fn create(directory: &Directory, id: u32) -> Result<IndexWriter> {
        let path = directory.join(name(id));
        let file = directory.fs.open(&path, Mode::New).map_err(|error| Error::io(&path, error))?;
        Ok(IndexWriter {
            id,
            directory: directory.clone(),
            path,
            file: Some(file),
            buffer: Vec::with_capacity(time_slice::SYSCALL_CHUNK),
            written: 0,
            pages: 0,
        })
    }

    /// The next page.
    pub(crate) fn next(&self) -> PageId {
        PageId { file: self.id, number: self.pages }
    }

    pub(crate) fn append(&mut self, page: &[u8; PAGE_SIZE]) -> Result<()> {
        let begin = self.buffer.len();
        self.buffer.extend_from_slice(page);
        page::xor_store_salt(self.directory.store, &mut self.buffer[begin..]);
        self.pages += 1;
        if self.buffer.len() >= time_slice::SYSCALL_CHUNK {
            self.write_buffered()?;
        }
        Ok(())
    }

    fn write_buffered(&mut self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let failed = |error| Error::io(&self.path, error);
        let begin = self.written;
        for part in self.buffer.chunks(time_slice::COPY_CHUNK) {
            write_all_at(&**file, part, self.written).map_err(failed)?;
            self.written += part.len() as u64;
            time_slice::yield_if_expired();
        }
        file.start_writeback(begin..self.written);
        self.buffer.clear();
        Ok(())
    }

    /// The complete file, not durable yet.
    pub(crate) fn finish(mut self) -> Result<IndexFile> {
        self.write_buffered()?;
        let file = IndexFile::open(&self.directory, self.id, self.pages)?;
        file.populate_written();
        self.file = None;
        Ok(file)
    }
}

impl Drop for IndexWriter {
    fn drop(&mut self) {
        if self.file.is_some() {
            // A leftover file is deleted at the next opening.
            let _ = self.directory.fs.remove(&self.path);
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::fs::Os;

    #[test]
    fn written_pages_count_as_checked() {
        let home = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Os::new());
        let directory = Directory::new(&fs, home.path().to_owned(), 5);
        let mut writer = IndexWriter::create(&directory, 7).unwrap();
        let pages = 3 * time_slice::SYSCALL_CHUNK / PAGE_SIZE + 1;
        for number in 0..pages {
            writer.append(&[number as u8; PAGE_SIZE]).unwrap();
        }
        let known = |file: &IndexFile| {
            file.checked.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum::<u32>()
        };
        let file = writer.finish().unwrap();
        assert_eq!(known(&file), pages as u32);
        let opened = IndexFile::open(&directory, 7, pages as u32).unwrap();
        assert_eq!(known(&opened), 0);
        assert!(opened.page(1).is_err(), "an invalid page is found when it was not just written");
    }
}
