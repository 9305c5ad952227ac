//! What RocksDB's trace analyzer makes of a query trace with `--convert_to_human_readable_trace`:
//! `0xKEY type column-family value-size microseconds`; older versions have the key at the end.

use super::super::error::{RecordProblem, excerpt};
use super::super::format::TraceTiming;
use super::super::number::{number, small};
use super::super::operation::TraceOp;
use super::super::record::{RecordBatch, RecordFields, TraceKey};
use super::LineParser;
use crate::value::LONGEST;

/// Fields of a line.
const FIELDS: usize = 5;

/// The parser of the analyzer's lines.
#[derive(Debug, Default)]
pub(in super::super) struct RocksDbText {
    key: Vec<u8>,
}

impl LineParser for RocksDbText {
    /// Keys are written as two letters a byte.
    const LONGEST: usize = 256 << 10;

    fn parse(&mut self, line: &[u8], out: &mut RecordBatch) -> Result<(), RecordProblem> {
        let fields = fields(line)?;
        let (key, numbers) = match fields[0].starts_with(b"0x") {
            true => (fields[0], [fields[1], fields[2], fields[3], fields[4]]),
            false => (fields[4], [fields[0], fields[1], fields[2], fields[3]]),
        };
        let operation = match number("type", numbers[0])? {
            0 | 8 => TraceOp::Get,
            1 | 5 => TraceOp::Set,
            2 | 3 => TraceOp::Delete,
            6 | 7 => TraceOp::Seek,
            // A range of keys is deleted.
            4 => {
                out.ignored += 1;
                return Ok(());
            }
            kind => return Err(RecordProblem::Kind { kind }),
        };
        number("column family", numbers[1])?;
        let size = small("value size", numbers[2], LONGEST)?;
        let micros = number("time", numbers[3])?;
        let most = u64::MAX / 1000;
        let too_large = RecordProblem::TooLarge { field: "time", number: micros, most };
        let mut fields = RecordFields::new(micros.checked_mul(1000).ok_or(too_large)?, operation);
        // The analyzer knows the values of writes alone.
        fields.value_size = (operation == TraceOp::Set).then_some(size);
        self.unhex(key)?;
        out.push(fields, TraceKey::Bytes(&self.key))
    }

    fn timing(&self) -> TraceTiming {
        TraceTiming::Exact
    }
}

impl RocksDbText {
    fn unhex(&mut self, text: &[u8]) -> Result<(), RecordProblem> {
        let wrong = || RecordProblem::HexKey { text: excerpt(text) };
        let (pairs, []) = text.strip_prefix(b"0x").ok_or_else(wrong)?.as_chunks::<2>() else {
            return Err(wrong());
        };
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        self.key.clear();
        for [high, low] in pairs {
            let (high, low) = digit(*high).zip(digit(*low)).ok_or_else(wrong)?;
            self.key.push(high << 4 | low);
        }
        Ok(())
    }
}

fn fields(line: &[u8]) -> Result<[&[u8]; FIELDS], RecordProblem> {
    let mut found: [&[u8]; FIELDS] = [&[]; FIELDS];
    let mut count = 0;
    for field in line.split(|byte| *byte == b' ').filter(|field| !field.is_empty()) {
        if let Some(place) = found.get_mut(count) {
            *place = field;
        }
        count += 1;
    }
    match count {
        FIELDS => Ok(found),
        count => Err(RecordProblem::Columns { count, of: FIELDS }),
    }
}

/// Whether a first line is one of this format.
pub(in super::super) fn recognises(line: &[u8]) -> bool {
    let is_number = |field: &[u8]| field.iter().all(u8::is_ascii_digit);
    let is_key = |field: &[u8]| field.starts_with(b"0x");
    fields(line).is_ok_and(|fields| {
        (is_key(fields[0]) && fields[1..].iter().all(|field| is_number(field)))
            || (is_key(fields[4]) && fields[..4].iter().all(|field| is_number(field)))
    })
}
