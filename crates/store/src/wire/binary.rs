//! memcached's binary protocol: headers of 24 bytes, numbers in network order.
//!
//! Gets request the key in the answer (GETK), so that an answer for another key is detected.
//! Several keys are as many GETK, each answered: quiet gets with a no-op save memcached no CPU
//! time.

use super::expiry;
use super::parse::{self, ParseError, ParseResult};
use super::{KeyList, Kind, LONGEST_VALUE, Refusal, Request, Response};

const EXPECTED: &str = "memcached's binary protocol";

pub(super) const HEADER: usize = 24;
const REQUEST: u8 = 0x80;
const RESPONSE: u8 = 0x81;

/// Opcodes.
pub(super) mod opcode {
    pub const SET: u8 = 0x01;
    pub const DELETE: u8 = 0x04;
    pub const FLUSH: u8 = 0x08;
    pub const NOOP: u8 = 0x0a;
    pub const VERSION: u8 = 0x0b;
    pub const GETK: u8 = 0x0c;
    pub const STAT: u8 = 0x10;
    pub const SASL_AUTH: u8 = 0x21;
}

/// Status codes.
pub(super) mod status {
    pub const DONE: u16 = 0x00;
    pub const NOT_FOUND: u16 = 0x01;
    pub const TOO_LARGE: u16 = 0x03;
    pub const AUTH: u16 = 0x20;
    pub const AUTH_CONTINUES: u16 = 0x21;
    pub const UNKNOWN_COMMAND: u16 = 0x81;
    pub const OUT_OF_MEMORY: u16 = 0x82;
    pub const BUSY: u16 = 0x85;
    pub const TEMPORARY: u16 = 0x86;
}

/// Appends a packet.
#[inline]
pub(super) fn put_packet(
    opcode: u8,
    opaque: u32,
    extras: &[u8],
    key: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) {
    let body = extras.len() + key.len() + value.len();
    let mut header = [0; HEADER];
    header[0] = REQUEST;
    header[1] = opcode;
    header[2..4].copy_from_slice(&(key.len() as u16).to_be_bytes());
    header[4] = extras.len() as u8;
    header[8..12].copy_from_slice(&(body as u32).to_be_bytes());
    header[12..16].copy_from_slice(&opaque.to_be_bytes());
    out.reserve(HEADER + body);
    out.extend_from_slice(&header);
    out.extend_from_slice(extras);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

pub(super) fn write(request: &Request<'_>, out: &mut Vec<u8>) {
    let tag = request.tag;
    match request.kind {
        Kind::Get => {
            out.reserve(request.keys.total() + HEADER * request.keys.len());
            for key in request.keys.iter() {
                put_packet(opcode::GETK, tag, &[], key, &[], out);
            }
        }
        Kind::Set => {
            // Flags, which are 0, and the expiry.
            let mut extras = [0; 8];
            extras[4..].copy_from_slice(&expiry::exptime(request.expiry).to_be_bytes());
            put_packet(opcode::SET, tag, &extras, request.keys.get(0), request.value, out);
        }
        Kind::Delete => put_packet(opcode::DELETE, tag, &[], request.keys.get(0), &[], out),
    }
}

/// A whole answer packet.
pub(super) struct Packet<'a> {
    pub opcode: u8,
    pub status: u16,
    pub opaque: u32,
    pub key: &'a [u8],
    pub value: &'a [u8],
}

/// The packet at `at`, and where the next one begins.
#[inline]
pub(super) fn packet(bytes: &[u8], at: usize) -> ParseResult<(Packet<'_>, usize)> {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(&magic) = rest.first()
        && magic != RESPONSE
    {
        return Err(parse::garbage(EXPECTED, rest));
    }
    let Some(header) = rest.first_chunk::<HEADER>() else {
        return Err(ParseError::Incomplete(at + HEADER));
    };
    let short = |index: usize| u16::from_be_bytes([header[index], header[index + 1]]);
    let long = |index: usize| {
        u32::from_be_bytes([header[index], header[index + 1], header[index + 2], header[index + 3]])
    };
    let (key, extras, body) = (short(2) as usize, header[4] as usize, long(8) as usize);
    if key + extras > body {
        return Err(parse::garbage(EXPECTED, header));
    }
    let value = body - key - extras;
    if value > LONGEST_VALUE {
        return Err(parse::too_long("a value", value as u64, LONGEST_VALUE));
    }
    let Some(body) = rest[HEADER..].get(..body) else {
        return Err(ParseError::Incomplete(at + HEADER + body));
    };
    let (key, value) = body[extras..].split_at(key);
    let packet = Packet { opcode: header[1], status: short(6), opaque: long(12), key, value };
    Ok((packet, at + HEADER + extras + key.len() + value.len()))
}

pub(super) fn read(
    kind: Kind,
    keys: &KeyList,
    tag: u32,
    bytes: &[u8],
    on_value: &mut impl FnMut(usize, &[u8]),
) -> ParseResult<(Response, usize)> {
    let (due, done) = match kind {
        Kind::Get => return read_values(keys, tag, bytes, on_value),
        Kind::Set => (opcode::SET, Response::Stored),
        Kind::Delete => (opcode::DELETE, Response::Deleted(true)),
    };
    let (packet, used) = packet(bytes, 0)?;
    check(&packet, kind, due, tag)?;
    let answer = match packet.status {
        status::DONE => done,
        status::NOT_FOUND if kind == Kind::Delete => Response::Deleted(false),
        _ => refusal(&packet),
    };
    Ok((answer, used))
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
        match item(key, tag, bytes, at) {
            Ok((packet, next)) => {
                at = next;
                match packet.status {
                    status::DONE => {
                        hits += 1;
                        last = Some((index, packet.value));
                    }
                    status::NOT_FOUND => {}
                    _ => refused = refused.or_else(|| Some(refusal(&packet))),
                }
            }
            Err(ParseError::Incomplete(needs)) => {
                return Err(ParseError::Incomplete(needs + HEADER * (keys.len() - index - 1)));
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
                let (packet, next) = item(key, tag, bytes, at)?;
                if packet.status == status::DONE {
                    on_value(index, packet.value);
                }
                at = next;
            }
        }
    }
    Ok((Response::Found(hits), at))
}

/// The answer at `at` to the get of one key.
#[inline]
fn item<'a>(key: &[u8], tag: u32, bytes: &'a [u8], at: usize) -> ParseResult<(Packet<'a>, usize)> {
    let (packet, next) = packet(bytes, at)?;
    check(&packet, Kind::Get, opcode::GETK, tag)?;
    // A miss carries its key as well, a refusal does not.
    if packet.key != key && (packet.status == status::DONE || !packet.key.is_empty()) {
        return Err(parse::other_key(key, packet.key));
    }
    Ok((packet, next))
}

#[inline]
fn check(packet: &Packet<'_>, kind: Kind, opcode: u8, tag: u32) -> ParseResult<()> {
    match packet.opcode == opcode && packet.opaque == tag {
        true => Ok(()),
        false => Err(out_of_step(packet, kind, tag)),
    }
}

#[cold]
fn out_of_step(packet: &Packet<'_>, kind: Kind, tag: u32) -> ParseError {
    super::WireError::OutOfStep {
        expected: format!("{} with opaque {tag}", parse::expected_answer(kind)),
        got: format!("the answer to opcode {:#04x} with opaque {}", packet.opcode, packet.opaque),
    }
    .into()
}

#[cold]
pub(super) fn refusal(packet: &Packet<'_>) -> Response {
    let why = match packet.status {
        status::OUT_OF_MEMORY => Refusal::OutOfMemory,
        status::TOO_LARGE => Refusal::TooLarge,
        status::AUTH | status::AUTH_CONTINUES => Refusal::Auth,
        status::BUSY | status::TEMPORARY => Refusal::Busy,
        _ => Refusal::Other,
    };
    match packet.value {
        b"" => parse::refused(why, format!("status {:#04x}", packet.status).as_bytes()),
        words => parse::refused(why, words),
    }
}
