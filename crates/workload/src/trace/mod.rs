//! Replay of recorded requests: Twitter's cache traces.
//!
//! Format: <https://github.com/twitter/cache-trace>; Yang et al., "A large scale analysis of
//! hundreds of in-memory cache clusters at Twitter", OSDI 2020. A line is a request:
//! `timestamp,key,key size,value size,client,operation,TTL`, with the time in whole seconds and
//! sizes in bytes. A key may hold commas.
//!
//! A [`TraceReader`] reads a file, or standard input, plain or compressed, one second at a time:
//! memory does not grow with the file. [`TraceReader::feed`] divides it over client threads.

mod chunk;
mod distinct;
mod error;
mod feed;
mod key;
mod line;
mod operation;
mod reader;
mod source;
mod spread;
mod summary;
mod zstd;

pub use chunk::{RequestChunk, TraceRequest};
pub use error::{LineProblem, TraceError};
pub use feed::{FeedItem, TraceFeed};
pub use key::KeyFit;
pub use operation::TraceOp;
pub use reader::{MOST_A_SECOND, TraceReader};
pub use spread::ArrivalSpread;
pub use summary::TraceSummary;
