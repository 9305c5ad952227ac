//! Errors in traces, with the file and the place.

use std::io;
use std::sync::Arc;

use thiserror::Error;

use super::TraceFormat;

/// Why a trace cannot be replayed. `file` is the given path, `standard input` for `-`; lines count
/// from 1.
#[derive(Debug, Clone, Error)]
pub enum TraceError {
    #[error("the trace {file} cannot be opened: {source}")]
    Open { file: Arc<str>, source: Arc<io::Error> },

    #[error(
        "the trace {file} is compressed with {format}, which is not supported; decompress it \
         first, or compress it with zstd or gzip"
    )]
    Compression { file: Arc<str>, format: &'static str },

    /// Also a compressed file that is damaged or truncated.
    #[error("the trace {file} cannot be read after line {line}: {source}")]
    Read { file: Arc<str>, line: u64, source: Arc<io::Error> },

    #[error("the trace {file} holds no request")]
    Empty { file: Arc<str> },

    #[error("{file}:{line}: {problem}; the line is `{text}`")]
    Line { file: Arc<str>, line: u64, problem: RecordProblem, text: String },

    /// The byte counts from 0, after decompression.
    #[error("{file}: the record at byte {offset}: {problem}")]
    Record { file: Arc<str>, offset: u64, problem: RecordProblem },

    #[error("the trace {file} cannot be read after byte {offset}: {source}")]
    ReadBinary { file: Arc<str>, offset: u64, source: Arc<io::Error> },

    #[error(
        "the trace {file} begins like no format that is known ({known}); where it is one of them, \
         name it with --trace-format (`trace_format` in a study)"
    )]
    Format { file: Arc<str>, known: String },

    #[error(
        "the trace {file} has no times (its format is `{format}`): it cannot be replayed as it was \
         recorded; give a rate, or the speed `max`"
    )]
    Untimed { file: Arc<str>, format: TraceFormat },

    #[error(
        "{file}: second {second} of the trace has more than {most} requests, too many to hold at \
         once: number {request} of all is beyond that; replay a sample of it with --trace-sample (`trace_sample` in a study)"
    )]
    TooManyInASecond { file: Arc<str>, request: u64, second: u64, most: usize },

    #[error("the thread that reads the trace {file} cannot be started: {source}")]
    Thread { file: Arc<str>, source: Arc<io::Error> },

    #[error("the thread that reads the trace {file} ended before the trace did")]
    ThreadDied { file: Arc<str> },
}

/// Why a record is malformed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordProblem {
    #[error(
        "it has {count} of the 7 fields `timestamp,key,key size,value size,client,operation,TTL`"
    )]
    Fields { count: usize },

    #[error("it has {count} fields instead of {of}")]
    Columns { count: usize, of: usize },

    #[error("the line is longer than {most} B")]
    TooLong { most: u64 },

    #[error("the {field} is not a whole number: `{text}`")]
    Number { field: &'static str, text: String },

    #[error("the {field} is {number}, above the limit of a replay, {most}")]
    TooLarge { field: &'static str, number: u64, most: u64 },

    #[error("no operation is called `{text}`; {hint}")]
    Operation { text: String, hint: String },

    #[error("no operation has the number {kind}")]
    Kind { kind: u64 },

    #[error(
        "it is a scan, which the store cannot do; --trace-skip-bad (`trace_skip_bad` in a study) leaves a number of them out"
    )]
    Scan,

    #[error("the key is empty")]
    EmptyKey,

    #[error("the key size is 0")]
    NoKeySize,

    #[error("the operation count is 0")]
    NoOperation,

    #[error("the key holds the byte {byte:#04x}, which no text protocol takes in a key")]
    KeyByte { byte: u8 },

    #[error("the key is not in hexadecimal digits behind `0x`: `{text}`")]
    HexKey { text: String },

    #[error("the time goes back, from {before} to {now}; sort the trace by its timestamps")]
    TimeGoesBack { before: u64, now: u64 },

    #[error("it does not begin with `{expected}`")]
    Header { expected: &'static str },

    #[error("its version is `{version}`; known are {known}")]
    Version { version: String, known: &'static str },

    #[error("the file ends within it: {have} of {of} B")]
    Cut { have: u64, of: u64 },

    #[error("its parts are longer than it is")]
    PayloadLength,

    #[error("its fields are not those of its type: {bits:#x}")]
    PayloadBits { bits: u64 },

    #[error("its batch of writes has the unknown tag {tag:#04x}")]
    BatchTag { tag: u8 },

    #[error("the key or the data is not of the length that the line announces")]
    ItemLength,

    #[error("it is not `SECONDS.MICROSECONDS [DATABASE ADDRESS] \"COMMAND\" \"ARGUMENT\" ...`")]
    MonitorLine,

    #[error("it is not `ts=SECONDS.MICROSECONDS gid=NUMBER type=TYPE key=KEY ...`")]
    WatchLine,

    #[error("a number in it is damaged")]
    Varint,

    #[error("the trace holds {have} requests and should hold {of}: it is damaged")]
    Requests { have: u64, of: u64 },

    #[error(
        "the trace ends without its mark of the end: its capture was killed, or the file is cut; \
         --trace-skip-bad 1 (`trace_skip_bad` in a study) takes what there is"
    )]
    Unfinished,

    #[error("its type of link is {number}; known are Ethernet, Linux cooked, loopback and raw IP")]
    LinkType { number: u16 },

    #[error(
        "{bytes} B of a connection before or in it were not captured; capture whole packets \
         (`tcpdump -s 0`) with a larger buffer (`-B`)"
    )]
    Lost { bytes: u32 },

    #[error("a connection goes on with what is no request of memcached or Redis")]
    Request,

    #[error("the command lacks arguments")]
    Arguments,
}

/// An excerpt of a line for messages.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const MOST: usize = 80;
    let shown = bytes[..bytes.len().min(MOST)].escape_ascii().to_string();
    if bytes.len() > MOST { format!("{shown}...") } else { shown }
}
