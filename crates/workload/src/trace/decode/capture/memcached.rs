//! Requests of memcached: text with meta commands, and binary.
//!
//! Source: memcached's `doc/protocol.txt` and `doc/protocol-binary.txt`.

use model::Expiry;

use super::super::super::error::RecordProblem;
use super::super::super::operation::TraceOp;
use super::super::super::record::{RecordFields, SECOND, TraceKey};
use super::Sink;
use super::stream::{Parser, Step};
use crate::value::LONGEST;

/// Seconds from which an expiry is a date.
const MONTH: i64 = 30 * 24 * 3600;

/// Words that begin a request which requests no value.
const OTHER: [&[u8]; 16] = [
    b"touch",
    b"stats",
    b"version",
    b"verbosity",
    b"flush_all",
    b"quit",
    b"shutdown",
    b"mn",
    b"me",
    b"slabs",
    b"lru",
    b"lru_crawler",
    b"cache_memlimit",
    b"watch",
    b"extstore",
    b"misbehave",
];

fn push(
    sink: &mut Sink<'_>,
    operation: TraceOp,
    key: &[u8],
    size: Option<u32>,
    expiry: Option<i64>,
) {
    let now_s = (sink.at_ns / SECOND) as i64;
    let expiry = expiry.map(|seconds| match seconds {
        0 => Expiry::Never,
        ..0 => Expiry::AtOnce,
        1..=MONTH => Expiry::After(seconds as u32),
        date => match u32::try_from(date.saturating_sub(now_s)) {
            Ok(0) | Err(_) => Expiry::AtOnce,
            Ok(seconds) => Expiry::After(seconds),
        },
    });
    let fields = RecordFields::new(sink.at_ns, operation);
    let fields = RecordFields { value_size: size, expiry, ..fields };
    if let Err(problem) = sink.out.push(fields, TraceKey::Bytes(key)) {
        sink.problems.push_back(problem);
    }
}

/// The parser of text.
#[derive(Debug)]
pub(super) struct Text;

fn number<T: std::str::FromStr>(word: Option<&[u8]>) -> Result<T, RecordProblem> {
    let text = word.and_then(|word| std::str::from_utf8(word).ok());
    text.and_then(|text| text.parse().ok()).ok_or(RecordProblem::Request)
}

/// A value's length, within the limit of a replay.
fn value_size(word: Option<&[u8]>) -> Result<u32, RecordProblem> {
    let size: u32 = number(word)?;
    if u64::from(size) > LONGEST {
        let (field, most) = ("value size", LONGEST);
        return Err(RecordProblem::TooLarge { field, number: u64::from(size), most });
    }
    Ok(size)
}

impl Text {
    /// Whether bytes begin with the word of a request.
    pub fn recognises(data: &[u8]) -> bool {
        let end = data.iter().position(|byte| matches!(byte, b' ' | b'\r' | b'\n'));
        let Some(end) = end else { return false };
        let word = &data[..end];
        let is_meta = matches!(word, b"mg" | b"ms" | b"md" | b"ma");
        let is_touch = matches!(word, b"gat" | b"gats");
        is_meta || is_touch || TraceOp::from_name(word).is_some() || OTHER.contains(&word)
    }

    /// Appends the requests of a line; returns the bytes of the value behind it.
    fn line(line: &[u8], sink: &mut Sink<'_>) -> Result<u64, RecordProblem> {
        let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let name = words.next().unwrap_or_default();
        let key = |word: Option<&_>| word.copied().ok_or(RecordProblem::Arguments);
        let rest: Vec<&[u8]> = words.collect();
        match name {
            b"get" | b"gets" | b"gat" | b"gats" => {
                let touches = name.starts_with(b"gat");
                let operation = if name.ends_with(b"s") { TraceOp::Gets } else { TraceOp::Get };
                for key in rest.iter().skip(usize::from(touches)) {
                    push(sink, operation, key, None, None);
                }
                Ok(0)
            }
            b"mg" => {
                push(sink, TraceOp::Get, key(rest.first())?, None, None);
                Ok(0)
            }
            b"md" => {
                push(sink, TraceOp::Delete, key(rest.first())?, None, None);
                Ok(0)
            }
            b"ma" => {
                let down =
                    rest.iter().any(|flag| matches!(&flag[..], b"MD" | b"Md" | b"MDECR" | b"M-"));
                let operation = if down { TraceOp::Decr } else { TraceOp::Incr };
                push(sink, operation, key(rest.first())?, None, None);
                Ok(0)
            }
            b"ms" => {
                let size = value_size(rest.get(1).copied())?;
                let flag = |name: u8| {
                    rest.iter()
                        .skip(2)
                        .find(|flag| flag.first() == Some(&name))
                        .map(|flag| &flag[1..])
                };
                let operation = match flag(b'M').and_then(|mode| mode.first()) {
                    Some(b'E' | b'e') => TraceOp::Add,
                    Some(b'A' | b'a') => TraceOp::Append,
                    Some(b'P' | b'p') => TraceOp::Prepend,
                    Some(b'R' | b'r') => TraceOp::Replace,
                    _ if flag(b'C').is_some() => TraceOp::Cas,
                    _ => TraceOp::Set,
                };
                let expiry = flag(b'T').map_or(Ok(0), |seconds| number(Some(seconds)))?;
                push(sink, operation, key(rest.first())?, Some(size), Some(expiry));
                Ok(u64::from(size) + 2)
            }
            name if OTHER.contains(&name) => {
                sink.out.ignored += 1;
                Ok(0)
            }
            name => {
                let operation = TraceOp::from_name(name).ok_or(RecordProblem::Request)?;
                if matches!(operation, TraceOp::Delete | TraceOp::Incr | TraceOp::Decr) {
                    push(sink, operation, key(rest.first())?, None, None);
                    return Ok(0);
                }
                let expiry = number(rest.get(2).copied())?;
                let size = value_size(rest.get(3).copied())?;
                push(sink, operation, key(rest.first())?, Some(size), Some(expiry));
                Ok(u64::from(size) + 2)
            }
        }
    }
}

impl Parser for Text {
    fn step(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<Step, RecordProblem> {
        let Some(end) = memchr::memchr(b'\n', data) else { return Ok(Step::More) };
        let line = data[..end].strip_suffix(b"\r").unwrap_or(&data[..end]);
        let skip = Text::line(line, sink)?;
        Ok(Step::Done { consumed: end + 1, skip })
    }
}

/// The parser of the binary protocol.
#[derive(Debug)]
pub(super) struct Binary;

/// Bytes before extras and key.
const HEADER: usize = 24;

const HIGHEST_OPCODE: u8 = 0x48;

/// Lengths in a header: extras, key, all that follows.
fn lengths(header: &[u8; HEADER]) -> Option<(usize, usize, u64)> {
    let extras = usize::from(header[4]);
    let key = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let body = u64::from(u32::from_be_bytes([header[8], header[9], header[10], header[11]]));
    let valid = header[0] == 0x80 && header[1] <= HIGHEST_OPCODE && (extras + key) as u64 <= body;
    valid.then_some((extras, key, body))
}

impl Binary {
    pub fn recognises(data: &[u8]) -> bool {
        data.first_chunk().is_some_and(|header| lengths(header).is_some())
    }
}

impl Parser for Binary {
    fn step(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<Step, RecordProblem> {
        let Some(header) = data.first_chunk::<HEADER>() else { return Ok(Step::More) };
        let (extras, key, body) = lengths(header).ok_or(RecordProblem::Request)?;
        let consumed = HEADER + extras + key;
        let Some(head) = data.get(..consumed) else { return Ok(Step::More) };
        let (extra, key) = head[HEADER..].split_at(extras);
        let skip = body - (consumed - HEADER) as u64;
        let operation = match header[1] {
            0x00 | 0x09 | 0x0c | 0x0d | 0x1d | 0x1e | 0x23 | 0x24 => TraceOp::Get,
            0x01 | 0x11 => TraceOp::Set,
            0x02 | 0x12 => TraceOp::Add,
            0x03 | 0x13 => TraceOp::Replace,
            0x04 | 0x14 => TraceOp::Delete,
            0x05 | 0x15 => TraceOp::Incr,
            0x06 | 0x16 => TraceOp::Decr,
            0x0e | 0x19 => TraceOp::Append,
            0x0f | 0x1a => TraceOp::Prepend,
            _ => {
                sink.out.ignored += 1;
                return Ok(Step::Done { consumed, skip });
            }
        };
        let has_value = skip > 0 || matches!(header[1], 0x01..=0x03 | 0x11..=0x13);
        let size = match u32::try_from(skip) {
            Ok(size) if skip <= LONGEST => has_value.then_some(size),
            _ => {
                let (field, most) = ("value size", LONGEST);
                return Err(RecordProblem::TooLarge { field, number: skip, most });
            }
        };
        let expiry = extra.get(4..8).and_then(<[u8]>::first_chunk).copied().map(u32::from_be_bytes);
        let expiry = expiry.filter(|_| has_value).map(i64::from);
        push(sink, operation, key, size, expiry);
        Ok(Step::Done { consumed, skip })
    }
}
