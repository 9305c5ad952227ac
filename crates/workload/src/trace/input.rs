//! A window over the decompressed bytes of a trace.

use std::io::{self, Read};
use std::ops::Range;

/// Bytes of the window, unless a record is longer.
const WINDOW: usize = 256 << 10;

/// The byte-order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The bytes that were read and not consumed yet. Memory grows with the longest record that a
/// format allows, as far as it is really there.
pub(super) struct Input {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// Place of `begin` in the stream.
    offset: u64,
    /// Where the current record begins: a byte, and the number of its line from 1.
    record: u64,
    line: u64,
    ended: bool,
}

/// The next line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextLine {
    /// Its place in the window, without its end; consumed.
    Line(Range<usize>),
    /// Beyond the limit; not consumed.
    TooLong,
    /// Not in the window yet.
    NotYet,
    End,
}

impl Input {
    pub fn new(source: Box<dyn Read + Send>) -> Input {
        let buffer = vec![0; WINDOW];
        Input { source, buffer, begin: 0, end: 0, offset: 0, record: 0, line: 0, ended: false }
    }

    pub fn data(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// A part of the window.
    pub fn slice(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// Place of the next byte in the stream.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Place of the current record.
    pub fn record_offset(&self) -> u64 {
        self.record
    }

    /// Number of the current line, from 1.
    pub fn line_number(&self) -> u64 {
        self.line
    }

    /// A record begins at the next byte.
    pub fn begin_record(&mut self) {
        self.record = self.offset;
    }

    /// Counts lines that were consumed otherwise than by [`Input::next_line`].
    pub fn count_lines(&mut self, lines: u64) {
        self.line += lines;
    }

    pub fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.end - self.begin);
        self.begin += bytes;
        self.offset += bytes as u64;
    }

    /// Skips the mark with which some programs begin a text.
    pub fn skip_byte_order_mark(&mut self) {
        if self.offset == 0 && self.data().starts_with(BYTE_ORDER_MARK) {
            self.begin += BYTE_ORDER_MARK.len();
        }
    }

    /// Reads more, once; false at the end. Ranges of the window are invalid afterwards.
    pub fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        } else if self.begin > 0 && self.buffer.len() - self.end < self.buffer.len() / 2 {
            self.buffer.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(read) => {
                    self.end += read;
                    self.ended = read == 0;
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads until the window holds so many bytes; false where the stream ends before.
    pub fn need(&mut self, bytes: usize) -> io::Result<bool> {
        while self.end - self.begin < bytes {
            if !self.fill()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The next line; without `wait` only if the window holds it.
    #[inline]
    pub fn next_line(&mut self, longest: usize, wait: bool) -> io::Result<NextLine> {
        let mut searched = 0;
        loop {
            let data = &self.buffer[self.begin..self.end];
            if let Some(at) = memchr::memchr(b'\n', &data[searched..]) {
                let length = searched + at;
                if length >= longest {
                    return self.long_line();
                }
                let carriage = length > 0 && data[length - 1] == b'\r';
                let line = self.begin..self.begin + length - usize::from(carriage);
                self.take_line(length + 1);
                return Ok(NextLine::Line(line));
            }
            searched = data.len();
            if searched >= longest {
                return self.long_line();
            }
            if !wait && !self.ended {
                return Ok(NextLine::NotYet);
            }
            if !self.fill()? {
                let rest = self.begin..self.end;
                if rest.is_empty() {
                    return Ok(NextLine::End);
                }
                self.take_line(rest.len());
                return Ok(NextLine::Line(rest));
            }
        }
    }

    fn take_line(&mut self, bytes: usize) {
        self.record = self.offset;
        self.line += 1;
        self.consume(bytes);
    }

    #[cold]
    fn long_line(&mut self) -> io::Result<NextLine> {
        self.record = self.offset;
        self.line += 1;
        Ok(NextLine::TooLong)
    }

    /// Skips the rest of a line, of any length.
    pub fn skip_line(&mut self) -> io::Result<()> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', self.data()) {
                self.consume(at + 1);
                return Ok(());
            }
            self.consume(self.end - self.begin);
            if !self.fill()? {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives so many bytes at a time.
    struct Drip(Vec<u8>, usize);

    impl Read for Drip {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let some = self.1.min(self.0.len()).min(out.len());
            out[..some].copy_from_slice(&self.0[..some]);
            self.0.drain(..some);
            Ok(some)
        }
    }

    #[test]
    fn lines_are_those_of_the_text_however_it_arrives() {
        let text = b"one\r\n\n\r\nfour\nlast".to_vec();
        for step in [1, 2, 3, 100] {
            let mut input = Input::new(Box::new(Drip(text.clone(), step)));
            let mut lines = Vec::new();
            while let NextLine::Line(line) = input.next_line(100, true).unwrap() {
                lines.push(String::from_utf8(input.slice(line).to_vec()).unwrap());
            }
            assert_eq!(lines, ["one", "", "", "four", "last"], "{step}");
            assert_eq!((input.line_number(), input.offset()), (5, text.len() as u64));
        }
    }

    #[test]
    fn a_long_line_is_noticed_and_can_be_skipped() {
        let mut text = vec![b'x'; 3 * WINDOW];
        text.extend_from_slice(b"\nnext\n");
        let mut input = Input::new(Box::new(Drip(text, 1000)));
        assert_eq!(input.next_line(4096, true).unwrap(), NextLine::TooLong);
        input.skip_line().unwrap();
        assert!(input.buffer.len() <= WINDOW, "the window does not grow with what is skipped");
        let NextLine::Line(line) = input.next_line(4096, true).unwrap() else { panic!() };
        assert_eq!((input.slice(line), input.line_number()), (&b"next"[..], 2));
    }

    #[test]
    fn the_window_grows_only_with_what_is_there() {
        let mut input = Input::new(Box::new(Drip(vec![7; 1000], 100)));
        assert!(!input.need(usize::MAX / 2).unwrap());
        assert_eq!((input.data().len(), input.buffer.len()), (1000, WINDOW));
    }
}
