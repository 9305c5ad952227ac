//! Snapshots, ranges and checkpoints see batches whole and never change.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use spill::{Batch, Options, Snapshot, Store, Table};

use super::load::{Random, ballast, home, kinds, number, value};
use super::watchdog::{Hand, Watch};

/// Each writer has so many keys in each table, and every batch of its sets or deletes all.
const KEYS: u64 = 12;
const WRITERS: u64 = 2;
const ROUNDS: u64 = 800;
/// Looks of each reader, also on a machine that has little time for it.
const FEWEST: u64 = 10;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(writer: u64, number: u64) -> Vec<u8> {
    // Those of the writers lie between each other.
    [&number.to_be_bytes()[6..], &[writer as u8], &vec![0; number as usize % 3]].concat()
}

fn tables(store: &Store) -> [Table; 2] {
    ["one", "two"].map(|name| store.table(name).unwrap())
}

fn write(store: &Store, hand: &Hand, writer: u64) {
    let tables = tables(store);
    for round in 1..=ROUNDS {
        let mut batch = Batch::new();
        for table in &tables {
            for number in 0..KEYS {
                match round % 7 {
                    0 => batch.delete(table, &key(writer, number)),
                    // Not the long ones: a batch has to fit.
                    _ => batch.put(table, &key(writer, number), &value(round * 50 + 1 + number)),
                }
            }
        }
        hand.does("write", || store.write(&batch)).unwrap();
    }
}

/// Both tables of one moment say of each writer that the same batch was its last.
fn is_whole(views: [Map; 2]) -> [u64; WRITERS as usize] {
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

/// Takes snapshots and ranges, some of them kept for long, and looks at them again and again.
fn read(store: &Store, hand: &Hand, seed: u64, is_over: &AtomicBool) {
    let tables = tables(store);
    let mut random = Random(seed);
    let mut kept: Vec<(Snapshot, [Map; 2])> = Vec::new();
    let mut looks = 0;
    while !is_over.load(Ordering::Relaxed) || looks < FEWEST {
        let snapshot = hand.does("snapshot", || store.snapshot());
        // Held back now and then, so that the store goes on before it is first asked.
        if random.below(4) == 0 {
            thread::yield_now();
        }
        let first = hand.does("walk over a snapshot", || view(&snapshot, &tables));
        is_whole(first.clone());
        for (table, map) in tables.iter().zip(&first) {
            let mut backward = snapshot.range(table, ..).pairs().rev().map(Result::unwrap);
            assert!(backward.by_ref().eq(map.clone().into_iter().rev()));
            let keys = (0..WRITERS).flat_map(|writer| (0..KEYS).map(move |of| key(writer, of)));
            for key in keys {
                assert_eq!(snapshot.get(table, &key).unwrap().as_ref(), map.get(&key));
            }
        }
        // A range is one moment too, however slowly it is walked, from both ends.
        let mut range = hand.does("range", || tables[0].range(..));
        let mut seen = Map::new();
        loop {
            let pair = match random.below(2) {
                0 => hand.does("step of a range", || range.next()).unwrap(),
                _ => hand.does("step back of a range", || range.next_back()).unwrap(),
            };
            let Some((key, value)) = pair else { break };
            assert!(seen.insert(key.to_vec(), value.to_vec()).is_none(), "a key twice");
        }
        is_whole([seen.clone(), seen]);
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

fn checkpoint(store: &Store, hand: &Hand, is_over: &AtomicBool, options: &Options) {
    let mut count = 0;
    while !is_over.load(Ordering::Relaxed) || count == 0 {
        let home = home(options);
        let into = home.path().join("copy");
        hand.does("checkpoint", || store.checkpoint(&into)).unwrap();
        let copy = Store::open(&into, options.clone()).unwrap();
        let views = view(&copy.snapshot(), &tables(&copy));
        is_whole(views);
        count += 1;
    }
}

fn are_views_whole(options: &Options) {
    let home = home(options);
    let store = Store::open(home.path(), options.clone()).unwrap();
    let watch = Watch::new();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (store, watch, is_over) = (&store, &watch, &is_over);
        let mut others = vec![scope.spawn(|| ballast(store, &watch.hand(), is_over))];
        for seed in 0..2 {
            others.push(scope.spawn(move || read(store, &watch.hand(), seed, is_over)));
        }
        others.push(scope.spawn(|| checkpoint(store, &watch.hand(), is_over, options)));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write(store, &watch.hand(), writer)))
            .collect();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        for ended in written.into_iter().chain(others.into_iter().map(|other| other.join())) {
            if let Err(panic) = ended {
                std::panic::resume_unwind(panic);
            }
        }
    });
    drop(store);
    let store = Store::open(home.path(), options.clone()).unwrap();
    let rounds = is_whole(view(&store.snapshot(), &tables(&store)));
    // The last round that is no delete, or a delete.
    let last = if ROUNDS.is_multiple_of(7) { 0 } else { ROUNDS };
    assert_eq!(rounds, [last; WRITERS as usize]);
}

#[test]
fn batches_are_atomic_and_snapshots_are_stable() {
    for options in kinds() {
        are_views_whole(&options);
    }
}
