//! memcached's meta protocol: `mg`, `ms`, `md`, each with an opaque that is echoed.
//!
//! Several keys are as many `mg` in one write, each answered, so that misses are explicit;
//! memcached answers them with one system call.

use super::expiry;
use super::keys::is_printable;
use super::parse::{self, ParseError, ParseResult};
use super::text::refusal;
use super::{KeyList, Kind, Request, Response};

const EXPECTED: &str = "memcached's meta protocol";

/// Bytes whose base64 fits 250 letters.
pub(super) const LONGEST_BINARY_KEY: usize = 250 / 4 * 3;

/// The shortest answer: `EN` or `HD` and the line's end.
const SHORTEST: usize = 4;

pub(super) fn write(request: &Request<'_>, out: &mut Vec<u8>) {
    match request.kind {
        Kind::Get => {
            out.reserve(request.keys.total() + 24 * request.keys.len());
            for key in request.keys.iter() {
                let encoded = put_key(b"mg ", key, out);
                out.extend_from_slice(if encoded { b" b k v" } else { b" k v" });
                put_tag(request.tag, out);
            }
        }
        Kind::Set => {
            let key = request.keys.get(0);
            out.reserve(key.len() + request.value.len() + 40);
            let encoded = put_key(b"ms ", key, out);
            out.push(b' ');
            parse::put_decimal(request.value.len() as u64, out);
            out.extend_from_slice(if encoded { b" b T" } else { b" T" });
            parse::put_decimal(u64::from(expiry::exptime(request.expiry)), out);
            put_tag(request.tag, out);
            out.extend_from_slice(request.value);
            out.extend_from_slice(b"\r\n");
        }
        Kind::Delete => {
            let encoded = put_key(b"md ", request.keys.get(0), out);
            out.extend_from_slice(if encoded { b" b" } else { b"" });
            put_tag(request.tag, out);
        }
    }
}

#[inline]
fn put_tag(tag: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(b" O");
    parse::put_decimal(u64::from(tag), out);
    out.extend_from_slice(b"\r\n");
}

/// Appends the command and the key, in base64 if necessary; returns whether it is.
#[inline]
fn put_key(command: &[u8; 3], key: &[u8], out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(command);
    let plain = is_printable(key);
    match plain {
        true => out.extend_from_slice(key),
        false => base64(key).for_each(|group| out.extend_from_slice(&group)),
    }
    !plain
}

/// A key in base64, four letters at a time (RFC 4648, padded).
fn base64(key: &[u8]) -> impl Iterator<Item = [u8; 4]> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    key.chunks(3).map(|group| {
        let byte = |index: usize| group.get(index).copied().unwrap_or_default();
        let bits = u32::from_be_bytes([0, byte(0), byte(1), byte(2)]);
        std::array::from_fn(|index| match index <= group.len() {
            true => LETTERS[(bits >> (18 - 6 * index)) as usize & 63],
            false => b'=',
        })
    })
}

pub(super) fn read(
    kind: Kind,
    keys: &KeyList,
    tag: u32,
    bytes: &[u8],
    on_value: &mut impl FnMut(usize, &[u8]),
) -> ParseResult<(Response, usize)> {
    match kind {
        Kind::Get => read_values(keys, tag, bytes, on_value),
        Kind::Set | Kind::Delete => match item(kind, keys.get(0), tag, bytes, 0)? {
            (Item::Done, used) if kind == Kind::Set => Ok((Response::Stored, used)),
            (Item::Done, used) => Ok((Response::Deleted(true), used)),
            (Item::Absent, used) => Ok((Response::Deleted(false), used)),
            (Item::Refused(answer), used) => Ok((answer, used)),
            (Item::Value(_), _) => Err(parse::out_of_step(parse::expected_answer(kind), bytes)),
        },
    }
}

fn read_values(
    keys: &KeyList,
    tag: u32,
    bytes: &[u8],
    on_value: &mut impl FnMut(usize, &[u8]),
) -> ParseResult<(Response, usize)> {
    let mut hits = 0;
    let mut last: Option<(usize, &[u8])> = None;
    let mut refused = None;
    let mut at = 0;
    for (index, key) in keys.iter().enumerate() {
        let answers_after = keys.len() - index - 1;
        match item(Kind::Get, key, tag, bytes, at) {
            Ok((item, next)) => {
                at = next;
                match item {
                    Item::Value(value) => {
                        hits += 1;
                        last = Some((index, value));
                    }
                    Item::Refused(answer) => refused = refused.or(Some(answer)),
                    Item::Absent | Item::Done => {}
                }
            }
            Err(ParseError::Incomplete(needs)) => {
                return Err(ParseError::Incomplete(needs + SHORTEST * answers_after));
            }
            Err(wrong) => return Err(wrong),
        }
    }
    if let Some(answer) = refused {
        return Ok((answer, at));
    }
    match last {
        None => {}
        Some((index, value)) if hits == 1 => on_value(index, value),
        Some(_) => {
            let mut at = 0;
            for (index, key) in keys.iter().enumerate() {
                let (item, next) = item(Kind::Get, key, tag, bytes, at)?;
                if let Item::Value(value) = item {
                    on_value(index, value);
                }
                at = next;
            }
        }
    }
    Ok((Response::Found(hits), at))
}

enum Item<'a> {
    Value(&'a [u8]),
    Absent,
    Done,
    Refused(Response),
}

/// The answer at `at` for one key, and the start of the next.
#[inline]
fn item<'a>(
    kind: Kind,
    key: &[u8],
    tag: u32,
    bytes: &'a [u8],
    at: usize,
) -> ParseResult<(Item<'a>, usize)> {
    let (line, next) = match parse::line(bytes, at, EXPECTED) {
        Err(ParseError::Incomplete(needs)) => {
            return Err(ParseError::Incomplete(needs.max(at + SHORTEST)));
        }
        line => line?,
    };
    if kind == Kind::Get && line.starts_with(b"VA ") {
        let (length, end) = parse::decimal(bytes, at + 3, EXPECTED)?;
        check_flags(key, tag, line, end - at)?;
        let (value, next) = parse::value(bytes, next, parse::length(length)?, EXPECTED)?;
        return Ok((Item::Value(value), next));
    }
    let (code, flags) = line.split_at(line.len().min(2));
    let item = match (kind, code) {
        (Kind::Get, b"EN") => Item::Absent,
        (Kind::Set | Kind::Delete, b"HD") => Item::Done,
        (Kind::Delete, b"NF") => Item::Absent,
        _ => match refusal(line) {
            Some(answer) => return Ok((Item::Refused(answer), next)),
            None => return Err(unexpected(kind, line)),
        },
    };
    if !flags.is_empty() {
        check_flags(key, tag, line, 2)?;
    }
    Ok((item, next))
}

/// Checks the key and the opaque among the flags, if present: older servers send neither with a
/// miss.
#[inline]
fn check_flags(key: &[u8], tag: u32, line: &[u8], from: usize) -> ParseResult<()> {
    let mut rest = &line[from..];
    // The two requested flags, in request order.
    if let Some(after) = rest.strip_prefix(b" k").and_then(|rest| rest.strip_prefix(key))
        && after.starts_with(b" ")
    {
        rest = after;
    }
    while let [first, flag @ ..] = rest {
        if *first != b' ' {
            return Err(parse::garbage(EXPECTED, line));
        }
        let length = memchr::memchr(b' ', flag).unwrap_or(flag.len());
        let (flag, after) = flag.split_at(length);
        match flag {
            [b'k', named @ ..] if !is_key(key, named) => return Err(parse::other_key(key, named)),
            [b'O', opaque @ ..] if !is_tag(tag, opaque) => return Err(other_tag(tag, line)),
            _ => rest = after,
        }
    }
    Ok(())
}

#[inline]
fn is_tag(tag: u32, opaque: &[u8]) -> bool {
    let digit = |number: u64, &byte: &u8| match byte {
        b'0'..=b'9' => Some(number * 10 + u64::from(byte - b'0')),
        _ => None,
    };
    (1..=10).contains(&opaque.len()) && opaque.iter().try_fold(0, digit) == Some(u64::from(tag))
}

fn is_key(key: &[u8], named: &[u8]) -> bool {
    match is_printable(key) {
        true => key == named,
        false => base64(key).flatten().eq(named.iter().copied()),
    }
}

#[cold]
fn other_tag(tag: u32, line: &[u8]) -> ParseError {
    parse::out_of_step(format!("the answer with opaque {tag}"), line)
}

/// A whole line that answers another request, or is not of this protocol.
#[cold]
fn unexpected(kind: Kind, line: &[u8]) -> ParseError {
    let word = line.split(|&byte| byte == b' ').next().unwrap_or_default();
    match word {
        b"VA" | b"EN" | b"HD" | b"NF" | b"NS" | b"EX" | b"MN" => {
            parse::out_of_step(parse::expected_answer(kind), line)
        }
        _ => parse::garbage(EXPECTED, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10.
    #[test]
    fn base64_as_published() {
        for (plain, encoded) in [
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let got: Vec<u8> = base64(plain.as_bytes()).flatten().collect();
            assert_eq!(got, encoded.as_bytes());
        }
    }
}
