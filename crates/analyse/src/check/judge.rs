//! A study's check on one run.

use record::Run;
use record::design::Check;

use super::Relation;
use super::parse::CheckError;

/// What a check says of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
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
pub struct Judged {
    pub ruling: Ruling,
    /// `latency_us.server.p99 is 83.1`; empty where the check is not asked.
    pub values: Vec<String>,
}

impl Judged {
    /// The breach in a sentence; None if there is none.
    pub fn finding(&self, check: &Check) -> Option<String> {
        (self.ruling == Ruling::Broken).then(|| {
            let why = check.why.as_ref().map_or(String::new(), |why| format!(" (expected: {why})"));
            format!("finding: `{}` does not hold: {}{why}", check.that, self.values.join(", "))
        })
    }
}

/// Rules on one check in one run.
///
/// # Errors
/// A check that cannot be read. What a run merely lacks is [`Ruling::Unknown`].
pub fn judge(check: &Check, run: &Run) -> Result<Judged, CheckError> {
    let that: Relation = check.that.parse()?;
    if let Some(when) = &check.when {
        let when: Relation = when.parse()?;
        match when.holds(run) {
            Ok(true) => {}
            Ok(false) => return Ok(Judged { ruling: Ruling::NotAsked, values: Vec::new() }),
            Err(reason) => {
                let reason = format!("whether it applies is not known: {reason}");
                return Ok(Judged { ruling: Ruling::Unknown(reason), values: when.values(run) });
            }
        }
    }
    let ruling = match that.holds(run) {
        Ok(true) => Ruling::Holds,
        Ok(false) => Ruling::Broken,
        Err(reason) => Ruling::Unknown(reason),
    };
    Ok(Judged { ruling, values: that.values(run) })
}
