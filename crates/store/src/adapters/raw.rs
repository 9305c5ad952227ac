//! One extent of a file for each record, past the page cache: a device's throughput without the
//! work of a storage engine.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Bound;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use model::{Unavailable, Unit};
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    Capabilities, EmbeddedAdapter, OptionInfo, Session, Statistic, Store, StoreError, StoreOptions,
    StoreUrl, Survives, on_off,
};

const OPTIONS: &[OptionInfo] =
    &[OptionInfo::new("direct_io", "on", "reads and writes past the page cache")];

/// Alignment that direct I/O needs for addresses, offsets and lengths on every device.
const BLOCK: usize = 4096;
/// Checksum of the rest and the key; checksum of the value; lengths of key and value; class, kind.
const HEAD: usize = 24;
/// An extent of class `c` has `2^c` blocks; up to 64 MiB.
const CLASSES: usize = 15;
/// Blocks that are read at once when the file is opened.
const SCANNED: u64 = 256;
/// The file grows by as much as it is long, within these bounds, in blocks.
const LEAST_GROWTH: u64 = 256;
const MOST_GROWTH: u64 = 16 << 10;
/// Locks that the extents share.
const STRIPES: usize = 1 << 12;
const FILE: &str = "extents";

/// An in-memory index from key to extent, and the file. A record is overwritten in place as long as
/// it fits.
pub struct RawStore {
    path: PathBuf,
    file: File,
    direct: bool,
    index: RwLock<BTreeMap<Box<[u8]>, RecordExtent>>,
    free: Mutex<FreeExtent>,
    /// Locks of the extents, exclusive while one is written.
    stripes: Vec<RwLock<()>>,
}

/// A record's extent, and the blocks of it that the record fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RecordExtent {
    block: u64,
    class: u8,
    blocks: u32,
}

/// Free space, in blocks.
#[derive(Debug, Default)]
struct FreeExtent {
    /// Released extents, by class.
    released: [Vec<u64>; CLASSES],
    /// Blocks from here on were never used.
    unused: u64,
    /// Blocks that the file has room for.
    room: u64,
}

impl EmbeddedAdapter for RawStore {
    const OPTIONS: &'static [OptionInfo] = OPTIONS;
    /// Header and key must fit in the first block.
    const LONGEST_KEY: usize = 1024;

    fn check(url: &StoreUrl) -> Result<(), StoreError> {
        StoreOptions::new(url, OPTIONS)?.flag("direct_io").map(drop)
    }

    fn linked() -> Result<String, Unavailable> {
        Ok(version())
    }
}

fn version() -> String {
    format!("raw {}", env!("CARGO_PKG_VERSION"))
}

impl Store for RawStore {
    type Session<'a> = RawSession<'a>;

    fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        let direct = StoreOptions::new(url, OPTIONS)?.flag("direct_io")?.unwrap_or(true);
        let path = url.data_path().join(FILE);
        let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(flags.bits() as i32)
            .open(&path)
            .map_err(|error| match error.kind() {
                io::ErrorKind::InvalidInput => StoreError::Request(format!(
                    "{}: the file system has no direct I/O; name another directory, or use \
                     direct_io=off",
                    path.display()
                )),
                _ => StoreError::from_io(&path.display().to_string(), &error),
            })?;
        let stripes = (0..STRIPES).map(|_| RwLock::new(())).collect();
        let (index, free) = (RwLock::default(), Mutex::default());
        let raw = RawStore { path, file, direct, index, free, stripes };
        raw.find_records()?;
        Ok(raw)
    }

    fn capabilities(&self) -> Capabilities {
        // A direct write is one request; a cached one may be torn by a kill.
        let survives = if self.direct { Survives::ProcessKill } else { Survives::Nothing };
        let survives = Some(survives);
        Capabilities { scan: true, survives, stores_values: true, may_evict: false }
    }

    fn version(&self) -> String {
        version()
    }

    fn options(&self) -> Vec<(String, String)> {
        vec![("direct_io".to_owned(), on_off(self.direct))]
    }

    fn session(&self) -> Result<RawSession<'_>, StoreError> {
        Ok(RawSession { raw: self, buffer: AlignedBuffer::new(2 * BLOCK) })
    }

    fn settle(&self, _limit: Duration) -> Result<(), StoreError> {
        self.file.sync_data().map_err(|error| self.failed(&error))
    }

    fn statistics(&self) -> Vec<Statistic> {
        let bytes = (self.free().unused * BLOCK as u64) as f64;
        vec![Statistic { name: "extents".to_owned(), value: bytes, unit: Unit::Bytes }]
    }
}

impl RawStore {
    /// Reads the head of every extent, from the first block on.
    fn find_records(&self) -> Result<(), StoreError> {
        let length = self.file.metadata().map_err(|error| self.failed(&error))?.len();
        let room = length / BLOCK as u64;
        let mut buffer = AlignedBuffer::new(SCANNED as usize * BLOCK);
        let (mut index, mut free) =
            (self.index_mut(), FreeExtent { room, ..FreeExtent::default() });
        let (mut at, mut read) = (0, 0..0);
        while at < room {
            if !read.contains(&at) {
                read = at..room.min(at + SCANNED);
                let bytes = &mut buffer.bytes()[..(read.end - read.start) as usize * BLOCK];
                let offset = at * BLOCK as u64;
                self.file.read_exact_at(bytes, offset).map_err(|error| self.failed(&error))?;
            }
            let block = &buffer.bytes()[(at - read.start) as usize * BLOCK..][..BLOCK];
            // A block without a valid header was never written, or its write was interrupted.
            let whole =
                RecordHeader::read(block).filter(|(head, _)| at + head.extent_blocks() <= room);
            let Some((head, key)) = whole else {
                at += 1;
                continue;
            };
            match head.is_record {
                true => drop(index.insert(key.into(), head.extent(at))),
                false => free.released[head.class as usize].push(at),
            }
            at += head.extent_blocks();
            free.unused = at;
        }
        *self.free() = free;
        Ok(())
    }

    fn index(&self) -> RwLockReadGuard<'_, BTreeMap<Box<[u8]>, RecordExtent>> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn index_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<Box<[u8]>, RecordExtent>> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, key: &[u8]) -> Option<RecordExtent> {
        self.index().get(key).copied()
    }

    fn free(&self) -> MutexGuard<'_, FreeExtent> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stripe(&self, block: u64) -> &RwLock<()> {
        &self.stripes[block as usize % STRIPES]
    }

    /// The first block of an extent without a record; the file grows where there is none.
    fn take(&self, class: u8) -> Result<u64, StoreError> {
        let mut free = self.free();
        if let Some(block) = free.released[class as usize].pop() {
            return Ok(block);
        }
        let end = free.unused + (1 << class);
        if end > free.room {
            let much = free.room + free.room.clamp(LEAST_GROWTH, MOST_GROWTH);
            // The disk may have less space than that.
            let grown = self.grow(much.max(end)).or_else(|_| self.grow(end));
            free.room = grown.map_err(|error| self.failed(&error))?;
        }
        Ok(std::mem::replace(&mut free.unused, end))
    }

    /// Makes room for so many blocks in all.
    fn grow(&self, room: u64) -> io::Result<u64> {
        let length = room * BLOCK as u64;
        let flags = FallocateFlags::empty();
        match rustix::io::retry_on_intr(|| fallocate(&self.file, flags, 0, length)) {
            Ok(()) => {}
            Err(rustix::io::Errno::OPNOTSUPP) => self.file.set_len(length)?,
            Err(error) => return Err(error.into()),
        }
        Ok(room)
    }

    #[cold]
    fn failed(&self, error: &io::Error) -> StoreError {
        StoreError::from_io(&self.path.display().to_string(), error)
    }

    #[cold]
    fn failed_at(&self, action: &str, block: u64, error: &io::Error) -> StoreError {
        let byte = block * BLOCK as u64;
        StoreError::from_io(&format!("{}: {action} at byte {byte}", self.path.display()), error)
    }

    #[cold]
    fn damaged(&self, extent: RecordExtent) -> StoreError {
        let at = extent.block * BLOCK as u64;
        StoreError::Failed(format!("{}: the record at byte {at} is damaged", self.path.display()))
    }
}

/// The header of a record.
#[derive(Debug, Clone, Copy)]
struct RecordHeader {
    key: u16,
    value: u32,
    class: u8,
    /// False for a released extent.
    is_record: bool,
    value_sum: u64,
}

impl RecordHeader {
    fn new(key: &[u8], value: &[u8]) -> Option<RecordHeader> {
        let blocks = (HEAD + key.len() + value.len()).div_ceil(BLOCK);
        let class = blocks.next_power_of_two().trailing_zeros() as u8;
        let fits = key.len() <= RawStore::LONGEST_KEY && (class as usize) < CLASSES;
        fits.then(|| RecordHeader {
            key: key.len() as u16,
            value: value.len() as u32,
            class,
            is_record: true,
            value_sum: xxh3_64(value),
        })
    }

    /// The header of a released extent.
    fn unused(class: u8) -> RecordHeader {
        RecordHeader { key: 0, value: 0, class, is_record: false, value_sum: 0 }
    }

    /// Writes head and key to the beginning of a block.
    fn write(&self, block: &mut [u8], key: &[u8]) {
        block[8..16].copy_from_slice(&self.value_sum.to_le_bytes());
        block[16..20].copy_from_slice(&self.value.to_le_bytes());
        block[20..22].copy_from_slice(&self.key.to_le_bytes());
        (block[22], block[23]) = (self.class, if self.is_record { 1 } else { 2 });
        block[HEAD..HEAD + key.len()].copy_from_slice(key);
        let sum = xxh3_64(&block[8..HEAD + key.len()]);
        block[..8].copy_from_slice(&sum.to_le_bytes());
    }

    /// Head and key at the beginning of a block; `None` where they are not valid.
    fn read(block: &[u8]) -> Option<(RecordHeader, &[u8])> {
        let key = u16::from_le_bytes(block.get(20..22)?.try_into().ok()?);
        let end = HEAD + usize::from(key);
        let sum = u64::from_le_bytes(block[..8].try_into().ok()?);
        let (class, kind) = (block[22], block[23]);
        let known = (class as usize) < CLASSES && (kind == 1 || kind == 2);
        if !known || sum != xxh3_64(block.get(8..end)?) {
            return None;
        }
        let value = u32::from_le_bytes(block[16..20].try_into().ok()?);
        let value_sum = u64::from_le_bytes(block[8..16].try_into().ok()?);
        let head = RecordHeader { key, value, class, is_record: kind == 1, value_sum };
        Some((head, &block[HEAD..end]))
    }

    /// Blocks of the whole extent.
    fn extent_blocks(&self) -> u64 {
        1 << self.class
    }

    fn extent(&self, block: u64) -> RecordExtent {
        let bytes = HEAD + usize::from(self.key) + self.value as usize;
        RecordExtent { block, class: self.class, blocks: bytes.div_ceil(BLOCK) as u32 }
    }
}

/// Memory aligned for direct I/O.
struct AlignedBuffer {
    memory: Vec<u8>,
    begin: usize,
    len: usize,
}

impl AlignedBuffer {
    fn new(len: usize) -> Self {
        let memory = vec![0; len + BLOCK];
        let begin = memory.as_ptr().align_offset(BLOCK).min(BLOCK);
        AlignedBuffer { memory, begin, len }
    }

    /// At least `len` bytes; the content is undefined.
    fn with_room(&mut self, len: usize) -> &mut [u8] {
        if self.len < len {
            *self = AlignedBuffer::new(len.next_power_of_two());
        }
        &mut self.bytes()[..len]
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + self.len]
    }
}

/// One thread's access to the extents.
pub struct RawSession<'a> {
    raw: &'a RawStore,
    buffer: AlignedBuffer,
}

impl RawSession<'_> {
    /// Writes a record to a new extent or to the one that the index has for the key. False: the
    /// index has changed, and nothing was written.
    fn write(
        &mut self,
        extent: RecordExtent,
        is_new: bool,
        head: &RecordHeader,
        (key, value): (&[u8], &[u8]),
    ) -> Result<bool, StoreError> {
        let raw = self.raw;
        let blocks = head.extent(extent.block).blocks;
        let bytes = self.buffer.with_room(blocks as usize * BLOCK);
        head.write(bytes, key);
        let begin = HEAD + key.len();
        bytes[begin..begin + value.len()].copy_from_slice(value);
        let _alone = raw.stripe(extent.block).write().unwrap_or_else(PoisonError::into_inner);
        let known = if is_new { None } else { raw.find(key) };
        if !is_new && known.is_none_or(|known| known.block != extent.block) {
            return Ok(false);
        }
        raw.file
            .write_all_at(bytes, extent.block * BLOCK as u64)
            .map_err(|error| raw.failed_at("writing", extent.block, &error))?;
        if known.is_some_and(|known| known.blocks != blocks)
            && let Some(known) = raw.index_mut().get_mut(key)
            && known.block == extent.block
        {
            known.blocks = blocks;
        }
        Ok(true)
    }

    /// Reads the record in an extent, if that still belongs to the key.
    fn read_at(
        &mut self,
        block: u64,
        key: &[u8],
        on_value: impl FnOnce(&[u8]),
    ) -> Result<bool, StoreError> {
        let raw = self.raw;
        let _shared = raw.stripe(block).read().unwrap_or_else(PoisonError::into_inner);
        let Some(extent) = raw.find(key).filter(|extent| extent.block == block) else {
            return Ok(false);
        };
        let bytes = self.buffer.with_room(extent.blocks as usize * BLOCK);
        raw.file
            .read_exact_at(bytes, block * BLOCK as u64)
            .map_err(|error| raw.failed_at("reading", block, &error))?;
        let (head, stored_key) = RecordHeader::read(bytes).ok_or_else(|| raw.damaged(extent))?;
        let begin = HEAD + stored_key.len();
        let value = bytes.get(begin..begin + head.value as usize);
        match value.filter(|value| stored_key == key && xxh3_64(value) == head.value_sum) {
            Some(value) => on_value(value),
            None => return Err(raw.damaged(extent)),
        }
        Ok(true)
    }

    /// Erases a record that the index no longer has, and releases its extent.
    fn erase(&mut self, extent: RecordExtent) -> Result<(), StoreError> {
        let raw = self.raw;
        let bytes = self.buffer.with_room(BLOCK);
        RecordHeader::unused(extent.class).write(bytes, b"");
        {
            let _alone = raw.stripe(extent.block).write().unwrap_or_else(PoisonError::into_inner);
            raw.file
                .write_all_at(bytes, extent.block * BLOCK as u64)
                .map_err(|error| raw.failed(&error))?;
        }
        raw.free().released[extent.class as usize].push(extent.block);
        Ok(())
    }
}

impl Session for RawSession<'_> {
    fn read(&mut self, key: &[u8], mut on_value: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        // Retried when another thread has moved the record.
        loop {
            let Some(extent) = self.raw.find(key) else { return Ok(false) };
            if self.read_at(extent.block, key, &mut on_value)? {
                return Ok(true);
            }
        }
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let head = RecordHeader::new(key, value).ok_or_else(|| {
            StoreError::Request(format!(
                "`raw` takes keys of up to {} B and records of up to 64 MiB, not one of {} and {} B",
                RawStore::LONGEST_KEY,
                key.len(),
                value.len()
            ))
        })?;
        // In place, as long as the size class stays the same.
        while let Some(extent) = self.raw.find(key).filter(|extent| extent.class == head.class) {
            if self.write(extent, false, &head, (key, value))? {
                return Ok(());
            }
        }
        let block = self.raw.take(head.class)?;
        let extent = head.extent(block);
        // Before it is in the index, so that it is never read half written.
        if let Err(error) = self.write(extent, true, &head, (key, value)) {
            self.raw.free().released[head.class as usize].push(block);
            return Err(error);
        }
        let before = self.raw.index_mut().insert(key.into(), extent);
        // The old extent had another size, or another thread inserted the same key meanwhile.
        before.map_or(Ok(()), |before| self.erase(before))
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let removed = self.raw.index_mut().remove(key);
        removed.map_or(Ok(()), |extent| self.erase(extent))
    }

    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        mut on_pair: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let keys: Vec<Box<[u8]>> = {
            let index = self.raw.index();
            let range = index.range::<[u8], _>((Bound::Included(from), Bound::Unbounded));
            range.take(limit).map(|(key, _)| key.clone()).collect()
        };
        let mut count = 0;
        for key in keys {
            count += usize::from(self.read(&key, |value| on_pair(&key, value))?);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(folder: &std::path::Path, options: &str) -> StoreUrl {
        let url: StoreUrl = format!("raw:{}{options}", folder.display()).parse().unwrap();
        std::fs::create_dir_all(url.data_path()).unwrap();
        url
    }

    #[test]
    fn reopens_its_records() {
        let folder = tempfile::tempdir().unwrap();
        let url = url(folder.path(), "");
        {
            let raw = RawStore::open(&url).unwrap();
            let mut session = raw.session().unwrap();
            for n in 0..300_u32 {
                session.update(&n.to_be_bytes(), &vec![n as u8; n as usize * 100]).unwrap();
            }
            session.delete(&7_u32.to_be_bytes()).unwrap();
            // Another size: the record moves, and its old extent is released.
            session.update(&8_u32.to_be_bytes(), &[1; 20_000]).unwrap();
            session.update(&9_u32.to_be_bytes(), b"new").unwrap();
        }
        let raw = RawStore::open(&url).unwrap();
        let mut session = raw.session().unwrap();
        let mut lengths = Vec::new();
        let count = session.scan(b"", 1000, |key, value| {
            lengths.push((u32::from_be_bytes(key.try_into().unwrap()), value.len()));
        });
        assert_eq!(count.unwrap(), 299);
        assert_eq!(lengths[6..10], [(6, 600), (8, 20_000), (9, 3), (10, 1000)]);
        assert_eq!(lengths[298], (299, 29_900));
        // The released extents are reused.
        let unused = raw.free().unused;
        session.update(b"again", b"x").unwrap();
        session.update(b"and again", b"x").unwrap();
        assert_eq!(raw.free().unused, unused);
        let wide = session.update(b"wide", &vec![0; 64 << 20]).unwrap_err();
        assert!(wide.to_string().contains("64 MiB"), "{wide}");
    }

    #[test]
    fn concurrent_reads_never_see_torn_records() {
        let folder = tempfile::tempdir().unwrap();
        let raw = RawStore::open(&url(folder.path(), "?direct_io=off")).unwrap();
        raw.session().unwrap().update(b"key", &[0; 10]).unwrap();
        std::thread::scope(|scope| {
            for writer in 1..3_u8 {
                let raw = &raw;
                scope.spawn(move || {
                    let mut session = raw.session().unwrap();
                    for n in 0..2000 {
                        let length = [10, 5000, 9000][n % 3];
                        session.update(b"key", &vec![writer; length]).unwrap();
                    }
                });
            }
            let mut session = raw.session().unwrap();
            for _ in 0..2000 {
                let there = session.read(b"key", |value| {
                    assert!(value.iter().all(|byte| *byte == value[0]), "torn");
                });
                assert!(there.unwrap(), "it was never deleted");
            }
        });
        assert_eq!(raw.index().len(), 1);
    }

    #[test]
    fn reports_a_damaged_record() {
        let folder = tempfile::tempdir().unwrap();
        let raw = RawStore::open(&url(folder.path(), "?direct_io=off")).unwrap();
        let mut session = raw.session().unwrap();
        session.update(b"a", &[1; 100]).unwrap();
        session.update(b"b", &[2; 100]).unwrap();
        raw.file.write_all_at(&[9; 4], 4096 + 50).unwrap();
        let error = session.read(b"b", |_| panic!("served")).unwrap_err();
        assert!(error.to_string().contains("the record at byte 4096 is damaged"), "{error}");
        assert!(session.read(b"a", |_| {}).unwrap());
    }
}
