//! The requests of a trace, one after the other.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::decode::{self, Decoder, Failure};
use super::error::TraceError;
use super::format::{HEAD, TraceFormat, TraceTiming, is_text};
use super::input::Input;
use super::options::TraceOptions;
use super::record::{RecordBatch, TraceRecord};
use super::source;

/// A trace as a stream of its requests, in their order and in bounded memory. Nothing is allocated
/// for a request.
///
/// ```no_run
/// use workload::trace::{TraceOptions, TraceRecords};
///
/// let mut records = TraceRecords::open("trace.zst", &TraceOptions::default())?;
/// while let Some(record) = records.next()? {
///     println!("{} {} {:?}", record.at_ns, record.operation, record.value_size);
/// }
/// # Ok::<(), workload::trace::TraceError>(())
/// ```
pub struct TraceRecords {
    file: Arc<str>,
    format: TraceFormat,
    input: Input,
    decoder: Box<dyn Decoder>,
    batch: RecordBatch,
    skip_bad: u64,
    /// The greatest hash of a key that is in the sample.
    bound: u64,
    counts: Arc<TraceCounts>,
    ended: bool,
    /// An error after requests that were returned.
    failed: Option<TraceError>,
}

/// What a reader left out so far.
#[derive(Debug, Default)]
pub struct TraceCounts {
    skipped: AtomicU64,
    ignored: AtomicU64,
    lost: AtomicU64,
}

impl TraceCounts {
    /// Malformed records.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// Records that request no value of one key: administration, deleted ranges, other traffic.
    pub fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }

    /// Requests that the trace says are missing in it.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for TraceRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TraceRecords");
        shown.field("file", &self.file).field("format", &self.format).finish_non_exhaustive()
    }
}

impl TraceRecords {
    /// Opens a file, or standard input for `-`, plain or compressed with gzip or zstd, and decodes
    /// the first requests. A byte-order mark, and a first line that names the fields, are skipped.
    ///
    /// # Errors
    /// A file that cannot be read, holds nothing, or does not begin with a request.
    pub fn open(
        path: impl AsRef<Path>,
        options: &TraceOptions,
    ) -> Result<TraceRecords, TraceError> {
        let path = path.as_ref();
        TraceRecords::read(source::name(path), source::open(path)?, options)
    }

    /// The same from a stream, which errors call `file`, such as the log of a running server.
    ///
    /// # Errors
    /// See [`TraceRecords::open`].
    pub fn read(
        file: Arc<str>,
        stream: Box<dyn Read + Send>,
        options: &TraceOptions,
    ) -> Result<TraceRecords, TraceError> {
        let mut input = Input::new(stream);
        let read = read_head(&mut input);
        read.map_err(|source| {
            let source = Arc::new(source);
            TraceError::ReadBinary { file: file.clone(), offset: 0, source }
        })?;
        if input.data().is_empty() {
            return Err(TraceError::Empty { file });
        }
        let head = &input.data()[..input.data().len().min(HEAD)];
        let format = options.format.or_else(|| TraceFormat::detect(head)).ok_or_else(|| {
            let known = TraceFormat::ALL.map(TraceFormat::name).join(", ");
            TraceError::Format { file: file.clone(), known }
        })?;
        let mut records = TraceRecords {
            file,
            format,
            input,
            decoder: decode::decoder(format),
            batch: RecordBatch::new(decode::unit_ns(format), options.scans),
            skip_bad: options.skip_bad,
            bound: match options.sample {
                share if share < 1.0 => (share * u64::MAX as f64) as u64,
                _ => u64::MAX,
            },
            counts: Arc::default(),
            ended: false,
            failed: None,
        };
        records.decode_first()?;
        Ok(records)
    }

    /// The file as errors name it.
    pub fn file(&self) -> &Arc<str> {
        &self.file
    }

    pub fn format(&self) -> TraceFormat {
        self.format
    }

    /// What the times of the requests mean.
    pub fn timing(&self) -> TraceTiming {
        self.decoder.timing()
    }

    /// The first line, where it named the fields and was skipped.
    pub fn header(&self) -> Option<&str> {
        self.decoder.header()
    }

    /// What was left out so far; it counts on while the trace is read.
    pub fn counts(&self) -> &Arc<TraceCounts> {
        &self.counts
    }

    /// The next request, `None` at the end of the trace.
    ///
    /// # Errors
    /// A malformed record with its place, once as many were skipped as may be; time that goes back;
    /// a read error. The requests before it come first, and every further call repeats it.
    #[expect(clippy::should_implement_trait, reason = "a request borrows from the reader")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<TraceRecord<'_>>, TraceError> {
        while !self.batch.find(self.bound) {
            if !self.decode()? {
                return Ok(None);
            }
        }
        Ok(self.batch.take())
    }

    /// Decodes until there is a request, in the sample or not.
    fn decode_first(&mut self) -> Result<(), TraceError> {
        while self.batch.is_empty() {
            if !self.decode()? {
                return Err(TraceError::Empty { file: self.file.clone() });
            }
        }
        Ok(())
    }

    /// Replaces the decoded requests by the next ones; false at the end.
    fn decode(&mut self) -> Result<bool, TraceError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.ended {
            return Ok(false);
        }
        self.batch.clear();
        let result = self.decoder.decode(&mut self.input, &mut self.batch);
        self.counts.ignored.store(self.batch.ignored, Ordering::Relaxed);
        self.counts.lost.store(self.batch.lost, Ordering::Relaxed);
        match result {
            Ok(()) => self.ended = self.batch.is_empty(),
            Err(Failure::Record { fatal: false, .. }) if self.counts.skipped() < self.skip_bad => {
                self.counts.skipped.fetch_add(1, Ordering::Relaxed);
            }
            Err(failure) => {
                let error =
                    self.failed.insert(error(&self.file, self.format, &self.input, failure));
                if self.batch.is_empty() {
                    return Err(error.clone());
                }
            }
        }
        Ok(!self.ended)
    }
}

/// Reads as much as tells the format, and no more: a pipe may wait after its first line.
fn read_head(input: &mut Input) -> std::io::Result<()> {
    while input.data().len() < HEAD {
        let line = input.data().contains(&b'\n');
        if (line && is_text(input.data())) || !input.fill()? {
            break;
        }
    }
    input.skip_byte_order_mark();
    Ok(())
}

#[cold]
fn error(file: &Arc<str>, format: TraceFormat, input: &Input, failure: Failure) -> TraceError {
    let file = file.clone();
    match (failure, format.has_lines()) {
        (Failure::Read(source), true) => {
            TraceError::Read { file, line: input.line_number(), source: Arc::new(source) }
        }
        (Failure::Read(source), false) => {
            TraceError::ReadBinary { file, offset: input.offset(), source: Arc::new(source) }
        }
        (Failure::Record { problem, text, .. }, true) => {
            TraceError::Line { file, line: input.line_number(), problem, text }
        }
        (Failure::Record { problem, .. }, false) => {
            TraceError::Record { file, offset: input.record_offset(), problem }
        }
    }
}
