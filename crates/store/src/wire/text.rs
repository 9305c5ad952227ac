//! memcached's text protocol: `get`, `set`, `delete`.
//!
//! A get of several keys is one line; the server leaves out missing keys. `END` ends the answer, so
//! one key and many are parsed alike.

use super::expiry;
use super::parse::{self, ParseError, ParseResult};
use super::{KeyList, Kind, Refusal, Request, Response};

const EXPECTED: &str = "memcached's text protocol";

pub(super) fn write(request: &Request<'_>, out: &mut Vec<u8>) {
    let keys = request.keys;
    match request.kind {
        Kind::Get => {
            out.reserve(keys.total() + keys.len() + 5);
            out.extend_from_slice(b"get");
            for key in keys.iter() {
                out.push(b' ');
                out.extend_from_slice(key);
            }
        }
        Kind::Set => {
            let key = keys.get(0);
            out.reserve(key.len() + request.value.len() + 32);
            out.extend_from_slice(b"set ");
            out.extend_from_slice(key);
            out.extend_from_slice(b" 0 ");
            parse::put_decimal(u64::from(expiry::exptime(request.expiry)), out);
            out.push(b' ');
            parse::put_decimal(request.value.len() as u64, out);
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(request.value);
        }
        Kind::Delete => {
            out.extend_from_slice(b"delete ");
            out.extend_from_slice(keys.get(0));
        }
    }
    out.extend_from_slice(b"\r\n");
}

pub(super) fn read(
    kind: Kind,
    keys: &KeyList,
    bytes: &[u8],
    on_value: &mut impl FnMut(usize, &[u8]),
) -> ParseResult<(Response, usize)> {
    if kind == Kind::Get {
        return read_values(keys, bytes, on_value);
    }
    let (line, used) = parse::line(bytes, 0, EXPECTED)?;
    let answer = match (kind, line) {
        (Kind::Set, b"STORED") => Response::Stored,
        (Kind::Delete, b"DELETED") => Response::Deleted(true),
        (Kind::Delete, b"NOT_FOUND") => Response::Deleted(false),
        _ => refusal(line).ok_or_else(|| unexpected(kind, line))?,
    };
    Ok((answer, used))
}

fn read_values(
    keys: &KeyList,
    bytes: &[u8],
    on_value: &mut impl FnMut(usize, &[u8]),
) -> ParseResult<(Response, usize)> {
    let mut hits = 0;
    let mut last: Option<(usize, &[u8])> = None;
    let (mut at, mut index) = (0, 0);
    let used = loop {
        match item(keys, index, bytes, at)? {
            Item::Value { index: here, value, next } => {
                hits += 1;
                last = Some((here, value));
                (at, index) = (next, here + 1);
            }
            Item::End { used } => break used,
            Item::Refused { answer, used } => return Ok((answer, used)),
        }
    };
    match last {
        None => {}
        Some((index, value)) if hits == 1 => on_value(index, value),
        Some(_) => {
            let (mut at, mut index) = (0, 0);
            while let Item::Value { index: here, value, next } = item(keys, index, bytes, at)? {
                on_value(here, value);
                (at, index) = (next, here + 1);
            }
        }
    }
    Ok((Response::Found(hits), used))
}

enum Item<'a> {
    Value { index: usize, value: &'a [u8], next: usize },
    End { used: usize },
    Refused { answer: Response, used: usize },
}

/// The item at `at`: a value of one of the keys from `from` on, the end, or a refusal.
#[inline]
fn item<'a>(keys: &KeyList, from: usize, bytes: &'a [u8], at: usize) -> ParseResult<Item<'a>> {
    let rest = bytes.get(at..).unwrap_or_default();
    if rest.starts_with(b"VALUE ") {
        let (index, after_key) = find_key(keys, from, bytes, at)?;
        let (_flags, end) = parse::decimal(bytes, after_key, EXPECTED)?;
        let at_length = space(bytes, end)?;
        let (length, end) = parse::decimal(bytes, at_length, EXPECTED)?;
        let end = match bytes.get(end) {
            // The CAS version in an answer to `gets`.
            Some(b' ') => parse::decimal(bytes, end + 1, EXPECTED)?.1,
            _ => end,
        };
        let start = parse::line_end(bytes, end, EXPECTED)?;
        return match parse::value(bytes, start, parse::length(length)?, EXPECTED) {
            Ok((value, next)) => Ok(Item::Value { index, value, next }),
            Err(ParseError::Incomplete(needs)) => {
                Err(ParseError::Incomplete(needs + b"END\r\n".len()))
            }
            Err(wrong) => Err(wrong),
        };
    }
    if rest.starts_with(b"END\r\n") {
        return Ok(Item::End { used: at + 5 });
    }
    match parse::line(bytes, at, EXPECTED) {
        Ok((line, used)) => match refusal(line) {
            Some(answer) => Ok(Item::Refused { answer, used }),
            None => Err(unexpected(Kind::Get, line)),
        },
        Err(ParseError::Incomplete(needs)) => {
            Err(ParseError::Incomplete(needs.max(at + b"END\r\n".len())))
        }
        Err(wrong) => Err(wrong),
    }
}

/// The index of the key that the value line at `at` names, and where its flags begin. The server
/// answers in request order, so keys before `from` are skipped.
#[inline]
fn find_key(keys: &KeyList, from: usize, bytes: &[u8], at: usize) -> ParseResult<(usize, usize)> {
    let name = at + b"VALUE ".len();
    let is_named = |key: &[u8]| {
        let rest = &bytes[name..];
        rest.len() > key.len() && rest[key.len()] == b' ' && rest.starts_with(key)
    };
    for index in from..keys.len() {
        let key = keys.get(index);
        if is_named(key) {
            return Ok((index, name + key.len() + 1));
        }
    }
    // Another key, unless the line is incomplete.
    let (line, _) = parse::line(bytes, at, EXPECTED)?;
    let named = line[6..].split(|&byte| byte == b' ').next().unwrap_or_default();
    match from < keys.len() {
        true => Err(parse::other_key(keys.get(from), named)),
        false => Err(parse::out_of_step("the end of the values", line)),
    }
}

#[inline]
fn space(bytes: &[u8], at: usize) -> ParseResult<usize> {
    match bytes.get(at) {
        Some(b' ') => Ok(at + 1),
        Some(other) => Err(parse::garbage(EXPECTED, &[*other])),
        None => Err(ParseError::Incomplete(at + 1)),
    }
}

/// The refusals that the text and the meta protocol have in common.
#[cold]
pub(super) fn refusal(line: &[u8]) -> Option<Response> {
    let word = line.split(|&byte| byte == b' ').next().unwrap_or_default();
    if !matches!(word, b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR") {
        return None;
    }
    let message = String::from_utf8_lossy(line).to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let why = if says(&["out of memory"]) {
        Refusal::OutOfMemory
    } else if says(&["too large", "too long"]) {
        Refusal::TooLarge
    } else if says(&["unauthenticated", "authentication"]) {
        Refusal::Auth
    } else if says(&["too many open connections"]) {
        Refusal::Busy
    } else {
        Refusal::Other
    };
    Some(parse::refused(why, line))
}

/// The words with which the text protocol begins its answers.
const WORDS: [&[u8]; 9] = [
    b"VALUE",
    b"END",
    b"STORED",
    b"NOT_STORED",
    b"EXISTS",
    b"NOT_FOUND",
    b"DELETED",
    b"OK",
    b"TOUCHED",
];

/// A whole line that answers another request, or is not of this protocol.
#[cold]
fn unexpected(kind: Kind, line: &[u8]) -> ParseError {
    let word = line.split(|&byte| byte == b' ').next().unwrap_or_default();
    match WORDS.contains(&word) {
        true => parse::out_of_step(parse::expected_answer(kind), line),
        false => parse::garbage(EXPECTED, line),
    }
}
