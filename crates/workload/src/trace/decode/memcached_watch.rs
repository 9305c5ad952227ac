//! What `watch fetchers mutations` of memcached prints, one line for each item that it looks up or
//! stores: `ts=1795956126.953473 gid=4 type=item_get key=foo status=found clsid=1 cfd=26 size=3`.
//!
//! A write looks its item up first, so that two lines are one request. Keys are escaped as in a URL,
//! and the microseconds of a time have no leading zeros. Format: memcached 1.6, `logger.c` and
//! `doc/protocol.txt`.

use super::super::error::{RecordProblem, excerpt};
use super::super::format::TraceTiming;
use super::super::number::{expiry, number, small};
use super::super::operation::TraceOp;
use super::super::record::{RecordBatch, RecordFields, SECOND, TraceKey};
use super::LineParser;
use crate::value::LONGEST;

/// Threads log side by side: times may go back by so much.
const SLACK_NS: u64 = SECOND;

/// The parser of a log.
#[derive(Debug, Default)]
pub(in super::super) struct MemcachedWatch {
    /// A lookup that may belong to the write of the next line, with its connection.
    lookup: Option<(RecordFields, u64)>,
    lookup_key: Vec<u8>,
    key: Vec<u8>,
    last_ns: u64,
}

impl LineParser for MemcachedWatch {
    /// A key of 250 B, each escaped, and some fields.
    const LONGEST: usize = 8 << 10;

    fn parse(&mut self, line: &[u8], out: &mut RecordBatch) -> Result<(), RecordProblem> {
        // The answers to `watch` itself and to what was tried before.
        if matches!(line, b"OK" | b"ERROR" | b"") {
            out.ignored += 1;
            return Ok(());
        }
        if let Some(lost) = line.strip_prefix(b"skipped=") {
            out.lost += number("count of skipped lines", lost)?;
            return Ok(());
        }
        let line = WatchLine::of(line).ok_or(RecordProblem::WatchLine)?;
        let operation = match (line.kind, line.command) {
            (b"item_get", _) => TraceOp::Get,
            (b"item_store", Some(command)) => {
                TraceOp::from_name(command).ok_or_else(|| RecordProblem::Operation {
                    text: excerpt(command),
                    hint: "memcached logs set, add, replace, append, prepend and cas".to_owned(),
                })?
            }
            (b"deleted", _) => TraceOp::Delete,
            _ => {
                out.ignored += 1;
                return Ok(());
            }
        };
        let at_ns = self.time(line.time)?;
        self.key.clear();
        unescape(line.key.ok_or(RecordProblem::WatchLine)?, &mut self.key)?;
        let connection = line.connection.map_or(Ok(0), |number_| number("cfd", number_))?;
        let mut fields = RecordFields::new(at_ns, operation);
        let size = line.size.map(|size| small("size", size, LONGEST as u64)).transpose()?;
        match operation {
            TraceOp::Get => {
                fields.value_size = size.filter(|_| line.status == Some(b"found"));
                self.release(out)?;
                self.lookup = Some((fields, connection));
                std::mem::swap(&mut self.lookup_key, &mut self.key);
                return Ok(());
            }
            TraceOp::Delete => {}
            _ => {
                fields.value_size = size;
                fields.expiry = line.ttl.map(expiry).transpose()?;
            }
        }
        match &self.lookup {
            Some((_, of)) if *of == connection && self.lookup_key == self.key => {
                self.lookup = None;
            }
            _ => self.release(out)?,
        }
        out.push(fields, TraceKey::Bytes(&self.key))
    }

    fn finish(&mut self, out: &mut RecordBatch) -> Result<(), RecordProblem> {
        self.release(out)
    }

    fn timing(&self) -> TraceTiming {
        TraceTiming::Exact
    }
}

impl MemcachedWatch {
    /// The lookup was a request of its own.
    fn release(&mut self, out: &mut RecordBatch) -> Result<(), RecordProblem> {
        match self.lookup.take() {
            Some((fields, _)) => out.push(fields, TraceKey::Bytes(&self.lookup_key)),
            None => Ok(()),
        }
    }

    fn time(&mut self, text: &[u8]) -> Result<u64, RecordProblem> {
        let wrong = || RecordProblem::Number { field: "ts", text: excerpt(text) };
        let point = memchr::memchr(b'.', text).ok_or_else(wrong)?;
        let micros = number("ts", &text[point + 1..])?;
        let seconds = number("ts", &text[..point])?.checked_mul(SECOND).ok_or_else(wrong)?;
        let at_ns = seconds.checked_add(micros.min(999_999) * 1000).ok_or_else(wrong)?;
        if at_ns.saturating_add(SLACK_NS) > self.last_ns {
            self.last_ns = self.last_ns.max(at_ns);
            return Ok(self.last_ns);
        }
        Ok(at_ns)
    }
}

/// The fields of a line that matter.
#[derive(Default)]
struct WatchLine<'a> {
    time: &'a [u8],
    kind: &'a [u8],
    key: Option<&'a [u8]>,
    status: Option<&'a [u8]>,
    command: Option<&'a [u8]>,
    ttl: Option<&'a [u8]>,
    connection: Option<&'a [u8]>,
    size: Option<&'a [u8]>,
}

impl WatchLine<'_> {
    fn of(line: &[u8]) -> Option<WatchLine<'_>> {
        let mut found = WatchLine { time: line.strip_prefix(b"ts=")?, ..WatchLine::default() };
        for (at, word) in line.split(|byte| *byte == b' ').enumerate() {
            let equals = memchr::memchr(b'=', word)?;
            let (name, value) = (&word[..equals], &word[equals + 1..]);
            match name {
                b"ts" if at == 0 => found.time = value,
                b"type" => found.kind = value,
                b"key" => found.key = Some(value),
                b"status" => found.status = Some(value),
                b"cmd" => found.command = Some(value),
                b"ttl" => found.ttl = Some(value),
                b"cfd" => found.connection = Some(value),
                b"size" => found.size = Some(value),
                _ => {}
            }
        }
        (!found.kind.is_empty()).then_some(found)
    }
}

/// Appends a key without its escapes.
fn unescape(text: &[u8], out: &mut Vec<u8>) -> Result<(), RecordProblem> {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let digit = |at: usize| char::from(*rest.get(at)?).to_digit(16).map(|digit| digit as u8);
        let byte = digit(at + 1).zip(digit(at + 2)).map(|(high, low)| high << 4 | low);
        out.extend_from_slice(&rest[..at]);
        out.push(byte.ok_or(RecordProblem::WatchLine)?);
        rest = &rest[at + 3..];
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// Whether a first line is one of this format.
pub(in super::super) fn recognises(line: &[u8]) -> bool {
    WatchLine::of(line).is_some()
}
