//! The real file system, with hooks before calls to some files.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use spill::fs::{Access, File, Fs, Map, Mode, Os, Pages};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Creation of a file.
    Make,
    Write,
    /// After a complete write.
    Written,
    Sync,
    Remove,
    SyncFolder,
    /// From this file.
    Link,
    /// From one offset to another, into memory or a mapping.
    Read(u64, u64),
}

type Hook = Arc<dyn Fn(Call) -> io::Result<()> + Send + Sync>;

struct HookFs {
    of: &'static str,
    hook: Hook,
}

impl HookFs {
    fn is_of(&self, path: &Path) -> bool {
        path.to_str().is_some_and(|path| path.contains(self.of))
    }
}

/// Calls `hook` before each call to a file whose path contains `of`; it may return the result.
pub fn hook_fs(
    of: &'static str,
    hook: impl Fn(Call) -> io::Result<()> + Send + Sync + 'static,
) -> Arc<dyn Fs> {
    Arc::new(HookFs { of, hook: Arc::new(hook) })
}

impl Fs for HookFs {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        Os::new().create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        Os::new().list(path)
    }

    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn File>> {
        if !self.is_of(path) {
            return Os::new().open(path, mode);
        }
        if mode == Mode::New {
            (self.hook)(Call::Make)?;
        }
        let below = Os::new().open(path, mode)?;
        Ok(Arc::new(HookFile { below, hook: Arc::clone(&self.hook) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Os::new().rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if self.is_of(path) {
            (self.hook)(Call::Remove)?;
        }
        Os::new().remove(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.is_of(from) {
            (self.hook)(Call::Link)?;
        }
        Os::new().hard_link(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        if self.is_of(path) {
            (self.hook)(Call::SyncFolder)?;
        }
        Os::new().sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        Os::new().lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        Os::new().lock_shared(path)
    }
}

struct HookFile {
    below: Arc<dyn File>,
    hook: Hook,
}

impl File for HookFile {
    fn len(&self) -> io::Result<u64> {
        self.below.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.below.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.below.allocate(len)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        (self.hook)(Call::Read(offset, offset + into.len() as u64))?;
        self.below.read_at(into, offset)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        (self.hook)(Call::Write)?;
        let written = self.below.write_at(from, offset)?;
        (self.hook)(Call::Written)?;
        Ok(written)
    }

    fn sync(&self) -> io::Result<()> {
        (self.hook)(Call::Sync)?;
        self.below.sync()
    }

    fn start_writeback(&self, part: Range<u64>) {
        self.below.start_writeback(part);
    }

    fn map(&self, len: usize, access: Access) -> io::Result<Map> {
        let below = self.below.map(len, access)?;
        let start = below.start();
        let pages = HookPages { below, hook: Arc::clone(&self.hook) };
        // SAFETY: the mapping below lives as long as the pages.
        Ok(unsafe { Map::new(start, len, Box::new(pages)) })
    }
}

struct HookPages {
    below: Map,
    hook: Hook,
}

impl Pages for HookPages {
    fn populate(&self, part: Range<usize>) -> io::Result<()> {
        (self.hook)(Call::Read(part.start as u64, part.end as u64))?;
        self.below.populate(part)
    }
}
