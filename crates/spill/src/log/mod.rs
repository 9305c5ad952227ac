//! The log: every record that was ever acknowledged and still lives, in segments.

pub(crate) mod replay;
pub(crate) mod segment;
pub(crate) mod staging;
mod writer;

pub(crate) use segment::{Cold, Segment, Stream};
pub(crate) use staging::Staging;
pub(crate) use writer::Writer;
