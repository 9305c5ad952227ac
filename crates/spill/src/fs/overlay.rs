//! A read-only file system whose changes stay in memory.
//!
//! Opening a store read-only recovers it on an overlay. Recovery is the same code, the disk stays
//! unchanged, and it works where nothing can be written.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use super::{Access, File, Fs, Map, Mode, Pages};
use crate::locks::lock;
use crate::schedule::Mutex;

pub(crate) struct Overlay {
    below: Arc<dyn Fs>,
    /// Changed or created files, and `None` for removed names.
    changes: Mutex<HashMap<PathBuf, Option<Arc<dyn File>>>>,
}

impl Overlay {
    pub(crate) fn new(below: Arc<dyn Fs>) -> Overlay {
        Overlay { below, changes: Mutex::default() }
    }

    fn change_of(&self, path: &Path) -> Option<Option<Arc<dyn File>>> {
        lock(&self.changes).get(path).cloned()
    }

    fn set(&self, path: &Path, file: Option<Arc<dyn File>>) {
        let mut changes = lock(&self.changes);
        changes.insert(path.to_owned(), file);
    }
}

impl Fs for Overlay {
    /// In-memory files need no directory.
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut found = self.below.list(path)?;
        let changes = lock(&self.changes);
        for (other, file) in changes.iter().filter(|(other, _)| other.parent() == Some(path)) {
            let Some(name) = other.file_name().and_then(|name| name.to_str()) else { continue };
            found.retain(|found| found != name);
            if file.is_some() {
                found.push(name.to_owned());
            }
        }
        Ok(found)
    }

    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn File>> {
        let is_new = mode == Mode::New;
        let file: Arc<dyn File> = match self.change_of(path) {
            Some(Some(_)) if is_new => return Err(io::ErrorKind::AlreadyExists.into()),
            Some(Some(file)) => return Ok(file),
            Some(None) if !is_new => return Err(io::ErrorKind::NotFound.into()),
            None if !is_new => {
                let below = self.below.open(path, Mode::Read)?;
                if mode == Mode::Read {
                    return Ok(below);
                }
                Arc::new(PrivateFile::new(below)?)
            }
            None if self.below.open(path, Mode::Read).is_ok() => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            _ => Arc::new(MemoryFile::default()),
        };
        self.set(path, Some(Arc::clone(&file)));
        Ok(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let file = self.open(from, Mode::Write)?;
        self.set(to, Some(file));
        self.set(from, None);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.set(path, None);
        Ok(())
    }

    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.lock_shared(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.below.lock_shared(path)
    }
}

/// An existing file whose writes go to a private mapping.
struct PrivateFile {
    below: Arc<dyn File>,
    len: usize,
    /// `None` for an empty file, which cannot be mapped.
    pages: Option<Arc<SharedMap>>,
}

/// A shared mapping; its bytes change only under the lock.
struct SharedMap {
    map: Map,
    write_lock: Mutex<()>,
}

impl PrivateFile {
    fn new(below: Arc<dyn File>) -> io::Result<PrivateFile> {
        let len = below.len()? as usize;
        let map = (len > 0).then(|| below.map(len, Access::Private)).transpose()?;
        let pages = map.map(|map| Arc::new(SharedMap { map, write_lock: Mutex::default() }));
        Ok(PrivateFile { below, len, pages })
    }

    /// How much of `len` bytes from `offset` lies in the file, and its address.
    fn part(&self, offset: u64, len: usize) -> Option<(&SharedMap, NonNull<u8>, usize)> {
        let pages = self.pages.as_deref()?;
        let at = usize::try_from(offset).ok().filter(|at| *at < self.len)?;
        // SAFETY: `at` is in the mapping, which has the file's length.
        Some((pages, unsafe { pages.map.start().add(at) }, len.min(self.len - at)))
    }
}

impl File for PrivateFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len as u64)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len <= self.len as u64 { Ok(()) } else { self.set_len(len) }
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        // Reads the file first: an unreadable part is an error here, but a signal in the mapping.
        let read = self.below.read_at(into, offset)?;
        if let Some((pages, start, len)) = self.part(offset, read) {
            let _exclusive = lock(&pages.write_lock);
            // SAFETY: `len` bytes of the mapping, which nobody changes meanwhile, and of `into`,
            // since `read` is not larger.
            unsafe { start.as_ptr().copy_to_nonoverlapping(into.as_mut_ptr(), len) };
        }
        Ok(read)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        let Some((pages, start, len)) = self.part(offset, from.len()) else {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        };
        let _exclusive = lock(&pages.write_lock);
        // SAFETY: `len` bytes of the mapping and of `from`; readers of the mapping learn of records
        // only after they are written, as with a file.
        unsafe { start.as_ptr().copy_from_nonoverlapping(from.as_ptr(), len) };
        Ok(len)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn start_writeback(&self, _: Range<u64>) {}

    fn map(&self, len: usize, _: Access) -> io::Result<Map> {
        let pages = self.pages.as_ref().filter(|_| len <= self.len);
        let pages = Arc::clone(pages.ok_or(io::ErrorKind::InvalidInput)?);
        let start = pages.map.start();
        // SAFETY: the mapping lives as long as its sharers.
        Ok(unsafe { Map::new(start, len, Box::new(SharedMapPages(pages))) })
    }
}

struct SharedMapPages(Arc<SharedMap>);

impl Pages for SharedMapPages {
    fn populate(&self, part: Range<usize>) -> io::Result<()> {
        self.0.map.populate(part)
    }
}

/// An in-memory file. A mapping is a copy, since nothing writes to a store that is read.
#[derive(Default)]
struct MemoryFile {
    bytes: Mutex<Vec<u8>>,
}

impl File for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.bytes).len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut bytes = lock(&self.bytes);
        bytes.resize(len as usize, 0);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len > self.len()? { self.set_len(len) } else { Ok(()) }
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = lock(&self.bytes);
        let from = bytes.get(offset as usize..).unwrap_or_default();
        let len = from.len().min(into.len());
        into[..len].copy_from_slice(&from[..len]);
        Ok(len)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        let mut bytes = lock(&self.bytes);
        let end = offset as usize + from.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(from);
        Ok(from.len())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn start_writeback(&self, _: Range<u64>) {}

    fn map(&self, len: usize, _: Access) -> io::Result<Map> {
        let mut pages = MemoryPages(vec![0; len]);
        let bytes = lock(&self.bytes);
        let there = bytes.get(..len).ok_or(io::ErrorKind::InvalidInput)?;
        pages.0.copy_from_slice(there);
        let start = NonNull::new(pages.0.as_mut_ptr()).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the memory is the vector's, which moves into the box and keeps its place.
        Ok(unsafe { Map::new(start, len, Box::new(pages)) })
    }
}

struct MemoryPages(Vec<u8>);

impl Pages for MemoryPages {
    fn populate(&self, _: Range<usize>) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Os, read_exact_at, write_all_at};
    use super::*;

    fn bytes_of(file: &dyn File) -> Vec<u8> {
        let mut bytes = vec![0; file.len().unwrap() as usize];
        read_exact_at(file, &mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn overlay_changes_never_reach_the_disk() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        std::fs::write(path("old"), b"as it was").unwrap();
        let fs = Overlay::new(Arc::new(Os::new()));
        let old = fs.open(&path("old"), Mode::Write).unwrap();
        let map = old.map(9, Access::Read).unwrap();
        write_all_at(&*old, b"AS", 0).unwrap();
        assert_eq!(bytes_of(&*old), b"AS it was");
        // SAFETY: nine bytes are mapped.
        let mapped = unsafe { std::slice::from_raw_parts(map.start().as_ptr(), 9) };
        assert_eq!(mapped, b"AS it was");
        assert!(old.write_at(b"x", 9).is_err());

        let new = fs.open(&path("new"), Mode::New).unwrap();
        write_all_at(&*new, b"made", 2).unwrap();
        assert_eq!(bytes_of(&*fs.open(&path("new"), Mode::Read).unwrap()), b"\0\0made");
        fs.rename(&path("new"), &path("other")).unwrap();
        assert!(fs.open(&path("new"), Mode::Read).is_err());
        fs.remove(&path("old")).unwrap();
        assert!(fs.open(&path("old"), Mode::Write).is_err());
        assert_eq!(fs.list(home.path()).unwrap(), ["other"]);

        assert_eq!(std::fs::read(path("old")).unwrap(), b"as it was");
        assert_eq!(Os::new().list(home.path()).unwrap(), ["old"]);
    }
}
