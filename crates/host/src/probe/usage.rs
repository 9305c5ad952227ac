//! `getrusage` of the whole process, ended threads included.

use model::Unavailable;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::root::Root;
use crate::unavailable::live_only;

/// What the process has used since it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub user_us: u64,
    pub system_us: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

impl Usage {
    pub fn cpu_seconds(&self) -> f64 {
        (self.user_us + self.system_us) as f64 * 1e-6
    }
}

/// Only the running kernel knows it: a recorded machine does not.
pub(super) fn usage(root: &Root) -> Result<Usage, Unavailable> {
    used_by(root, UsageWho::RUSAGE_SELF)
}

/// The same of children that have ended and were waited for, and of their children.
pub(super) fn usage_of_children(root: &Root) -> Result<Usage, Unavailable> {
    used_by(root, UsageWho::RUSAGE_CHILDREN)
}

fn used_by(root: &Root, who: UsageWho) -> Result<Usage, Unavailable> {
    if !root.is_live() {
        return Err(live_only("getrusage"));
    }
    let usage = getrusage(who).map_err(|error| {
        Unavailable::new(format!("getrusage failed: {error}"), "allow the call in the sandbox")
    })?;
    let count = |value: i64| u64::try_from(value).unwrap_or(0);
    Ok(Usage {
        user_us: count(usage.user_time().num_microseconds()),
        system_us: count(usage.system_time().num_microseconds()),
        minor_faults: count(usage.minor_page_faults()),
        major_faults: count(usage.major_page_faults()),
        voluntary_switches: count(usage.voluntary_context_switches()),
        involuntary_switches: count(usage.involuntary_context_switches()),
    })
}
