//! The log: every record that was ever acknowledged and still lives, in segments.

mod copies;
pub(crate) mod flush;
pub(crate) mod past_cache;
pub(crate) mod reader;
pub(crate) mod replay;
pub(crate) mod segment;
pub(crate) mod staging;
mod stream_end;
mod writer;

pub(crate) use segment::{Cold, Segment};
pub(crate) use staging::Staging;
pub(crate) use writer::Writer;
