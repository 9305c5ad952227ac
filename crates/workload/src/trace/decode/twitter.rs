//! Twitter's cache traces: `timestamp,key,key size,value size,client,operation,TTL`.
//!
//! Format: <https://github.com/twitter/cache-trace>; Yang et al., "A large scale analysis of
//! hundreds of in-memory cache clusters at Twitter", OSDI 2020. The time is in whole seconds, sizes
//! are in bytes, and a key may hold commas.

use model::suggest;

use super::super::error::{RecordProblem, excerpt};
use super::super::format::TraceTiming;
use super::super::number::{expiry, seconds, small};
use super::super::operation::TraceOp;
use super::super::record::{RecordBatch, RecordFields, TraceKey};
use super::LineParser;
use crate::value::LONGEST;

const FIELDS: usize = 7;

/// The parser of Twitter's lines.
#[derive(Debug, Default)]
pub(in super::super) struct Twitter {
    /// Whether a line was parsed.
    begun: bool,
    header: Option<String>,
}

impl LineParser for Twitter {
    const LONGEST: usize = 4096;

    #[inline]
    fn parse(&mut self, line: &[u8], out: &mut RecordBatch) -> Result<(), RecordProblem> {
        if !std::mem::replace(&mut self.begun, true) && is_header(line) {
            self.header = Some(excerpt(line));
            return Ok(());
        }
        let (fields, key) = request(line)?;
        out.push(fields, TraceKey::Bytes(key))
    }

    fn timing(&self) -> TraceTiming {
        TraceTiming::Seconds
    }

    fn header(&self) -> Option<&str> {
        self.header.as_deref()
    }
}

/// Whether a first line is one of this format.
pub(in super::super) fn recognises(line: &[u8]) -> bool {
    let operation = last(line).and_then(|(rest, _)| last(rest));
    is_header(line) || operation.is_some_and(|(_, name)| TraceOp::from_name(name).is_some())
}

fn request(line: &[u8]) -> Result<(RecordFields, &[u8]), RecordProblem> {
    let few = || RecordProblem::Fields {
        count: line.split(|byte| *byte == b',').filter(|_| !line.is_empty()).count(),
    };
    let (second, rest) = first(line).ok_or_else(few)?;
    // The key may hold commas, hence the others are counted from the end.
    let (rest, ttl) = last(rest).ok_or_else(few)?;
    let (rest, operation) = last(rest).ok_or_else(few)?;
    let (rest, _client) = last(rest).ok_or_else(few)?;
    let (rest, value_size) = last(rest).ok_or_else(few)?;
    let (key, key_size) = last(rest).ok_or_else(few)?;
    let fields = RecordFields {
        at_ns: seconds("timestamp", second)?,
        key_size: Some(small("key size", key_size, u64::from(u32::MAX))?),
        value_size: Some(small("value size", value_size, LONGEST)?),
        operation: TraceOp::from_name(operation).ok_or_else(|| unknown(operation))?,
        expiry: Some(expiry(ttl)?),
        times: 1,
    };
    if key.is_empty() {
        return Err(RecordProblem::EmptyKey);
    }
    if fields.key_size == Some(0) {
        return Err(RecordProblem::NoKeySize);
    }
    match key.iter().find(|byte| **byte <= b' ' || **byte == 0x7f) {
        Some(&byte) => Err(RecordProblem::KeyByte { byte }),
        None => Ok((fields, key)),
    }
}

/// Splits at the first comma.
fn first(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let comma = text.iter().position(|byte| *byte == b',')?;
    Some((&text[..comma], &text[comma + 1..]))
}

/// Splits at the last comma.
fn last(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let comma = text.iter().rposition(|byte| *byte == b',')?;
    Some((&text[..comma], &text[comma + 1..]))
}

/// Whether a line is a header: seven words where a request has numbers, whatever their names,
/// quotes and spaces.
fn is_header(line: &[u8]) -> bool {
    let is_word = |field: &[u8]| {
        let first = field.iter().find(|byte| !matches!(byte, b' ' | b'"' | b'\'' | b'#'));
        first.is_some_and(u8::is_ascii_alphabetic) && !field.iter().any(u8::is_ascii_digit)
    };
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b',').collect();
    fields.len() == FIELDS && fields.into_iter().all(is_word)
}

#[cold]
fn unknown(operation: &[u8]) -> RecordProblem {
    let text = excerpt(operation);
    let hint = suggest::hint(&text, TraceOp::MEMCACHED.map(TraceOp::name));
    RecordProblem::Operation { text, hint }
}

#[cfg(test)]
mod tests {
    use model::Expiry;

    use super::*;

    #[test]
    fn parses_a_line() {
        let parsed = request(b"17,nz:u:eeW511W3dcH3de3d15ec,22,304,5,set,86400").unwrap();
        let expected = RecordFields {
            at_ns: 17_000_000_000,
            key_size: Some(22),
            value_size: Some(304),
            operation: TraceOp::Set,
            expiry: Some(Expiry::After(86400)),
            times: 1,
        };
        assert_eq!(parsed, (expected, &b"nz:u:eeW511W3dcH3de3d15ec"[..]));
        assert_eq!(request(b"0,a,b,,c,9,0,1,get,0").unwrap().1, b"a,b,,c");
        for operation in TraceOp::MEMCACHED {
            let text = format!("0,k,1,0,,{operation},0");
            assert_eq!(request(text.as_bytes()).unwrap().0.operation, operation);
        }
    }

    #[test]
    fn negative_ttl_expires_at_once() {
        for (ttl, expiry) in [
            ("0", Expiry::Never),
            ("1", Expiry::After(1)),
            ("4294967295", Expiry::After(u32::MAX)),
            ("-1", Expiry::AtOnce),
            ("-30", Expiry::AtOnce),
        ] {
            let line = format!("0,k,1,0,1,set,{ttl}");
            assert_eq!(request(line.as_bytes()).unwrap().0.expiry, Some(expiry), "{ttl}");
        }
    }

    #[test]
    fn distinguishes_header_from_invalid_request() {
        for line in [
            "timestamp,key,key_size,value_size,client_id,operation,TTL",
            "# time, anonymized key, key size, value size, client id, operation, ttl",
            "\"timestamp\",\"key\",\"klen\",\"vlen\",\"client\",\"op\",\"ttl\"",
        ] {
            assert!(is_header(line.as_bytes()), "{line}");
        }
        for line in [
            "",
            "timestamp,key,key_size,value_size,client,operation",
            "x,key,3,0,1,get,0",
            "1,key,3,0,1,get,0",
            ",,,,,,",
            "timestamp,key,key_size,value_size,client,operation,0",
        ] {
            assert!(!is_header(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn explains_invalid_lines() {
        for (line, says) in [
            ("", "0 of the 7 fields"),
            ("17", "1 of the 7 fields"),
            ("17,key,3,0,1,get", "6 of the 7 fields"),
            ("x,key,3,0,1,get,0", "the timestamp is not a whole number: `x`"),
            ("-1,key,3,0,1,get,0", "the timestamp is not a whole number: `-1`"),
            ("1.5,key,3,0,1,get,0", "the timestamp is not a whole number"),
            ("99999999999999999999,key,3,0,1,get,0", "the timestamp"),
            ("1,key,,0,1,get,0", "the key size is not a whole number: ``"),
            ("1,key,0,0,1,get,0", "the key size is 0"),
            ("1,key,3,0x5,1,get,0", "the value size is not a whole number: `0x5`"),
            ("1,key,3,1073741825,1,get,0", "the value size is 1073741825, above"),
            ("1,key,3,0,1,gte,0", "no operation is called `gte`; did you mean `get`?"),
            ("1,key,3,0,1,get,", "the TTL is not a whole number"),
            ("1,key,3,0,1,get,-", "the TTL is not a whole number: `-`"),
            ("1,key,3,0,1,get,-0", "the TTL is not a whole number: `-0`"),
            ("1,key,3,0,1,get,--1", "the TTL is not a whole number: `--1`"),
            ("1,key,3,0,1,get,4294967296", "the TTL is 4294967296, above"),
            ("1,,3,0,1,get,0", "the key is empty"),
            ("1,k y,3,0,1,get,0", "the key holds the byte 0x20"),
            ("1,k\ty,3,0,1,get,0", "the byte 0x09"),
            ("1,key,3,0,1,get,0,9", "no operation is called `0`"),
        ] {
            let error = request(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
