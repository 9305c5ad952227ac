//! What `MONITOR` of Redis and Valkey prints: `1339518083.107412 [0 127.0.0.1:60866] "get" "key"`.
//!
//! Quotes, backslashes and what is not printable are escaped in the words. Format:
//! <https://redis.io/docs/latest/commands/monitor>.

use super::super::error::{RecordProblem, excerpt};
use super::super::format::TraceTiming;
use super::super::number::number;
use super::super::record::{LONGEST_KEY, RecordBatch, SECOND};
use super::LineParser;
use super::redis_command::{Command, Word};

/// The most words of a command.
const MOST_WORDS: usize = 1 << 16;

/// The parser of a log.
#[derive(Debug, Default)]
pub(in super::super) struct Monitor {
    words: Vec<Word>,
    bytes: Vec<u8>,
}

impl LineParser for Monitor {
    /// Lines hold the values, too.
    const LONGEST: usize = 16 << 20;

    fn parse(&mut self, line: &[u8], out: &mut RecordBatch) -> Result<(), RecordProblem> {
        // The answer to `MONITOR` itself, with or without the `+` of the protocol.
        if matches!(line, b"OK" | b"+OK" | b"") {
            out.ignored += 1;
            return Ok(());
        }
        let line = line.strip_prefix(b"+").unwrap_or(line);
        let (at_ns, words) = begin(line).ok_or(RecordProblem::MonitorLine)?;
        self.words(words)?;
        Command { words: &self.words, bytes: &self.bytes, at_ns: at_ns? }.push(out)
    }

    fn timing(&self) -> TraceTiming {
        TraceTiming::Exact
    }
}

/// The time of a line, and its words.
fn begin(line: &[u8]) -> Option<(Result<u64, RecordProblem>, &[u8])> {
    let blank = memchr::memchr(b' ', line)?;
    let rest = line[blank + 1..].strip_prefix(b"[")?;
    // The address may hold brackets itself.
    let words = memchr::memmem::find(rest, b"] \"")?;
    Some((time(&line[..blank]), &rest[words + 2..]))
}

/// Seconds with six digits behind the point.
fn time(text: &[u8]) -> Result<u64, RecordProblem> {
    let wrong = || RecordProblem::Number { field: "time", text: excerpt(text) };
    let point = memchr::memchr(b'.', text).ok_or_else(wrong)?;
    let micros = &text[point + 1..];
    if micros.len() != 6 {
        return Err(wrong());
    }
    let seconds = number("time", &text[..point])?.checked_mul(SECOND).ok_or_else(wrong)?;
    seconds.checked_add(number("time", micros)? * 1000).ok_or_else(wrong)
}

impl Monitor {
    /// Takes the quoted words of a line apart.
    fn words(&mut self, mut rest: &[u8]) -> Result<(), RecordProblem> {
        self.words.clear();
        self.bytes.clear();
        while !rest.is_empty() {
            rest = rest.strip_prefix(b"\"").ok_or(RecordProblem::MonitorLine)?;
            if self.words.len() == MOST_WORDS {
                return Err(RecordProblem::MonitorLine);
            }
            rest = self.word(rest)?;
            // Words have a blank between them.
            match rest {
                [] => {}
                [b' ', more @ ..] if !more.is_empty() => rest = more,
                _ => return Err(RecordProblem::MonitorLine),
            }
        }
        Ok(())
    }

    /// Takes one word, up to its closing quote, and returns what follows.
    fn word<'a>(&mut self, mut rest: &'a [u8]) -> Result<&'a [u8], RecordProblem> {
        let begin = self.bytes.len();
        let mut size = 0;
        let keep = |bytes: &mut Vec<u8>, part: &[u8]| {
            // Values are counted only.
            let room = (LONGEST_KEY + 1).saturating_sub(bytes.len() - begin);
            bytes.extend_from_slice(&part[..part.len().min(room)]);
        };
        loop {
            let stop = memchr::memchr2(b'"', b'\\', rest).ok_or(RecordProblem::MonitorLine)?;
            keep(&mut self.bytes, &rest[..stop]);
            size += stop as u64;
            if rest[stop] == b'"' {
                rest = &rest[stop + 1..];
                break;
            }
            let (byte, length) = unescape(&rest[stop..]).ok_or(RecordProblem::MonitorLine)?;
            keep(&mut self.bytes, &[byte]);
            size += 1;
            rest = &rest[stop + length..];
        }
        let kept = (self.bytes.len() - begin) as u32;
        self.words.push(Word { begin: begin as u32, kept, size });
        Ok(rest)
    }
}

/// The byte of an escape, and how long that is.
fn unescape(text: &[u8]) -> Option<(u8, usize)> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16).map(|digit| digit as u8);
    Some(match text.get(1)? {
        b'x' => (digit(2)? << 4 | digit(3)?, 4),
        b'n' => (b'\n', 2),
        b'r' => (b'\r', 2),
        b't' => (b'\t', 2),
        b'a' => (7, 2),
        b'b' => (8, 2),
        byte @ (b'"' | b'\\') => (*byte, 2),
        _ => return None,
    })
}

/// Whether a first line is one of this format.
pub(in super::super) fn recognises(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"+").unwrap_or(line);
    line == b"OK" || begin(line).is_some_and(|(time, _)| time.is_ok())
}
