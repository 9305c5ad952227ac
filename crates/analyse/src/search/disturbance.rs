//! Whether a trial was disturbed by other load on the machine.

use model::Run;

use super::client::lateness_share as lateness;
use crate::foreign_load::foreign_load_share;

/// A run is disturbed if a CPU quota throttled the client in a larger share of its periods.
const MAX_THROTTLED: f64 = 0.1;
/// A run is disturbed if the hypervisor took a larger share of the CPU time.
const MAX_STOLEN: f64 = 0.05;
/// Other programs disturb a run if the CPUs are busier than this, others use more than this share,
/// and the client's lateness is a larger share of the mean response time than this.
const FULL_FROM: f64 = 0.9;
const MAX_FOREIGN_SHARE: f64 = 0.1;
const MAX_LATENESS: f64 = 0.1;

/// What disturbed a run so much that a failed rate may hold on a quiet machine.
pub(super) fn disturbance(run: &Run) -> Option<String> {
    let above = |signal: &str, limit: f64| run.value(signal).filter(|share| *share > limit);
    if let Some(share) = above("quota.throttled", MAX_THROTTLED) {
        let words = "a CPU quota held the client back in";
        return Some(format!("{words} {:.0} % of its periods", share * 100.0));
    }
    if let Some(share) = above("machine.steal", MAX_STOLEN) {
        return Some(format!("the hypervisor gave {:.0} % of the CPU time away", share * 100.0));
    }
    let full = run.value("machine.busy")? > FULL_FROM && lateness(run)? > MAX_LATENESS;
    let others = foreign_load_share(run).filter(|others| full && *others > MAX_FOREIGN_SHARE)?;
    Some(format!("other programs used {:.0} % of the machine's CPU time", others * 100.0))
}
