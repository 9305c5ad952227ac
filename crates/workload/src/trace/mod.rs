//! Recorded requests, in every format of traces that is common, and their replay.
//!
//! [`TraceRecords`] reads a file, or standard input, plain or compressed, as a stream of
//! [`TraceRecord`]s, whatever its format: memory does not grow with the file. [`TraceReader`] makes
//! of them the requests of a replay, one second at a time, and [`TraceReader::feed`] divides these
//! over client threads. A format is a file in `decode`.

mod chunk;
mod decode;
mod distinct;
mod error;
mod feed;
mod format;
mod input;
mod key;
mod number;
mod operation;
mod options;
mod reader;
mod record;
mod records;
mod source;
mod spread;
mod summary;
mod varint;
mod write;
mod zstd;

pub use chunk::{RequestChunk, TraceRequest};
pub(crate) use distinct::DistinctCounter;
pub use error::{RecordProblem, TraceError};
pub use feed::{FeedItem, TraceFeed};
pub use format::{TraceFormat, TraceTiming};
pub use key::{KeyFit, LONGEST as LONGEST_KEY};
pub use operation::TraceOp;
pub use options::{MOST_COPIES, TraceOptions};
pub use reader::{MOST_A_SECOND, TraceReader};
pub use record::{TraceKey, TraceRecord};
pub use records::{TraceCounts, TraceRecords};
pub use spread::ArrivalSpread;
pub use summary::TraceSummary;
pub use write::{HashedKey, KeyHasher, SECRET, TraceWriter};
