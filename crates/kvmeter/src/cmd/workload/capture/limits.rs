//! What ends a capture.

use std::fmt;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use workload::trace::{TraceError, TraceWriter};

use super::CaptureArgs;

/// Requests between two looks at the clock.
const EVERY: u64 = 256;

/// Why a capture ended.
#[derive(Debug)]
pub enum CaptureEnd {
    Time,
    Operations,
    Size,
    /// The log fell behind the server.
    Lag,
    /// A signal.
    Stopped,
    /// The server ended the log.
    Closed,
    /// The source is over.
    Source,
    Failed(TraceError),
}

impl CaptureEnd {
    pub fn name(&self) -> &'static str {
        match self {
            CaptureEnd::Time => "time",
            CaptureEnd::Operations => "operations",
            CaptureEnd::Size => "size",
            CaptureEnd::Lag => "lag",
            CaptureEnd::Stopped => "stopped",
            CaptureEnd::Closed => "closed",
            CaptureEnd::Source => "source",
            CaptureEnd::Failed(_) => "failed",
        }
    }
}

impl fmt::Display for CaptureEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CaptureEnd::Time => "it ended after its time",
            CaptureEnd::Operations => "it ended with --ops",
            CaptureEnd::Size => "it ended at --max-size",
            CaptureEnd::Lag => {
                "it ended because the server's log fell behind by more than --max-lag"
            }
            CaptureEnd::Stopped => "it was stopped",
            CaptureEnd::Closed => "it ended early: the server ended, or closed the connection",
            CaptureEnd::Source => "it is all of the source",
            CaptureEnd::Failed(_) => "it ended with an error",
        })
    }
}

/// The limits of a capture.
pub struct Limits {
    /// It is a server's log, and until when that is read.
    is_server: bool,
    until: Option<Instant>,
    operations: u64,
    bytes: u64,
    lag: Option<Duration>,
    /// The least difference of this clock to the server's so far.
    least_lag_ns: i128,
}

impl Limits {
    /// `lags`: the log waits for its reader. memcached's leaves lines out instead.
    pub fn of(args: &CaptureArgs, is_server: bool, until: Option<Instant>, lags: bool) -> Limits {
        Limits {
            is_server,
            until,
            operations: args.operations.map_or(u64::MAX, |count| count.0),
            bytes: args.max_size.0,
            lag: lags.then_some(args.max_lag.0),
            least_lag_ns: i128::MAX,
        }
    }

    /// The limit that was reached with this request. That of time ends the log, whose last requests
    /// are still taken.
    pub fn reached<W: Write>(&mut self, writer: &TraceWriter<W>, at_ns: u64) -> Option<CaptureEnd> {
        if writer.requests() >= self.operations {
            return Some(CaptureEnd::Operations);
        }
        if writer.bytes() >= self.bytes {
            return Some(CaptureEnd::Size);
        }
        let lag = self.lag.filter(|_| writer.requests().is_multiple_of(EVERY))?;
        // The clocks of two machines differ, but not by more and more.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let lag_ns = now.as_nanos() as i128 - i128::from(at_ns);
        self.least_lag_ns = self.least_lag_ns.min(lag_ns);
        let behind = lag_ns - self.least_lag_ns;
        (behind > lag.as_nanos() as i128).then_some(CaptureEnd::Lag)
    }

    /// Why there are no more requests.
    pub fn at_the_end(&self) -> CaptureEnd {
        let is_late = self.until.is_some_and(|until| Instant::now() >= until);
        match (self.is_server, is_late) {
            (false, _) => CaptureEnd::Source,
            (true, true) => CaptureEnd::Time,
            (true, false) => CaptureEnd::Closed,
        }
    }
}
