//! Content of a file: as readers see it, and as it is on the device.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use super::memory::Memory;
use super::{Loss, SECTOR};
use crate::random::Random;

/// Unit of space allocation.
pub const BLOCK: usize = 4096;

pub struct Content {
    /// Its latest name.
    pub name: PathBuf,
    memory: Memory,
    len: usize,
    /// What surely survives a power cut; its length is that of the file on the device.
    durable: Vec<u8>,
    /// Where the two may differ, besides writable mappings.
    touched: Option<Range<usize>>,
    /// Sectors dropped by a failed sync: they read as before, but no later sync writes them unless
    /// they change. By number, with their content then.
    dropped: BTreeMap<usize, Vec<u8>>,
    /// Blocks allocated on the device: now, and after a power cut.
    allocated: Vec<bool>,
    durably_placed: Vec<bool>,
    /// Blocks that were read through the page cache.
    cached: Vec<bool>,
    pub maps: usize,
    pub writable_maps: usize,
    pub handles: usize,
}

impl Content {
    pub fn empty() -> Content {
        Content::durable(Vec::new(), Vec::new())
    }

    fn durable(bytes: Vec<u8>, allocated: Vec<bool>) -> Content {
        let mut memory = Memory::zeroed(bytes.len());
        memory.write(0, &bytes);
        Content {
            name: PathBuf::new(),
            memory,
            len: bytes.len(),
            durable: bytes,
            touched: None,
            dropped: BTreeMap::new(),
            durably_placed: allocated.clone(),
            allocated,
            cached: Vec::new(),
            maps: 0,
            writable_maps: 0,
            handles: 0,
        }
    }

    /// A durable file.
    pub fn of(bytes: Vec<u8>) -> Content {
        let blocks = bytes.len().div_ceil(BLOCK);
        Content::durable(bytes, vec![true; blocks])
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.memory.copy(0..self.len)
    }

    pub fn start(&self) -> std::ptr::NonNull<u8> {
        self.memory.start()
    }

    /// Allocated bytes.
    pub fn space(&self) -> usize {
        self.allocated.iter().filter(|allocated| **allocated).count() * BLOCK
    }

    /// Bytes that `part` would allocate beyond what exists.
    pub fn space_for(&self, part: Range<usize>) -> usize {
        blocks(part).filter(|block| !self.is_allocated(*block)).count() * BLOCK
    }

    fn is_allocated(&self, block: usize) -> bool {
        self.allocated.get(block).copied().unwrap_or(false)
    }

    pub fn allocate(&mut self, part: Range<usize>) {
        let blocks = blocks(part);
        if self.allocated.len() < blocks.end {
            self.allocated.resize(blocks.end, false);
        }
        self.allocated[blocks].fill(true);
    }

    /// A part was read through the page cache.
    pub fn cache(&mut self, part: Range<usize>) {
        let blocks = blocks(part);
        if self.cached.len() < blocks.end {
            self.cached.resize(blocks.end, false);
        }
        self.cached[blocks].fill(true);
    }

    /// The first block of a part that was read through the page cache.
    pub fn first_cached(&self, part: Range<usize>) -> Option<usize> {
        blocks(part).find(|block| self.cached.get(*block).copied().unwrap_or(false))
    }

    pub fn read(&self, into: &mut [u8], at: usize) -> usize {
        let count = into.len().min(self.len.saturating_sub(at));
        if count > 0 {
            self.memory.read(at, &mut into[..count]);
        }
        count
    }

    pub fn write(&mut self, from: &[u8], at: usize) {
        let end = at + from.len();
        self.reserve(end);
        self.memory.write(at, from);
        self.touch(at..end);
        self.allocate(at..end);
        self.dropped.retain(|number, _| !(at / SECTOR..end.div_ceil(SECTOR)).contains(number));
        self.len = self.len.max(end);
    }

    pub fn set_len(&mut self, len: usize) {
        if len < self.len {
            self.memory.zero(len..self.len);
            self.touch(len..self.len);
            self.allocated.truncate(len.div_ceil(BLOCK));
        } else {
            self.reserve(len);
        }
        self.len = len;
    }

    /// Memory for a file of `len` bytes; mapped memory cannot move.
    pub fn reserve(&mut self, len: usize) {
        if len <= self.memory.capacity() {
            return;
        }
        assert_eq!(self.maps, 0, "a mapped file is resized from {} to {len} bytes", self.len);
        let mut larger = Memory::zeroed(len.next_power_of_two());
        larger.write(0, &self.bytes());
        self.memory = larger;
    }

    pub fn touch(&mut self, part: Range<usize>) {
        self.touched = Some(match self.touched.take() {
            Some(range) => range.start.min(part.start)..range.end.max(part.end),
            None => part,
        });
    }

    fn sectors_touched(&self) -> Range<usize> {
        let part = if self.writable_maps > 0 {
            0..self.len.max(self.durable.len())
        } else {
            self.touched.clone().unwrap_or(0..0)
        };
        part.start / SECTOR..part.end.div_ceil(SECTOR)
    }

    /// Zero-padded beyond the end.
    fn sector(&self, number: usize) -> [u8; SECTOR] {
        let mut bytes = [0; SECTOR];
        self.read(&mut bytes, number * SECTOR);
        bytes
    }

    fn durable_sector(&self, number: usize) -> [u8; SECTOR] {
        let mut bytes = [0; SECTOR];
        let at = number * SECTOR;
        if at < self.durable.len() {
            let end = self.durable.len().min(at + SECTOR);
            bytes[..end - at].copy_from_slice(&self.durable[at..end]);
        }
        bytes
    }

    /// Sectors that a sync would write.
    fn unsynced(&self) -> Vec<usize> {
        self.sectors_touched()
            .filter(|number| {
                let now = self.sector(*number);
                now != self.durable_sector(*number)
                    && self.dropped.get(number).is_none_or(|then| *then != now)
            })
            .collect()
    }

    /// Writes one sector to the device.
    fn write_back(&mut self, number: usize) {
        let at = number * SECTOR;
        let end = self.len.min(at + SECTOR);
        if at >= end {
            return;
        }
        if self.durable.len() < end {
            self.durable.resize(end, 0);
        }
        let now = self.sector(number);
        // A part of the durable sector may lie beyond the current end of the file.
        let durable_end = self.durable.len().min(at + SECTOR);
        self.durable[at..durable_end].copy_from_slice(&now[..durable_end - at]);
        self.dropped.remove(&number);
    }

    pub fn sync(&mut self) {
        for number in self.unsynced() {
            self.write_back(number);
        }
        self.durable.resize(self.len, 0);
        self.durably_placed.clone_from(&self.allocated);
        self.touched = None;
    }

    /// Writeback, which may happen at any time: some unsynced sectors reach the device.
    pub fn sync_some(&mut self, random: &mut Random) {
        for number in self.unsynced() {
            if random.chance(1, 2) {
                self.write_back(number);
            }
        }
    }

    /// A failed sync: unsynced sectors count as written though they are not. `drop`: they read as
    /// on the device from now on; otherwise they still read as before.
    pub fn drop_unsynced(&mut self, drop: bool) {
        for number in self.unsynced() {
            let at = number * SECTOR;
            if drop {
                let durable = self.durable_sector(number);
                let end = self.len.min(at + SECTOR);
                if at < end {
                    self.memory.write(at, &durable[..end - at]);
                }
            } else {
                self.dropped.insert(number, self.sector(number).to_vec());
            }
        }
    }

    /// The same file for the next process: nothing is lost, and nobody has it open.
    pub fn after_kill(&self) -> Content {
        let mut memory = Memory::zeroed(self.memory.capacity());
        memory.write(0, &self.bytes());
        let sectors = self.sectors_touched();
        Content {
            name: self.name.clone(),
            memory,
            len: self.len,
            durable: self.durable.clone(),
            touched: (!sectors.is_empty()).then(|| sectors.start * SECTOR..sectors.end * SECTOR),
            dropped: self.dropped.clone(),
            allocated: self.allocated.clone(),
            durably_placed: self.durably_placed.clone(),
            cached: Vec::new(),
            maps: 0,
            writable_maps: 0,
            handles: 0,
        }
    }

    pub fn after_power_cut(&self, loss: Loss, random: &mut Random) -> Content {
        let unsynced = self.unsynced();
        let survivors: Vec<usize> = loss.survivors(unsynced.len(), random);
        let len = match loss {
            Loss::Everything => self.durable.len(),
            Loss::Nothing => self.len,
            _ => {
                let (short, long) =
                    (self.len.min(self.durable.len()), self.len.max(self.durable.len()));
                [self.len, self.durable.len(), short + random.below(long - short + 1)]
                    [random.below(3)]
            }
        };
        let mut bytes = self.durable.clone();
        bytes.resize(len.max(bytes.len()).max(self.len), 0);
        for index in survivors {
            let at = unsynced[index] * SECTOR;
            let end = bytes.len().min(at + SECTOR);
            bytes[at..end].copy_from_slice(&self.sector(unsynced[index])[..end - at]);
        }
        bytes.resize(len, 0);
        let allocated = if random.chance(1, 2) { &self.allocated } else { &self.durably_placed };
        let mut allocated = allocated.clone();
        allocated.truncate(len.div_ceil(BLOCK));
        Content { name: self.name.clone(), ..Content::durable(bytes, allocated) }
    }

    /// A process dies while it stores into a mapping: only some of the 8-byte words changed since
    /// `before` have arrived.
    pub fn tear_stores(&mut self, old: &[u8], random: &mut Random) {
        if old.len() != self.len {
            return;
        }
        let mut new = self.bytes();
        let mut changed: Vec<Range<usize>> = Vec::new();
        for at in (0..self.len).step_by(8) {
            let word = at..self.len.min(at + 8);
            if old[word.clone()] != new[word.clone()] {
                changed.push(word);
            }
        }
        // In ascending, descending or random order.
        let (way, pivot) = (random.below(3), random.below(changed.len() + 1));
        for (index, word) in changed.into_iter().enumerate() {
            let lost = match way {
                0 => index >= pivot,
                1 => index < pivot,
                _ => random.chance(1, 2),
            };
            if lost {
                new[word.clone()].copy_from_slice(&old[word]);
            }
        }
        self.memory.write(0, &new);
        self.touch(0..self.len);
    }

    /// Every byte of a writable mapping must be allocated, or a store could fail.
    pub fn can_be_stored_into(&self, len: usize) -> bool {
        blocks(0..len).all(|block| self.is_allocated(block))
    }
}

fn blocks(part: Range<usize>) -> Range<usize> {
    part.start / BLOCK..part.end.div_ceil(BLOCK)
}
