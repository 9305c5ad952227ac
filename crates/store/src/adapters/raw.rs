//! One slot a record in one file, past the page cache: what a device gives to a store that manages
//! nothing.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Bound;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use model::{Bytes, Unit};
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    Adapt, Capabilities, Given, OptionInfo, Session, Statistic, Store, StoreError, StoreUrl, on_off,
};

const OPTIONS: &[OptionInfo] = &[
    OptionInfo::new("slot", "8KiB", "room of a record with its 16-byte head, a multiple of 4KiB")
        .shaping(),
    OptionInfo::new("direct_io", "on", "reads and writes past the page cache"),
];

/// What direct I/O wants of addresses, offsets and lengths on every device.
const ALIGNMENT: usize = 4096;
/// Checksum of the rest, key length, value length.
const HEAD: usize = 16;
/// Slots that are read at once when the file is opened.
const SCANNED: usize = 128;
/// The file grows by as much as it is long, within these bounds.
const LEAST_GROWTH: u64 = 1 << 20;
const MOST_GROWTH: u64 = 64 << 20;
/// Locks that the slots share.
const STRIPES: usize = 1 << 12;
const FILE: &str = "slots";

#[derive(Debug, Clone, Copy)]
struct Config {
    slot: usize,
    direct: bool,
}

impl Config {
    fn read(url: &StoreUrl) -> Result<Self, StoreError> {
        let given = Given::new(url, OPTIONS)?;
        let slot = given.bytes("slot")?.unwrap_or(8 << 10);
        if slot == 0 || slot % ALIGNMENT as u64 != 0 || slot > 1 << 26 {
            return Err(StoreError::Request(format!(
                "option `slot` of `raw` takes a multiple of 4KiB up to 64MiB, not `{}`",
                Bytes(slot)
            )));
        }
        Ok(Config { slot: slot as usize, direct: given.flag("direct_io")?.unwrap_or(true) })
    }
}

/// An index in memory from key to slot, and the file of slots. A record is overwritten where it
/// lies.
pub struct Raw {
    path: PathBuf,
    file: File,
    config: Config,
    index: RwLock<BTreeMap<Box<[u8]>, u64>>,
    free: Mutex<Free>,
    /// Of the slots: who writes one keeps others off it.
    stripes: Vec<RwLock<()>>,
}

/// Slots without a record.
#[derive(Debug, Default)]
struct Free {
    given_back: Vec<u64>,
    /// Slots from here on were never used.
    unused: u64,
    /// Slots that the file has room for.
    room: u64,
}

impl Adapt for Raw {
    const OPTIONS: &'static [OptionInfo] = OPTIONS;
    const LONGEST_KEY: usize = 1024;

    fn check(url: &StoreUrl) -> Result<(), StoreError> {
        Config::read(url).map(drop)
    }

    fn linked() -> Result<String, StoreError> {
        Ok(version())
    }
}

fn version() -> String {
    format!("raw {}", env!("CARGO_PKG_VERSION"))
}

impl Store for Raw {
    type Session<'a> = RawSession<'a>;

    fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        let config = Config::read(url)?;
        let path = url.data_path().join(FILE);
        let flags = if config.direct { OFlags::DIRECT } else { OFlags::empty() };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(flags.bits() as i32)
            .open(&path)
            .map_err(|error| match error.kind() {
                io::ErrorKind::InvalidInput => StoreError::Request(format!(
                    "{}: the file system has no direct I/O; name another directory, or say \
                     direct_io=off",
                    path.display()
                )),
                _ => StoreError::from_io(&path.display().to_string(), &error),
            })?;
        let stripes = (0..STRIPES).map(|_| RwLock::new(())).collect();
        let (index, free) = (RwLock::default(), Mutex::default());
        let raw = Raw { path, file, config, index, free, stripes };
        raw.find_records()?;
        Ok(raw)
    }

    fn capabilities(&self) -> Capabilities {
        // A write past the page cache goes out as one request; one into it may be cut by a kill.
        Capabilities { scan: true, durable: self.config.direct, keeps: true, forgets: false }
    }

    fn version(&self) -> String {
        version()
    }

    fn options(&self) -> Vec<(String, String)> {
        vec![
            ("slot".to_owned(), Bytes(self.config.slot as u64).to_string()),
            ("direct_io".to_owned(), on_off(self.config.direct)),
        ]
    }

    fn session(&self) -> Result<RawSession<'_>, StoreError> {
        Ok(RawSession { raw: self, buffer: Aligned::new(self.config.slot) })
    }

    fn settle(&self, _limit: Duration) -> Result<(), StoreError> {
        self.file.sync_data().map_err(|error| self.failed(&error))
    }

    fn statistics(&self) -> Vec<Statistic> {
        let slots = self.free().unused as f64;
        vec![Statistic { name: "slots".to_owned(), value: slots, unit: Unit::Count }]
    }
}

impl Raw {
    /// Reads every slot of the file once.
    fn find_records(&self) -> Result<(), StoreError> {
        let slot = self.config.slot;
        let length = self.file.metadata().map_err(|error| self.failed(&error))?.len();
        let room = length / slot as u64;
        let mut buffer = Aligned::new(slot * SCANNED);
        let mut index = self.index_mut();
        let mut free = Free { given_back: Vec::new(), unused: 0, room };
        for first in (0..room).step_by(SCANNED) {
            let slots = (room - first).min(SCANNED as u64) as usize;
            let bytes = &mut buffer.bytes()[..slots * slot];
            let offset = first * slot as u64;
            self.file.read_exact_at(bytes, offset).map_err(|error| self.failed(&error))?;
            for (at, bytes) in bytes.chunks(slot).enumerate() {
                let number = first + at as u64;
                if let Some((key, _)) = record(bytes) {
                    index.insert(key.into(), number);
                    free.given_back.extend(free.unused..number);
                    free.unused = number + 1;
                }
            }
        }
        *self.free() = free;
        Ok(())
    }

    fn index(&self) -> RwLockReadGuard<'_, BTreeMap<Box<[u8]>, u64>> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn index_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<Box<[u8]>, u64>> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stripe(&self, slot: u64) -> &RwLock<()> {
        &self.stripes[slot as usize % STRIPES]
    }

    /// A slot without a record; the file grows where there is none.
    fn take_slot(&self) -> Result<u64, StoreError> {
        let mut free = self.free();
        if let Some(slot) = free.given_back.pop() {
            return Ok(slot);
        }
        if free.unused == free.room {
            let slot = self.config.slot as u64;
            let much = (free.room * slot).clamp(LEAST_GROWTH, MOST_GROWTH);
            // What is left of a disk may be less than that.
            let grown = self.grow(free.room, much).or_else(|_| self.grow(free.room, slot));
            free.room = grown.map_err(|error| self.failed(&error))?;
        }
        free.unused += 1;
        Ok(free.unused - 1)
    }

    /// Makes room for so many bytes more; how many slots the file has then.
    fn grow(&self, room: u64, bytes: u64) -> io::Result<u64> {
        let slot = self.config.slot as u64;
        let grown = room * slot + bytes.next_multiple_of(slot);
        match rustix::io::retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), 0, grown))
        {
            Ok(()) => {}
            Err(rustix::io::Errno::OPNOTSUPP) => self.file.set_len(grown)?,
            Err(error) => return Err(error.into()),
        }
        Ok(grown / slot)
    }

    #[cold]
    fn failed(&self, error: &io::Error) -> StoreError {
        StoreError::from_io(&self.path.display().to_string(), error)
    }

    #[cold]
    fn damaged(&self, slot: u64) -> StoreError {
        StoreError::Failed(format!(
            "{}: slot {slot} at byte {} is damaged",
            self.path.display(),
            slot * self.config.slot as u64
        ))
    }
}

/// Key and value of a slot's bytes; none where it holds no whole record.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let checksum = u64::from_le_bytes(head[..8].try_into().ok()?);
    let key = u32::from_le_bytes(head[8..12].try_into().ok()?) as usize;
    let value = u32::from_le_bytes(head[12..].try_into().ok()?) as usize;
    let end = HEAD.checked_add(key)?.checked_add(value)?;
    if key + value == 0 || checksum != xxh3_64(bytes.get(8..end)?) {
        return None;
    }
    let (key, rest) = rest.split_at(key);
    Some((key, &rest[..value]))
}

/// Writes a record to the beginning of a slot's bytes; how many they are, in whole blocks.
fn put_record(slot: &mut [u8], key: &[u8], value: &[u8]) -> Option<usize> {
    let end = HEAD + key.len() + value.len();
    if end > slot.len() {
        return None;
    }
    slot[8..12].copy_from_slice(&(key.len() as u32).to_le_bytes());
    slot[12..HEAD].copy_from_slice(&(value.len() as u32).to_le_bytes());
    slot[HEAD..HEAD + key.len()].copy_from_slice(key);
    slot[HEAD + key.len()..end].copy_from_slice(value);
    let checksum = xxh3_64(&slot[8..end]);
    slot[..8].copy_from_slice(&checksum.to_le_bytes());
    Some(end.next_multiple_of(ALIGNMENT))
}

/// Memory that begins where direct I/O wants it.
struct Aligned {
    memory: Vec<u8>,
    begin: usize,
    len: usize,
}

impl Aligned {
    fn new(len: usize) -> Self {
        let memory = vec![0; len + ALIGNMENT];
        let begin = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Aligned { memory, begin, len }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + self.len]
    }
}

/// One thread's way into the slots.
pub struct RawSession<'a> {
    raw: &'a Raw,
    buffer: Aligned,
}

impl RawSession<'_> {
    /// Writes a record to a slot: to a new one, or to that which the index has for the key. False:
    /// it no longer has, and nothing was written.
    fn write(
        &mut self,
        slot: u64,
        is_new: bool,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool, StoreError> {
        let raw = self.raw;
        let room = raw.config.slot;
        let Some(length) = put_record(self.buffer.bytes(), key, value) else {
            return Err(StoreError::Request(format!(
                "a record of {} B does not fit into a slot of `raw`; say slot={}",
                key.len() + value.len() + HEAD,
                Bytes((key.len() + value.len() + HEAD).next_multiple_of(ALIGNMENT) as u64)
            )));
        };
        let _alone = raw.stripe(slot).write().unwrap_or_else(PoisonError::into_inner);
        if !is_new && raw.index().get(key) != Some(&slot) {
            return Ok(false);
        }
        raw.file
            .write_all_at(&self.buffer.bytes()[..length], slot * room as u64)
            .map_err(|error| raw.failed(&error))?;
        Ok(true)
    }

    /// The record of a slot, if it is still this key's.
    fn read_slot(
        &mut self,
        slot: u64,
        key: &[u8],
        seen: impl FnOnce(&[u8]),
    ) -> Result<bool, StoreError> {
        let raw = self.raw;
        let _shared = raw.stripe(slot).read().unwrap_or_else(PoisonError::into_inner);
        if raw.index().get(key) != Some(&slot) {
            return Ok(false);
        }
        let bytes = self.buffer.bytes();
        raw.file
            .read_exact_at(bytes, slot * raw.config.slot as u64)
            .map_err(|error| raw.failed(&error))?;
        match record(bytes) {
            Some((found, value)) if found == key => seen(value),
            _ => return Err(raw.damaged(slot)),
        }
        Ok(true)
    }
}

impl Session for RawSession<'_> {
    fn read(&mut self, key: &[u8], mut seen: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        // A record that another thread moved meanwhile is looked up again.
        loop {
            let known = self.raw.index().get(key).copied();
            let Some(slot) = known else { return Ok(false) };
            if self.read_slot(slot, key, &mut seen)? {
                return Ok(true);
            }
        }
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        loop {
            let known = self.raw.index().get(key).copied();
            let Some(slot) = known else { break };
            if self.write(slot, false, key, value)? {
                return Ok(());
            }
        }
        let slot = self.raw.take_slot()?;
        // Before the index knows it, so that nobody reads it half written.
        if let Err(error) = self.write(slot, true, key, value) {
            self.raw.free().given_back.push(slot);
            return Err(error);
        }
        let before = self.raw.index_mut().insert(key.into(), slot);
        if let Some(before) = before {
            // Another thread inserted the same key meanwhile: this write is the later one.
            self.erase(before)?;
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let removed = self.raw.index_mut().remove(key);
        removed.map_or(Ok(()), |slot| self.erase(slot))
    }

    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        mut seen: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let mut count = 0;
        let found: Vec<(Box<[u8]>, u64)> = {
            let index = self.raw.index();
            let range = index.range::<[u8], _>((Bound::Included(from), Bound::Unbounded));
            range.take(limit).map(|(key, slot)| (key.clone(), *slot)).collect()
        };
        for (key, slot) in found {
            count += usize::from(self.read_slot(slot, &key, |value| seen(&key, value))?);
        }
        Ok(count)
    }
}

impl RawSession<'_> {
    /// Takes the record out of a slot that the index no longer has, and gives the slot back.
    fn erase(&mut self, slot: u64) -> Result<(), StoreError> {
        let raw = self.raw;
        let block = &mut self.buffer.bytes()[..ALIGNMENT];
        block.fill(0);
        {
            let _alone = raw.stripe(slot).write().unwrap_or_else(PoisonError::into_inner);
            raw.file
                .write_all_at(block, slot * raw.config.slot as u64)
                .map_err(|error| raw.failed(&error))?;
        }
        raw.free().given_back.push(slot);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let url: StoreUrl = format!("raw:{}", folder.path().display()).parse().unwrap();
        std::fs::create_dir_all(url.data_path()).unwrap();
        {
            let raw = Raw::open(&url).unwrap();
            let mut session = raw.session().unwrap();
            for n in 0..300_u32 {
                session.update(&n.to_be_bytes(), &vec![n as u8; n as usize * 10]).unwrap();
            }
            session.delete(&7_u32.to_be_bytes()).unwrap();
            session.update(&8_u32.to_be_bytes(), b"new").unwrap();
            let wide = session.update(b"wide", &[0; 9000]).unwrap_err();
            assert!(wide.to_string().contains("slot=12"), "{wide}");
        }
        let raw = Raw::open(&url).unwrap();
        let mut session = raw.session().unwrap();
        let mut keys = Vec::new();
        let count = session.scan(b"", 1000, |key, value| {
            keys.push((u32::from_be_bytes(key.try_into().unwrap()), value.len()));
        });
        assert_eq!(count.unwrap(), 299);
        assert_eq!(keys[6..9], [(6, 60), (8, 3), (9, 90)]);
        // The slot of the deleted record is used again.
        let slots = raw.free().unused;
        session.update(b"again", b"x").unwrap();
        assert_eq!(raw.free().unused, slots);
    }

    #[test]
    fn a_damaged_slot_is_said_and_never_served() {
        let folder = tempfile::tempdir().unwrap();
        let url: StoreUrl =
            format!("raw:{}?direct_io=off&slot=4KiB", folder.path().display()).parse().unwrap();
        std::fs::create_dir_all(url.data_path()).unwrap();
        let raw = Raw::open(&url).unwrap();
        let mut session = raw.session().unwrap();
        session.update(b"a", &[1; 100]).unwrap();
        session.update(b"b", &[2; 100]).unwrap();
        raw.file.write_all_at(&[9; 4], 4096 + 50).unwrap();
        let error = session.read(b"b", |_| panic!("served")).unwrap_err();
        assert!(error.to_string().contains("slot 1 at byte 4096 is damaged"), "{error}");
        assert!(session.read(b"a", |_| {}).unwrap());
    }
}
