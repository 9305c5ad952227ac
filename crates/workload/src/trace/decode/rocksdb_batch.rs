//! The writes of a `WriteBatch` of RocksDB: a sequence number (u64), a count (u32), then a tag, a
//! column family where the tag has one, and strings that begin with their length.
//!
//! Source: RocksDB's `db/write_batch.cc` and `db/dbformat.h`.

use super::super::error::RecordProblem;
use super::super::operation::TraceOp;
use super::super::record::{RecordBatch, RecordFields, TraceKey};

/// Bytes before the first write.
const HEADER: usize = 12;

/// The fields of a payload, from the front.
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], RecordProblem> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(RecordProblem::PayloadLength)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn fixed32(&mut self) -> Result<u32, RecordProblem> {
        let bytes = self.take(4)?.first_chunk().copied().unwrap_or_default();
        Ok(u32::from_le_bytes(bytes))
    }

    pub fn fixed64(&mut self) -> Result<u64, RecordProblem> {
        let bytes = self.take(8)?.first_chunk().copied().unwrap_or_default();
        Ok(u64::from_le_bytes(bytes))
    }

    /// A number of seven bits a byte, at most five bytes.
    fn varint32(&mut self) -> Result<u32, RecordProblem> {
        let mut number = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(number).map_err(|_| RecordProblem::PayloadLength);
            }
        }
        Err(RecordProblem::PayloadLength)
    }

    /// Bytes that begin with their number.
    pub fn string(&mut self) -> Result<&'a [u8], RecordProblem> {
        let bytes = self.varint32()?;
        self.take(bytes as usize)
    }
}

/// Appends the writes of a batch; deleted ranges and marks of transactions are passed over.
pub(super) fn push(batch: &[u8], at_ns: u64, out: &mut RecordBatch) -> Result<(), RecordProblem> {
    let mut fields = Fields(batch);
    fields.take(HEADER)?;
    let write = |operation, size: Option<usize>| RecordFields {
        value_size: size.map(|size| size as u32),
        ..RecordFields::new(at_ns, operation)
    };
    while !fields.0.is_empty() {
        let tag = fields.take(1)?[0];
        if matches!(tag, 0x04..=0x06 | 0x08 | 0x0e | 0x10 | 0x17 | 0x19) {
            fields.varint32()?;
        }
        match tag {
            // A value, a merge, a reference to a blob, columns, a value with its time of writing.
            0x01 | 0x02 | 0x05 | 0x06 | 0x10 | 0x11 | 0x16 | 0x17 | 0x18 | 0x19 => {
                let (key, value) = (fields.string()?, fields.string()?);
                out.push(write(TraceOp::Set, Some(value.len())), TraceKey::Bytes(key))?;
            }
            0x00 | 0x04 | 0x07 | 0x08 => {
                let key = fields.string()?;
                out.push(write(TraceOp::Delete, None), TraceKey::Bytes(key))?;
            }
            // A range.
            0x0e | 0x0f => {
                fields.string()?;
                fields.string()?;
                out.ignored += 1;
            }
            // Data for the log alone, and the marks of transactions.
            0x03 | 0x0a | 0x0b | 0x0c => {
                fields.string()?;
            }
            0x15 => {
                fields.string()?;
                fields.string()?;
            }
            0x09 | 0x0d | 0x12 | 0x13 => {}
            tag => return Err(RecordProblem::BatchTag { tag }),
        }
    }
    Ok(())
}
