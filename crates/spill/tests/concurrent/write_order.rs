//! A thread that sees a write also sees its writer's earlier writes, although only the store
//! synchronises them. On weakly ordered CPUs the store must ensure that.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use spill::{Options, Store, Table};

use super::load::{home, number, option_sets, value};

const KEYS: u64 = 12;
const ROUNDS: u64 = 2000;

/// Writes all keys in order, round after round.
fn write(table: &Table, writer: u64) {
    for round in 1..=ROUNDS {
        (0..KEYS).for_each(|of| table.put(&key(writer, of), &value(round)).unwrap());
    }
}

fn key(writer: u64, of: u64) -> [u8; 2] {
    [of as u8, writer as u8]
}

/// Reads the keys in reverse: none may show an older round than those behind it, or than before.
fn read(table: &Table, writer: u64, is_over: &AtomicBool) {
    let mut known = 0;
    while !is_over.load(Relaxed) {
        let mut least = known;
        for of in (0..KEYS).rev() {
            let round = table.get(&key(writer, of)).unwrap().map_or(0, |value| number(&value));
            assert!(round >= least, "writer {writer}, key {of}: {round} after {least}");
            least = round;
        }
        // The last key has the first key's round, or will get it.
        known = known.max(least.saturating_sub(1));
    }
}

fn check_order(options: &Options) {
    let home = home(options);
    let store = Store::open(home.path(), options.clone()).unwrap();
    let table = store.table("t").unwrap();
    // Relaxed, so that it does not synchronise readers.
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        let (table, is_over) = (&table, &is_over);
        for reader in 0..4 {
            threads.spawn(move || read(table, reader % 2, is_over));
        }
        let writers = [0, 1].map(|writer| threads.spawn(move || write(table, writer)));
        let written = writers.map(|writer| writer.join());
        is_over.store(true, Relaxed);
        written.into_iter().for_each(|take_effect| take_effect.unwrap());
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
    for options in option_sets() {
        check_order(&options);
    }
}
