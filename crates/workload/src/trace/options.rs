//! How a trace is read.

use super::TraceFormat;

/// How a trace is read. The default reads all of it once and stops at the first malformed record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceOptions {
    /// The format, where the content is not to tell it.
    pub format: Option<TraceFormat>,
    /// Malformed records that are left out; one more is an error.
    pub skip_bad: u64,
    /// The share of the keys that are read, with all of their requests: above 0, at most 1.
    pub sample: f64,
    /// How many times each request is issued, each time with keys of its own.
    pub copies: u32,
    /// Keys hold only what text protocols take; others are replaced by letters of their hash.
    pub text_keys: bool,
    /// A request may be a scan; else it is malformed.
    pub scans: bool,
}

impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions {
            format: None,
            skip_bad: 0,
            sample: 1.0,
            copies: 1,
            text_keys: true,
            scans: true,
        }
    }
}

/// The most copies of a trace.
pub const MOST_COPIES: u32 = 10_000;
