//! Requests of Redis and Valkey: arrays of strings, or words on a line.

use super::super::super::error::RecordProblem;
use super::super::super::record::LONGEST_KEY;
use super::super::redis_command::{Command, Word, has_many_keys, is_command};
use super::Sink;
use super::stream::{Parser, Step};

/// The most words of a command, and the most bytes of them that are kept.
const MOST_WORDS: u64 = 1 << 16;
const MOST_KEPT: usize = 16 << 20;

/// Words behind the key are kept up to this length, for the options of a command.
const LONGEST_OPTION: u64 = 32;

/// The longest line that says a number.
const LONGEST_LINE: usize = 32;

/// The parser: the words of a command so far.
#[derive(Debug, Default)]
pub(super) struct Resp {
    words: Vec<Word>,
    bytes: Vec<u8>,
    /// Words that are still to come.
    left: u64,
}

/// The number on a line behind its first byte, and the line's length with its end; none where it
/// has not come yet.
fn line(data: &[u8], kind: u8) -> Result<Option<(u64, usize)>, RecordProblem> {
    let Some(end) = memchr::memchr(b'\n', &data[..data.len().min(LONGEST_LINE)]) else {
        return if data.len() < LONGEST_LINE { Ok(None) } else { Err(RecordProblem::Request) };
    };
    let text = data[..end].strip_suffix(b"\r").and_then(|text| text.strip_prefix(&[kind]));
    let number = text.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    number.map(|number| Some((number, end + 1))).ok_or(RecordProblem::Request)
}

impl Resp {
    pub fn recognises(data: &[u8], is_client: bool) -> bool {
        let Ok(Some((1.., begin))) = line(data, b'*') else { return false };
        let Ok(Some((length, head))) = line(&data[begin..], b'$') else { return false };
        let name = data[begin + head..].get(..length as usize).unwrap_or_default();
        is_command(name) || (is_client && !name.is_empty() && name.is_ascii())
    }

    /// Bytes of the command so far.
    pub fn held(&self) -> usize {
        self.bytes.len() + size_of_val(&self.words[..])
    }

    fn end(&mut self, sink: &mut Sink<'_>) {
        let command = Command { words: &self.words, bytes: &self.bytes, at_ns: sink.at_ns };
        let before = sink.out.len();
        if let Err(problem) = command.push(sink.out) {
            sink.out.truncate(before);
            sink.problems.push_back(problem);
        }
        self.words.clear();
        self.bytes.clear();
    }
}

impl Parser for Resp {
    fn step(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<Step, RecordProblem> {
        if self.left == 0 {
            if data[0] != b'*' {
                // Words on a line: administration by hand.
                sink.out.ignored += 1;
                return Ok(match memchr::memchr(b'\n', data) {
                    Some(end) => Step::Done { consumed: end + 1, skip: 0 },
                    None => Step::More,
                });
            }
            let Some((count, consumed)) = line(data, b'*')? else { return Ok(Step::More) };
            if count > MOST_WORDS {
                return Err(RecordProblem::Request);
            }
            self.left = count;
            return Ok(Step::Done { consumed, skip: 0 });
        }
        let Some((size, begin)) = line(data, b'$')? else { return Ok(Step::More) };
        let all = self.words.len() < 2
            || self.words.first().is_some_and(|name| {
                has_many_keys(&self.bytes[name.begin as usize..][..name.kept as usize])
            });
        let keep = match (all, size) {
            (true, size) => size.min(LONGEST_KEY as u64 + 1),
            (false, ..=LONGEST_OPTION) => size,
            (false, _) => 0,
        } as usize;
        let Some(kept) = data.get(begin..begin + keep) else { return Ok(Step::More) };
        if self.bytes.len() + keep > MOST_KEPT {
            return Err(RecordProblem::Request);
        }
        self.words.push(Word { begin: self.bytes.len() as u32, kept: keep as u32, size });
        self.bytes.extend_from_slice(kept);
        self.left -= 1;
        if self.left == 0 {
            self.end(sink);
        }
        Ok(Step::Done { consumed: begin + keep, skip: (size - keep as u64).saturating_add(2) })
    }
}
