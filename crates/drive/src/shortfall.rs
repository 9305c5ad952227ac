//! Warns where a source had fewer operations than the phase was to run.

use std::time::Duration;

use crate::outcome::PhaseOutcome;
use crate::plan::{LoadPlan, PhaseKind};

/// Minimum share of the requested time without a warning: a trace has whole seconds, and its last
/// request need not be at the end of one.
const MIN_SHARE: f64 = 0.9;

/// A warning where the trace, or the records of a load, did not suffice for the requested
/// operations or time.
pub(crate) fn warning(plan: &LoadPlan, records: u64, outcome: &PhaseOutcome) -> Option<String> {
    if plan.phase == PhaseKind::Load {
        let requested = plan.shape.until.operations.filter(|requested| *requested > records)?;
        return Some(format!(
            "the load has {records} records, fewer than the {requested} operations requested"
        ));
    }
    let replay = plan.trace.as_deref()?;
    let replayed = outcome.replayed.as_ref()?;
    if !replayed.ended || replayed.error.is_some() {
        return None;
    }
    let requests = replayed.requests;
    if let Some(requested) = replay.most.filter(|requested| *requested > requests) {
        return Some(format!(
            "the trace has {requests} requests, fewer than the {requested} requested"
        ));
    }
    let cut_by_count = replay.most == Some(requests);
    let time = plan.shape.until.time.as_ref().map(Duration::as_secs_f64)?;
    (!cut_by_count && outcome.seconds < MIN_SHARE * time).then(|| {
        format!("the trace ended after {:.3} s of the {time} s requested", outcome.seconds)
    })
}
