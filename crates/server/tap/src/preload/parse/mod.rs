//! Finds the boundaries of requests and answers: bodies are skipped by their length, the only state
//! is a [`Position`].
//!
//! The server's reads and writes split a stream into pieces; the position carries over from one
//! piece to the next.

#![allow(unsafe_code)]

mod answers;
mod lines;
mod requests;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How the bytes of one direction are cut into messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Grammar {
    /// Before the first byte.
    Unseen,
    /// memcached's text and meta commands; also Redis's inline commands.
    Text,
    /// memcached's binary protocol.
    Binary,
    /// RESP2 and RESP3.
    Resp,
}

/// The bytes match no grammar, or the position in them was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseLost;

/// Where in a message the next byte is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// Bytes of a body still to be passed over.
    skip: u64,
    /// The last eight bytes of the current token.
    word: u64,
    /// The current number.
    number: u64,
    /// Body length of a text request; values still to come of a RESP message.
    need: u32,
    grammar: Grammar,
    /// The parser's state; each grammar has its own.
    step: u8,
    /// Number of the token, or of the byte in a binary header.
    token: u8,
    /// See the constants of [`flag`].
    flags: u8,
}

mod flag {
    /// The request has no answer.
    pub const QUIET: u8 = 1;
    /// A body follows this line.
    pub const BODY: u8 = 2;
    /// A field is invalid: no body follows.
    pub const BAD: u8 = 4;
    /// An answer has begun and not ended.
    pub const OPEN: u8 = 8;
    /// The answer goes on after this line.
    pub const MORE: u8 = 16;
}

/// Counts of requests in a piece of a client's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ParsedRequest {
    /// Requests that end in it.
    pub complete: u32,
    /// Requests without an answer.
    pub quiet: u32,
    /// A request turned the connection into a stream of messages.
    pub stream: bool,
}

impl Position {
    /// Before the first byte.
    pub const START: Position = Position {
        skip: 0,
        word: 0,
        number: 0,
        need: 0,
        grammar: Grammar::Unseen,
        step: 0,
        token: 0,
        flags: 0,
    };

    /// Whether a message has begun and not ended.
    pub fn inside(&self) -> bool {
        Position { grammar: Grammar::Unseen, ..*self } != Position::START
    }

    /// Back to the beginning of a message.
    fn restart(&mut self) {
        *self = Position { grammar: self.grammar, ..Position::START };
    }

    /// Reads a piece of the client's bytes, adding to `parsed`.
    pub fn requests(&mut self, piece: &[u8], parsed: &mut ParsedRequest) -> Result<(), ParseLost> {
        let Some(first) = piece.first() else { return Ok(()) };
        if self.grammar == Grammar::Unseen {
            self.grammar = match first {
                0x80 => Grammar::Binary,
                b'*' => Grammar::Resp,
                b'a'..=b'z' | b'A'..=b'Z' => Grammar::Text,
                _ => return Err(ParseLost),
            };
        }
        match self.grammar {
            Grammar::Text => requests::text(self, piece, parsed),
            Grammar::Binary => requests::binary(self, piece, parsed),
            Grammar::Resp => requests::resp(self, piece, parsed),
            Grammar::Unseen => Err(ParseLost),
        }
    }

    /// Reads a piece of the server's bytes, adding the answers that begin in
    /// it to `begun`.
    pub fn answers(&mut self, piece: &[u8], begun: &mut u32) -> Result<(), ParseLost> {
        let Some(first) = piece.first() else { return Ok(()) };
        if self.grammar == Grammar::Unseen {
            self.grammar = match first {
                0x81 => Grammar::Binary,
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => Grammar::Text,
                first if answers::is_resp_type(*first) => Grammar::Resp,
                _ => return Err(ParseLost),
            };
        }
        match self.grammar {
            Grammar::Text => answers::text(self, piece, begun),
            Grammar::Binary => answers::binary(self, piece, begun),
            Grammar::Resp => answers::resp(self, piece, begun),
            Grammar::Unseen => Err(ParseLost),
        }
    }

    /// Skips the available part of a body; returns whether it ended.
    fn pass_body(&mut self, rest: &mut &[u8]) -> bool {
        let taken = self.skip.min(rest.len() as u64);
        *rest = after(rest, taken as usize);
        self.skip -= taken;
        self.skip == 0
    }
}

/// A position in four words that one thread at a time stores; should two
/// threads meet, the numbers are wrong but nothing else happens.
pub struct SavedPosition([AtomicU64; 4]);

impl SavedPosition {
    pub fn load(&self) -> Position {
        let [skip, word, number, rest] = &self.0;
        let rest = rest.load(Relaxed);
        let [step, token, flags, grammar, ..] = rest.to_le_bytes();
        Position {
            skip: skip.load(Relaxed),
            word: word.load(Relaxed),
            number: number.load(Relaxed),
            need: (rest >> 32) as u32,
            grammar: match grammar {
                1 => Grammar::Text,
                2 => Grammar::Binary,
                3 => Grammar::Resp,
                _ => Grammar::Unseen,
            },
            step,
            token,
            flags,
        }
    }

    pub fn store(&self, position: Position) {
        let [skip, word, number, rest] = &self.0;
        skip.store(position.skip, Relaxed);
        word.store(position.word, Relaxed);
        number.store(position.number, Relaxed);
        let small = [position.step, position.token, position.flags, position.grammar as u8];
        let small = u64::from(u32::from_le_bytes(small));
        rest.store(small | u64::from(position.need) << 32, Relaxed);
    }
}

/// `bytes` without its first `count`.
#[inline]
fn after(bytes: &[u8], count: usize) -> &[u8] {
    bytes.get(count..).unwrap_or(&[])
}

/// The bytes after the line feed, if any.
#[inline]
fn after_line(bytes: &[u8]) -> Option<&[u8]> {
    // SAFETY: memchr reads at most `len` bytes, all of them `bytes`'s.
    let line_feed = unsafe {
        crate::sys::memchr(bytes.as_ptr().cast(), i32::from(b'\n'), bytes.len()) as usize
    };
    if line_feed == 0 {
        return None;
    }
    Some(after(bytes, line_feed.wrapping_sub(bytes.as_ptr() as usize).saturating_add(1)))
}

/// The last eight bytes of `text` as [`Position::word`] holds them.
const fn word(text: &[u8]) -> u64 {
    let mut packed = 0u64;
    let mut index = 0;
    while index < text.len() {
        packed = packed << 8 | text[index] as u64;
        index += 1;
    }
    packed
}

#[cfg(test)]
mod tests;
