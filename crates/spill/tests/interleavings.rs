//! Appending, rotating and publishing under a scheduler that tries many orders of the threads:
//! at every lock, at every atomic and in the middle of every change of a node another may go on.
//!
//! `cargo test --release -p spill --features shuttle --test interleavings`; a failure prints a
//! schedule that `shuttle::replay` repeats. No wait of the engine ends by its time limit here, so
//! a wake-up that gets lost is a deadlock, which is found.
#![cfg(feature = "shuttle")]
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;
// What the oracle knows is not part of what is tried.
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};
use spill::{Batch, Durability, Options, Store, Table};

/// New keys open gaps in nodes, old ones get versions: some of both.
const KEYS: usize = 10;
const ROUNDS: u64 = 4;

/// Small, so that a few dozen writes fill slots, L0s and segments.
fn tiny(durability: Durability) -> Options {
    Options {
        memory: 32 << 10,
        segment: 64 << 10,
        growth: 2,
        frozen: 1,
        space_amplification: 1.3,
        durability,
        // A pause is no order of threads.
        throttle: Duration::ZERO,
        ..Options::default()
    }
}

/// Runs `what` in a new folder for each of so many orders.
fn tried(times: usize, what: impl Fn(PathBuf) + Send + Sync + 'static) {
    let what = Arc::new(what);
    let run = |scheduler: Box<dyn Scheduler + Send>| {
        let mut config = Config::new();
        config.stack_size = 1 << 20;
        let what = Arc::clone(&what);
        Runner::new(scheduler, config).run(move || {
            let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
            what(home.path().to_owned());
        });
    };
    run(Box::new(RandomScheduler::new(times)));
    run(Box::new(PctScheduler::new(3, times)));
}

fn value(number: u64) -> Vec<u8> {
    let mut value = number.to_le_bytes().to_vec();
    value.resize(8 + 997 * (1 + number as usize % 3), number as u8);
    value
}

fn number(value: &[u8]) -> u64 {
    let number = u64::from_le_bytes(*value.first_chunk().unwrap());
    assert!(value == self::value(number), "a torn value of {number}");
    number
}

/// Keys that one thread writes, each with ever larger numbers.
struct Own {
    prefix: char,
    begun: [AtomicU64; KEYS],
    done: [AtomicU64; KEYS],
}

impl Own {
    fn new(prefix: char) -> Arc<Own> {
        let numbers = || std::array::from_fn(|_| AtomicU64::new(0));
        Arc::new(Own { prefix, begun: numbers(), done: numbers() })
    }

    fn key(&self, key: usize) -> Vec<u8> {
        format!("{}{key}", self.prefix).into_bytes()
    }

    fn write(&self, table: &Table, round: u64) {
        for key in 0..KEYS {
            self.begun[key].store(round, SeqCst);
            table.put(&self.key(key), &value(round)).unwrap();
            self.done[key].store(round, SeqCst);
        }
    }

    /// Linearizable: not older than what had returned before, nor newer than what had begun.
    fn check(&self, table: &Table) {
        for key in 0..KEYS {
            let done = self.done[key].load(SeqCst);
            let found = table.get(&self.key(key)).unwrap().map_or(0, |value| number(&value));
            let begun = self.begun[key].load(SeqCst);
            assert!((done..=begun).contains(&found), "{found} is not in {done}..={begun}");
        }
    }
}

/// Two writers, a reader, one that rotates, the engine's own threads; then what a new opening finds. How many merges
/// there were.
fn writers_and_a_reader(home: PathBuf, durability: Durability) -> u64 {
    let store = Store::open(&home, tiny(durability)).unwrap();
    let table = store.table("t").unwrap();
    let own = ['a', 'b'].map(Own::new);
    let writers = own.clone().map(|own| {
        let table = table.clone();
        thread::spawn(move || (1..=ROUNDS).for_each(|round| own.write(&table, round)))
    });
    let reader = {
        let (table, own) = (table.clone(), own.clone());
        thread::spawn(move || (0..4).for_each(|_| own.iter().for_each(|own| own.check(&table))))
    };
    let rotating = {
        let store = store.clone();
        thread::spawn(move || (0..2).for_each(|_| store.flush().unwrap()))
    };
    writers.into_iter().chain([reader, rotating]).for_each(|thread| thread.join().unwrap());
    let spills = store.statistics().spills;
    drop((table, store));
    let reopened = Store::open(&home, tiny(durability)).unwrap();
    let table = reopened.table("t").unwrap();
    own.iter().for_each(|own| own.check(&table));
    spills
}

/// Tries [`writers_and_a_reader`] in so many orders, most of which merge while others write.
fn tried_with_merges(times: usize, durability: Durability) {
    let spills = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&spills);
    tried(times, move |home| {
        counted.fetch_add(writers_and_a_reader(home, durability), SeqCst);
    });
    let spills = spills.load(SeqCst);
    assert!(spills >= times as u64, "only {spills} merges in 2 x {times} orders");
}

#[test]
fn appends_freezes_and_compactions_are_linearizable() {
    tried_with_merges(400, Durability::None);
}

#[test]
fn group_commit_wakes_all_waiters() {
    tried_with_merges(400, Durability::Sync);
}

#[test]
fn batches_and_snapshots_are_stable_while_versions_change() {
    tried(400, |home| {
        let store = Store::open(&home, tiny(Durability::None)).unwrap();
        let tables = ["left", "right"].map(|name| store.table(name).unwrap());
        let writer = {
            let (store, tables) = (store.clone(), tables.clone());
            thread::spawn(move || {
                for round in 1..=12 {
                    let mut batch = Batch::new();
                    tables.iter().for_each(|table| batch.put(table, b"k", &value(round)));
                    store.write(&batch).unwrap();
                }
            })
        };
        let flusher = {
            let store = store.clone();
            thread::spawn(move || (0..2).for_each(|_| store.flush().unwrap()))
        };
        let reader = {
            let (store, tables) = (store.clone(), tables.clone());
            thread::spawn(move || {
                let mut last = None;
                for _ in 0..4 {
                    let snapshot = store.snapshot();
                    let seen = || tables.clone().map(|table| snapshot.get(&table, b"k").unwrap());
                    let first = seen();
                    assert!(first[0] == first[1], "half of a batch");
                    assert!(first == seen(), "a snapshot changed");
                    let found = first[0].as_deref().map(number);
                    assert!(found >= last, "{found:?} after {last:?}");
                    last = found;
                }
            })
        };
        [writer, flusher, reader].into_iter().for_each(|thread| thread.join().unwrap());
        for table in &tables {
            assert_eq!(table.get(b"k").unwrap().as_deref().map(number), Some(12));
        }
    });
}
