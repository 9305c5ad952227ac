//! What the engine asks of a file system: everything that touches a disk goes through [`Fs`], so
//! that tests can lose, tear and refuse any of it.

mod directories;
mod os;
mod overlay;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

pub use os::Os;
pub(crate) use overlay::Overlay;

use crate::time_slice;

/// A file system. All paths are those that the engine was given or made below them.
///
/// What a power cut may lose: everything of a file that was not synced by [`File::sync`], in
/// any part and order; a new, renamed or removed name until [`Fs::sync_dir`] of its folder.
///
/// The engine tells errors apart by their kind: `NotFound`, `AlreadyExists`, `StorageFull` and
/// `QuotaExceeded` wherever they come from, `Interrupted` of reading, writing and allocating,
/// `WouldBlock` of a lock, `CrossesDevices` of a hard link, and `InvalidInput` of a write past the
/// page cache.
pub trait Fs: Send + Sync + 'static {
    /// The same file system, in which paths that begin with this one lead to what this folder has,
    /// also when another has got its name; those `inside`, once they were used, as well. None: that
    /// cannot be, or is of no matter.
    fn hold(&self, _dir: &Path, _inside: &[&'static str]) -> io::Result<Option<Arc<dyn Fs>>> {
        Ok(None)
    }

    /// Makes the folder in one that is there; fine if it is there itself.
    /// [`io::ErrorKind::NotADirectory`] if something else is.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// The names in a folder, in no order.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Opens a file. [`io::ErrorKind::NotFound`] if it must be there and is not,
    /// [`io::ErrorKind::AlreadyExists`] if it must not be there and is.
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn File>>;

    /// Replaces what is at `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the name of a file; who has the file open or mapped goes on with it.
    /// [`io::ErrorKind::NotFound`] if there is none.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// A second name for the same file, at `to` as it is found now, also where a folder is held.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Takes the folder for this process alone until the answer is dropped.
    /// [`io::ErrorKind::WouldBlock`] if another holder has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;

    /// Takes the folder so that others can take it like this, and nobody for himself alone.
    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It must be there; it is never written.
    Read,
    /// It must be there.
    Write,
    /// It must not be there.
    New,
}

#[allow(clippy::len_without_is_empty)]
/// An open file. A call may transfer less than was asked for, as system calls do.
pub trait File: Send + Sync {
    /// Bytes of the file.
    fn len(&self) -> io::Result<u64>;

    /// Cuts the file, or extends it by a hole of zeros. Never called on a file that is mapped.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes sure that every byte up to `len` has its place on the device, so that storing into
    /// a mapping of it cannot fail.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Reads from `offset` on, in bytes; answers how many bytes were read, 0 at the end of the
    /// file.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at `offset`, in bytes, and extends the file if need be; answers how many bytes were
    /// written.
    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize>;

    /// Writes what follows one another in the file from several places in memory; answers how many
    /// bytes were written.
    fn write_many_at(&self, from: &[io::IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let first = from.iter().find(|part| !part.is_empty());
        first.map_or(Ok(0), |first| self.write_at(first, offset))
    }

    /// Content and length are on the device when it returns; what was stored into a mapping too.
    fn sync(&self) -> io::Result<()>;

    /// Starts to write back a part without waiting; only a hint.
    fn start_writeback(&self, part: Range<u64>);

    /// The first `len` bytes in memory, coherent with `read_at` and `write_at`. The file is at
    /// least that long and is never cut while it is mapped.
    fn map(&self, len: usize, access: Access) -> io::Result<Map>;

    /// The same file, read and written past the page cache: offsets, lengths and addresses are
    /// multiples of [`BLOCK_SIZE`] there. What one handle wrote the other reads. None where the file
    /// system has no such way.
    fn open_direct(&self) -> Option<Arc<dyn File>> {
        None
    }

    /// Reads many parts, each whole, in any order; `io::ErrorKind::UnexpectedEof` if one lies
    /// beyond the end.
    fn read_many(&self, parts: &mut [Part<'_>]) -> io::Result<()> {
        for part in parts {
            read_exact_at(self, part.into, part.offset)?;
        }
        Ok(())
    }
}

/// What is read and written past the page cache comes in multiples of this: the largest block that
/// devices are commonly addressed by.
pub const BLOCK_SIZE: usize = 4096;

/// A part of a file to read.
pub struct Part<'a> {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Where its bytes go; so many are read.
    pub into: &'a mut [u8],
}

/// What is done with a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is read alone.
    Read,
    /// Stores reach the file, and survive the process, not the machine.
    ReadWrite,
    /// Stores stay in this mapping; the file may be open for reading alone, and nobody else
    /// changes it meanwhile.
    Private,
}

/// So many bytes go out of a mapping at once: each time every processor that uses it is interrupted,
/// for 5 us as measured on a virtual machine.
const UNMAP_CHUNK: usize = 2 << 20;

/// A part of a file in memory, until it is dropped.
pub struct Map {
    start: NonNull<u8>,
    len: usize,
    pages: Box<dyn Pages>,
}

/// What keeps a mapping in place; dropping it ends the mapping.
pub trait Pages: Send + Sync {
    /// Brings a part into memory now, with reads as large as the part. What cannot be read is
    /// an error here instead of a signal at the access.
    fn populate(&self, part: Range<usize>) -> io::Result<()>;

    /// Takes a part out of the mapping; it comes again where it is touched. Only a hint.
    fn unmap(&self, _part: Range<usize>) {}

    /// A part that was written back and is in no mapping goes out of the page cache; only a hint.
    fn evict(&self, _part: Range<usize>) {}
}

// SAFETY: the memory belongs to the mapping, not to a thread; who reads and who writes which
// part is arranged by the engine.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// A mapping that `pages` keeps in place.
    ///
    /// # Safety
    /// `start..start + len` stays valid, for reading or for both as was asked, until `pages` is
    /// dropped.
    pub unsafe fn new(start: NonNull<u8>, len: usize, pages: Box<dyn Pages>) -> Map {
        Map { start, len, pages }
    }

    /// Where its first byte is.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// See [`Pages::populate`].
    ///
    /// # Errors
    /// What cannot be read.
    pub fn populate(&self, part: Range<usize>) -> io::Result<()> {
        self.pages.populate(part)
    }

    /// Nobody will look at it any more. In a background thread it goes out of memory ahead of the end
    /// of this, in pieces.
    pub(crate) fn discard(&self) {
        time_slice::for_each_chunk_ahead(0..self.len, UNMAP_CHUNK, |part| self.pages.unmap(part));
        time_slice::for_each_chunk_ahead(0..self.len, time_slice::SYSCALL_CHUNK, |part| {
            self.pages.evict(part)
        });
    }
}

/// Calls again what a signal came between.
pub(crate) fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Fills `into`.
///
/// # Errors
/// Those of [`File::read_at`]; [`io::ErrorKind::UnexpectedEof`] if the file ends before.
pub fn read_exact_at<F: File + ?Sized>(file: &F, into: &mut [u8], offset: u64) -> io::Result<()> {
    let mut result = 0;
    while result < into.len() {
        match file.read_at(&mut into[result..], offset + result as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => result += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `from`. What was written before an error stays in the file.
///
/// # Errors
/// Those of [`File::write_at`]; [`io::ErrorKind::WriteZero`] if it writes nothing.
pub fn write_all_at<F: File + ?Sized>(file: &F, from: &[u8], offset: u64) -> io::Result<()> {
    let mut result = 0;
    while result < from.len() {
        match file.write_at(&from[result..], offset + result as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => result += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
