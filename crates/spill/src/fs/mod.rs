//! The file system as the engine sees it. All disk access goes through [`Fs`], so that tests can
//! lose, tear and refuse any of it.

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

/// A file system. All paths are those given to the engine, or below them.
///
/// A power failure may lose everything of a file that [`File::sync`] did not sync, in any part and
/// order. It may lose a new, renamed or removed name until [`Fs::sync_dir`] of its directory.
///
/// The engine distinguishes these error kinds: `NotFound`, `AlreadyExists`, `StorageFull` and
/// `QuotaExceeded` from any call, `Interrupted` from reading, writing and allocating, `WouldBlock`
/// from a lock, `CrossesDevices` from a hard link, and `InvalidInput` from a direct write.
pub trait Fs: Send + Sync + 'static {
    /// The same file system with this directory held open: paths that begin with it still lead
    /// there after a rename. The same holds for the subdirectories `inside` once they were used.
    /// `None` if that is impossible or unnecessary.
    fn hold(&self, _dir: &Path, _inside: &[&'static str]) -> io::Result<Option<Arc<dyn Fs>>> {
        Ok(None)
    }

    /// Creates a directory in an existing one; it may already exist.
    /// [`io::ErrorKind::NotADirectory`] if something else has its name.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, in any order.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Opens a file. [`io::ErrorKind::NotFound`] or [`io::ErrorKind::AlreadyExists`] if the mode
    /// does not allow what it finds.
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn File>>;

    /// Renames a file and replaces what is at `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name; the file stays usable where it is open or mapped.
    /// [`io::ErrorKind::NotFound`] if there is none.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Adds a second name for a file. `to` is resolved now, even where a directory is held.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Locks the directory exclusively until the result is dropped. [`io::ErrorKind::WouldBlock`]
    /// if another holder has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;

    /// Locks the directory shared: others may share it, and none may have it exclusively.
    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It must exist; it is never written.
    Read,
    /// It must exist.
    Write,
    /// It must not exist.
    New,
}

#[allow(clippy::len_without_is_empty)]
/// An open file. A call may transfer less than asked for, like system calls.
pub trait File: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Truncates the file, or extends it by a hole of zeros. Never called on a mapped file.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Allocates space for every byte up to `len`, so that a store into a mapping cannot fail.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Reads from a byte offset; returns the bytes read, 0 at the end of the file.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at a byte offset and extends the file if needed; returns the bytes written.
    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize>;

    /// Writes several buffers one after the other; returns the bytes written.
    fn write_many_at(&self, from: &[io::IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let first = from.iter().find(|part| !part.is_empty());
        first.map_or(Ok(0), |first| self.write_at(first, offset))
    }

    /// Makes content and length durable, including stores into a mapping.
    fn sync(&self) -> io::Result<()>;

    /// Starts writeback of a part without waiting; only a hint.
    fn start_writeback(&self, part: Range<u64>);

    /// Maps the first `len` bytes, coherent with `read_at` and `write_at`. The file is at least
    /// that long and is never truncated while mapped.
    fn map(&self, len: usize, access: Access) -> io::Result<Map>;

    /// The same file for direct I/O: offsets, lengths and addresses must be multiples of
    /// [`BLOCK_SIZE`]. Each handle sees the other's writes. `None` if the file system does not
    /// support it.
    fn open_direct(&self) -> Option<Arc<dyn File>> {
        None
    }

    /// Reads many parts completely, in any order; `io::ErrorKind::UnexpectedEof` if one lies beyond
    /// the end.
    fn read_many(&self, parts: &mut [Part<'_>]) -> io::Result<()> {
        for part in parts {
            read_exact_at(self, part.into, part.offset)?;
        }
        Ok(())
    }
}

/// Alignment of direct I/O: the largest block size that devices commonly have.
pub const BLOCK_SIZE: usize = 4096;

/// The unit of the page cache, and at least a block: what is written directly shares none with what
/// is read through the page cache.
pub(crate) fn cache_page() -> usize {
    // SAFETY: it only reads a constant of the system. rustix's way ends the process under valgrind.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).map_or(BLOCK_SIZE, |page| page.max(BLOCK_SIZE))
}

/// A part of a file to read.
pub struct Part<'a> {
    /// Offset in bytes.
    pub offset: u64,
    /// The buffer to fill.
    pub into: &'a mut [u8],
}

/// How a mapping is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    Read,
    /// Stores reach the file; they survive the process but not the machine.
    ReadWrite,
    /// Stores stay in this mapping. The file may be open for reading only, and nobody else changes
    /// it meanwhile.
    Private,
}

/// Bytes unmapped at once. Each unmap interrupts every CPU that uses the mapping.
const UNMAP_CHUNK: usize = 2 << 20;

/// A mapped part of a file, until it is dropped.
pub struct Map {
    start: NonNull<u8>,
    len: usize,
    pages: Box<dyn Pages>,
}

/// Keeps a mapping in place; dropping it ends the mapping.
pub trait Pages: Send + Sync {
    /// Brings a part into memory with large reads. Unreadable parts are an error here instead of a
    /// signal on access.
    fn populate(&self, part: Range<usize>) -> io::Result<()>;

    /// Whether reads of the file, also by this mapping, may bring in more than they ask for; only a
    /// hint.
    fn set_readahead(&self, _readahead: bool) {}

    /// Takes a part out of the mapping until it is accessed again; only a hint.
    fn unmap(&self, _part: Range<usize>) {}

    /// Drops a clean and unmapped part from the page cache; only a hint.
    fn evict(&self, _part: Range<usize>) {}
}

// SAFETY: the memory belongs to the mapping, not to a thread; the engine decides which thread reads
// and which writes each part.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// A mapping that `pages` keeps in place.
    ///
    /// # Safety
    /// `start..start + len` stays valid for the requested access until `pages` is dropped.
    pub unsafe fn new(start: NonNull<u8>, len: usize, pages: Box<dyn Pages>) -> Map {
        Map { start, len, pages }
    }

    /// Address of the first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// See [`Pages::populate`].
    ///
    /// # Errors
    /// If a part cannot be read.
    pub fn populate(&self, part: Range<usize>) -> io::Result<()> {
        self.pages.populate(part)
    }

    /// See [`Pages::set_readahead`].
    pub(crate) fn set_readahead(&self, readahead: bool) {
        self.pages.set_readahead(readahead);
    }

    /// The mapping is no longer used. A background thread releases its memory ahead of the drop, in
    /// chunks.
    pub(crate) fn discard(&self) {
        time_slice::for_each_chunk_ahead(0..self.len, UNMAP_CHUNK, |part| self.pages.unmap(part));
        time_slice::for_each_chunk_ahead(0..self.len, time_slice::SYSCALL_CHUNK, |part| {
            self.pages.evict(part)
        });
    }
}

/// Repeats a call that a signal interrupted.
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
/// Those of [`File::read_at`]; [`io::ErrorKind::UnexpectedEof`] if the file ends early.
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
