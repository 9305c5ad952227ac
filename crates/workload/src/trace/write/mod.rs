//! kvmeter's own traces: small, without values, and with keys only as a keyed hash unless the user
//! wants them.
//!
//! A file is a sequence of zstd frames, each of which can be decompressed alone, and a table of them
//! in zstd's seekable format. `docs/trace-format.md` describes the bytes.

mod key_hash;
mod seek_table;

use std::io::{self, Write};

use model::Expiry;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

pub use self::key_hash::{HashedKey, KeyHasher, SECRET};
use self::seek_table::SeekTable;
use super::operation::TraceOp;
use super::record::{TraceKey, TraceRecord};
use super::varint;

/// What a file begins with, and its version.
pub(super) const MAGIC: &str = "kvmeter-trace ";
pub(super) const VERSION: &str = "1";

/// The kinds of blocks.
pub(super) const REQUESTS: u8 = 1;
pub(super) const END: u8 = 0;

/// Bits of a request beside the number of its operation.
pub(super) const OPERATION: u8 = 0x0f;
pub(super) const HAS_VALUE_SIZE: u8 = 0x10;
pub(super) const HAS_EXPIRY: u8 = 0x20;
pub(super) const HASHED: u8 = 0x40;

/// The numbers of operations.
pub(super) const OPERATIONS: [TraceOp; 12] = [
    TraceOp::Get,
    TraceOp::Gets,
    TraceOp::Set,
    TraceOp::Add,
    TraceOp::Replace,
    TraceOp::Cas,
    TraceOp::Append,
    TraceOp::Prepend,
    TraceOp::Delete,
    TraceOp::Incr,
    TraceOp::Decr,
    TraceOp::Seek,
];

/// Seconds of an expiry at once, where 0 is never.
pub(super) const AT_ONCE: u64 = u64::MAX;

/// Requests of a block, and nanoseconds after which one is written although it is not full.
const MOST_REQUESTS: u64 = 32 << 10;
const LONGEST_BLOCK_NS: u64 = 1_000_000_000;

/// Writes a trace. What was written stays readable if the process is killed; the mark of the end
/// says that it was not.
pub struct TraceWriter<W: Write> {
    out: W,
    keys: Option<KeyHasher>,
    /// The requests of the block, without its head.
    block: Vec<u8>,
    in_block: u64,
    block_began_ns: u64,
    last_us: u64,
    table: SeekTable,
    requests: u64,
    bytes: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace. `facts` are lines about it, such as what was captured; `keys` hashes keys,
    /// without it they are written as they are.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(
        out: W,
        facts: &[(&str, &str)],
        keys: Option<KeyHasher>,
    ) -> io::Result<TraceWriter<W>> {
        let mut writer = TraceWriter {
            out,
            keys,
            block: Vec::new(),
            in_block: 0,
            block_began_ns: 0,
            last_us: 0,
            table: SeekTable::default(),
            requests: 0,
            bytes: 0,
        };
        let mut head = format!("{MAGIC}{VERSION}\n");
        let form = if writer.keys.is_some() { "hashed" } else { "plain" };
        for (name, value) in [("keys", form)].iter().chain(facts) {
            // A line break in a value would begin another line.
            head.push_str(&format!("{name}: {}\n", value.replace(['\n', '\r'], " ")));
        }
        head.push('\n');
        writer.frame(head.as_bytes())?;
        Ok(writer)
    }

    /// Appends a request. Times are rounded to microseconds and never go back.
    ///
    /// # Errors
    /// Those of `out`, when a block is full.
    pub fn append(&mut self, record: &TraceRecord<'_>) -> io::Result<()> {
        let full = self.in_block >= MOST_REQUESTS
            || self.in_block > 0
                && record.at_ns.saturating_sub(self.block_began_ns) >= LONGEST_BLOCK_NS;
        if full {
            self.flush()?;
        }
        let at_us = (record.at_ns / 1000).max(self.last_us);
        if self.in_block == 0 {
            self.block_began_ns = record.at_ns;
            varint::append(at_us, &mut self.block);
            self.last_us = at_us;
        }
        let block = &mut self.block;
        varint::append(at_us - self.last_us, block);
        self.last_us = at_us;
        let number = OPERATIONS.iter().position(|operation| *operation == record.operation);
        let mut bits = number.unwrap_or_default() as u8;
        bits |= if record.value_size.is_some() { HAS_VALUE_SIZE } else { 0 };
        bits |= if record.expiry.is_some() { HAS_EXPIRY } else { 0 };
        bits |= if self.keys.is_some() { HASHED } else { 0 };
        block.push(bits);
        let digits;
        let key = match record.key {
            TraceKey::Bytes(key) => key,
            TraceKey::Number(number) => {
                digits = format!("{number:016x}");
                digits.as_bytes()
            }
        };
        match &mut self.keys {
            Some(hasher) => {
                let HashedKey { hash, class } = hasher.hash(key);
                block.extend_from_slice(&hash.to_le_bytes());
                let size = record.key_size.map_or(key.len() as u64, u64::from);
                varint::append(size, block);
                varint::append(u64::from(class), block);
            }
            None => {
                varint::append(key.len() as u64, block);
                block.extend_from_slice(key);
            }
        }
        if let Some(size) = record.value_size {
            varint::append(u64::from(size), block);
        }
        if let Some(expiry) = record.expiry {
            let seconds = match expiry {
                Expiry::Never => 0,
                Expiry::After(seconds) => u64::from(seconds),
                Expiry::AtOnce => AT_ONCE,
            };
            varint::append(seconds, block);
        }
        self.in_block += 1;
        self.requests += 1;
        Ok(())
    }

    /// Writes the requests that were appended, if there are any.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.in_block == 0 {
            return Ok(());
        }
        let mut block = vec![REQUESTS];
        varint::append(self.in_block, &mut block);
        block.append(&mut self.block);
        self.in_block = 0;
        self.frame(&block)
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Bytes that were written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends the trace; `lost` requests are known to be missing in it. Returns `out`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self, lost: u64) -> io::Result<W> {
        self.flush()?;
        let mut end = vec![END];
        varint::append(self.requests, &mut end);
        varint::append(lost, &mut end);
        self.frame(&end)?;
        self.out.write_all(&self.table.bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn frame(&mut self, data: &[u8]) -> io::Result<()> {
        let frame = compress_to_vec(data, CompressionLevel::Fastest);
        self.out.write_all(&frame)?;
        self.table.add(frame.len(), data.len());
        self.bytes += frame.len() as u64;
        Ok(())
    }
}
