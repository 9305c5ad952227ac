//! A file of index pages: written once from begin to end, then only read.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::page::{self, PAGE, Page, PageId};
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::fs::{Access, File, Fs, Map, Mode, read_whole, write_whole};
use crate::numbered;
use crate::stint;

/// What is brought into memory at once where a page is first read.
const AROUND: usize = 64 << 10;
/// What is read at once.
const PIECE: usize = 1 << 20;

/// A complete file of pages.
pub(crate) struct IndexFile {
    pub(crate) id: u32,
    path: PathBuf,
    file: Arc<dyn File>,
    map: Map,
    fs: Arc<dyn Fs>,
    store: u64,
    /// A bit for each page that was read and checked since the file was opened.
    checked: Vec<AtomicU64>,
    obsolete: AtomicBool,
}

const EXTENSION: &str = ".idx";

pub(crate) fn name(id: u32) -> String {
    numbered::name(id, EXTENSION)
}

/// The number in the name of a file of pages.
pub(crate) fn number(name: &str) -> Option<u32> {
    numbered::number(name, EXTENSION)
}

impl IndexFile {
    pub(crate) fn open(folder: &Folder, id: u32, pages: u32) -> Result<IndexFile> {
        let path = folder.join(name(id));
        let failed = |error| Error::io(&path, error);
        let file =
            folder.fs.open(&path, Mode::Read).map_err(|error| Error::missing(&path, error))?;
        let len = file.len().map_err(failed)?;
        if len != u64::from(pages) * PAGE as u64 {
            let what = format!("it has {len} bytes and should have {pages} pages");
            return Err(Error::damaged(&path, len, what));
        }
        let map = file.map(len as usize, Access::Read).map_err(failed)?;
        Ok(IndexFile {
            id,
            file,
            map,
            fs: Arc::clone(&folder.fs),
            store: folder.store,
            checked: (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            obsolete: AtomicBool::new(false),
            path,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn pages(&self) -> u32 {
        (self.map.len() / PAGE) as u32
    }

    /// Its content is durable when this returns; its name is not.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync().map_err(|error| Error::io(&self.path, error))
    }

    /// The file is removed when the last user goes.
    pub(crate) fn retire(&self) {
        self.obsolete.store(true, Ordering::Release);
    }

    /// A page; checked when it is read for the first time.
    #[inline]
    pub(crate) fn page(&self, number: u32) -> Result<Page<'_>> {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        let checked = self.checked.get(word).map_or(0, |word| word.load(Ordering::Relaxed));
        if checked & bit != 0 {
            return Ok(self.at(number));
        }
        self.first_read(number)
    }

    #[inline]
    fn at(&self, number: u32) -> Page<'_> {
        debug_assert!(number < self.pages());
        // SAFETY: `number` is below `pages`, the file is never changed, and the mapping lives as
        // long as this. A page is aligned to nothing but bytes.
        unsafe { Page::new(&*self.map.start().as_ptr().add(number as usize * PAGE).cast()) }
    }

    #[cold]
    fn first_read(&self, number: u32) -> Result<Page<'_>> {
        if number >= self.pages() {
            let what = "a page is referred to that the file does not have";
            return Err(Error::damaged(&self.path, u64::from(number) * PAGE as u64, what));
        }
        let start = number as usize * PAGE / AROUND * AROUND;
        self.map
            .bring(start..(start + AROUND).min(self.map.len()))
            .map_err(|error| Error::io(&self.path, error))?;
        let page = self.at(number);
        if let Some(what) = page.fault(PageId { file: self.id, number }, self.store) {
            return Err(Error::damaged(&self.path, u64::from(number) * PAGE as u64, what));
        }
        self.checked[number as usize / 64].fetch_or(1 << (number % 64), Ordering::Relaxed);
        Ok(page)
    }

    /// Has pages that were written just now, and are in the page cache, in the mapping before anyone
    /// reads them: that takes a reader two system calls for each page otherwise. What was put together
    /// here need not be checked.
    fn take_as_written(&self) {
        stint::in_pieces(0..self.map.len(), stint::PIECE, |part| {
            // A page that cannot be had is missed, and told of, when it is read.
            if self.map.bring(part.clone()).is_ok() {
                for number in part.start / PAGE..part.end / PAGE {
                    self.checked[number / 64].fetch_or(1 << (number % 64), Ordering::Relaxed);
                }
            }
        });
    }

    /// Reads every page past the mapping and checks it.
    pub(crate) fn scrub(&self) -> Result<u64> {
        let mut bytes = vec![0; PIECE];
        let mut number = 0;
        while number < self.pages() {
            let start = number as usize * PAGE;
            let len = PIECE.min(self.map.len() - start);
            let failed = |error| Error::cut_short(&self.path, error);
            read_whole(&*self.file, &mut bytes[..len], start as u64).map_err(failed)?;
            for page in bytes[..len].as_chunks::<PAGE>().0 {
                if let Some(what) =
                    Page::new(page).fault(PageId { file: self.id, number }, self.store)
                {
                    let offset = u64::from(number) * PAGE as u64;
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
            // What stays behind is removed at the next opening.
            let _ = self.fs.remove(&self.path);
        }
    }
}

/// A file of pages while it is written. Dropped before it is finished, it goes.
pub(crate) struct IndexWriter {
    id: u32,
    folder: Folder,
    path: PathBuf,
    file: Option<Arc<dyn File>>,
    buffer: Vec<u8>,
    written: u64,
    pages: u32,
}

impl IndexWriter {
    pub(crate) fn create(folder: &Folder, id: u32) -> Result<IndexWriter> {
        let path = folder.join(name(id));
        let file = folder.fs.open(&path, Mode::New).map_err(|error| Error::io(&path, error))?;
        Ok(IndexWriter {
            id,
            folder: folder.clone(),
            path,
            file: Some(file),
            buffer: Vec::with_capacity(stint::PIECE),
            written: 0,
            pages: 0,
        })
    }

    /// The page that comes next.
    pub(crate) fn next(&self) -> PageId {
        PageId { file: self.id, number: self.pages }
    }

    pub(crate) fn append(&mut self, page: &[u8; PAGE]) -> Result<()> {
        let begin = self.buffer.len();
        self.buffer.extend_from_slice(page);
        page::make_of(self.folder.store, &mut self.buffer[begin..]);
        self.pages += 1;
        if self.buffer.len() >= stint::PIECE {
            self.write_out()?;
        }
        Ok(())
    }

    fn write_out(&mut self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let failed = |error| Error::io(&self.path, error);
        let begin = self.written;
        for part in self.buffer.chunks(stint::COPY) {
            write_whole(&**file, part, self.written).map_err(failed)?;
            self.written += part.len() as u64;
            stint::end_if_over();
        }
        file.start_writeback(begin..self.written);
        self.buffer.clear();
        Ok(())
    }

    /// The complete file, which is not durable yet.
    pub(crate) fn finish(mut self) -> Result<IndexFile> {
        self.write_out()?;
        let file = IndexFile::open(&self.folder, self.id, self.pages)?;
        file.take_as_written();
        self.file = None;
        Ok(file)
    }
}

impl Drop for IndexWriter {
    fn drop(&mut self) {
        if self.file.is_some() {
            // What stays behind is removed at the next opening.
            let _ = self.folder.fs.remove(&self.path);
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::fs::Os;

    #[test]
    fn pages_that_were_written_just_now_are_known() {
        let home = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Os::new());
        let folder = Folder::new(&fs, home.path().to_owned(), 5);
        let mut writer = IndexWriter::create(&folder, 7).unwrap();
        let pages = 3 * stint::PIECE / PAGE + 1;
        for number in 0..pages {
            writer.append(&[number as u8; PAGE]).unwrap();
        }
        let known = |file: &IndexFile| {
            file.checked.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum::<u32>()
        };
        let file = writer.finish().unwrap();
        assert_eq!(known(&file), pages as u32);
        let opened = IndexFile::open(&folder, 7, pages as u32).unwrap();
        assert_eq!(known(&opened), 0);
        assert!(
            opened.page(1).is_err(),
            "it is no page, which is found out where it was not written"
        );
    }
}
