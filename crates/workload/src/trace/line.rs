//! A parsed line of a trace.

use model::{Expiry, suggest};

use super::error::{LineProblem, excerpt};
use super::operation::TraceOp;
use crate::value::LONGEST;

const FIELDS: usize = 7;

/// The fields of a line that a replay needs. The client is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceLine<'a> {
    pub second: u64,
    pub key: &'a [u8],
    pub key_size: u32,
    pub value_size: u32,
    pub operation: TraceOp,
    pub expiry: Expiry,
}

impl TraceLine<'_> {
    /// `line` is without its end.
    pub fn parse(line: &[u8]) -> Result<TraceLine<'_>, LineProblem> {
        let few = || LineProblem::Fields {
            count: line.split(|byte| *byte == b',').filter(|_| !line.is_empty()).count(),
        };
        let (second, rest) = first(line).ok_or_else(few)?;
        // The key may hold commas, hence the others are counted from the end.
        let (rest, ttl) = last(rest).ok_or_else(few)?;
        let (rest, operation) = last(rest).ok_or_else(few)?;
        let (rest, _client) = last(rest).ok_or_else(few)?;
        let (rest, value_size) = last(rest).ok_or_else(few)?;
        let (key, key_size) = last(rest).ok_or_else(few)?;
        let line = TraceLine {
            second: number("timestamp", second)?,
            key_size: small("key size", key_size, u64::from(u32::MAX))?,
            value_size: small("value size", value_size, LONGEST)?,
            operation: TraceOp::from_name(operation).ok_or_else(|| unknown(operation))?,
            expiry: expiry(ttl)?,
            key,
        };
        if key.is_empty() {
            return Err(LineProblem::EmptyKey);
        }
        if line.key_size == 0 {
            return Err(LineProblem::NoKeySize);
        }
        match key.iter().find(|byte| **byte <= b' ' || **byte == 0x7f) {
            Some(&byte) => Err(LineProblem::KeyByte { byte }),
            None => Ok(line),
        }
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

#[inline]
fn number(field: &'static str, text: &[u8]) -> Result<u64, LineProblem> {
    let wrong = || LineProblem::Number { field, text: excerpt(text) };
    if text.is_empty() {
        return Err(wrong());
    }
    text.iter()
        .try_fold(0u64, |number, byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit < 10).then_some(())?;
            number.checked_mul(10)?.checked_add(u64::from(digit))
        })
        .ok_or_else(wrong)
}

#[inline]
fn small(field: &'static str, text: &[u8], most: u64) -> Result<u32, LineProblem> {
    let number = number(field, text)?;
    match u32::try_from(number) {
        Ok(small) if number <= most => Ok(small),
        _ => Err(LineProblem::TooLarge { field, number, most }),
    }
}

/// A TTL: 0 is never, and below 0 is at once, as in memcached.
#[inline]
fn expiry(text: &[u8]) -> Result<Expiry, LineProblem> {
    const FIELD: &str = "TTL";
    match text.strip_prefix(b"-") {
        None => small(FIELD, text, u64::from(u32::MAX)).map(Expiry::after),
        Some(digits) => match number(FIELD, digits) {
            Ok(1..) => Ok(Expiry::AtOnce),
            _ => Err(LineProblem::Number { field: FIELD, text: excerpt(text) }),
        },
    }
}

/// Whether a line is a header: seven words where a request has numbers, whatever their names,
/// quotes and spaces.
pub(super) fn is_header(line: &[u8]) -> bool {
    let is_word = |field: &[u8]| {
        let first = field.iter().find(|byte| !matches!(byte, b' ' | b'"' | b'\'' | b'#'));
        first.is_some_and(u8::is_ascii_alphabetic) && !field.iter().any(u8::is_ascii_digit)
    };
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b',').collect();
    fields.len() == FIELDS && fields.into_iter().all(is_word)
}

#[cold]
fn unknown(operation: &[u8]) -> LineProblem {
    let text = excerpt(operation);
    let hint = suggest::hint(&text, TraceOp::ALL.map(TraceOp::name));
    LineProblem::Operation { text, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_line() {
        let line = TraceLine::parse(b"17,nz:u:eeW511W3dcH3de3d15ec,22,304,5,set,86400").unwrap();
        let expected = TraceLine {
            second: 17,
            key: b"nz:u:eeW511W3dcH3de3d15ec",
            key_size: 22,
            value_size: 304,
            operation: TraceOp::Set,
            expiry: Expiry::After(86400),
        };
        assert_eq!(line, expected);
        assert_eq!(TraceLine::parse(b"0,a,b,,c,9,0,1,get,0").unwrap().key, b"a,b,,c");
        for operation in TraceOp::ALL {
            let text = format!("0,k,1,0,,{operation},0");
            assert_eq!(TraceLine::parse(text.as_bytes()).unwrap().operation, operation);
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
            assert_eq!(TraceLine::parse(line.as_bytes()).unwrap().expiry, expiry, "{ttl}");
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
            let error = TraceLine::parse(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
