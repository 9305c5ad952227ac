//! Copies that the collector makes.

use std::sync::Arc;

use crate::record::{HEADER_LEN, Hashes, Record};
use crate::value_log::Segment;
use crate::value_pointer::ValuePointer;

/// Copies of live records, encoded as in the log.
pub(crate) struct CopyBatch {
    pub(crate) segment: Arc<Segment>,
    /// Offset of the batch in its segment.
    pub(crate) begin: u32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) copies: Vec<CopiedRecord>,
    /// Number of copies that were inserted or found dead.
    pub(crate) inserted: usize,
    /// The first sequence reserved for it.
    pub(crate) sequence: u64,
    /// Number of freezes when the sequences were reserved.
    pub(crate) freezes: u64,
}

pub(crate) struct CopiedRecord {
    /// Offset and length in `bytes`.
    pub(crate) offset: usize,
    pub(crate) len: usize,
    pub(crate) key_len: usize,
    pub(crate) table: u32,
    pub(crate) key_hash: u64,
    /// The original record.
    pub(crate) old: ValuePointer,
}

impl CopyBatch {
    /// An empty batch at the end of a segment. `sequence` is the first of the sequences reserved
    /// for it, after `freezes` freezes.
    pub(crate) fn new(
        segment: Arc<Segment>,
        capacity: usize,
        sequence: u64,
        freezes: u64,
    ) -> CopyBatch {
        let begin = segment.written();
        let bytes = Vec::with_capacity(capacity);
        CopyBatch { segment, begin, bytes, copies: Vec::new(), inserted: 0, sequence, freezes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of records.
    pub(crate) fn len(&self) -> usize {
        self.copies.len()
    }

    /// Its end in the segment.
    pub(crate) fn end(&self) -> u32 {
        self.begin + self.bytes.len() as u32
    }

    pub(crate) fn key(&self, copy: &CopiedRecord) -> &[u8] {
        &self.bytes[copy.offset + HEADER_LEN..][..copy.key_len]
    }

    /// Adds a copy of the record at `old`.
    pub(crate) fn add(&mut self, record: &Record<'_>, hashes: Hashes, old: ValuePointer) {
        let mut header = record.header;
        header.in_batch = false;
        header.sequence = self.sequence + self.copies.len() as u64;
        let (offset, len) = (self.bytes.len(), header.record_len());
        self.bytes.resize(offset + len, 0);
        let location = (self.segment.id, self.begin + offset as u32);
        header.write(location, hashes, record.key, record.value, &mut self.bytes[offset..]);
        self.copies.push(CopiedRecord {
            offset,
            len,
            key_len: record.key.len(),
            table: header.table,
            key_hash: hashes.key,
            old,
        });
    }
}
