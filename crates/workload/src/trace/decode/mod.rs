//! The decoders, one file a format.

pub(super) mod cachelib;
pub(super) mod capture;
pub(super) mod kvmeter;
pub(super) mod memcached_watch;
pub(super) mod memtier;
pub(super) mod monitor;
pub(super) mod oracle_general;
mod redis_command;
pub(super) mod rocksdb;
mod rocksdb_batch;
pub(super) mod rocksdb_text;
pub(super) mod twitter;

use std::io;

use super::error::{RecordProblem, excerpt};
use super::format::{TraceFormat, TraceTiming};
use super::input::{Input, NextLine};
use super::record::RecordBatch;

/// Why no more requests were decoded.
#[derive(Debug)]
pub(super) enum Failure {
    Read(io::Error),
    /// A malformed record. After one that is not fatal the next record can be decoded.
    Record {
        problem: RecordProblem,
        /// The beginning of a line.
        text: String,
        fatal: bool,
    },
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Read(error)
    }
}

impl Failure {
    /// A malformed record that was consumed.
    pub fn bad(problem: RecordProblem) -> Failure {
        Failure::Record { problem, text: String::new(), fatal: false }
    }

    /// A record after which nothing can be decoded.
    pub fn fatal(problem: RecordProblem) -> Failure {
        Failure::Record { problem, text: String::new(), fatal: true }
    }
}

/// Turns bytes into requests.
pub(super) trait Decoder: Send {
    /// Appends requests until the batch is full, or until more input would have to be waited for
    /// and there is one. Without any, the trace has ended.
    fn decode(&mut self, input: &mut Input, out: &mut RecordBatch) -> Result<(), Failure>;

    /// Known once something was decoded.
    fn timing(&self) -> TraceTiming;

    /// A first line that named the fields and was skipped.
    fn header(&self) -> Option<&str> {
        None
    }
}

/// Nanoseconds of the unit in which messages say a format's times.
pub(super) fn unit_ns(format: TraceFormat) -> u64 {
    match format {
        TraceFormat::RedisMonitor
        | TraceFormat::RocksDb
        | TraceFormat::RocksDbText
        | TraceFormat::PacketCapture
        | TraceFormat::MemcachedWatch
        | TraceFormat::Kvmeter => 1000,
        _ => super::record::SECOND,
    }
}

pub(super) fn decoder(format: TraceFormat) -> Box<dyn Decoder> {
    match format {
        TraceFormat::Twitter => Box::new(Lines::of(twitter::Twitter::default())),
        TraceFormat::CacheLib => Box::new(Lines::of(cachelib::CacheLib::default())),
        TraceFormat::OracleGeneral => Box::new(oracle_general::OracleGeneral),
        TraceFormat::RedisMonitor => Box::new(Lines::of(monitor::Monitor::default())),
        TraceFormat::Memtier => Box::new(memtier::Memtier::default()),
        TraceFormat::PacketCapture => Box::new(capture::PacketCapture::default()),
        TraceFormat::MemcachedWatch => {
            Box::new(Lines::of(memcached_watch::MemcachedWatch::default()))
        }
        TraceFormat::Kvmeter => Box::new(kvmeter::KvmeterTrace::default()),
        TraceFormat::RocksDb => Box::new(rocksdb::RocksDb::default()),
        TraceFormat::RocksDbText => Box::new(Lines::of(rocksdb_text::RocksDbText::default())),
    }
}

/// A format of lines.
pub(super) trait LineParser: Send {
    /// The longest line, with its end.
    const LONGEST: usize;

    /// Appends the requests of a line, which is without its end.
    fn parse(&mut self, line: &[u8], out: &mut RecordBatch) -> Result<(), RecordProblem>;

    /// Appends what was held back until the end.
    fn finish(&mut self, _out: &mut RecordBatch) -> Result<(), RecordProblem> {
        Ok(())
    }

    fn timing(&self) -> TraceTiming;

    fn header(&self) -> Option<&str> {
        None
    }
}

/// The decoder of a format of lines.
struct Lines<P> {
    parser: P,
    /// The rest of a line that is too long is still to be skipped.
    within_long: bool,
}

impl<P: LineParser> Lines<P> {
    fn of(parser: P) -> Lines<P> {
        Lines { parser, within_long: false }
    }
}

impl<P: LineParser> Decoder for Lines<P> {
    fn decode(&mut self, input: &mut Input, out: &mut RecordBatch) -> Result<(), Failure> {
        if std::mem::take(&mut self.within_long) {
            input.skip_line()?;
        }
        while !out.is_full() {
            match input.next_line(P::LONGEST, out.is_empty())? {
                NextLine::Line(line) => {
                    let (line, before) = (input.slice(line), out.len());
                    if let Err(problem) = self.parser.parse(line, out) {
                        out.truncate(before);
                        return Err(Failure::Record { problem, text: excerpt(line), fatal: false });
                    }
                }
                NextLine::TooLong => {
                    self.within_long = true;
                    let problem = RecordProblem::TooLong { most: P::LONGEST as u64 };
                    let text = excerpt(input.data());
                    return Err(Failure::Record { problem, text, fatal: false });
                }
                NextLine::NotYet => break,
                NextLine::End => {
                    self.parser.finish(out).map_err(Failure::fatal)?;
                    break;
                }
            }
        }
        Ok(())
    }

    fn timing(&self) -> TraceTiming {
        self.parser.timing()
    }

    fn header(&self) -> Option<&str> {
        self.parser.header()
    }
}
