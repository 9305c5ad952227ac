//! CacheLib's key-value traces: CSV with its columns in the first line, or in the usual order.
//!
//! Source: <https://github.com/facebook/CacheLib>, `cachebench`'s `KVReplayGenerator`.

use model::suggest;

use super::super::error::{RecordProblem, excerpt};
use super::super::format::TraceTiming;
use super::super::number::{expiry, number, seconds, small, within};
use super::super::operation::TraceOp;
use super::super::record::{RecordBatch, RecordFields, TraceKey};
use super::LineParser;
use crate::value::LONGEST;

/// A column that a request needs; `Other` are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Key,
    KeySize,
    Operation,
    Count,
    Size,
    Ttl,
    Time,
    Other,
}

/// Columns of files without a first line that names them.
const USUAL: [Column; 6] =
    [Column::Key, Column::Operation, Column::Size, Column::Count, Column::KeySize, Column::Ttl];

/// The parser of CacheLib's lines.
#[derive(Debug, Default)]
pub(in super::super) struct CacheLib {
    /// Empty until the first line.
    columns: Vec<Column>,
    /// Trailing columns that a line may lack.
    optional: usize,
}

impl LineParser for CacheLib {
    const LONGEST: usize = 4096;

    fn parse(&mut self, line: &[u8], out: &mut RecordBatch) -> Result<(), RecordProblem> {
        if self.columns.is_empty() {
            if is_header(line) {
                self.columns = line.split(|byte| *byte == b',').map(column).collect();
                return Ok(());
            }
            (self.columns, self.optional) = (USUAL.to_vec(), 3);
        }
        self.request(line, out)
    }

    fn timing(&self) -> TraceTiming {
        match self.columns.contains(&Column::Time) {
            true => TraceTiming::Seconds,
            false => TraceTiming::Untimed,
        }
    }
}

impl CacheLib {
    fn request(&self, line: &[u8], out: &mut RecordBatch) -> Result<(), RecordProblem> {
        let mut fields = RecordFields::new(0, TraceOp::Get);
        let mut key: &[u8] = &[];
        let (mut rest, mut count, mut more) = (line, 0, true);
        while more {
            let field = match memchr::memchr(b',', rest) {
                Some(comma) => {
                    let field = &rest[..comma];
                    rest = &rest[comma + 1..];
                    field
                }
                None => {
                    more = false;
                    rest
                }
            };
            let Some(column) = self.columns.get(count) else {
                return Err(self.wrong_count(line));
            };
            count += 1;
            match column {
                Column::Key => key = field,
                Column::KeySize if field.is_empty() => {}
                Column::KeySize => {
                    fields.key_size = Some(small("key size", field, u64::from(u32::MAX))?);
                }
                Column::Operation => fields.operation = operation(field)?,
                Column::Count => fields.times = small("operation count", field, MOST_TIMES)?,
                Column::Size => fields.value_size = Some(value_size(field)?),
                Column::Ttl if field.is_empty() => {}
                Column::Ttl => fields.expiry = Some(expiry(field)?),
                Column::Time => fields.at_ns = seconds("op_time", field)?,
                Column::Other => {}
            }
        }
        if count + self.optional < self.columns.len() {
            return Err(self.wrong_count(line));
        }
        check_key(key)?;
        match (fields.key_size, fields.times) {
            (Some(0), _) => return Err(RecordProblem::NoKeySize),
            (_, 0) => return Err(RecordProblem::NoOperation),
            _ => {}
        }
        out.push(fields, TraceKey::Bytes(key))
    }

    #[cold]
    fn wrong_count(&self, line: &[u8]) -> RecordProblem {
        let count = line.split(|byte| *byte == b',').count();
        RecordProblem::Columns { count, of: self.columns.len() }
    }
}

/// The most operations of one line.
const MOST_TIMES: u64 = 1 << 20;

/// The values of a line may be bigger than any that is replayed.
fn value_size(field: &[u8]) -> Result<u32, RecordProblem> {
    within("size", number("size", field)?, LONGEST)
}

/// Keys are anonymised, so that none has what a text protocol does not take.
pub(super) fn check_key(key: &[u8]) -> Result<(), RecordProblem> {
    if key.is_empty() {
        return Err(RecordProblem::EmptyKey);
    }
    match key.iter().find(|byte| **byte <= b' ' || **byte == 0x7f) {
        Some(&byte) => Err(RecordProblem::KeyByte { byte }),
        None => Ok(()),
    }
}

const OPERATIONS: [(&str, TraceOp); 5] = [
    ("GET", TraceOp::Get),
    ("GET_LEASE", TraceOp::Get),
    ("SET", TraceOp::Set),
    ("SET_LEASE", TraceOp::Set),
    ("DELETE", TraceOp::Delete),
];

#[inline]
fn operation(name: &[u8]) -> Result<TraceOp, RecordProblem> {
    let known = OPERATIONS.iter().find(|(known, _)| known.as_bytes() == name);
    known.map(|(_, operation)| *operation).ok_or_else(|| {
        let text = excerpt(name);
        let hint = suggest::hint(&text, OPERATIONS.map(|(name, _)| name));
        RecordProblem::Operation { text, hint }
    })
}

fn column(name: &[u8]) -> Column {
    match name.trim_ascii() {
        b"key" => Column::Key,
        b"key_size" => Column::KeySize,
        b"op" => Column::Operation,
        b"op_count" => Column::Count,
        b"size" => Column::Size,
        b"ttl" => Column::Ttl,
        b"op_time" => Column::Time,
        _ => Column::Other,
    }
}

/// Whether a line names the columns that every file has.
fn is_header(line: &[u8]) -> bool {
    let columns: Vec<Column> = line.split(|byte| *byte == b',').map(column).collect();
    [Column::Key, Column::Operation, Column::Size].iter().all(|needed| columns.contains(needed))
}

/// Whether a first line is one of this format.
pub(in super::super) fn recognises(line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b',').collect();
    is_header(line) || ((3..=6).contains(&fields.len()) && operation(fields[1]).is_ok())
}
