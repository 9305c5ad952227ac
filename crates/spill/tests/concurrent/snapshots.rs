//! Snapshots, ranges and checkpoints see batches atomically and never change.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use spill::{Batch, Options, Snapshot, Store, Table};

use super::load::{Random, background_load, home, number, option_sets, value};
use super::watchdog::{Operations, Watchdog};

/// Keys of each writer in each table; each of its batches sets or deletes all of them.
const KEYS: u64 = 12;
const WRITERS: u64 = 2;
const ROUNDS: u64 = 800;
/// Minimum checks by each reader, also on a slow machine.
const MIN_CHECKS: u64 = 10;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(writer: u64, number: u64) -> Vec<u8> {
    // The writers' keys interleave.
    [&number.to_be_bytes()[6..], &[writer as u8], &vec![0; number as usize % 3]].concat()
}

fn tables(store: &Store) -> [Table; 2] {
    ["one", "two"].map(|name| store.table(name).unwrap())
}

fn write(store: &Store, operations: &Operations, writer: u64) {
    let tables = tables(store);
    for round in 1..=ROUNDS {
        let mut batch = Batch::new();
        for table in &tables {
            for number in 0..KEYS {
                match round % 7 {
                    0 => batch.delete(table, &key(writer, number)),
                    // Not the long ones: a batch must fit.
                    _ => batch.put(table, &key(writer, number), &value(round * 50 + 1 + number)),
                }
            }
        }
        operations.run("write", || store.write(&batch)).unwrap();
    }
}

/// Both tables must show the same last batch of each writer.
fn check_last_batches(views: [Map; 2]) -> [u64; WRITERS as usize] {
    let mut rounds = [0; WRITERS as usize];
    for writer in 0..WRITERS {
        let seen = |view: &Map, of: u64| {
            view.get(&key(writer, of)).map_or(0, |value| (number(value) - 1 - of) / 50)
        };
        let round = seen(&views[0], 0);
        for view in &views {
            for of in 0..KEYS {
                assert_eq!(seen(view, of), round, "writer {writer}, key {of}");
            }
        }
        rounds[writer as usize] = round;
    }
    rounds
}

fn view(snapshot: &Snapshot, tables: &[Table; 2]) -> [Map; 2] {
    [0, 1].map(|of| snapshot.range(&tables[of], ..).pairs().map(Result::unwrap).collect())
}

/// Takes snapshots and ranges, keeps some for long, and checks them repeatedly.
fn read(store: &Store, operations: &Operations, seed: u64, is_over: &AtomicBool) {
    let tables = tables(store);
    let mut random = Random(seed);
    let mut kept: Vec<(Snapshot, [Map; 2])> = Vec::new();
    let mut looks = 0;
    while !is_over.load(Ordering::Relaxed) || looks < MIN_CHECKS {
        let snapshot = operations.run("snapshot", || store.snapshot());
        // Delayed at times, so that the store changes before the first read.
        if random.below(4) == 0 {
            thread::yield_now();
        }
        let first = operations.run("scan of a snapshot", || view(&snapshot, &tables));
        check_last_batches(first.clone());
        for (table, map) in tables.iter().zip(&first) {
            let mut backward = snapshot.range(table, ..).pairs().rev().map(Result::unwrap);
            assert!(backward.by_ref().eq(map.clone().into_iter().rev()));
            let keys = (0..WRITERS).flat_map(|writer| (0..KEYS).map(move |of| key(writer, of)));
            for key in keys {
                assert_eq!(snapshot.get(table, &key).unwrap().as_ref(), map.get(&key));
            }
        }
        // A range is one moment too, however slowly it is read from both ends.
        let mut range = operations.run("range", || tables[0].range(..));
        let mut seen = Map::new();
        loop {
            let pair = match random.below(2) {
                0 => operations.run("step of a range", || range.next()).unwrap(),
                _ => operations.run("step back of a range", || range.next_back()).unwrap(),
            };
            let Some((key, value)) = pair else { break };
            assert!(seen.insert(key.to_vec(), value.to_vec()).is_none(), "a key twice");
        }
        check_last_batches([seen.clone(), seen]);
        kept.push((snapshot, first));
        if kept.len() > 6 {
            kept.remove(random.below(6));
        }
        let (snapshot, first) = &kept[random.below(kept.len())];
        assert!(view(snapshot, &tables) == *first, "a snapshot has changed");
        looks += 1;
    }
    for (snapshot, first) in &kept {
        assert!(view(snapshot, &tables) == *first, "a snapshot has changed");
    }
}

fn checkpoint(store: &Store, operations: &Operations, is_over: &AtomicBool, options: &Options) {
    let mut count = 0;
    while !is_over.load(Ordering::Relaxed) || count == 0 {
        let home = home(options);
        let into = home.path().join("copy");
        operations.run("checkpoint", || store.checkpoint(&into)).unwrap();
        let copy = Store::open(&into, options.clone()).unwrap();
        let views = view(&copy.snapshot(), &tables(&copy));
        check_last_batches(views);
        count += 1;
    }
}

fn check_views(options: &Options) {
    let home = home(options);
    let store = Store::open(home.path(), options.clone()).unwrap();
    let watchdog = Watchdog::new();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (store, watchdog, is_over) = (&store, &watchdog, &is_over);
        let mut others =
            vec![scope.spawn(|| background_load(store, &watchdog.register(), is_over))];
        for seed in 0..2 {
            others.push(scope.spawn(move || read(store, &watchdog.register(), seed, is_over)));
        }
        others.push(scope.spawn(|| checkpoint(store, &watchdog.register(), is_over, options)));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write(store, &watchdog.register(), writer)))
            .collect();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        for take_effect in written.into_iter().chain(others.into_iter().map(|other| other.join())) {
            if let Err(panic) = take_effect {
                std::panic::resume_unwind(panic);
            }
        }
    });
    drop(store);
    let store = Store::open(home.path(), options.clone()).unwrap();
    let rounds = check_last_batches(view(&store.snapshot(), &tables(&store)));
    // The last round, unless it is a delete.
    let last = if ROUNDS.is_multiple_of(7) { 0 } else { ROUNDS };
    assert_eq!(rounds, [last; WRITERS as usize]);
}

#[test]
fn batches_are_atomic_and_snapshots_are_stable() {
    for options in option_sets() {
        check_views(&options);
    }
}
