//! Appends, freezes and publication under a scheduler that tries many interleavings: another thread
//! may run at every lock, every atomic, and in the middle of every change of a node.
//!
//! `cargo test --release -p spill --features shuttle --test interleavings`; a failure prints a
//! schedule that `shuttle::replay` repeats. Timeouts never fire here, so a lost wake-up is a
//! deadlock, which is found.
#![cfg(feature = "shuttle")]
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;
// The oracle's state is not scheduled.
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};
use spill::{Batch, Durability, Options, Snapshot, Store, Table};

/// New keys open gaps in nodes, and old ones get versions: some of both.
const KEYS: usize = 10;
const ROUNDS: u64 = 4;

/// So small that a few dozen writes fill slots, memtables and segments.
fn tiny(durability: Durability) -> Options {
    Options {
        memory: 32 << 10,
        segment: 64 << 10,
        growth: 2,
        frozen: 1,
        space_amplification: 1.3,
        durability,
        // A delay does not order threads.
        throttle: Duration::ZERO,
        ..Options::default()
    }
}

/// Runs `what` in a new directory for each of `times` interleavings.
fn explore(times: usize, what: impl Fn(PathBuf) + Send + Sync + 'static) {
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

/// Keys written by one thread, with increasing numbers.
struct WriterKeys {
    prefix: char,
    begun: [AtomicU64; KEYS],
    done: [AtomicU64; KEYS],
}

impl WriterKeys {
    fn new(prefix: char) -> Arc<WriterKeys> {
        let numbers = || std::array::from_fn(|_| AtomicU64::new(0));
        Arc::new(WriterKeys { prefix, begun: numbers(), done: numbers() })
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

    /// Linearizable: not older than the last finished write, nor newer than the last started one.
    fn check(&self, table: &Table) {
        for key in 0..KEYS {
            let done = self.done[key].load(SeqCst);
            let found = table.get(&self.key(key)).unwrap().map_or(0, |value| number(&value));
            let begun = self.begun[key].load(SeqCst);
            assert!((done..=begun).contains(&found), "{found} is not in {done}..={begun}");
        }
    }
}

/// Two writers, a reader, a thread that freezes, and the engine's threads; then checks the reopened
/// store. Returns the number of compactions.
fn writers_and_a_reader(home: PathBuf, durability: Durability) -> u64 {
    let store = Store::open(&home, tiny(durability)).unwrap();
    let table = store.table("t").unwrap();
    let own = ['a', 'b'].map(WriterKeys::new);
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

/// Explores [`writers_and_a_reader`]; most runs compact while others write.
fn explore_with_compactions(times: usize, durability: Durability) {
    let spills = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&spills);
    explore(times, move |home| {
        counted.fetch_add(writers_and_a_reader(home, durability), SeqCst);
    });
    let spills = spills.load(SeqCst);
    assert!(spills >= times as u64, "only {spills} compactions in 2 x {times} interleavings");
}

#[test]
fn appends_freezes_and_compactions_are_linearizable() {
    explore_with_compactions(400, Durability::None);
}

#[test]
fn group_commit_wakes_all_waiters() {
    explore_with_compactions(400, Durability::Sync);
}

#[test]
fn batches_and_snapshots_are_stable_while_versions_change() {
    explore(400, |home| {
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

/// A write that follows a drop is never seen without it.
#[test]
fn a_snapshot_is_of_one_moment() {
    explore(400, |home| {
        let store = Store::open(&home, tiny(Durability::None)).unwrap();
        let [dropped, written] = ["dropped", "written"].map(|name| store.table(name).unwrap());
        dropped.put(b"k", &value(1)).unwrap();
        let writer = {
            let (store, written) = (store.clone(), written.clone());
            thread::spawn(move || {
                store.drop_table("dropped").unwrap();
                written.put(b"k", &value(2)).unwrap();
            })
        };
        // A thread that only takes snapshots is interrupted within one.
        let snapshots: Vec<Snapshot> = (0..100).map(|_| store.snapshot()).collect();
        for snapshot in snapshots {
            let [before, after] =
                [&dropped, &written].map(|table| snapshot.get(table, b"k").unwrap().is_some());
            assert!(!(before && after), "a snapshot of two moments");
        }
        writer.join().unwrap();
    });
}
