//! What `watch fetchers mutations` of memcached prints, one line for each item that it looks up or
//! stores: `ts=1795956126.953473 gid=4 type=item_get key=foo status=found clsid=1 cfd=26 size=3`.
//!
//! Each of memcached's threads logs some milliseconds of its own at a time, so that lines are sorted
//! by their number, `gid`. A write looks its item up first: its two lines are one request. Keys are
//! escaped as in a URL, and the microseconds of a time have no leading zeros. Format: memcached 1.6,
//! `logger.c` and `doc/protocol.txt`.

use std::collections::{BTreeMap, HashMap};

use super::super::error::{RecordProblem, excerpt};
use super::super::format::TraceTiming;
use super::super::number::{expiry, number, small};
use super::super::operation::TraceOp;
use super::super::record::{RecordBatch, RecordFields, SECOND, TraceKey};
use super::LineParser;
use crate::value::LONGEST;

/// Lines wait so long, by their times, for earlier ones of other threads.
const WINDOW_NS: u64 = SECOND / 4;
/// Lines that wait at most, and connections that are remembered.
const MOST_WAITING: usize = 1 << 16;

/// The parser of a log.
#[derive(Debug, Default)]
pub(in super::super) struct MemcachedWatch {
    /// By number.
    waiting: BTreeMap<u64, WaitingRequest>,
    /// The last line of each connection.
    last_of_connection: HashMap<u64, u64>,
    newest_ns: u64,
    released_ns: u64,
}

#[derive(Debug)]
struct WaitingRequest {
    fields: RecordFields,
    key: Box<[u8]>,
}

impl LineParser for MemcachedWatch {
    /// A key of 250 B, each escaped, and some fields.
    const LONGEST: usize = 2 << 10;

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
        let mut fields = RecordFields::new(time(line.time)?, operation);
        let size = line.size.map(|size| small("size", size, LONGEST)).transpose()?;
        match operation {
            TraceOp::Get => fields.value_size = size.filter(|_| line.status == Some(b"found")),
            TraceOp::Delete => {}
            _ => {
                fields.value_size = size;
                fields.expiry = line.ttl.map(expiry).transpose()?;
            }
        }
        let number = number("gid", line.number)?;
        let key = unescape(line.key.ok_or(RecordProblem::WatchLine)?)?;
        let connection = line.connection.map_or(Ok(0), |text| self::number("cfd", text))?;
        self.wait(number, connection, WaitingRequest { fields, key });
        self.release(WINDOW_NS, out)
    }

    fn finish(&mut self, out: &mut RecordBatch) -> Result<(), RecordProblem> {
        self.release(0, out)
    }

    fn timing(&self) -> TraceTiming {
        TraceTiming::Exact
    }
}

impl MemcachedWatch {
    fn wait(&mut self, number: u64, connection: u64, request: WaitingRequest) {
        if self.last_of_connection.len() >= MOST_WAITING {
            self.last_of_connection.clear();
        }
        let before = self.last_of_connection.insert(connection, number);
        let lookup = before.and_then(|before| Some((before, self.waiting.get(&before)?)));
        if let Some((before, lookup)) = lookup
            && request.fields.operation != TraceOp::Get
            && lookup.fields.operation == TraceOp::Get
            && lookup.key == request.key
        {
            self.waiting.remove(&before);
        }
        self.newest_ns = self.newest_ns.max(request.fields.at_ns);
        self.waiting.insert(number, request);
    }

    /// Appends the requests that are older than this window before the newest one.
    fn release(&mut self, window_ns: u64, out: &mut RecordBatch) -> Result<(), RecordProblem> {
        let until_ns = self.newest_ns.saturating_sub(window_ns);
        while let Some(first) = self.waiting.first_entry() {
            let is_old = first.get().fields.at_ns <= until_ns;
            if !is_old && self.waiting.len() <= MOST_WAITING {
                return Ok(());
            }
            let Some((_, WaitingRequest { mut fields, key })) = self.waiting.pop_first() else {
                return Ok(());
            };
            // A thread takes the number of its line after the time.
            self.released_ns = self.released_ns.max(fields.at_ns);
            fields.at_ns = self.released_ns;
            out.push(fields, TraceKey::Bytes(&key))?;
        }
        Ok(())
    }
}

fn time(text: &[u8]) -> Result<u64, RecordProblem> {
    let wrong = || RecordProblem::Number { field: "ts", text: excerpt(text) };
    let point = memchr::memchr(b'.', text).ok_or_else(wrong)?;
    let micros = number("ts", &text[point + 1..])?;
    let seconds = number("ts", &text[..point])?.checked_mul(SECOND).ok_or_else(wrong)?;
    seconds.checked_add(micros.min(999_999) * 1000).ok_or_else(wrong)
}

/// The fields of a line that matter.
#[derive(Default)]
struct WatchLine<'a> {
    time: &'a [u8],
    number: &'a [u8],
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
                b"gid" => found.number = value,
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
        (!found.kind.is_empty() && !found.number.is_empty()).then_some(found)
    }
}

/// A key without its escapes.
fn unescape(text: &[u8]) -> Result<Box<[u8]>, RecordProblem> {
    let mut key = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let digit = |at: usize| char::from(*rest.get(at)?).to_digit(16).map(|digit| digit as u8);
        let byte = digit(at + 1).zip(digit(at + 2)).map(|(high, low)| high << 4 | low);
        key.extend_from_slice(&rest[..at]);
        key.push(byte.ok_or(RecordProblem::WatchLine)?);
        rest = &rest[at + 3..];
    }
    key.extend_from_slice(rest);
    match key.is_empty() {
        true => Err(RecordProblem::EmptyKey),
        false => Ok(key.into_boxed_slice()),
    }
}

/// Whether a first line is one of this format.
pub(in super::super) fn recognises(line: &[u8]) -> bool {
    WatchLine::of(line).is_some()
}
