//! The requests of a workload, described as those of a trace.

use model::{Op, ProfileCursor, RateProfile};

use crate::describe::{Describer, MOST_SAMPLED_KEYS, TraceDescription};
use crate::trace::{TraceKey, TraceOp, TraceRecord, TraceTiming};
use crate::{Operation, Workload};

const SECOND: f64 = 1e9;

/// Calls `with` for the first operations of a workload.
pub(super) fn for_each(workload: &Workload, operations: u64, mut with: impl FnMut(&Operation)) {
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
    const OFTEN: u64 = 1 << 18;
    let mut describer = Describer::new(timing, MOST_SAMPLED_KEYS);
    let mut clock = Clock::new(like, timing, profile);
    let (mut key, mut requests) = (Vec::new(), 0);
    let keys = u64::from(workload.spec().multi_get);
    for_each(workload, like.requests.div_ceil(keys), |operation| {
        let at_ns = clock.next();
        for nth in 0..operation.keys {
            let record = workload.nth(operation, nth);
            workload.key(record, &mut key);
            let value_size = workload.value_length(&key, operation.salt);
            describer.add(&TraceRecord {
                at_ns,
                operation: trace_op(operation.op),
                key: TraceKey::Number(record),
                key_size: Some(key.len() as u32),
                value_size: (operation.op != Op::Delete).then_some(value_size as u32),
                expiry: operation.op.writes().then(|| workload.expiry(operation.salt)),
            });
            requests += 1;
            if requests % OFTEN == 0 {
                progress(requests);
            }
        }
    });
    describer.finish()
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
