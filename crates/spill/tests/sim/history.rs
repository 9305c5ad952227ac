//! Sequences of writes, and what a store holds after each.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use spill::{Result, Store};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::random::Random;

/// The first table has this many times the keys of the others: enough for several levels.
pub const FIRST_TABLE_FACTOR: usize = 6;

pub const TABLES: [&str; 3] = ["accounts", "events", "words"];

#[derive(Debug, Clone)]
pub struct Change {
    pub table: usize,
    pub key: Vec<u8>,
    /// `None`: the key is deleted.
    pub value: Option<Vec<u8>>,
}

/// One atomic write.
#[derive(Debug, Clone)]
pub enum Write {
    One(Change),
    Batch(Vec<Change>),
    DropTable(usize),
}

impl Write {
    pub fn changes(&self) -> &[Change] {
        match self {
            Write::One(change) => std::slice::from_ref(change),
            Write::Batch(changes) => changes,
            Write::DropTable(_) => &[],
        }
    }

    /// A write of the same lengths with other values, which takes its exact place in a log.
    pub fn lookalike(&self) -> Write {
        let mut write = self.clone();
        let changes = match &mut write {
            Write::One(change) => std::slice::from_mut(change),
            Write::Batch(changes) => changes,
            Write::DropTable(_) => &mut [],
        };
        for byte in changes.iter_mut().filter_map(|change| change.value.as_mut()).flatten() {
            *byte = !*byte;
        }
        write
    }
}

/// Writes determined by seed and number.
#[derive(Debug, Clone, Copy)]
pub struct Traffic {
    pub seed: u64,
    /// Keys of each table; the first has [`FIRST_TABLE_FACTOR`] times as many.
    pub keys: usize,
    /// The longest value, in bytes.
    pub max_value_len: usize,
}

impl Traffic {
    pub fn write(&self, number: usize) -> Write {
        let mut random = Random::of(self.seed, number as u64);
        match random.below(100) {
            0..12 => {
                let count = 1 + random.below(8);
                Write::Batch((0..count).map(|_| self.change(number, &mut random)).collect())
            }
            _ => Write::One(self.change(number, &mut random)),
        }
    }

    fn change(&self, number: usize, random: &mut Random) -> Change {
        let table = if random.chance(1, 2) { 0 } else { random.below(TABLES.len()) };
        let keys = self.keys_of(table);
        // Half of them near each other, around a place that moves.
        let which = if random.chance(1, 2) {
            random.below(keys)
        } else {
            (number / 100 * 61 + random.below(12)) % keys
        };
        let key = key(table, which);
        let value = (!random.chance(1, 6)).then(|| {
            let len = match random.below(100) {
                0..2 => 0,
                2..70 => random.below(200),
                70..97 => random.below(1500),
                _ => random.below(self.max_value_len + 1),
            };
            let mut value = vec![0; len.min(self.max_value_len)];
            random.fill(&mut value);
            value
        });
        Change { table, key, value }
    }

    pub fn keys_of(&self, table: usize) -> usize {
        if table == 0 { FIRST_TABLE_FACTOR * self.keys } else { self.keys }
    }

    /// A key that may exist.
    pub fn any_key(&self, table: usize, random: &mut Random) -> Vec<u8> {
        key(table, random.below(self.keys_of(table)))
    }
}

/// Keys by table: a long shared prefix; eight bytes; any length, including none and the maximum.
pub fn key(table: usize, number: usize) -> Vec<u8> {
    match table {
        0 => format!("customer/account/{number:06}").into_bytes(),
        1 => (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec(),
        _ => match number {
            0 => Vec::new(),
            1 => vec![0xff; 1024],
            2 => vec![0; 1024],
            _ => {
                let mut random = Random::of(table as u64, number as u64);
                let mut key = vec![b'a'; random.below(20)];
                key.extend_from_slice(&(number as u32).to_le_bytes());
                key
            }
        },
    }
}

/// The content of a store.
#[derive(Debug, Clone, Default)]
pub struct Model {
    tables: [BTreeMap<Vec<u8>, Vec<u8>>; TABLES.len()],
    digest: u64,
}

fn digest(table: usize, key: &[u8], value: &[u8]) -> u64 {
    xxh3_64_with_seed(value, xxh3_64_with_seed(key, table as u64))
}

impl Model {
    pub fn apply(&mut self, write: &Write) {
        if let Write::DropTable(table) = write {
            for (key, value) in std::mem::take(&mut self.tables[*table]) {
                self.digest = self.digest.wrapping_sub(digest(*table, &key, &value));
            }
        }
        for Change { table, key, value } in write.changes() {
            let old = match value {
                Some(value) => {
                    self.digest = self.digest.wrapping_add(digest(*table, key, value));
                    self.tables[*table].insert(key.clone(), value.clone())
                }
                None => self.tables[*table].remove(key),
            };
            if let Some(old) = old {
                self.digest = self.digest.wrapping_sub(digest(*table, key, &old));
            }
        }
    }

    /// Equal only for equal content, as far as 64 bits can tell.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    pub fn get(&self, table: usize, key: &[u8]) -> Option<&Vec<u8>> {
        self.tables[table].get(key)
    }

    pub fn table(&self, table: usize) -> &BTreeMap<Vec<u8>, Vec<u8>> {
        &self.tables[table]
    }

    /// Reads a store's content by ranges, forward or backward.
    pub fn read(store: &Store, backwards: bool) -> Result<Model> {
        let mut model = Model::default();
        for name in store.tables() {
            let index = TABLES
                .iter()
                .position(|table| *table == name)
                .unwrap_or_else(|| panic!("an unknown table `{name}`"));
            let table = store.table(&name)?;
            let mut range = table.range(..);
            let mut last: Option<Vec<u8>> = None;
            loop {
                let next = if backwards { range.next_back()? } else { range.next()? };
                let Some((key, value)) = next else { break };
                let in_order =
                    last.as_deref().is_none_or(|last| (last < key) != backwards && last != key);
                assert!(in_order, "`{name}`: key {key:?} comes after {last:?}");
                last = Some(key.to_vec());
                model.digest = model.digest.wrapping_add(digest(index, key, value));
                model.tables[index].insert(key.to_vec(), value.to_vec());
            }
        }
        Ok(model)
    }

    /// Some of its tables.
    pub fn only(&self, tables: &[usize]) -> Model {
        let mut model = Model::default();
        for &table in tables {
            for (key, value) in &self.tables[table] {
                model.digest = model.digest.wrapping_add(digest(table, key, value));
            }
            model.tables[table] = self.tables[table].clone();
        }
        model
    }

    /// A short description of a difference.
    pub fn difference(&self, other: &Model) -> String {
        let mut text = String::new();
        let mut count = 0;
        for (index, name) in TABLES.iter().enumerate() {
            let (one, two) = (&self.tables[index], &other.tables[index]);
            let keys: std::collections::BTreeSet<_> = one.keys().chain(two.keys()).collect();
            for key in keys.into_iter().filter(|key| one.get(*key) != two.get(*key)) {
                count += 1;
                if count <= 4 {
                    let side = |value: Option<&Vec<u8>>| match value {
                        Some(value) => {
                            format!("{} bytes {:02x?}", value.len(), &value[..value.len().min(4)])
                        }
                        None => "nothing".to_owned(),
                    };
                    let short = String::from_utf8_lossy(&key[..key.len().min(24)]);
                    let (one, two) = (side(one.get(key)), side(two.get(key)));
                    let _ = write!(text, " {name} `{short}`: {one}, not {two};");
                }
            }
        }
        format!("{count} keys differ:{text}")
    }
}

/// What a store holds after each number of writes.
#[derive(Debug, Clone)]
pub struct History {
    digests: Vec<u64>,
}

impl History {
    /// Without writes.
    pub fn from(model: &Model) -> History {
        History { digests: vec![model.digest()] }
    }

    pub fn of(writes: &[Write]) -> History {
        let mut model = Model::default();
        let mut history = History::from(&model);
        for write in writes {
            model.apply(write);
            history.push(&model);
        }
        history
    }

    pub fn push(&mut self, model: &Model) {
        self.digests.push(model.digest());
    }

    /// Number of writes.
    pub fn len(&self) -> usize {
        self.digests.len() - 1
    }

    /// The largest number of writes among these after which a store equals the model.
    pub fn find(&self, model: &Model, among: RangeInclusive<usize>) -> Option<usize> {
        among.rev().find(|count| self.digests.get(*count) == Some(&model.digest()))
    }

    /// Continues from a state found after `count` writes.
    pub fn cut(&mut self, count: usize) {
        self.digests.truncate(count + 1);
    }
}
