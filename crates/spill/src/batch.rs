use crate::table::Table;

/// The most writes of a batch. Other writers wait while they are inserted into the memtables.
pub const MAX_BATCH_WRITES: usize = 1 << 14;

/// Writes that are applied atomically, even across a power failure. Invalid writes are reported by
/// [`Store::write`](crate::Store::write).
#[derive(Default, Clone)]
pub struct Batch {
    pub(crate) writes: Vec<Write>,
}

#[derive(Clone)]
pub(crate) struct Write {
    pub(crate) table: Table,
    pub(crate) key: Vec<u8>,
    /// `None` deletes the key.
    pub(crate) value: Option<Vec<u8>>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Sets the value of a key. The last of several writes of one key wins.
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) {
        let (key, value) = (key.to_vec(), Some(value.to_vec()));
        self.writes.push(Write { table: table.clone(), key, value });
    }

    /// Deletes a key; it need not exist.
    pub fn delete(&mut self, table: &Table, key: &[u8]) {
        self.writes.push(Write { table: table.clone(), key: key.to_vec(), value: None });
    }

    /// Number of writes, including those that a later write of the same key replaces.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether it has no writes.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Removes all writes.
    pub fn clear(&mut self) {
        self.writes.clear();
    }
}
