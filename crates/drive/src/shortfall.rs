//! Less than was asked for, where what there was came to its end first.

use std::time::Duration;

use crate::outcome::PhaseOutcome;
use crate::plan::{LoadPlan, PhaseKind};

/// A window shorter than this part of the time that was asked for is worth a word: a trace has
/// whole seconds, and its last request need not be at the end of one.
const MOST_OF_IT: f64 = 0.9;

/// What a reader should know where the trace, or the records of a load, did not suffice for the
/// operations or the time that were asked for.
pub(crate) fn told(plan: &LoadPlan, records: u64, outcome: &PhaseOutcome) -> Option<String> {
    if plan.what == PhaseKind::Load {
        let asked = plan.until.operations.filter(|asked| *asked > records)?;
        return Some(format!(
            "the load has {records} records, fewer than the {asked} operations that were asked for"
        ));
    }
    let replay = plan.trace.as_deref()?;
    let replayed = outcome.replayed.as_ref()?;
    if !replayed.ended || replayed.error.is_some() {
        return None;
    }
    let requests = replayed.requests;
    if let Some(asked) = replay.most.filter(|asked| *asked > requests) {
        return Some(format!(
            "the trace has {requests} requests, fewer than the {asked} that were asked for"
        ));
    }
    let cut_by_count = replay.most == Some(requests);
    let time = plan.until.time.as_ref().map(Duration::as_secs_f64)?;
    (!cut_by_count && outcome.seconds < MOST_OF_IT * time).then(|| {
        format!(
            "the trace ended after {:.3} s of the {time} s that were asked for",
            outcome.seconds
        )
    })
}
