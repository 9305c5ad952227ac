//! The serialization protocol of Redis and Valkey, versions 2 and 3: `GET`, `MGET`, `SET`, `DEL`.
//!
//! Answers carry neither key nor opaque; an answer out of step shows only in its type and value.
//! Version 3's push messages and attributes before an answer are skipped.

use model::Expiry;

use super::error::excerpt;
use super::parse::{self, ParseError, ParseResult};
use super::{KeyList, Kind, Redirect, Refusal, Request, Response};

const EXPECTED: &str = "the Redis protocol";

/// The deepest nesting of aggregates.
const DEEPEST: usize = 8;

/// The most bytes of an aggregate other than the values of a request, and of all messages before an
/// answer. Its elements take more memory than its bytes.
const LONGEST_ASIDE: usize = 4 << 20;

/// The shortest element of an aggregate: a type, no content, the line's end.
const SHORTEST: usize = 3;

/// Appends a command in the form in which both versions take it.
pub(super) fn put_command(words: &[&[u8]], out: &mut Vec<u8>) {
    put_header(b'*', words.len(), out);
    for word in words {
        put_bulk(word, out);
    }
}

#[inline]
fn put_header(sort: u8, length: usize, out: &mut Vec<u8>) {
    out.push(sort);
    parse::put_decimal(length as u64, out);
    out.extend_from_slice(b"\r\n");
}

#[inline]
fn put_bulk(bytes: &[u8], out: &mut Vec<u8>) {
    put_header(b'$', bytes.len(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn write(request: &Request<'_>, out: &mut Vec<u8>) {
    let keys = request.keys;
    out.reserve(keys.total() + request.value.len() + 16 * keys.len() + 32);
    match request.kind {
        Kind::Get if keys.len() == 1 => {
            out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
            put_bulk(keys.get(0), out);
        }
        Kind::Get => {
            put_header(b'*', keys.len() + 1, out);
            out.extend_from_slice(b"$4\r\nMGET\r\n");
            keys.iter().for_each(|key| put_bulk(key, out));
        }
        Kind::Set => {
            let words = if request.expiry == Expiry::Never { 3 } else { 5 };
            put_header(b'*', words, out);
            out.extend_from_slice(b"$3\r\nSET\r\n");
            put_bulk(keys.get(0), out);
            put_bulk(request.value, out);
            match request.expiry {
                Expiry::Never => {}
                Expiry::After(seconds) => {
                    out.extend_from_slice(b"$2\r\nEX\r\n");
                    put_bulk(seconds.to_string().as_bytes(), out);
                }
                // A time to live must be positive, but a date may be in the past.
                Expiry::AtOnce => out.extend_from_slice(b"$4\r\nEXAT\r\n$1\r\n1\r\n"),
            }
        }
        Kind::Delete => {
            out.extend_from_slice(b"*2\r\n$3\r\nDEL\r\n");
            put_bulk(keys.get(0), out);
        }
    }
}

pub(super) fn read<const VERSION: u8>(
    kind: Kind,
    keys: &KeyList,
    bytes: &[u8],
    on_value: &mut impl FnMut(usize, &[u8]),
) -> ParseResult<(Response, usize)> {
    let at = match VERSION {
        3 => skip_pushes(bytes)?,
        _ => 0,
    };
    let Some(&sort) = bytes.get(at) else {
        return Err(ParseError::Incomplete(at + SHORTEST));
    };
    match (kind, sort) {
        (_, b'-' | b'!') => {
            let (value, used) = value::<VERSION>(bytes, at, 0)?;
            match value {
                Value::Error(words) => Ok((refusal(words), used)),
                _ => Err(parse::garbage(EXPECTED, &bytes[at..])),
            }
        }
        (Kind::Get, b'$' | b'_') if keys.len() == 1 => match bulk::<VERSION>(bytes, at)? {
            (Some(value), used) => {
                on_value(0, value);
                Ok((Response::Found(1), used))
            }
            (None, used) => Ok((Response::Found(0), used)),
        },
        (Kind::Get, b'*') if keys.len() > 1 => read_values::<VERSION>(keys, bytes, at, on_value),
        (Kind::Set, b'+') => match parse::line(bytes, at + 1, EXPECTED)? {
            (b"OK", used) => Ok((Response::Stored, used)),
            (line, _) => Err(parse::out_of_step(parse::expected_answer(kind), line)),
        },
        (Kind::Delete, b':') => match integer(bytes, at + 1)? {
            (0, used) => Ok((Response::Deleted(false), used)),
            (1, used) => Ok((Response::Deleted(true), used)),
            (other, _) => {
                Err(parse::out_of_step(parse::expected_answer(kind), other.to_string().as_bytes()))
            }
        },
        _ => {
            // Classified only when whole.
            let (_, used) = value::<VERSION>(bytes, at, 0)?;
            Err(parse::out_of_step(parse::expected_answer(kind), &bytes[at..used]))
        }
    }
}

fn read_values<const VERSION: u8>(
    keys: &KeyList,
    bytes: &[u8],
    at: usize,
    on_value: &mut impl FnMut(usize, &[u8]),
) -> ParseResult<(Response, usize)> {
    let (count, first) = integer(bytes, at + 1)?;
    if count != keys.len() as i64 {
        let expected = format!("an array of {}", keys.len());
        return Err(parse::out_of_step(expected, &bytes[at..first]));
    }
    let mut hits = 0;
    let mut next = first;
    for index in 0..keys.len() {
        let (value, after) = element::<VERSION>(bytes, next).map_err(|stop| match stop {
            ParseError::Incomplete(needs) => {
                ParseError::Incomplete(needs + SHORTEST * (keys.len() - index - 1))
            }
            wrong => wrong,
        })?;
        hits += usize::from(value.is_some());
        next = after;
    }
    let used = next;
    next = first;
    for index in 0..if hits > 0 { keys.len() } else { 0 } {
        let (value, after) = element::<VERSION>(bytes, next)?;
        if let Some(value) = value {
            on_value(index, value);
        }
        next = after;
    }
    Ok((Response::Found(hits), used))
}

/// A value or none among several.
#[inline]
fn element<const VERSION: u8>(bytes: &[u8], at: usize) -> ParseResult<(Option<&[u8]>, usize)> {
    match bytes.get(at) {
        None => Err(ParseError::Incomplete(at + SHORTEST)),
        Some(b'$' | b'_') => bulk::<VERSION>(bytes, at),
        Some(_) => {
            let (_, next) = value::<VERSION>(bytes, at, 1)?;
            Err(parse::out_of_step("a value or none", &bytes[at..next]))
        }
    }
}

/// A bulk string or one of the two forms of null; `at` is the start of one.
#[inline]
fn bulk<const VERSION: u8>(bytes: &[u8], at: usize) -> ParseResult<(Option<&[u8]>, usize)> {
    if bytes[at] == b'_' {
        return match VERSION {
            3 => Ok((None, parse::line_end(bytes, at + 1, EXPECTED)?)),
            _ => Err(parse::garbage(EXPECTED, &bytes[at..])),
        };
    }
    match integer(bytes, at + 1)? {
        (-1, next) => Ok((None, next)),
        (length, start) => {
            let length = positive(length)?;
            let (value, next) = parse::value(bytes, start, length, EXPECTED)?;
            Ok((Some(value), next))
        }
    }
}

/// A number with or without a sign and its line's end.
#[inline]
fn integer(bytes: &[u8], at: usize) -> ParseResult<(i64, usize)> {
    let negative = bytes.get(at) == Some(&b'-');
    let (number, end) = parse::decimal(bytes, at + usize::from(negative), EXPECTED)?;
    let next = parse::line_end(bytes, end, EXPECTED)?;
    match i64::try_from(number) {
        Ok(number) => Ok((if negative { -number } else { number }, next)),
        Err(_) => Err(parse::garbage(EXPECTED, &bytes[at..end])),
    }
}

/// An announced length; negative ones were handled before.
#[inline]
fn positive(length: i64) -> ParseResult<usize> {
    match u64::try_from(length) {
        Ok(length) => parse::length(length),
        Err(_) => Err(parse::garbage(EXPECTED, length.to_string().as_bytes())),
    }
}

/// Whether a message that version 3 may put before an answer begins here.
#[inline]
pub(super) fn is_push(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(b'>' | b'|'))
}

/// Where the answer begins after the messages that version 3 may put before it.
#[inline]
pub(super) fn skip_pushes(bytes: &[u8]) -> ParseResult<usize> {
    let mut at = 0;
    while is_push(&bytes[at..]) {
        at = value::<3>(bytes, at, 0)?.1;
        bounded(at)?;
    }
    Ok(at)
}

/// Any value of the protocol, for the handshake.
#[derive(Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// Of a simple, bulk, verbatim or big-number string, and the text of a boolean or double.
    Text(&'a [u8]),
    Error(&'a [u8]),
    Integer(i64),
    Nil,
    /// Of an array, a set, a push, and a map or attribute as names and values in turn.
    List(Vec<Value<'a>>),
}

/// The value at `at`, and where the next one begins.
pub(super) fn value<const VERSION: u8>(
    bytes: &[u8],
    at: usize,
    depth: usize,
) -> ParseResult<(Value<'_>, usize)> {
    let Some(&sort) = bytes.get(at) else {
        return Err(ParseError::Incomplete(at + SHORTEST));
    };
    match sort {
        b'+' => parse::line(bytes, at + 1, EXPECTED).map(|(line, next)| (Value::Text(line), next)),
        b'-' => parse::line(bytes, at + 1, EXPECTED).map(|(line, next)| (Value::Error(line), next)),
        b':' => integer(bytes, at + 1).map(|(number, next)| (Value::Integer(number), next)),
        b'$' => Ok(match bulk::<VERSION>(bytes, at)? {
            (Some(value), next) => (Value::Text(value), next),
            (None, next) => (Value::Nil, next),
        }),
        b'*' => list::<VERSION>(bytes, at, depth, 1),
        b'_' if VERSION == 3 => Ok((Value::Nil, parse::line_end(bytes, at + 1, EXPECTED)?)),
        b'#' | b',' | b'(' if VERSION == 3 => {
            parse::line(bytes, at + 1, EXPECTED).map(|(line, next)| (Value::Text(line), next))
        }
        b'!' | b'=' if VERSION == 3 => {
            let (length, start) = integer(bytes, at + 1)?;
            let (value, next) = parse::value(bytes, start, positive(length)?, EXPECTED)?;
            Ok(match sort {
                b'!' => (Value::Error(value), next),
                // Three letters and a colon say the format.
                _ => (Value::Text(value.get(4..).unwrap_or_default()), next),
            })
        }
        b'~' | b'>' if VERSION == 3 => list::<VERSION>(bytes, at, depth, 1),
        b'%' | b'|' if VERSION == 3 => list::<VERSION>(bytes, at, depth, 2),
        _ => Err(parse::garbage(EXPECTED, &bytes[at..])),
    }
}

/// An aggregate of as many elements as it announces, times `each`.
fn list<const VERSION: u8>(
    bytes: &[u8],
    at: usize,
    depth: usize,
    each: usize,
) -> ParseResult<(Value<'_>, usize)> {
    let (count, mut next) = integer(bytes, at + 1)?;
    if count == -1 {
        return Ok((Value::Nil, next));
    }
    if depth == DEEPEST {
        return Err(parse::garbage("a Redis answer (it is nested too deeply)", &bytes[at..]));
    }
    let count = positive(count)? * each;
    bounded(SHORTEST * count)?;
    let mut elements = Vec::new();
    for index in 0..count {
        let (element, after) = match value::<VERSION>(bytes, next, depth + 1) {
            Ok(element) => element,
            Err(ParseError::Incomplete(needs)) => {
                let needs = needs + SHORTEST * (count - index - 1);
                bounded(needs - at)?;
                return Err(ParseError::Incomplete(needs));
            }
            Err(wrong) => return Err(wrong),
        };
        bounded(after - at)?;
        elements.push(element);
        next = after;
    }
    Ok((Value::List(elements), next))
}

/// Refuses an aggregate or push beyond the limit.
fn bounded(bytes: usize) -> ParseResult<()> {
    match bytes <= LONGEST_ASIDE {
        true => Ok(()),
        false => Err(parse::too_long("an aggregate or a push", bytes as u64, LONGEST_ASIDE)),
    }
}

/// Errors begin with a word in capitals that names their kind.
#[cold]
pub(super) fn refusal(words: &[u8]) -> Response {
    if let Some(redirect) = Redirect::parse(words) {
        return Response::Redirected(redirect);
    }
    let sort = words.split(|&byte| byte == b' ').next().unwrap_or_default();
    let message = excerpt(words).to_lowercase();
    let why = match sort {
        b"OOM" => Refusal::OutOfMemory,
        b"NOAUTH" | b"WRONGPASS" | b"NOPERM" | b"DENIED" => Refusal::Auth,
        b"LOADING" | b"BUSY" | b"BUSYKEY" | b"TRYAGAIN" | b"CLUSTERDOWN" | b"MASTERDOWN" => {
            Refusal::Busy
        }
        b"READONLY" => Refusal::ReadOnly,
        _ if message.contains("max number of clients") => Refusal::Busy,
        _ if message.contains("invalid bulk length")
            || message.contains("maximum allowed size") =>
        {
            Refusal::TooLarge
        }
        _ => Refusal::Other,
    };
    parse::refused(why, words)
}
