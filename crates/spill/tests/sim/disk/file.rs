//! Open files and their mappings.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::io::Errno;
use spill::fs::{Access, BLOCK_SIZE, File, Map, Pages};

use super::call::Place;
use super::directory::Hold;
use super::memory::Memory;
use super::state::State;
use super::{Fault, Kind};
use crate::random::Random;

pub(super) struct SimFile {
    pub(super) hold: Hold,
    pub(super) path: PathBuf,
    pub(super) writes: bool,
    /// Past the page cache: all is in whole blocks.
    pub(super) blocks: bool,
}

impl SimFile {
    /// What the engine must keep to, and what a file system may refuse.
    fn check_blocks(&self, memory: &[u8], offset: u64, state: &State) -> io::Result<()> {
        if !self.blocks {
            return Ok(());
        }
        for number in [memory.as_ptr().addr(), memory.len(), offset as usize] {
            assert!(
                number.is_multiple_of(BLOCK_SIZE),
                "{}: {number}: no block",
                self.path.display()
            );
        }
        match PastCache::of(state.seed) {
            PastCache::Refused => Err(Errno::INVAL.into()),
            _ => Ok(()),
        }
    }

    fn begin(&self, kind: Kind) -> io::Result<MutexGuard<'_, State>> {
        self.hold.disk.begin(kind, Place::File(self.hold.id))
    }

    fn must_be_writable(&self) {
        assert!(self.writes, "{} is open for reading and is written", self.path.display());
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
        assert_eq!(file.maps, 0, "{} is mapped and gets another length", self.path.display());
        file.set_len(len as usize);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.must_be_writable();
        let mut state = self.begin(Kind::Allocate)?;
        let len = len as usize;
        if state.room_for(&state.files[&self.hold.id], 0..len) < len {
            return Err(Errno::NOSPC.into());
        }
        let file = state.file(self.hold.id);
        file.place(0..len);
        if len > file.len() {
            file.set_len(len);
        }
        Ok(())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let (mut state, fault) = self.hold.disk.enter(Kind::Read, Place::File(self.hold.id));
        self.check_blocks(into, offset, &state)?;
        let count = match fault {
            None => into.len(),
            Some(Fault::Short) => into.len().div_ceil(2),
            Some(fault) => return Err(fault.error()),
        };
        Ok(state.file(self.hold.id).read(&mut into[..count], offset as usize))
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.must_be_writable();
        let (mut state, fault) = self.hold.disk.enter(Kind::Write, Place::File(self.hold.id));
        self.check_blocks(from, offset, &state)?;
        let at = offset as usize;
        let count = match fault {
            None => from.len(),
            Some(Fault::Short) => from.len().div_ceil(2),
            Some(fault) => {
                let mut random = Random::of(state.seed, state.calls);
                if fault == Fault::Broken && random.chance(1, 2) {
                    // All of it, now and then.
                    let arrived = random.below(2 * from.len() + 1).min(from.len());
                    state.file(self.hold.id).write(&from[..arrived], at);
                }
                return Err(fault.error());
            }
        };
        let count = state.room_for(&state.files[&self.hold.id], at..at + count);
        if count == 0 && !from.is_empty() {
            return Err(Errno::NOSPC.into());
        }
        state.file(self.hold.id).write(&from[..count], at);
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        let (mut state, fault) = self.hold.disk.enter(Kind::Sync, Place::File(self.hold.id));
        let file = state.file(self.hold.id);
        match fault {
            None => {
                file.sync();
                Ok(())
            }
            Some(fault) => {
                file.give_up(matches!(fault, Fault::LostSync { forget: true }));
                Err(fault.error())
            }
        }
    }

    fn start_writeback(&self, _: Range<u64>) {}

    fn open_direct(&self) -> Option<Arc<dyn File>> {
        let mut state = self.begin(Kind::OpenPastCache).ok()?;
        let is_there = PastCache::of(state.seed) != PastCache::Missing;
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
        assert!(len > 0, "{path}: nothing is mapped");
        assert!(len <= file.len(), "{path}: {len} bytes are mapped of {}", file.len());
        if access == Access::Private {
            let mut copy = Memory::zeroed(len);
            copy.write(0, &file.bytes()[..len]);
            let (start, copy) = (copy.start(), Copied(Mutex::new(copy)));
            // SAFETY: the copy keeps its place, and is kept by the pages.
            return Ok(unsafe { Map::new(start, len, Box::new(copy)) });
        }
        let writes = access == Access::ReadWrite;
        if writes {
            self.must_be_writable();
            assert!(
                file.can_be_stored_into(len),
                "{path}: mapped for writing, and not all of it has its place on the device"
            );
            file.writable_maps += 1;
        }
        file.maps += 1;
        let start = file.start();
        let pages =
            SimPages { hold: self.hold.another(&mut state), path: self.path.clone(), len, writes };
        drop(state);
        // SAFETY: a mapped file's memory stays where it is, and the file is kept, until the
        // pages are dropped.
        Ok(unsafe { Map::new(start, len, Box::new(pages)) })
    }
}

/// Whether there is a way past the page cache: one of these on each disk.
#[derive(PartialEq, Eq)]
enum PastCache {
    Missing,
    /// It is opened, and takes no blocks of this size.
    Refused,
    There,
}

impl PastCache {
    fn of(seed: u64) -> PastCache {
        match seed % 4 {
            0 => PastCache::Missing,
            1 => PastCache::Refused,
            _ => PastCache::There,
        }
    }
}

/// What is mapped for one alone.
struct Copied(#[allow(dead_code, reason = "kept for its memory")] Mutex<Memory>);

impl Pages for Copied {
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
        assert!(part.end <= self.len, "{}: brings what is not mapped", self.path.display());
        drop(self.hold.disk.begin(Kind::Bring, Place::File(self.hold.id))?);
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
