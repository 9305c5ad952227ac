//! What the property files of a study say about its runs.

use super::spec::StudySpec;
use crate::error::StudyError;
use crate::ycsb_file::{RunPlace, note_run_properties};

/// [`note_run_properties`] of every property file that a study names.
///
/// # Errors
/// Those of opening a file.
pub fn note_run_properties_of(spec: &StudySpec) -> Result<Vec<String>, StudyError> {
    let from = spec.workloads.values().filter_map(|table| table.from.as_ref());
    let mut names: Vec<&str> =
        spec.sequence.iter().chain(from).map(|name| name.get_ref().as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .filter_map(|name| note_run_properties(name, RunPlace::Study).transpose())
        .collect()
}
