//! The value log: all acknowledged live records, in segments.

mod cache_timing;
pub(crate) mod direct_io;
pub(crate) mod flush;
pub(crate) mod reader;
pub(crate) mod replay;
pub(crate) mod segment;
mod settled;
mod slot_write;
pub(crate) mod staging;
mod stream_writer;
mod writer;

pub(crate) use segment::{ColdReadMode, Segment};
pub(crate) use staging::Staging;
pub(crate) use writer::{LogWriter, ReservedSpace};
