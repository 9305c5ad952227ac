//! How large a plan may be: every run of it is held in memory, in the results file, and on a page.

use crate::error::StudyError;

/// Runs of one plan.
const MAX_RUNS: u64 = 100_000;
/// Combinations of levels: each is planned as a study of its own.
pub(crate) const MAX_CELLS: usize = 10_000;

/// Refuses a plan before it is built; `place` is the flag or key that asks for so many repeats.
pub(crate) fn check_runs(place: &str, repeats: u32, runs_each: usize) -> Result<(), StudyError> {
    let runs = u64::from(repeats).saturating_mul(runs_each as u64);
    if runs <= MAX_RUNS {
        return Ok(());
    }
    let most = MAX_RUNS / (runs_each as u64).max(1);
    let each = if runs_each == 1 { "1 run".to_owned() } else { format!("{runs_each} runs") };
    let way_out = match most {
        0 => "plan fewer runs, and merge results files afterwards".to_owned(),
        _ => format!("use {most} repeats at most, and merge results files afterwards"),
    };
    Err(StudyError::Request(format!(
        "{place} {repeats}: with {each} in each repeat that is more than the {MAX_RUNS} runs that \
         a plan may have; {way_out}"
    )))
}
