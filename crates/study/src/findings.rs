//! A study's checks on a run that has just ended.

use analyse::check::judge;
use record::Run;
use record::design::CheckSpec;

/// Each breach in a sentence. What cannot be told is no finding; the report lists it.
pub(crate) fn findings(checks: &[CheckSpec], run: &Run) -> Vec<String> {
    checks
        .iter()
        .filter_map(|check| match judge(check, run) {
            Ok(judged) => judged.finding(check),
            // Every check of a plan was read when it was planned.
            Err(error) => Some(error.to_string()),
        })
        .collect()
}
