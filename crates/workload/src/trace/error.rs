//! Errors in traces, with the file and the line.

use std::io;
use std::sync::Arc;

use thiserror::Error;

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
    Line { file: Arc<str>, line: u64, problem: LineProblem, text: String },

    #[error(
        "{file}:{line}: second {second} of the trace has more than {most} requests, too many to \
         hold at once; replay a sample of it"
    )]
    TooManyInASecond { file: Arc<str>, line: u64, second: u64, most: usize },

    #[error("the thread that reads the trace {file} cannot be started: {source}")]
    Thread { file: Arc<str>, source: Arc<io::Error> },

    #[error("the thread that reads the trace {file} ended before the trace did")]
    ThreadDied { file: Arc<str> },
}

/// Why a line is invalid. The fields: timestamp, key, key size, value size, client, operation, TTL.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineProblem {
    #[error(
        "it has {count} of the 7 fields `timestamp,key,key size,value size,client,operation,TTL`"
    )]
    Fields { count: usize },

    #[error("the line is longer than {most} B")]
    TooLong { most: u64 },

    #[error("the {field} is not a whole number: `{text}`")]
    Number { field: &'static str, text: String },

    #[error("the {field} is {number}, above the limit of a replay, {most}")]
    TooLarge { field: &'static str, number: u64, most: u64 },

    #[error("no operation is called `{text}`; {hint}")]
    Operation { text: String, hint: String },

    #[error("the key is empty")]
    EmptyKey,

    #[error("the key size is 0")]
    NoKeySize,

    #[error("the key holds the byte {byte:#04x}, which no text protocol takes in a key")]
    KeyByte { byte: u8 },

    #[error("the time goes back, from {before} to {now}; sort the trace by its timestamps")]
    TimeGoesBack { before: u64, now: u64 },
}

/// An excerpt of a line for messages.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const MOST: usize = 80;
    let shown = bytes[..bytes.len().min(MOST)].escape_ascii().to_string();
    if bytes.len() > MOST { format!("{shown}...") } else { shown }
}
