//! The replay of a recorded trace: what is replayed, and what came of it.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workload::SizedValues;
use workload::trace::{ArrivalSpread, TraceCounts, TraceError, TraceOptions, TraceReader};

/// A trace that is replayed instead of a workload's operations. Each thread has the requests of
/// some of the keys, in the order of the trace.
#[derive(Debug, Clone)]
pub struct Replay {
    /// `-` is standard input, which can be read once.
    pub file: PathBuf,
    pub options: TraceOptions,
    /// Distribution of requests within their second; unused unless the pacing is recorded.
    pub spread: ArrivalSpread,
    /// Maximum number of requests, warm-up included; None: all of them.
    pub most: Option<u64>,
    pub values: Arc<SizedValues>,
    /// Refill misses with a value of the size in the trace, unless that is 0.
    pub refill: bool,
}

impl Replay {
    pub(crate) fn open(&self) -> Result<TraceReader, TraceError> {
        TraceReader::with(&self.file, &self.options)
    }
}

/// Statistics of a replay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaySummary {
    /// Requests taken from the trace, warm-up included.
    pub requests: u64,
    /// Those whose key was cut or lengthened to the key size in the trace.
    pub cut: u64,
    pub lengthened: u64,
    /// Those whose key is letters of its hash: the store does not take its bytes.
    #[serde(default)]
    pub hashed: u64,
    /// Requests of the window that were read from the file after they were due.
    pub read_late: u64,
    /// For each second of the window: the requests that were due in it, and those of them that
    /// were answered within a second. Empty in a closed loop.
    pub seconds: Vec<(u64, u64)>,
    /// A header line that was skipped.
    #[serde(default)]
    pub header: Option<String>,
    /// Malformed records that were left out, and records that request no value.
    #[serde(default)]
    pub skipped: u64,
    #[serde(default)]
    pub ignored: u64,
    /// The error that ended the trace early, with its place.
    pub error: Option<String>,
    /// Ticks for which a thread waited for the file.
    pub(crate) starved: u64,
    /// This thread reached the end of its part of the trace, or the error that ended it.
    pub(crate) ended: bool,
}

impl ReplaySummary {
    /// Counts a request that was due so many ticks after the opening of the window.
    #[inline]
    pub(crate) fn count(&mut self, due_after: u64, ticks_a_second: u64, in_time: bool) {
        let second = (due_after / ticks_a_second.max(1)) as usize;
        if second >= self.seconds.len() {
            self.seconds.resize(second + 1, (0, 0));
        }
        let (due, answered) = &mut self.seconds[second];
        *due += 1;
        *answered += u64::from(in_time);
    }

    /// Takes over what the reader left out; returns a warning where that was malformed.
    pub(crate) fn left_out(&mut self, counts: &TraceCounts) -> Option<String> {
        (self.skipped, self.ignored) = (counts.skipped(), counts.ignored());
        (self.skipped > 0)
            .then(|| format!("malformed records of the trace that were left out: {}", self.skipped))
    }

    pub(crate) fn add(&mut self, other: ReplaySummary) {
        self.cut += other.cut;
        self.lengthened += other.lengthened;
        self.hashed += other.hashed;
        self.read_late += other.read_late;
        if self.seconds.len() < other.seconds.len() {
            self.seconds.resize(other.seconds.len(), (0, 0));
        }
        for ((due, answered), (more_due, more_answered)) in
            self.seconds.iter_mut().zip(other.seconds)
        {
            *due += more_due;
            *answered += more_answered;
        }
        self.header = self.header.take().or(other.header);
        self.error = self.error.take().or(other.error);
        self.starved += other.starved;
    }
}
