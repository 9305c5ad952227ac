//! A trace, read one second at a time.

use std::fmt;
use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use super::chunk::RequestChunk;
use super::error::{LineProblem, TraceError, excerpt};
use super::line::{self, TraceLine};
use super::source::{self, Bytes};
use super::spread::ArrivalSpread;

/// The most requests of one second: they are in memory together, some 100 MB.
pub const MOST_A_SECOND: usize = 1 << 20;

/// The longest line, with its end.
const LONGEST_LINE: u64 = 4096;

/// The byte-order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An open trace.
pub struct TraceReader {
    file: Arc<str>,
    bytes: Bytes,
    /// The line that was read last, without its end, and its number from 1.
    line: Vec<u8>,
    number: u64,
    /// The header line, if any.
    header: Option<Arc<str>>,
    /// Whether the current line is still to be returned.
    pending: bool,
    /// Its second, and the first of all.
    second: u64,
    first: u64,
    most_a_second: usize,
    /// An error after requests that were returned.
    failed: Option<TraceError>,
}

impl fmt::Debug for TraceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Trace");
        shown.field("file", &self.file).field("line", &self.number).finish_non_exhaustive()
    }
}

impl TraceReader {
    /// Opens a file, or standard input for `-`, plain or compressed with gzip or zstd, and reads
    /// the first request. A byte-order mark, and a first line that names the fields, are skipped.
    ///
    /// # Errors
    /// A file that cannot be read, holds nothing, or whose first line is no request.
    pub fn open(path: impl AsRef<Path>) -> Result<TraceReader, TraceError> {
        let path = path.as_ref();
        let mut trace = TraceReader {
            file: source::name(path),
            bytes: source::open(path)?,
            line: Vec::new(),
            number: 0,
            header: None,
            pending: false,
            second: 0,
            first: 0,
            most_a_second: MOST_A_SECOND,
            failed: None,
        };
        let mut more = trace.read_line()?;
        if more && line::is_header(&trace.line) {
            trace.header = Some(excerpt(&trace.line).into());
            more = trace.read_line()?;
        }
        if !more {
            return Err(TraceError::Empty { file: trace.file });
        }
        trace.first = trace.parse()?.second;
        trace.second = trace.first;
        Ok(trace)
    }

    /// The same with another bound on the requests of one second, [`MOST_A_SECOND`] where not
    /// given.
    pub fn at_most_a_second(self, requests: usize) -> TraceReader {
        TraceReader { most_a_second: requests, ..self }
    }

    /// The file as errors name it.
    pub fn file(&self) -> &Arc<str> {
        &self.file
    }

    /// The first line, where it named the fields and was skipped.
    pub fn header(&self) -> Option<&Arc<str>> {
        self.header.as_ref()
    }

    /// Replaces what the chunk holds by the requests of the next second that has any, each with its
    /// instant; `false` at the end of the trace. Requests before something that is wrong come
    /// first, and with the next call the error.
    ///
    /// # Errors
    /// A line that is no request, by its number; decreasing time; a second with too many requests;
    /// a read error. After an error the reader is unusable.
    pub fn next_second(
        &mut self,
        spread: ArrivalSpread,
        chunk: &mut RequestChunk,
    ) -> Result<bool, TraceError> {
        chunk.clear();
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        match self.gather(chunk) {
            Ok(()) => {}
            Err(error @ TraceError::TooManyInASecond { .. }) => return Err(error),
            Err(error) if chunk.is_empty() => return Err(error),
            Err(error) => self.failed = Some(error),
        }
        if chunk.is_empty() {
            return Ok(false);
        }
        spread.assign(self.second - self.first, chunk);
        Ok(true)
    }

    /// Appends the requests of one second.
    fn gather(&mut self, chunk: &mut RequestChunk) -> Result<(), TraceError> {
        if !self.pending && !self.read_line()? {
            return Ok(());
        }
        loop {
            let line = self.parse()?;
            let (before, now) = (self.second, line.second);
            if now < before {
                return Err(self.wrong(LineProblem::TimeGoesBack { before, now }));
            }
            if now > before && !chunk.is_empty() {
                return Ok(());
            }
            if chunk.len() == self.most_a_second {
                return Err(TraceError::TooManyInASecond {
                    file: self.file.clone(),
                    line: self.number,
                    second: now,
                    most: self.most_a_second,
                });
            }
            chunk.push(self.number - 1 - u64::from(self.header.is_some()), &line);
            self.second = now;
            self.pending = false;
            if !self.read_line()? {
                return Ok(());
            }
        }
    }

    fn parse(&self) -> Result<TraceLine<'_>, TraceError> {
        TraceLine::parse(&self.line).map_err(|problem| self.wrong(problem))
    }

    /// Reads the next line, `false` at the end of the file.
    fn read_line(&mut self) -> Result<bool, TraceError> {
        self.line.clear();
        let mut bounded = self.bytes.by_ref().take(LONGEST_LINE);
        let read = bounded.read_until(b'\n', &mut self.line).map_err(|source| {
            let (file, line) = (self.file.clone(), self.number);
            TraceError::Read { file, line, source: Arc::new(source) }
        })?;
        if read == 0 {
            return Ok(false);
        }
        if self.number == 0 && self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        self.number += 1;
        self.pending = true;
        if self.line.pop_if(|byte| *byte == b'\n').is_some() {
            self.line.pop_if(|byte| *byte == b'\r');
        } else if read as u64 == LONGEST_LINE {
            return Err(self.wrong(LineProblem::TooLong { most: LONGEST_LINE }));
        }
        Ok(true)
    }

    #[cold]
    fn wrong(&self, problem: LineProblem) -> TraceError {
        let text = excerpt(&self.line);
        TraceError::Line { file: self.file.clone(), line: self.number, problem, text }
    }
}
