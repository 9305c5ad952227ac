//! The file system of the operating system.

use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::fs::{Advice as FileAdvice, FallocateFlags, FlockOperation, fadvise, fallocate, flock};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::{Access, File, Fs, Map, Mode, Pages};

/// The file system of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Os;

impl Fs for Os {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(mode != Mode::Read).create_new(mode == Mode::New);
        Ok(Arc::new(OsFile { file: Arc::new(options.open(path)?) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let file =
            fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Box::new(file))
    }
}

struct OsFile {
    file: Arc<fs::File>,
}

impl File for OsFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        match fallocate(&*self.file, FallocateFlags::empty(), 0, len) {
            Ok(()) => Ok(()),
            // A file system that cannot reserve gets zeros, which reserve too.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                let zeros = vec![0; 1 << 16];
                let mut at = self.len()?;
                while at < len {
                    let part = zeros.len().min((len - at) as usize);
                    super::write_whole(self, &zeros[..part], at)?;
                    at += part as u64;
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(from, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn start_writeback(&self, part: Range<u64>) {
        // There is no hint for it alone that is portable; on Linux this is the call.
        #[cfg(target_os = "linux")]
        linux::start_writeback(&self.file, part);
        #[cfg(not(target_os = "linux"))]
        let _ = part;
    }

    fn map(&self, len: usize, access: Access) -> io::Result<Map> {
        let rights = match access {
            Access::Read => ProtFlags::READ,
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        };
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe {
            mmap(std::ptr::null_mut(), len, rights, MapFlags::SHARED, &*self.file, 0)?
        };
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let pages = OsPages { start, len, file: Arc::clone(&self.file) };
        // SAFETY: the mapping lives until `pages` is dropped.
        Ok(unsafe { Map::new(start, len, Box::new(pages)) })
    }
}

struct OsPages {
    start: NonNull<u8>,
    len: usize,
    file: Arc<fs::File>,
}

// SAFETY: the pointer is used for whole-mapping calls only, which any thread may make.
unsafe impl Send for OsPages {}
// SAFETY: as above.
unsafe impl Sync for OsPages {}

impl Pages for OsPages {
    fn bring(&self, part: Range<usize>) -> io::Result<()> {
        let len = std::num::NonZeroU64::new((part.end - part.start) as u64);
        fadvise(&*self.file, part.start as u64, len, FileAdvice::WillNeed)?;
        // SAFETY: the part lies in the mapping, and populating changes no content.
        let brought = unsafe {
            let at = self.start.as_ptr().add(part.start).cast();
            madvise(at, part.end - part.start, Advice::LinuxPopulateRead)
        };
        match brought {
            // Kernels before 5.14: the pages come when they are touched.
            Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(()),
            Err(rustix::io::Errno::FAULT) => Err(rustix::io::Errno::IO.into()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for OsPages {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more, for its owner is being dropped. An
        // error would mean that it is not ours; there is nothing to do about it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::ops::Range;
    use std::os::fd::AsRawFd;

    pub(super) fn start_writeback(file: &fs::File, part: Range<u64>) {
        // SAFETY: a call with numbers alone. It is a hint: what it answers does not matter.
        unsafe {
            libc::sync_file_range(
                file.as_raw_fd(),
                part.start as i64,
                (part.end - part.start) as i64,
                libc::SYNC_FILE_RANGE_WRITE,
            );
        }
    }
}
