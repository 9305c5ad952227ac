//! Which keys were written recently. They will soon be written again, so a record written for them
//! now will soon be dead.

use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::prefetch;

/// Slots of the table; each remembers the last key that hashed to it.
const SLOTS: usize = 256 << 10;
/// The clock counts bytes written to the store, in units of this size.
const CLOCK_UNIT: u64 = 1 << 20;
/// Clock units for which a key counts as hot. A smaller window leaves records of busy keys among
/// stable ones; a larger one mixes stable records among busy ones. 50 to 90 make almost no
/// difference.
const HOT_WINDOW: u16 = 90;

/// Each slot holds 16 bits of the last key's hash, and 16 bits of its time.
pub(crate) struct HotKeyFilter {
    slots: Box<[AtomicU32]>,
    /// In bytes; starts far after the time in empty slots.
    clock: AtomicU64,
}

impl Default for HotKeyFilter {
    fn default() -> Self {
        HotKeyFilter {
            slots: (0..SLOTS).map(|_| AtomicU32::new(0)).collect(),
            clock: AtomicU64::new(CLOCK_UNIT << 15),
        }
    }
}

impl HotKeyFilter {
    /// Prefetches the slot of a key: the table is a megabyte.
    #[inline]
    pub(crate) fn prefetch(&self, table: u32, key_hash: u64) {
        prefetch::lines(ptr::from_ref(self.slot(hash(table, key_hash))).cast(), 1);
    }

    /// Records a write and returns whether the key was hot. A wrong answer does no harm.
    #[inline]
    pub(crate) fn record_write(&self, table: u32, key_hash: u64) -> bool {
        let hash = hash(table, key_hash);
        let clock = (self.clock.load(Ordering::Relaxed) / CLOCK_UNIT) as u16;
        let slot = self.slot(hash);
        let tag = (hash >> 48) as u32;
        let previous = slot.load(Ordering::Relaxed);
        slot.store(tag << 16 | u32::from(clock), Ordering::Relaxed);
        previous >> 16 == tag && clock.wrapping_sub(previous as u16) < HOT_WINDOW
    }

    #[inline]
    fn slot(&self, hash: u64) -> &AtomicU32 {
        &self.slots[hash as usize % SLOTS]
    }

    /// Advances the clock. Only one thread calls this at a time.
    #[inline]
    pub(crate) fn advance_clock(&self, bytes: u64) {
        self.clock.store(self.clock.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }
}

#[inline]
fn hash(table: u32, key_hash: u64) -> u64 {
    key_hash ^ u64::from(table).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    fn record_write(filter: &HotKeyFilter, key: u64) -> bool {
        filter.record_write(1, xxh3_64(&key.to_le_bytes()))
    }

    #[test]
    fn hot_keys_are_forgotten_after_many_other_keys() {
        let filter = HotKeyFilter::default();
        assert!(!record_write(&filter, 1));
        assert!(record_write(&filter, 1));
        assert!(!filter.record_write(2, xxh3_64(&1_u64.to_le_bytes())), "of another table");
        let keys = 100..100 + SLOTS as u64 / 8;
        let again = keys.clone().filter(|&key| record_write(&filter, key)).count();
        assert!(again <= 4, "{again} new keys count as hot");
        let known = keys.filter(|&key| record_write(&filter, key)).count();
        assert!(known > SLOTS / 8 * 4 / 5, "{known}");
        for key in 0..20 * SLOTS as u64 {
            record_write(&filter, 10_000_000 + key);
        }
        assert!(!record_write(&filter, 100), "many other keys were written");
    }

    #[test]
    fn hot_keys_are_forgotten_after_many_bytes() {
        let filter = HotKeyFilter::default();
        record_write(&filter, 1);
        filter.advance_clock((u64::from(HOT_WINDOW) - 1) * CLOCK_UNIT);
        assert!(record_write(&filter, 1));
        filter.advance_clock(u64::from(HOT_WINDOW) * CLOCK_UNIT);
        assert!(!record_write(&filter, 1));
    }
}
