//! Open files and their mappings.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::io::Errno;
use spill::fs::{Access, BLOCK_SIZE, File, Map, Pages};

use super::call::CallTarget;
use super::directory::Hold;
use super::memory::Memory;
use super::state::State;
use super::{Fault, Kind};
use crate::random::Random;

pub(super) struct SimFile {
    pub(super) hold: Hold,
    pub(super) path: PathBuf,
    pub(super) writes: bool,
    /// Direct I/O: only whole blocks.
    pub(super) blocks: bool,
}

impl SimFile {
    /// Requirements on the engine, and reasons for a file system to refuse.
    fn check_blocks(&self, memory: &[u8], offset: u64, state: &State) -> io::Result<()> {
        if !self.blocks {
            return Ok(());
        }
        for number in [memory.as_ptr().addr(), memory.len(), offset as usize] {
            assert!(
                number.is_multiple_of(BLOCK_SIZE),
                "{}: {number}: not block-aligned",
                self.path.display()
            );
        }
        match DirectIo::of(state.seed) {
            DirectIo::Refused => Err(Errno::INVAL.into()),
            _ => Ok(()),
        }
    }

    fn begin(&self, kind: Kind) -> io::Result<MutexGuard<'_, State>> {
        self.hold.disk.begin(kind, CallTarget::File(self.hold.id))
    }

    fn must_be_writable(&self) {
        assert!(self.writes, "{}: write to a file open for reading", self.path.display());
    }
}

impl File for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.begin(Kind::Len)?.file(self.hold.id).len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.must_be_writable();
        let mut state = self.begin(Kind::SetLen)?;
        let file = state.file(self.hold.id);
        assert_eq!(file.maps, 0, "{}: resize of a mapped file", self.path.display());
        file.set_len(len as usize);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.must_be_writable();
        let mut state = self.begin(Kind::Allocate)?;
        let len = len as usize;
        if state.space_for(&state.files[&self.hold.id], 0..len) < len {
            return Err(Errno::NOSPC.into());
        }
        let file = state.file(self.hold.id);
        file.allocate(0..len);
        if len > file.len() {
            file.set_len(len);
        }
        Ok(())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let (mut state, fault) = self.hold.disk.enter(Kind::Read, CallTarget::File(self.hold.id));
        self.check_blocks(into, offset, &state)?;
        let count = match fault {
            None => into.len(),
            Some(Fault::Short) => into.len().div_ceil(2),
            Some(fault) => return Err(fault.error()),
        };
        let (file, offset) = (state.file(self.hold.id), offset as usize);
        let read = file.read(&mut into[..count], offset);
        if !self.blocks {
            file.cache(offset..offset + read);
        }
        Ok(read)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.must_be_writable();
        let (mut state, fault) = self.hold.disk.enter(Kind::Write, CallTarget::File(self.hold.id));
        self.check_blocks(from, offset, &state)?;
        let at = offset as usize;
        if self.blocks {
            // Linux may fail the next sync if a reader brings a block into the page cache while it
            // is written directly. Only what could not be read directly is read so.
            let fired = state.fired.as_ref().map(|call| call.kind);
            let is_spared = matches!(fired, Some(Kind::OpenPastCache | Kind::Read));
            let cached = state.file(self.hold.id).first_cached(at..at + from.len());
            assert!(
                is_spared || cached.is_none(),
                "{}: block {cached:?} is written directly and in the page cache",
                self.path.display()
            );
        }
        let count = match fault {
            None => from.len(),
            Some(Fault::Short) => from.len().div_ceil(2),
            Some(fault) => {
                let mut random = Random::of(state.seed, state.calls);
                if fault == Fault::Broken && random.chance(1, 2) {
                    // At times all of it.
                    let arrived = random.below(2 * from.len() + 1).min(from.len());
                    state.file(self.hold.id).write(&from[..arrived], at);
                }
                return Err(fault.error());
            }
        };
        let count = state.space_for(&state.files[&self.hold.id], at..at + count);
        if count == 0 && !from.is_empty() {
            return Err(Errno::NOSPC.into());
        }
        state.file(self.hold.id).write(&from[..count], at);
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        let (mut state, fault) = self.hold.disk.enter(Kind::Sync, CallTarget::File(self.hold.id));
        let file = state.file(self.hold.id);
        match fault {
            None => {
                file.sync();
                Ok(())
            }
            Some(fault) => {
                file.drop_unsynced(matches!(fault, Fault::LostSync { forget: true }));
                Err(fault.error())
            }
        }
    }

    fn start_writeback(&self, _: Range<u64>) {}

    fn open_direct(&self) -> Option<Arc<dyn File>> {
        let mut state = self.begin(Kind::OpenPastCache).ok()?;
        let is_there = DirectIo::of(state.seed) != DirectIo::Missing;
        is_there.then(|| {
            let hold = self.hold.another(&mut state);
            let (path, writes) = (self.path.clone(), self.writes);
            Arc::new(SimFile { hold, path, writes, blocks: true }) as Arc<dyn File>
        })
    }

    fn map(&self, len: usize, access: Access) -> io::Result<Map> {
        let mut state = self.begin(Kind::Map)?;
        let file = state.file(self.hold.id);
        let path = self.path.display();
        assert!(len > 0, "{path}: empty mapping");
        assert!(len <= file.len(), "{path}: {len} bytes mapped of {}", file.len());
        if access == Access::Private {
            let mut copy = Memory::zeroed(len);
            copy.write(0, &file.bytes()[..len]);
            let (start, copy) = (copy.start(), PrivateCopy(Mutex::new(copy)));
            // SAFETY: the copy keeps its address and is owned by the pages.
            return Ok(unsafe { Map::new(start, len, Box::new(copy)) });
        }
        let writes = access == Access::ReadWrite;
        if writes {
            self.must_be_writable();
            assert!(
                file.can_be_stored_into(len),
                "{path}: a writable mapping is not fully allocated"
            );
            file.writable_maps += 1;
        }
        file.maps += 1;
        let start = file.start();
        let pages =
            SimPages { hold: self.hold.another(&mut state), path: self.path.clone(), len, writes };
        drop(state);
        // SAFETY: a mapped file's memory keeps its address, and the file is kept, until the pages
        // are dropped.
        Ok(unsafe { Map::new(start, len, Box::new(pages)) })
    }
}

/// Support for direct I/O, one of these on each disk.
#[derive(PartialEq, Eq)]
enum DirectIo {
    Missing,
    /// It can be opened, but does not take blocks of this size.
    Refused,
    There,
}

impl DirectIo {
    fn of(seed: u64) -> DirectIo {
        match seed % 4 {
            0 => DirectIo::Missing,
            1 => DirectIo::Refused,
            _ => DirectIo::There,
        }
    }
}

/// A private mapping.
struct PrivateCopy(#[allow(dead_code, reason = "kept for its memory")] Mutex<Memory>);

impl Pages for PrivateCopy {
    fn populate(&self, _: Range<usize>) -> io::Result<()> {
        Ok(())
    }
}

struct SimPages {
    hold: Hold,
    path: PathBuf,
    len: usize,
    writes: bool,
}

impl Pages for SimPages {
    fn populate(&self, part: Range<usize>) -> io::Result<()> {
        assert!(part.end <= self.len, "{}: populates unmapped memory", self.path.display());
        let mut state = self.hold.disk.begin(Kind::Bring, CallTarget::File(self.hold.id))?;
        state.file(self.hold.id).cache(part);
        Ok(())
    }
}

impl Drop for SimPages {
    fn drop(&mut self) {
        let mut state = self.hold.disk.state();
        let file = state.file(self.hold.id);
        file.maps -= 1;
        if self.writes {
            file.touch(0..self.len);
            file.writable_maps -= 1;
        }
    }
}
