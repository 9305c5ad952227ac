//! The requests of a trace as they are replayed, one second at a time.

use std::path::Path;
use std::sync::Arc;

use super::chunk::RequestChunk;
use super::error::TraceError;
use super::format::{TraceFormat, TraceTiming};
use super::options::TraceOptions;
use super::record::SECOND;
use super::records::{TraceCounts, TraceRecords};
use super::spread::ArrivalSpread;

/// The most requests of one second: they are in memory together, some 100 MB.
pub const MOST_A_SECOND: usize = 1 << 20;

/// Requests that are read at a time where a second need not be whole.
const PART: usize = 1 << 16;

/// An open trace that is to be replayed.
#[derive(Debug)]
pub struct TraceReader {
    records: TraceRecords,
    header: Option<Arc<str>>,
    copies: u32,
    text_keys: bool,
    most_a_second: usize,
    /// The first instant of all, and those of the requests that were gathered, without copies.
    first_ns: Option<u64>,
    times: Vec<u64>,
    /// The request after those that were gathered, with its copies and its instant.
    after: RequestChunk,
    after_ns: u64,
    /// The number of the next request.
    index: u64,
    /// An error after requests that were returned.
    failed: Option<TraceError>,
}

impl TraceReader {
    /// Opens a trace with the default options.
    ///
    /// # Errors
    /// As [`TraceRecords::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<TraceReader, TraceError> {
        TraceReader::with(path, &TraceOptions::default())
    }

    /// Opens a file, or standard input for `-`, and decodes the first request.
    ///
    /// # Errors
    /// As [`TraceRecords::open`].
    pub fn with(path: impl AsRef<Path>, options: &TraceOptions) -> Result<TraceReader, TraceError> {
        let records = TraceRecords::open(path, options)?;
        Ok(TraceReader {
            header: records.header().map(Into::into),
            records,
            copies: options.copies.max(1),
            text_keys: options.text_keys,
            most_a_second: MOST_A_SECOND,
            first_ns: None,
            times: Vec::new(),
            after: RequestChunk::new(),
            after_ns: 0,
            index: 0,
            failed: None,
        })
    }

    /// The same with another bound on the requests of one second, [`MOST_A_SECOND`] where not
    /// given.
    pub fn at_most_a_second(self, requests: usize) -> TraceReader {
        TraceReader { most_a_second: requests, ..self }
    }

    /// The file as errors name it.
    pub fn file(&self) -> &Arc<str> {
        self.records.file()
    }

    pub fn format(&self) -> TraceFormat {
        self.records.format()
    }

    /// What the times of the requests mean.
    pub fn timing(&self) -> TraceTiming {
        self.records.timing()
    }

    /// Refuses a trace without times.
    ///
    /// # Errors
    /// [`TraceError::Untimed`].
    pub fn require_times(&self) -> Result<(), TraceError> {
        match self.timing() {
            TraceTiming::Untimed => {
                Err(TraceError::Untimed { file: self.file().clone(), format: self.format() })
            }
            TraceTiming::Seconds | TraceTiming::Exact => Ok(()),
        }
    }

    /// The first line, where it named the fields and was skipped.
    pub fn header(&self) -> Option<&Arc<str>> {
        self.header.as_ref()
    }

    /// What was left out so far; it counts on while the trace is read.
    pub fn counts(&self) -> &Arc<TraceCounts> {
        self.records.counts()
    }

    /// Replaces what the chunk holds by the requests of the next second that has any, or a part of
    /// them where the trace has exact times or none, each with its instant; `false` at the end of
    /// the trace. Requests before something that is wrong come first, and with the next call the
    /// error.
    ///
    /// # Errors
    /// A malformed record, by its place; decreasing time; a second with too many requests; a read
    /// error. After an error the reader is unusable.
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
        self.index = chunk.number(self.index);
        self.assign(spread, chunk);
        Ok(true)
    }

    /// Appends the requests of one second, or a part of them.
    fn gather(&mut self, chunk: &mut RequestChunk) -> Result<(), TraceError> {
        let timing = self.records.timing();
        let copies = self.copies as usize;
        self.times.clear();
        if !self.after.is_empty() {
            chunk.take_all(&mut self.after);
            self.times.push(self.after_ns);
        }
        while let Some(record) = self.records.next()? {
            let now = record.at_ns;
            let ends = match self.times.last() {
                None => false,
                Some(_) if timing == TraceTiming::Untimed => chunk.len() >= PART,
                Some(before) if now / SECOND != before / SECOND => true,
                Some(_) => timing == TraceTiming::Exact && chunk.len() >= PART,
            };
            let into = if ends { &mut self.after } else { &mut *chunk };
            if timing == TraceTiming::Seconds && into.len() + copies > self.most_a_second {
                let (file, second) = (self.records.file().clone(), now / SECOND);
                let (request, most) = (self.index + into.len() as u64 + 1, self.most_a_second);
                return Err(TraceError::TooManyInASecond { file, request, second, most });
            }
            for copy in 0..self.copies {
                into.push(&record, copy, self.text_keys);
            }
            if ends {
                self.after_ns = now;
                return Ok(());
            }
            self.times.push(now);
        }
        Ok(())
    }

    /// Gives the requests their instants.
    fn assign(&mut self, spread: ArrivalSpread, chunk: &mut RequestChunk) {
        let Some(begin) = self.times.first().copied() else { return };
        let first = *self.first_ns.get_or_insert(begin);
        match self.records.timing() {
            TraceTiming::Untimed => {}
            TraceTiming::Seconds => spread.assign(begin / SECOND - first / SECOND, chunk),
            TraceTiming::Exact => {
                // The copies of a request lie between it and the next one.
                let copies = self.copies as usize;
                let last = if self.after.is_empty() { None } else { Some(self.after_ns) };
                let mut instants = chunk.instants();
                for (at, now) in self.times.iter().enumerate() {
                    let next = self.times.get(at + 1).copied().or(last).unwrap_or(*now);
                    let gap = (next - now) as f64 / copies as f64;
                    for (copy, instant) in instants.by_ref().take(copies).enumerate() {
                        *instant = ((now - first) as f64 + gap * copy as f64) * 1e-9;
                    }
                }
            }
        }
    }
}
