//! libCacheSim's oracleGeneral: packed little-endian records of 24 bytes, without a header.
//!
//! u32 time in seconds, u64 object, u32 size, i64 number of the next request of the same object.
//! Source: <https://github.com/1a1a11a/libCacheSim>, `doc/quickstart_traces` and its readers.

use super::super::error::RecordProblem;
use super::super::format::TraceTiming;
use super::super::input::Input;
use super::super::number::within;
use super::super::operation::TraceOp;
use super::super::record::{RecordBatch, RecordFields, SECOND, TraceKey};
use super::{Decoder, Failure};
use crate::value::LONGEST;

/// Bytes of a record.
const RECORD: usize = 24;

/// The decoder of oracleGeneral.
#[derive(Debug)]
pub(in super::super) struct OracleGeneral;

impl Decoder for OracleGeneral {
    fn decode(&mut self, input: &mut Input, out: &mut RecordBatch) -> Result<(), Failure> {
        if input.data().len() < RECORD && !input.need(RECORD)? {
            input.begin_record();
            return match input.data().len() {
                0 => Ok(()),
                have => Err(Failure::fatal(RecordProblem::Cut { have: have as u64, of: 24 })),
            };
        }
        let mut decoded = 0;
        let mut result = Ok(());
        for record in input.data().as_chunks::<RECORD>().0 {
            decoded += RECORD;
            let fields = Fields::of(record);
            result = fields.push(out);
            if result.is_err() || out.is_full() {
                break;
            }
        }
        input.consume(decoded - RECORD);
        input.begin_record();
        input.consume(RECORD);
        result.map_err(Failure::bad)
    }

    fn timing(&self) -> TraceTiming {
        TraceTiming::Seconds
    }
}

/// The fields of a record.
struct Fields {
    second: u32,
    object: u64,
    size: u32,
    next: i64,
}

impl Fields {
    #[inline]
    fn of(record: &[u8; RECORD]) -> Fields {
        let part = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&record[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        Fields {
            second: part(0) as u32,
            object: part(4),
            size: (part(8) >> 32) as u32,
            next: part(16) as i64,
        }
    }

    #[inline]
    fn push(&self, out: &mut RecordBatch) -> Result<(), RecordProblem> {
        let mut fields = RecordFields::new(u64::from(self.second) * SECOND, TraceOp::Get);
        fields.value_size = Some(within("size", u64::from(self.size), LONGEST)?);
        out.push(fields, TraceKey::Number(self.object))
    }
}

/// Whether a file begins with such records: times do not go back, and the next request of an object
/// is a later one or there is none.
pub(in super::super) fn recognises(head: &[u8]) -> bool {
    let (records, _) = head.as_chunks::<RECORD>();
    let mut before = 0;
    !records.is_empty()
        && records.iter().enumerate().all(|(index, record)| {
            let fields = Fields::of(record);
            let in_order = fields.second >= before;
            before = fields.second;
            in_order && (fields.next == -1 || fields.next > index as i64)
        })
}
