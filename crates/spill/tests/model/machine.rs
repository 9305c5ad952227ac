//! A store and its model, compared step by step.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::path::PathBuf;
use std::time::Duration;

use spill::{Batch, Error, Options, Range, Snapshot, Statistics, Store, Table};
use tempfile::TempDir;

use super::case::{Case, RangeWalk, Step, TABLES};
use super::keys::{Key, Value};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Pairs = VecDeque<(Vec<u8>, Vec<u8>)>;

/// Settling a tiny store takes milliseconds; this allows for a busy machine.
const LIMIT: Duration = Duration::from_secs(10);

/// What happened in all runs together.
#[derive(Debug, Default, Clone, Copy)]
pub struct RunStats {
    pub spills: u64,
    pub collected: u64,
    pub levels: u64,
    pub openings: u64,
    pub checkpoints: u64,
    pub drops: u64,
}

impl RunStats {
    fn count(&mut self, statistics: Statistics) {
        self.spills += statistics.spills;
        self.collected += statistics.collected_segments;
        self.levels = self.levels.max(statistics.levels);
    }
}

pub struct Machine {
    home: TempDir,
    options: Options,
    store: Option<Store>,
    tables: Vec<Table>,
    maps: Vec<Map>,
    snapshots: Vec<(Snapshot, Vec<(Table, Map)>)>,
    held: Vec<(Range, Pairs)>,
    checkpoints: Vec<(PathBuf, Vec<Map>)>,
    happened: RunStats,
}

/// In memory if the machine has such a file system, since there are many syncs.
fn home() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn name(table: usize) -> String {
    format!("table {table}")
}

fn open(path: &std::path::Path, options: &Options) -> (Store, Vec<Table>) {
    let store = Store::open(path, options.clone()).unwrap();
    let tables = (0..TABLES).map(|table| store.table(&name(table)).unwrap()).collect();
    (store, tables)
}

/// The part of a map within a range; empty if the bounds are reversed.
fn entries_in(map: &Map, walk: &RangeWalk) -> Pairs {
    let (low, high) = (walk.low.map(Key::bytes), walk.high.map(Key::bytes));
    let is_in = |key: &Vec<u8>| {
        (match &low {
            Bound::Included(low) => key >= low,
            Bound::Excluded(low) => key > low,
            Bound::Unbounded => true,
        }) && (match &high {
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
            Bound::Unbounded => true,
        })
    };
    map.iter().filter(|(key, _)| is_in(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// One step of both, from the front or the back.
fn step_of(range: &mut Range, pairs: &mut Pairs, from_front: bool) -> bool {
    let (found, right) = if from_front {
        (range.next().unwrap(), pairs.pop_front())
    } else {
        (range.next_back().unwrap(), pairs.pop_back())
    };
    let right = right.as_ref().map(|(key, value)| (key.as_slice(), value.as_slice()));
    assert!(
        found == right,
        "front {from_front}: {} is not {}",
        abbreviated(found),
        abbreviated(right)
    );
    right.is_some()
}

fn abbreviated(pair: Option<(&[u8], &[u8])>) -> String {
    match pair {
        None => "none".to_owned(),
        Some((key, value)) => format!("{key:?} with {} bytes", value.len()),
    }
}

/// Reads as specified, and then the rest.
fn check_walk(mut range: Range, mut pairs: Pairs, ends: &[bool]) {
    for &from_front in ends {
        step_of(&mut range, &mut pairs, from_front);
    }
    while step_of(&mut range, &mut pairs, true) {}
    assert!(range.next().unwrap().is_none() && range.next_back().unwrap().is_none());
}

fn is_equal(table: &Table, map: &Map) {
    let all = || map.iter().map(|(key, value)| (key.clone(), value.clone())).collect::<Pairs>();
    check_walk(table.range(..), all(), &[]);
    check_walk(table.range(..), all(), &vec![false; map.len()]);
    for (key, value) in map.iter().step_by(3) {
        assert_eq!(table.read(key, |found| found == value).unwrap(), Some(true), "{key:?}");
    }
}

impl Machine {
    /// Runs all steps of a case.
    pub fn run(case: &Case) -> RunStats {
        let home = home();
        let (store, tables) = open(&home.path().join("store"), &case.options);
        let mut machine = Machine {
            home,
            options: case.options.clone(),
            store: Some(store),
            tables,
            maps: vec![Map::new(); TABLES],
            snapshots: Vec::new(),
            held: Vec::new(),
            checkpoints: Vec::new(),
            happened: RunStats::default(),
        };
        for step in &case.steps {
            machine.step(step);
            machine.happened.levels =
                machine.happened.levels.max(machine.store().statistics().levels);
        }
        machine.end()
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn put(&mut self, table: usize, key: Vec<u8>, value: Vec<u8>) {
        self.tables[table].put(&key, &value).unwrap();
        self.maps[table].insert(key, value);
    }

    fn delete(&mut self, table: usize, key: &[u8]) {
        self.tables[table].delete(key).unwrap();
        self.maps[table].remove(key);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Put(table, key, value) => self.put(*table, key.bytes(), value.bytes()),
            Step::Delete(table, key) => self.delete(*table, &key.bytes()),
            Step::Fill { table, from, count, value } => {
                for more in 0..*count {
                    let number = from.number.wrapping_add(more);
                    let value = Value { seed: value.seed.wrapping_add(more), ..*value };
                    self.put(*table, Key { number, ..*from }.bytes(), value.bytes());
                }
            }
            Step::DeleteMany { table, from, count } => {
                for more in 0..*count {
                    let number = from.number.wrapping_add(more);
                    self.delete(*table, &Key { number, ..*from }.bytes());
                }
            }
            Step::Batch(writes) => self.write(writes),
            Step::TooLong(table) => self.write_too_long(*table),
            Step::Get(table, key) => {
                let key = key.bytes();
                assert_eq!(
                    self.tables[*table].get(&key).unwrap().as_ref(),
                    self.maps[*table].get(&key)
                );
            }
            Step::MultiGet(table, keys) => {
                let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.bytes()).collect();
                let found = self.tables[*table].multi_get(&keys).unwrap();
                let right: Vec<_> =
                    keys.iter().map(|key| self.maps[*table].get(key).cloned()).collect();
                assert_eq!(found, right);
            }
            Step::RangeWalk(table, walk) => {
                let (range, pairs) = self.begin(*table, walk);
                check_walk(range, pairs, &walk.ends);
            }
            Step::Hold(table, walk) => {
                if self.held.len() == 3 {
                    self.held.remove(0);
                }
                let (mut range, mut pairs) = self.begin(*table, walk);
                for &from_front in &walk.ends {
                    step_of(&mut range, &mut pairs, from_front);
                }
                self.held.push((range, pairs));
            }
            Step::WalkOn(which, ends) => {
                if let Some((range, pairs)) = self.held.get_mut(*which) {
                    for &from_front in ends {
                        step_of(range, pairs, from_front);
                    }
                }
            }
            Step::Snapshot => {
                if self.snapshots.len() == 4 {
                    self.snapshots.remove(0);
                }
                let tables = self.tables.iter().cloned().zip(self.maps.iter().cloned()).collect();
                self.snapshots.push((self.store().snapshot(), tables));
            }
            Step::ReadSnapshot { which, table, keys, walk } => {
                let Some((snapshot, tables)) = self.snapshots.get(*which) else { return };
                let (table, map) = &tables[*table];
                for key in keys.iter().map(|key| key.bytes()) {
                    assert_eq!(snapshot.get(table, &key).unwrap().as_ref(), map.get(&key));
                }
                let (low, high) = (walk.low.map(Key::bytes), walk.high.map(Key::bytes));
                let bounds = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
                check_walk(snapshot.range(table, bounds), entries_in(map, walk), &walk.ends);
            }
            Step::DropSnapshot(which) => {
                if *which < self.snapshots.len() {
                    self.snapshots.remove(*which);
                }
            }
            Step::Reopen(options) => self.reopen(options),
            Step::Flush => self.store().flush().unwrap(),
            Step::Sync => self.store().sync().unwrap(),
            Step::Settle => self.settle(),
            Step::Checkpoint => self.checkpoint(),
            Step::DropTable(table) => self.drop_table(*table),
            Step::Scrub => {
                self.store().scrub().unwrap();
            }
        }
    }

    fn begin(&self, table: usize, walk: &RangeWalk) -> (Range, Pairs) {
        let (low, high) = (walk.low.map(Key::bytes), walk.high.map(Key::bytes));
        let bounds = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
        (self.tables[table].range(bounds), entries_in(&self.maps[table], walk))
    }

    fn write(&mut self, writes: &[(usize, Key, Option<Value>)]) {
        let mut batch = Batch::new();
        for &(table, key, value) in writes {
            let key = key.bytes();
            match value.map(Value::bytes) {
                Some(value) => {
                    batch.put(&self.tables[table], &key, &value);
                    self.maps[table].insert(key, value);
                }
                None => {
                    batch.delete(&self.tables[table], &key);
                    self.maps[table].remove(&key);
                }
            }
        }
        self.store().write(&batch).unwrap();
    }

    /// Writes over a limit are rejected without effect.
    fn write_too_long(&self, table: usize) {
        let table = &self.tables[table];
        let key = vec![b'k'; spill::MAX_KEY_LEN + 1];
        let value = vec![0; self.options.segment];
        assert!(matches!(table.put(&key, b""), Err(Error::KeyTooLong { .. })));
        assert!(matches!(table.delete(&key), Err(Error::KeyTooLong { .. })));
        assert!(matches!(table.put(b"k", &value), Err(Error::ValueTooLong { .. })));
        let mut batch = Batch::new();
        batch.put(table, b"k", &value[..value.len() / 2]);
        batch.put(table, b"k", &value[..value.len() / 2]);
        assert!(matches!(self.store().write(&batch), Err(Error::BatchTooLong { .. })));
        assert_eq!(table.get(&key).unwrap(), None);
    }

    /// Without writers, collection terminates.
    fn settle(&self) {
        let before = self.store().statistics();
        let is_done = self.store().settle(LIMIT).unwrap();
        assert!(is_done, "it was {before:?}, and is {:?}", self.store().statistics());
    }

    fn drop_table(&mut self, table: usize) {
        let old = self.tables[table].clone();
        self.store().drop_table(&name(table)).unwrap();
        assert!(!self.store().tables().contains(&name(table)));
        assert!(matches!(self.store().drop_table(&name(table)), Err(Error::NoTable { .. })));
        assert!(matches!(old.put(b"k", b"v"), Err(Error::NoTable { .. })));
        self.tables[table] = self.store().table(&name(table)).unwrap();
        assert_eq!(old.range(..).pairs().count(), 0);
        self.maps[table].clear();
        is_equal(&self.tables[table], &self.maps[table]);
        self.happened.drops += 1;
    }

    /// Drops everything that keeps the store open.
    fn close(&mut self) {
        self.happened.count(self.store().statistics());
        self.snapshots.clear();
        self.held.clear();
        self.tables.clear();
        self.store = None;
    }

    fn reopen(&mut self, options: &Options) {
        let path = self.home.path().join("store");
        assert!(matches!(Store::open(&path, options.clone()), Err(Error::Locked { .. })));
        self.close();
        let (store, tables) = open(&path, options);
        (self.store, self.tables, self.options) = (Some(store), tables, options.clone());
        for (table, map) in self.tables.iter().zip(&self.maps) {
            is_equal(table, map);
        }
        self.happened.openings += 1;
    }

    fn checkpoint(&mut self) {
        let into = self.home.path().join(format!("checkpoint {}", self.happened.checkpoints));
        self.store().checkpoint(&into).unwrap();
        self.checkpoints.push((into, self.maps.clone()));
        self.happened.checkpoints += 1;
        self.compare_checkpoint(self.checkpoints.len() - 1);
    }

    fn compare_checkpoint(&self, which: usize) {
        let (path, maps) = &self.checkpoints[which];
        let (store, tables) = open(path, &self.options);
        for (table, map) in tables.iter().zip(maps) {
            is_equal(table, map);
        }
        store.scrub().unwrap();
    }

    fn end(mut self) -> RunStats {
        for (mut range, mut pairs) in std::mem::take(&mut self.held) {
            while step_of(&mut range, &mut pairs, false) {}
        }
        for (snapshot, tables) in &self.snapshots {
            for (table, map) in tables {
                let pairs = map.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                check_walk(snapshot.range(table, ..), pairs, &[]);
            }
        }
        self.settle();
        self.store().scrub().unwrap();
        self.reopen(&self.options.clone());
        self.store().scrub().unwrap();
        // Later writes and collections have not changed files shared with a checkpoint.
        for which in 0..self.checkpoints.len() {
            self.compare_checkpoint(which);
        }
        self.close();
        self.happened
    }
}
