//! A study's check on one run.

use model::Run;
use model::design::CheckSpec;

use super::CheckExpression;
use super::error::CheckError;

/// The result of a check in one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckResult {
    Holds,
    /// A finding: the relation does not hold.
    Broken,
    /// Its `when` does not hold in this run.
    NotApplicable,
    /// It cannot be evaluated, with the reason.
    Unknown(String),
}

/// A check in a run, with the values of its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedRun {
    pub result: CheckResult,
    /// `latency_us.server.p99 is 83.1`; empty where the check does not apply.
    pub values: Vec<String>,
}

impl CheckedRun {
    /// The breach in a sentence; None if it is not broken.
    pub fn finding(&self, check: &CheckSpec) -> Option<String> {
        (self.result == CheckResult::Broken).then(|| {
            let why = check.why.as_ref().map_or(String::new(), |why| format!(" (expected: {why})"));
            format!("finding: `{}` does not hold: {}{why}", check.that, self.values.join(", "))
        })
    }
}

/// Evaluates one check in one run.
///
/// # Errors A check that cannot be read. A value that the run lacks is [`CheckResult::Unknown`].
pub fn judge(check: &CheckSpec, run: &Run) -> Result<CheckedRun, CheckError> {
    let that: CheckExpression = check.that.parse()?;
    if let Some(when) = &check.when {
        let when: CheckExpression = when.parse()?;
        match when.holds(run) {
            Ok(true) => {}
            Ok(false) => {
                return Ok(CheckedRun { result: CheckResult::NotApplicable, values: Vec::new() });
            }
            Err(reason) => {
                let reason = format!("whether it applies is not known: {reason}");
                return Ok(CheckedRun {
                    result: CheckResult::Unknown(reason),
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
    Ok(CheckedRun { result: ruling, values: that.values(run) })
}
