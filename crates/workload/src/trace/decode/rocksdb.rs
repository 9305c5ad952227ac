//! RocksDB's query traces, as its `TraceWriter` writes them: versions 0.1 and 0.2.
//!
//! A record is a time in microseconds (u64), a type (u8), the length of its payload (u32) and the
//! payload, little-endian. The first record holds the versions as text. In version 0.2 a payload
//! begins with a u64 whose bits say which fields follow. Source: RocksDB's
//! `trace_replay/trace_replay.cc`.

use super::super::error::RecordProblem;
use super::super::format::TraceTiming;
use super::super::input::Input;
use super::super::operation::TraceOp;
use super::super::record::{RecordBatch, RecordFields, TraceKey};
use super::rocksdb_batch::{self, Fields};
use super::{Decoder, Failure};

const MAGIC: &[u8] = b"feedcafedeadbeef\t";

/// Bytes before a payload.
const METADATA: usize = 13;

/// The longest payload: a batch of writes.
const LONGEST: usize = 64 << 20;

/// Types of records.
const BEGIN: u8 = 1;
const END: u8 = 2;
const WRITE: u8 = 3;
const GET: u8 = 4;
const SEEK: u8 = 5;
const SEEK_FOR_PREV: u8 = 6;
const MULTI_GET: u8 = 13;

/// The bits of the fields that the records of a type need.
const WRITE_BITS: u64 = 1 << 1;
const GET_BITS: u64 = 1 << 2 | 1 << 3;
const SEEK_BITS: u64 = 1 << 4 | 1 << 5;
const BOUND_BITS: u64 = 1 << 6 | 1 << 7;
const MULTI_GET_BITS: u64 = 1 << 8 | 1 << 9 | 1 << 10;

/// The decoder of a query trace.
#[derive(Debug, Default)]
pub(in super::super) struct RocksDb {
    /// The minor version, once the first record was read.
    version: Option<u32>,
    ended: bool,
}

/// Whether a file begins with the first record.
pub(in super::super) fn recognises(head: &[u8]) -> bool {
    head.get(METADATA..).is_some_and(|payload| payload.starts_with(MAGIC))
}

impl Decoder for RocksDb {
    fn decode(&mut self, input: &mut Input, out: &mut RecordBatch) -> Result<(), Failure> {
        while !out.is_full() && !self.ended {
            input.begin_record();
            if input.data().len() < METADATA {
                if !out.is_empty() {
                    break;
                }
                if !input.need(METADATA)? {
                    return match input.data().len() as u64 {
                        0 => Ok(()),
                        have => Err(Failure::fatal(RecordProblem::Cut { have, of: 13 })),
                    };
                }
            }
            let Some((metadata, _)) = input.data().split_first_chunk::<METADATA>() else { break };
            let [a, b, c, d, e, f, g, h, kind, length @ ..] = *metadata;
            let micros = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            let length = u32::from_le_bytes(length) as usize;
            if length > LONGEST {
                let (number, most) = (length as u64, LONGEST as u64);
                let problem = RecordProblem::TooLarge { field: "payload length", number, most };
                return Err(Failure::fatal(problem));
            }
            if input.data().len() < METADATA + length && !input.need(METADATA + length)? {
                let (have, of) = (input.data().len() as u64, (METADATA + length) as u64);
                return Err(Failure::fatal(RecordProblem::Cut { have, of }));
            }
            let before = out.len();
            let result =
                self.record((micros, kind), &input.data()[METADATA..METADATA + length], out);
            input.consume(METADATA + length);
            if let Err(problem) = result {
                out.truncate(before);
                return Err(match self.version {
                    None => Failure::fatal(problem),
                    Some(_) => Failure::bad(problem),
                });
            }
        }
        Ok(())
    }

    fn timing(&self) -> TraceTiming {
        TraceTiming::Exact
    }
}

impl RocksDb {
    fn record(
        &mut self,
        (micros, kind): (u64, u8),
        payload: &[u8],
        out: &mut RecordBatch,
    ) -> Result<(), RecordProblem> {
        let Some(version) = self.version else {
            self.version = Some(version(kind, payload)?);
            return Ok(());
        };
        let most = u64::MAX / 1000;
        let too_large = RecordProblem::TooLarge { field: "time", number: micros, most };
        let at_ns = micros.checked_mul(1000).ok_or(too_large)?;
        let fields = Payload { fields: Fields(payload), with_bits: version >= 2, at_ns };
        match kind {
            END => {
                self.ended = true;
                Ok(())
            }
            WRITE => fields.write(out),
            GET => fields.get(out),
            SEEK | SEEK_FOR_PREV => fields.seek(out),
            MULTI_GET => fields.multi_get(out),
            kind => Err(RecordProblem::Kind { kind: u64::from(kind) }),
        }
    }
}

/// The minor version that the first record names.
fn version(kind: u8, payload: &[u8]) -> Result<u32, RecordProblem> {
    let text = payload.strip_prefix(MAGIC).filter(|_| kind == BEGIN);
    let text = text.ok_or(RecordProblem::Header { expected: "feedcafedeadbeef" })?;
    let version = text.strip_prefix(b"Trace Version: ").and_then(|text| {
        let end = text.iter().position(|byte| *byte == b'\t')?;
        std::str::from_utf8(&text[..end]).ok()
    });
    match version {
        Some("0.1") => Ok(1),
        Some("0.2") => Ok(2),
        other => {
            let version = other.unwrap_or_default().chars().take(20).collect();
            Err(RecordProblem::Version { version, known: "0.1 and 0.2" })
        }
    }
}

struct Payload<'a> {
    fields: Fields<'a>,
    with_bits: bool,
    at_ns: u64,
}

impl Payload<'_> {
    /// Checks which fields follow.
    fn bits(&mut self, needed: u64, possible: u64) -> Result<u64, RecordProblem> {
        let bits = if self.with_bits { self.fields.fixed64()? } else { needed };
        match bits & needed == needed && bits & !(needed | possible) == 0 {
            true => Ok(bits),
            false => Err(RecordProblem::PayloadBits { bits }),
        }
    }

    fn write(mut self, out: &mut RecordBatch) -> Result<(), RecordProblem> {
        self.bits(WRITE_BITS, 0)?;
        // Version 0.1 has the batch as it is.
        let batch = if self.with_bits { self.fields.string()? } else { self.fields.0 };
        rocksdb_batch::push(batch, self.at_ns, out)
    }

    fn get(mut self, out: &mut RecordBatch) -> Result<(), RecordProblem> {
        self.bits(GET_BITS, 0)?;
        self.fields.fixed32()?;
        self.one(TraceOp::Get, out)
    }

    fn seek(mut self, out: &mut RecordBatch) -> Result<(), RecordProblem> {
        self.bits(SEEK_BITS, BOUND_BITS)?;
        self.fields.fixed32()?;
        self.one(TraceOp::Seek, out)
    }

    fn one(&mut self, operation: TraceOp, out: &mut RecordBatch) -> Result<(), RecordProblem> {
        let key = self.fields.string()?;
        out.push(RecordFields::new(self.at_ns, operation), TraceKey::Bytes(key))
    }

    fn multi_get(mut self, out: &mut RecordBatch) -> Result<(), RecordProblem> {
        self.bits(MULTI_GET_BITS, 0)?;
        let count = self.fields.fixed32()?;
        self.fields.string()?;
        let mut keys = Fields(self.fields.string()?);
        for _ in 0..count {
            let key = keys.string()?;
            out.push(RecordFields::new(self.at_ns, TraceOp::Get), TraceKey::Bytes(key))?;
        }
        Ok(())
    }
}
