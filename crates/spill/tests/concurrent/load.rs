//! Shared parts: tiny stores, distinguishable values, and a thread that keeps the store compacting
//! and collecting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spill::{CachedWrites, ColdReads, Durability, Options, Statistics, Store};
use tempfile::TempDir;

use super::watchdog::Operations;

/// In memory if the machine has such a file system, since there are many syncs; on disk for direct
/// I/O, which memory file systems lack.
pub fn home(options: &Options) -> TempDir {
    if options.cached_writes == CachedWrites::Never {
        return tempfile::tempdir().unwrap();
    }
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// So small that everything happens all the time.
pub fn option_sets() -> Vec<Options> {
    let tiny = Options {
        memory: 96 << 10,
        segment: 64 << 10,
        growth: 2,
        frozen: 1,
        space_amplification: 1.3,
        throttle: Duration::from_micros(200),
        ..Options::default()
    };
    vec![
        Options {
            cold_reads: ColdReads::Around,
            cached_writes: CachedWrites::Never,
            ..tiny.clone()
        },
        Options { cold_reads: ColdReads::Page, verify: false, bloom_bits: 4, ..tiny.clone() },
        Options { durability: Durability::Sync, ..tiny.clone() },
        Options { durability: Durability::Interval(Duration::from_millis(2)), ..tiny.clone() },
        // Writers compact and collect.
        Options { background: false, segment: 128 << 10, ..tiny },
    ]
}

/// Encodes a number as a value of varying length; every byte tells whether it is intact.
pub fn value(number: u64) -> Vec<u8> {
    let len = match number % 50 {
        0 => 9_000,
        other => other as usize * 11,
    };
    let mut value = number.to_le_bytes().to_vec();
    value.extend((0..len).map(|at| (at as u64 ^ number) as u8));
    value
}

/// Decodes an intact value.
pub fn number(bytes: &[u8]) -> u64 {
    let number = u64::from_le_bytes(*bytes.first_chunk().unwrap());
    assert!(bytes == value(number), "a torn value of {number}");
    number
}

/// Rounds after which a store must have compacted and collected.
const MAX_ROUNDS: u64 = 300_000;

pub struct Random(pub u64);

impl Random {
    /// SplitMix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Updates a table of its own, with occasional flushes and scrubs. It ends when told to, once the
/// store has compacted and collected enough for the test to mean something.
pub fn background_load(store: &Store, operations: &Operations, is_over: &AtomicBool) {
    let table = store.table("ballast").unwrap();
    let mut random = Random(77);
    let mut rounds = 0_u64;
    let mut levels = 0;
    while !is_over.load(Ordering::Relaxed) || !has_done_work(store.statistics(), levels) {
        levels = levels.max(store.statistics().levels);
        rounds += 1;
        assert!(rounds < MAX_ROUNDS, "{:?} after {rounds} rounds", store.statistics());
        let key = (random.below(4000) as u32).to_be_bytes();
        operations.run("put of the background load", || table.put(&key, &value(rounds))).unwrap();
        if rounds.is_multiple_of(500) {
            operations.run("flush", || store.flush()).unwrap();
        }
        if rounds.is_multiple_of(2_000) {
            operations.run("scrub", || store.scrub()).unwrap();
        }
    }
}

fn has_done_work(statistics: Statistics, levels: u64) -> bool {
    statistics.spills > 10 && statistics.collected_segments > 3 && levels > 1
}
