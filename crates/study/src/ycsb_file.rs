//! Property files of YCSB as workload files.

use std::path::Path;

use workload::YcsbWorkload;

use crate::error::StudyError;
use crate::workload_file::MAX_BYTES;

/// Whether a name of a workload is that of a property file of YCSB.
pub fn is_ycsb_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "properties")
}

/// Reads a property file.
///
/// # Errors
/// It cannot be read, or has a property that kvmeter does not have; with the file and the line.
pub(crate) fn open_ycsb(path: &Path) -> Result<YcsbWorkload, StudyError> {
    let bytes = safe_file::read_bytes(path, MAX_BYTES)
        .map_err(|error| StudyError::Request(error.to_string()))?;
    YcsbWorkload::parse(&bytes)
        .map_err(|error| StudyError::Request(format!("{}: {error}", path.display())))
}

/// Where a user can say how to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPlace {
    /// Flags of `bench`.
    Bench,
    /// Flags of `search`, which finds rate and number of operations itself.
    Search,
    /// A study's `[measure]`.
    Study,
}

/// What the property file of this name says about a run, which is no part of a workload: a sentence
/// with where to say it. None where it says nothing, and for any other workload.
///
/// # Errors
/// Those of opening the file.
pub fn note_run_properties(name: &str, place: RunPlace) -> Result<Option<String>, StudyError> {
    if !is_ycsb_file(name) {
        return Ok(None);
    }
    let mut run = open_ycsb(Path::new(name))?.run;
    if place == RunPlace::Search {
        run.retain(|property| property.key == "threads");
    }
    if run.is_empty() {
        return Ok(None);
    }
    let in_study = place == RunPlace::Study;
    let given: Vec<String> = run
        .iter()
        .map(|property| match in_study {
            true => format!("{} = \"{}\"", property.key, property.value),
            false => format!("{} {}", property.flag, property.value),
        })
        .collect();
    let place = if in_study { "in [measure]" } else { "as flags" };
    Ok(Some(format!(
        "{name} also says how to run, which is no part of a workload; give it {place}: {}",
        given.join(if in_study { ", " } else { " " })
    )))
}
