//! The file system of the operating system.

use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::fs::{
    Advice as FileAdvice, AtFlags, CWD, Dir, FallocateFlags, FileType, FlockOperation,
    Mode as FileMode, OFlags, StatVfsMountFlags, fadvise, fallocate, fcntl_getfl, flock, fstatvfs,
    fsync, linkat, mkdirat, open, openat, renameat, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::directories::{HeldDirectories, ResolvedPath};
use super::{Access, File, Fs, Map, Mode, Pages, Part};

/// The file system of the operating system.
#[derive(Default)]
pub struct Os {
    held: Option<HeldDirectories>,
}

impl Os {
    /// Every path is resolved when it is used.
    pub fn new() -> Os {
        Os::default()
    }

    fn resolve<'a>(&self, path: &'a Path) -> io::Result<ResolvedPath<'a>> {
        let held = self.held.as_ref().and_then(|held| held.resolve(path));
        held.unwrap_or(Ok(ResolvedPath::unresolved(path)))
    }

    fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<fs::File> {
        let resolved = self.resolve(path)?;
        let mode = FileMode::from_raw_mode(0o666);
        let open = || openat(resolved.directory(), resolved.name, flags | OFlags::CLOEXEC, mode);
        Ok(retry_on_intr(open)?.into())
    }
}

impl Fs for Os {
    fn hold(&self, dir: &Path, inside: &[&'static str]) -> io::Result<Option<Arc<dyn Fs>>> {
        Ok(Some(Arc::new(Os { held: Some(HeldDirectories::hold(dir, inside)?) })))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let resolved = self.resolve(path)?;
        match mkdirat(resolved.directory(), resolved.name, FileMode::from_raw_mode(0o777)) {
            Err(Errno::EXIST) if resolved.is_kind(FileType::Directory) == Some(true) => Ok(()),
            Err(Errno::EXIST) => Err(io::ErrorKind::NotADirectory.into()),
            done => Ok(done?),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let directory = self.open_with(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in Dir::new(directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn File>> {
        let flags = match mode {
            Mode::Read => OFlags::RDONLY,
            Mode::Write => OFlags::RDWR,
            Mode::New => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        // Opening a pipe would block.
        if mode != Mode::New && self.resolve(path)?.is_kind(FileType::RegularFile) == Some(false) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Arc::new(OsFile { file: Arc::new(self.open_with(path, flags)?) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.resolve(from)?, self.resolve(to)?);
        Ok(renameat(from.directory(), from.name, to.directory(), to.name)?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let resolved = self.resolve(path)?;
        Ok(unlinkat(resolved.directory(), resolved.name, AtFlags::empty())?)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let from = self.resolve(from)?;
        Ok(linkat(from.directory(), from.name, CWD, to, AtFlags::empty())?)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        match self.held.as_ref().and_then(|held| held.directory(path)) {
            Some(directory) => {
                let directory = directory?;
                retry_on_intr(|| fsync(&*directory))?;
                check_writable(&*directory)
            }
            None => {
                let directory = fs::File::open(path)?;
                directory.sync_all()?;
                check_writable(&directory)
            }
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let directory = self.open_with(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Box::new(DirectoryLock(directory)))
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let directory = self.open_with(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        flock(&directory, FlockOperation::NonBlockingLockShared)?;
        Ok(Box::new(DirectoryLock(directory)))
    }
}

/// Fails where the file system is read-only by now. One that was made so by force, as in an
/// emergency, says of a sync that it is done and writes nothing: ext4 does, see `ext4_sync_file`.
fn check_writable(file: impl AsFd) -> io::Result<()> {
    match fstatvfs(file)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        true => Err(Errno::ROFS.into()),
        false => Ok(()),
    }
}

/// A directory lock, released on drop.
struct DirectoryLock(fs::File);

impl Drop for DirectoryLock {
    /// Closing is not enough while a forked child still holds the descriptor.
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
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
        let all = || fallocate(&*self.file, FallocateFlags::empty(), 0, len);
        match retry_on_intr(all) {
            Ok(()) => Ok(()),
            // Where the file system cannot preallocate, zeros are written instead.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                let zeros = vec![0; 1 << 16];
                let mut at = self.len()?;
                while at < len {
                    let part = zeros.len().min((len - at) as usize);
                    super::write_all_at(self, &zeros[..part], at)?;
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

    fn write_many_at(&self, from: &[io::IoSlice<'_>], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwritev(&*self.file, from, offset)?)
    }

    #[cfg(target_os = "linux")]
    fn read_many(&self, parts: &mut [Part<'_>]) -> io::Result<()> {
        if let Some(done) = linux::read_many(&self.file, parts) {
            return done;
        }
        for part in parts {
            super::read_exact_at(self, part.into, part.offset)?;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        check_writable(&*self.file)
    }

    fn start_writeback(&self, part: Range<u64>) {
        // There is no portable hint for this; Linux has a call.
        #[cfg(target_os = "linux")]
        linux::start_writeback(&self.file, part);
        #[cfg(not(target_os = "linux"))]
        let _ = part;
    }

    fn open_direct(&self) -> Option<Arc<dyn File>> {
        let rights = fcntl_getfl(&*self.file).ok()? & OFlags::RWMODE;
        // The name may be gone or belong to another file by now.
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let file = open(path, rights | OFlags::DIRECT | OFlags::CLOEXEC, FileMode::empty()).ok()?;
        Some(Arc::new(OsFile { file: Arc::new(file.into()) }))
    }

    fn map(&self, len: usize, access: Access) -> io::Result<Map> {
        let rights = match access {
            Access::Read => ProtFlags::READ,
            Access::ReadWrite | Access::Private => ProtFlags::READ | ProtFlags::WRITE,
        };
        let shared = match access {
            Access::Private => MapFlags::PRIVATE,
            Access::Read | Access::ReadWrite => MapFlags::SHARED,
        };
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { mmap(std::ptr::null_mut(), len, rights, shared, &*self.file, 0)? };
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
    fn populate(&self, part: Range<usize>) -> io::Result<()> {
        let len = std::num::NonZeroU64::new((part.end - part.start) as u64);
        fadvise(&*self.file, part.start as u64, len, FileAdvice::WillNeed)?;
        // SAFETY: the part lies in the mapping, and populating changes no content.
        let populated = unsafe {
            let at = self.start.as_ptr().add(part.start).cast();
            madvise(at, part.end - part.start, Advice::LinuxPopulateRead)
        };
        match populated {
            // Before Linux 5.14 the pages come when they are touched.
            Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(()),
            Err(rustix::io::Errno::FAULT) => Err(rustix::io::Errno::IO.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn set_readahead(&self, readahead: bool) {
        let (file, mapping) = match readahead {
            true => (FileAdvice::Normal, Advice::Normal),
            false => (FileAdvice::Random, Advice::Random),
        };
        let _ = fadvise(&*self.file, 0, None, file);
        // SAFETY: advice on the whole mapping, which changes no content.
        let _ = unsafe { madvise(self.start.as_ptr().cast(), self.len, mapping) };
    }

    fn unmap(&self, part: Range<usize>) {
        // SAFETY: the part lies in a mapping of a file, and comes from there again if it is touched.
        let _ = unsafe {
            let at = self.start.as_ptr().add(part.start).cast();
            madvise(at, part.len(), Advice::LinuxDontNeed)
        };
    }

    fn evict(&self, part: Range<usize>) {
        let len = std::num::NonZeroU64::new(part.len() as u64);
        let _ = fadvise(&*self.file, part.start as u64, len, FileAdvice::DontNeed);
    }
}

impl Drop for OsPages {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more, since its owner is being dropped. An
        // error would mean that the mapping is not ours; nothing can be done about it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::RefCell;
    use std::fs;
    use std::io;
    use std::ops::Range;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    use io_uring::{IoUring, opcode, types};

    use super::super::Part;

    pub(super) fn start_writeback(file: &fs::File, part: Range<u64>) {
        // SAFETY: the call takes numbers only. It is a hint, so its result does not matter.
        unsafe {
            libc::sync_file_range(
                file.as_raw_fd(),
                part.start as i64,
                (part.end - part.start) as i64,
                libc::SYNC_FILE_RANGE_WRITE,
            );
        }
    }

    const RING_ENTRIES: usize = 64;

    thread_local! {
        /// Created on first use; `None` inside: the kernel offers no ring.
        static RING: RefCell<Option<Option<IoUring>>> = const { RefCell::new(None) };
    }

    /// Reads all parts with as many requests in flight as the ring takes. `None`: there is no ring.
    pub(super) fn read_many(file: &fs::File, parts: &mut [Part<'_>]) -> Option<io::Result<()>> {
        let read = |slot: &RefCell<Option<Option<IoUring>>>| {
            let mut slot = slot.borrow_mut();
            let ring = slot.get_or_insert_with(|| IoUring::new(RING_ENTRIES as u32).ok());
            for parts in parts.chunks_mut(RING_ENTRIES) {
                if let Err(error) = read_some(ring.as_mut()?, file, parts) {
                    // It may hold requests that were never submitted.
                    *slot = None;
                    return Some(Err(error));
                }
            }
            Some(Ok(()))
        };
        // An exiting thread may have lost its thread-local.
        RING.try_with(read).ok()?
    }

    fn read_some(ring: &mut IoUring, file: &fs::File, parts: &mut [Part<'_>]) -> io::Result<()> {
        for (number, part) in parts.iter_mut().enumerate() {
            let fd = types::Fd(file.as_raw_fd());
            let read = opcode::Read::new(fd, part.into.as_mut_ptr(), part.into.len() as u32)
                .offset(part.offset)
                .build()
                .user_data(number as u64);
            // SAFETY: file and buffers stay borrowed until every submitted request has completed
            // below.
            let pushed = unsafe { ring.submission().push(&read) };
            debug_assert!(pushed.is_ok(), "there are as many entries as parts");
        }
        let mut answered = 0;
        let mut failed = None;
        loop {
            let handed_over = parts.len() - ring.submission().len();
            if answered == parts.len() || failed.is_some() && answered == handed_over {
                return failed.map_or(Ok(()), Err);
            }
            match ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    failed = Some(error);
                    // Requests in flight still write into the buffers: wait for their completions.
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
            for answer in ring.completion() {
                answered += 1;
                let part = &mut parts[answer.user_data() as usize];
                let read = match answer.result() {
                    code if code < 0 => {
                        let code = -code;
                        if code == libc::EINTR || code == libc::EAGAIN {
                            0
                        } else {
                            failed = Some(io::Error::from_raw_os_error(code));
                            continue;
                        }
                    }
                    read => read as usize,
                };
                // Completes a short read; this also detects the end of the file.
                if read < part.into.len()
                    && let Err(error) =
                        file.read_exact_at(&mut part.into[read..], part.offset + read as u64)
                {
                    failed = Some(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::{Mode, write_all_at};
    use super::*;

    const PLACE: &str = "SPILL_TEST_READ_ONLY";

    #[test]
    fn a_sync_on_a_file_system_that_became_read_only_fails() {
        if let Some(place) = std::env::var_os(PLACE) {
            let place = Path::new(&place);
            let file = Os::new().open(&place.join("file"), Mode::Read).unwrap();
            for done in [file.sync(), Os::new().sync_dir(place)] {
                assert_eq!(done.unwrap_err().kind(), io::ErrorKind::ReadOnlyFilesystem);
            }
            println!("seen read-only");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let mount = "mount -t tmpfs tmpfs \"$0\" && touch \"$0/file\" && \
                     mount -o remount,ro \"$0\" && exec \"$@\"";
        let name = "fs::os::tests::a_sync_on_a_file_system_that_became_read_only_fails";
        let run = Command::new("unshare")
            .args(["-rm", "sh", "-c", mount])
            .arg(place.path())
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(PLACE, place.path())
            .output();
        match run {
            Ok(run) if String::from_utf8_lossy(&run.stdout).contains("running 1 test") => {
                let out = String::from_utf8_lossy(&run.stdout);
                assert!(out.contains("seen read-only"), "{run:?}");
            }
            other => eprintln!("SKIPPED: no mount of its own: {other:?}"),
        }
    }

    #[test]
    fn lock_is_released_despite_an_inherited_descriptor() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path();
        let file = fs::File::open(path).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        // What a fork does: another descriptor for the same open file.
        let inherited = file.try_clone().unwrap();
        let held = DirectoryLock(file);
        assert!(Os::new().lock(path).is_err());
        drop(held);
        let again = Os::new().lock(path).unwrap();
        assert!(Os::new().lock_shared(path).is_err());
        drop((again, inherited));
    }

    #[test]
    fn evicted_pages_are_still_in_the_file() {
        let home = tempfile::tempdir().unwrap();
        let file = Os::new().open(&home.path().join("file"), Mode::New).unwrap();
        let content: Vec<u8> = (0..100_000).map(|i| (i % 251) as u8).collect();
        write_all_at(&*file, &content, 0).unwrap();
        file.sync().unwrap();
        let map = file.map(content.len(), Access::Read).unwrap();
        map.populate(0..content.len()).unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                crate::time_slice::enable();
                map.discard();
            });
        });
        // SAFETY: the mapping has this length.
        let mapped = unsafe { std::slice::from_raw_parts(map.start().as_ptr(), content.len()) };
        assert_eq!(mapped, content);
        assert_eq!(file.len().unwrap(), content.len() as u64);
    }
}
