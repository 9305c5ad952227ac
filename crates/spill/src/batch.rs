use crate::table::Table;

/// The most writes of a batch: others wait while they are entered, 3 to 4 ms for so many small ones.
pub const MAX_BATCH_WRITES: usize = 1 << 14;

/// Writes that are done together: all of them or none, also after a failure of power. What is wrong
/// with one is told by [`Store::write`](crate::Store::write).
#[derive(Default, Clone)]
pub struct Batch {
    pub(crate) writes: Vec<Write>,
}

#[derive(Clone)]
pub(crate) struct Write {
    pub(crate) table: Table,
    pub(crate) key: Vec<u8>,
    /// None: the key is removed.
    pub(crate) value: Option<Vec<u8>>,
}

impl Batch {
    /// An empty one.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Sets the value of a key. Of several writes of one key the last counts.
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) {
        let (key, value) = (key.to_vec(), Some(value.to_vec()));
        self.writes.push(Write { table: table.clone(), key, value });
    }

    /// Removes a key; fine if it is not there.
    pub fn delete(&mut self, table: &Table, key: &[u8]) {
        self.writes.push(Write { table: table.clone(), key: key.to_vec(), value: None });
    }

    /// How many writes it has, those included that a later one of the same key replaces.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether it has no writes.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Takes all writes out of it.
    pub fn clear(&mut self) {
        self.writes.clear();
    }
}
