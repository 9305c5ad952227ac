//! The requests of a workload, described as those of a trace.

use model::{Op, ProfileCursor, RateProfile};

use crate::describe::{Describer, MOST_SAMPLED_KEYS, TraceDescription};
use crate::trace::{TraceKey, TraceOp, TraceRecord, TraceTiming};
use crate::{Operation, Workload};

const SECOND: f64 = 1e9;

/// Calls `with` for the first operations of a workload.
/// Returns their fingerprint.
pub(super) fn for_each(
    workload: &Workload,
    operations: u64,
    mut with: impl FnMut(&Operation),
) -> u64 {
    let mut stream = workload.stream();
    let (mut left, mut block) = (operations, 0);
    while left > 0 {
        stream.seek(block);
        while left > 0
            && let Some(operation) = stream.next(u64::MAX)
        {
            with(&operation);
            left -= 1;
        }
        block += 1;
    }
    stream.fingerprint()
}

/// Describes the first operations of a workload, without times, and returns their fingerprint, as
/// a run reports it.
pub fn describe_stream(
    workload: &Workload,
    operations: u64,
    mut progress: impl FnMut(u64),
) -> (TraceDescription, u64) {
    let mut taker = RequestTaker::new(workload, TraceTiming::Untimed);
    let fingerprint = for_each(workload, operations, |operation| {
        taker.add(operation, 0, &mut progress);
    });
    (taker.describer.finish(), fingerprint)
}

/// Describes the requests of operations.
struct RequestTaker<'w> {
    workload: &'w Workload,
    describer: Describer,
    key: Vec<u8>,
    requests: u64,
}

impl RequestTaker<'_> {
    fn new(workload: &Workload, timing: TraceTiming) -> RequestTaker<'_> {
        let describer = Describer::new(timing, MOST_SAMPLED_KEYS);
        RequestTaker { workload, describer, key: Vec::new(), requests: 0 }
    }

    /// An operation that is due at that time.
    fn add(&mut self, operation: &Operation, at_ns: u64, progress: &mut impl FnMut(u64)) {
        const OFTEN: u64 = 1 << 18;
        let RequestTaker { workload, key, .. } = self;
        for nth in 0..operation.keys {
            let record = workload.nth(operation, nth);
            workload.key(record, key);
            let value_size = workload.value_length(key, operation.salt);
            self.describer.add(&TraceRecord {
                at_ns,
                operation: trace_op(operation.op),
                key: TraceKey::Number(record),
                key_size: Some(key.len() as u32),
                value_size: (operation.op != Op::Delete).then_some(value_size as u32),
                expiry: operation.op.writes().then(|| workload.expiry(operation.salt)),
            });
            self.requests += 1;
            if self.requests.is_multiple_of(OFTEN) {
                progress(self.requests);
            }
        }
    }
}

/// Describes so many requests of a workload, as that trace is described. They are spread evenly
/// over the profile, or at the mean rate.
pub fn describe_generated(
    workload: &Workload,
    like: &TraceDescription,
    timing: TraceTiming,
    profile: Option<&RateProfile>,
    mut progress: impl FnMut(u64),
) -> TraceDescription {
    let mut taker = RequestTaker::new(workload, timing);
    let mut clock = Clock::new(like, timing, profile);
    let keys = u64::from(workload.spec().multi_get);
    for_each(workload, like.requests.div_ceil(keys), |operation| {
        let at_ns = clock.next();
        taker.add(operation, at_ns, &mut progress);
    });
    taker.describer.finish()
}

fn trace_op(op: Op) -> TraceOp {
    match op {
        Op::Read => TraceOp::Get,
        Op::Scan => TraceOp::Seek,
        Op::Delete => TraceOp::Delete,
        Op::Update | Op::Insert | Op::ReadModifyWrite => TraceOp::Set,
    }
}

/// When requests are due.
struct Clock {
    timing: TraceTiming,
    cursor: Option<ProfileCursor>,
    /// Between two requests: seconds at the mean rate, or the integral of the profile.
    step: f64,
    now: f64,
}

impl Clock {
    fn new(like: &TraceDescription, timing: TraceTiming, profile: Option<&RateProfile>) -> Clock {
        let seconds = like.duration_s.unwrap_or(0.0);
        let requests = like.requests.max(1) as f64;
        let cursor = profile.map(|profile| ProfileCursor::new(profile.clone()));
        let area = profile.map_or(seconds, |profile| profile.integral(seconds));
        Clock { timing, cursor, step: area / requests, now: 0.0 }
    }

    fn next(&mut self) -> u64 {
        let at = match &mut self.cursor {
            None => self.now,
            Some(cursor) => cursor.advance(if self.now == 0.0 { 0.0 } else { self.step }),
        };
        self.now += self.step;
        match self.timing {
            TraceTiming::Untimed => 0,
            TraceTiming::Exact => (at * SECOND) as u64,
            TraceTiming::Seconds => at as u64 * SECOND as u64,
        }
    }
}
