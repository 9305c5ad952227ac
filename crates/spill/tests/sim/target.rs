//! A store under test with its tables, and how writes of a history reach it.

use std::path::Path;
use std::time::Duration;

use spill::{Batch, Error, Options, Result, Snapshot, Store, Table};

use crate::disk::Sim;
use crate::history::{Change, Model, TABLES, Traffic, Write};
use crate::random::Random;

pub const STORE_DIR: &str = "/disk/store";

pub struct Target {
    pub store: Store,
    tables: Vec<Option<Table>>,
}

impl Target {
    pub fn open(sim: &Sim, options: &Options) -> Result<Target> {
        Target::open_at(sim, Path::new(STORE_DIR), options)
    }

    pub fn open_at(sim: &Sim, path: &Path, options: &Options) -> Result<Target> {
        let store = Store::open_on(sim.fs(), path, options.clone())?;
        Ok(Target::of(store))
    }

    pub fn of(store: Store) -> Target {
        Target { store, tables: vec![None; TABLES.len()] }
    }

    pub fn table(&mut self, index: usize) -> Result<&Table> {
        if self.tables[index].is_none() {
            self.tables[index] = Some(self.store.table(TABLES[index])?);
        }
        Ok(self.tables[index].as_ref().expect("just put there"))
    }

    /// A table created first stays if the write fails; that is no difference.
    pub fn write(&mut self, write: &Write) -> Result<()> {
        match write {
            Write::One(Change { table, key, value: Some(value) }) => {
                self.table(*table)?.put(key, value)
            }
            Write::One(Change { table, key, value: None }) => self.table(*table)?.delete(key),
            Write::Batch(changes) => {
                let mut batch = Batch::new();
                for change in changes {
                    let table = self.table(change.table)?;
                    match &change.value {
                        Some(value) => batch.put(table, &change.key, value),
                        None => batch.delete(table, &change.key),
                    }
                }
                self.store.write(&batch)
            }
            Write::DropTable(table) => {
                // A table must exist to be dropped.
                self.table(*table)?;
                let dropped = self.store.drop_table(TABLES[*table]);
                self.tables[*table] = None;
                dropped
            }
        }
    }

    pub fn get(&mut self, table: usize, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if !self.has(table) {
            return Ok(None);
        }
        self.table(table)?.get(key)
    }

    /// Whether the table exists; opening a missing one would create it, which is a write.
    fn has(&self, table: usize) -> bool {
        self.store.tables().iter().any(|name| name == TABLES[table])
    }

    /// Reads some keys, existing or not, one by one and together.
    pub fn check_some(
        &mut self,
        model: &Model,
        traffic: Traffic,
        random: &mut Random,
    ) -> Result<()> {
        for (table, name) in TABLES.iter().enumerate() {
            if !self.has(table) {
                assert!(model.table(table).is_empty(), "{name} is not there");
                continue;
            }
            let asked: Vec<Vec<u8>> = (0..8).map(|_| traffic.any_key(table, random)).collect();
            let expected: Vec<Option<&Vec<u8>>> =
                asked.iter().map(|key| model.get(table, key)).collect();
            let opened = self.table(table)?;
            for (key, expected) in asked.iter().zip(&expected) {
                let found = opened.get(key)?;
                assert_eq!(found.as_ref(), *expected, "{name} {key:?}");
            }
            let found = opened.multi_get(&asked)?;
            let found: Vec<Option<&Vec<u8>>> = found.iter().map(Option::as_ref).collect();
            assert_eq!(found, expected, "{name} {asked:?}");
            let from = asked[0].as_slice();
            let mut range = opened.range(from..);
            for (key, value) in model.table(table).range(asked[0].clone()..).take(5) {
                assert_eq!(range.next()?, Some((key.as_slice(), value.as_slice())));
            }
        }
        Ok(())
    }

    /// Compares a snapshot with the content at its creation.
    pub fn check_snapshot(&mut self, snapshot: &Snapshot, model: &Model) -> Result<()> {
        for (index, name) in TABLES.iter().enumerate() {
            let table = self.table(index)?.clone();
            let mut range = snapshot.range(&table, ..);
            for (key, value) in model.table(index) {
                let found = range.next()?;
                assert_eq!(found, Some((key.as_slice(), value.as_slice())), "{name}");
            }
            assert_eq!(range.next()?, None, "{name}: the snapshot ends early");
        }
        Ok(())
    }

    pub fn settle(&self) -> Result<bool> {
        self.store.settle(Duration::from_secs(60))
    }
}

/// Errors allowed for a call that a fault has hit.
pub fn is_device_error(error: &Error) -> bool {
    matches!(error, Error::Full { .. } | Error::Io { .. } | Error::Halted { .. })
}
