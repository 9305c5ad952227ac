//! A study's checks on a run that has just ended.

use analyse::check::judge;
use model::Run;
use model::design::CheckSpec;

/// A sentence for each failed check. Checks that cannot be evaluated are listed by the report.
pub(crate) fn findings(checks: &[CheckSpec], run: &Run) -> Vec<String> {
    checks
        .iter()
        .filter_map(|check| match judge(check, run) {
            Ok(judged) => judged.finding(check),
            // Unreachable: checks are parsed when the study is planned.
            Err(error) => Some(error.to_string()),
        })
        .collect()
}
