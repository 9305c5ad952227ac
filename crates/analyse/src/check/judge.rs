//! A study's check on one run.

use record::Run;
use record::design::CheckSpec;

use super::CheckExpression;
use super::parse::CheckError;

/// What a check says of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckResult {
    Holds,
    /// A finding: the relation does not hold.
    Broken,
    /// Its `when` does not apply to this run.
    NotAsked,
    /// It cannot be told, with the reason.
    Unknown(String),
}

/// A check on a run, with what its names stand for there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedRun {
    pub ruling: CheckResult,
    /// `latency_us.server.p99 is 83.1`; empty where the check is not asked.
    pub values: Vec<String>,
}

impl CheckedRun {
    /// The breach in a sentence; None if there is none.
    pub fn finding(&self, check: &CheckSpec) -> Option<String> {
        (self.ruling == CheckResult::Broken).then(|| {
            let why = check.why.as_ref().map_or(String::new(), |why| format!(" (expected: {why})"));
            format!("finding: `{}` does not hold: {}{why}", check.that, self.values.join(", "))
        })
    }
}

/// Rules on one check in one run.
///
/// # Errors
/// A check that cannot be read. What a run merely lacks is [`Ruling::Unknown`].
pub fn judge(check: &CheckSpec, run: &Run) -> Result<CheckedRun, CheckError> {
    let that: CheckExpression = check.that.parse()?;
    if let Some(when) = &check.when {
        let when: CheckExpression = when.parse()?;
        match when.holds(run) {
            Ok(true) => {}
            Ok(false) => {
                return Ok(CheckedRun { ruling: CheckResult::NotAsked, values: Vec::new() });
            }
            Err(reason) => {
                let reason = format!("whether it applies is not known: {reason}");
                return Ok(CheckedRun {
                    ruling: CheckResult::Unknown(reason),
                    values: when.values(run),
                });
            }
        }
    }
    let ruling = match that.holds(run) {
        Ok(true) => CheckResult::Holds,
        Ok(false) => CheckResult::Broken,
        Err(reason) => CheckResult::Unknown(reason),
    };
    Ok(CheckedRun { ruling, values: that.values(run) })
}
