//! Which keys were written lately: those will be written again soon, and what is written of them now
//! is dead then.

use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::prefetch;

/// How many keys are known: those last written, one in each place.
const KEYS: usize = 256 << 10;
/// Time is what was written to the store, in units of so many bytes.
const UNIT: u64 = 1 << 20;
/// So many units ago is lately. With less, records of busy keys lie among those that stay; with
/// more, those that stay lie among busy ones. Simulated for YCSB's zipfian keys and a log of 1.43
/// times what lives, bytes that are written for one with 50, 70 and 90: 1.78, 1.77 and 1.77 for a
/// million keys, 1.82, 1.82 and 1.83 for 400,000, 1.75, 1.74 and 1.74 for three million.
const LATELY: u16 = 90;

/// For each place 16 bits of a hash of the last key that was written of those that share it, and
/// 16 of when that was.
pub(crate) struct Lately {
    places: Box<[AtomicU32]>,
    /// Bytes; it begins long after what empty places tell.
    now: AtomicU64,
}

impl Default for Lately {
    fn default() -> Self {
        Lately {
            places: (0..KEYS).map(|_| AtomicU32::new(0)).collect(),
            now: AtomicU64::new(UNIT << 15),
        }
    }
}

impl Lately {
    /// The key's place is asked for soon: it is one of a megabyte.
    #[inline]
    pub(crate) fn prefetch(&self, table: u32, key_hash: u64) {
        prefetch::lines(ptr::from_ref(self.place(hash(table, key_hash))).cast(), 1);
    }

    /// Whether a key was written lately; now it was. Whatever the answer, it is right for a while.
    #[inline]
    pub(crate) fn note(&self, table: u32, key_hash: u64) -> bool {
        let hash = hash(table, key_hash);
        let now = (self.now.load(Ordering::Relaxed) / UNIT) as u16;
        let here = self.place(hash);
        let note = (hash >> 48) as u32;
        let was = here.load(Ordering::Relaxed);
        here.store(note << 16 | u32::from(now), Ordering::Relaxed);
        was >> 16 == note && now.wrapping_sub(was as u16) < LATELY
    }

    #[inline]
    fn place(&self, hash: u64) -> &AtomicU32 {
        &self.places[hash as usize % KEYS]
    }

    /// So many bytes were written. One thread at a time calls this.
    #[inline]
    pub(crate) fn written(&self, bytes: u64) {
        self.now.store(self.now.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
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

    fn note(lately: &Lately, key: u64) -> bool {
        lately.note(1, xxh3_64(&key.to_le_bytes()))
    }

    #[test]
    fn keys_are_known_while_not_too_many_others_come() {
        let lately = Lately::default();
        assert!(!note(&lately, 1));
        assert!(note(&lately, 1));
        assert!(!lately.note(2, xxh3_64(&1_u64.to_le_bytes())), "of another table");
        let keys = 100..100 + KEYS as u64 / 8;
        let again = keys.clone().filter(|&key| note(&lately, key)).count();
        assert!(again <= 4, "{again} keys that come for the first time");
        let known = keys.filter(|&key| note(&lately, key)).count();
        assert!(known > KEYS / 8 * 4 / 5, "{known}");
        for key in 0..20 * KEYS as u64 {
            note(&lately, 10_000_000 + key);
        }
        assert!(!note(&lately, 100), "many others came");
    }

    #[test]
    fn keys_are_known_while_not_too_much_is_written() {
        let lately = Lately::default();
        note(&lately, 1);
        lately.written((u64::from(LATELY) - 1) * UNIT);
        assert!(note(&lately, 1));
        lately.written(u64::from(LATELY) * UNIT);
        assert!(!note(&lately, 1));
    }
}
