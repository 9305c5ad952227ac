//! Who sees a write sees what its thread wrote before, though nothing but the store is between the two:
//! on processors that order less than x86 does the store has to see to that.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use spill::{Options, Store, Table};

use super::load::{home, kinds, number, value};

const KEYS: u64 = 12;
const ROUNDS: u64 = 2000;

/// All keys in their order, round after round.
fn write(table: &Table, writer: u64) {
    for round in 1..=ROUNDS {
        (0..KEYS).for_each(|of| table.put(&key(writer, of), &value(round)).unwrap());
    }
}

fn key(writer: u64, of: u64) -> [u8; 2] {
    [of as u8, writer as u8]
}

/// The keys against their order: of none an older round than of those behind it, nor than before.
fn read(table: &Table, writer: u64, is_over: &AtomicBool) {
    let mut known = 0;
    while !is_over.load(Relaxed) {
        let mut least = known;
        for of in (0..KEYS).rev() {
            let round = table.get(&key(writer, of)).unwrap().map_or(0, |value| number(&value));
            assert!(round >= least, "writer {writer}, key {of}: {round} after {least}");
            least = round;
        }
        // The round of the first key is the last key's as well, or that is still to come.
        known = known.max(least.saturating_sub(1));
    }
}

fn is_in_order(options: &Options) {
    let home = home(options);
    let store = Store::open(home.path(), options.clone()).unwrap();
    let table = store.table("t").unwrap();
    // Relaxed, so that readers learn nothing by it.
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        let (table, is_over) = (&table, &is_over);
        for reader in 0..4 {
            threads.spawn(move || read(table, reader % 2, is_over));
        }
        let writers = [0, 1].map(|writer| threads.spawn(move || write(table, writer)));
        let written = writers.map(|writer| writer.join());
        is_over.store(true, Relaxed);
        written.into_iter().for_each(|ended| ended.unwrap());
    });
    for writer in 0..2 {
        let last = table.get(&key(writer, 0)).unwrap().unwrap();
        assert_eq!(number(&last), ROUNDS);
    }
    let statistics = store.statistics();
    assert!(statistics.spills > 1, "{statistics:?}");
}

#[test]
fn visible_write_implies_earlier_writes_visible() {
    for options in kinds() {
        is_in_order(&options);
    }
}
