//! Whether a trial tells of the server or of a machine that was busy with something else.

use record::Run;

use super::client::lateness_share as lateness;
use crate::others::others_share;

/// A CPU quota that held the client back in a larger share of its periods decided what was seen.
const THROTTLED: f64 = 0.1;
/// So does a hypervisor that took more than this of the CPU time.
const STOLEN: f64 = 0.05;
/// Others take from a trial only where the CPUs have no time left: above this share of them busy,
/// with more than this of it for others. And it shows: the client's own part of the mean response
/// is more than this.
const FULL: f64 = 0.9;
const OTHERS: f64 = 0.1;
const LATE: f64 = 0.1;

/// What disturbed a run so much that a rate that did not hold may hold on a quiet machine.
pub(super) fn disturbance(run: &Run) -> Option<String> {
    let above = |signal: &str, limit: f64| run.value(signal).filter(|share| *share > limit);
    if let Some(share) = above("quota.throttled", THROTTLED) {
        let words = "a CPU quota held the client back in";
        return Some(format!("{words} {:.0} % of its periods", share * 100.0));
    }
    if let Some(share) = above("machine.steal", STOLEN) {
        return Some(format!("the hypervisor gave {:.0} % of the CPU time away", share * 100.0));
    }
    let full = run.value("machine.busy")? > FULL && lateness(run)? > LATE;
    let others = others_share(run).filter(|others| full && *others > OTHERS)?;
    Some(format!("other programs used {:.0} % of the machine's CPU time", others * 100.0))
}
