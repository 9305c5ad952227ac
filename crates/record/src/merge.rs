//! Results of several files in one: each run keeps its execution, and with it its machine.

use std::path::Path;

use crate::error::RecordError;
use crate::file::ResultsFile;
use crate::selection::RunSelection;
use model::{Execution, Run};

/// Writes the executions and runs of all parts to a new file, in one transaction. Files of
/// older schema versions are brought to this one's.
///
/// Errors: `out` exists; an execution that two of the parts hold; those of
/// [`ResultsFile::write_run`]. `out` is removed then.
pub fn merge(parts: &[RunSelection], out: &Path) -> Result<(), RecordError> {
    let mut all: Vec<(&Path, &Execution, Vec<&Run>)> = Vec::new();
    for part in parts {
        for execution in &part.executions {
            if let Some((first, ..)) = all.iter().find(|(_, known, _)| known.id == execution.id) {
                return Err(RecordError::ExecutionTwice {
                    first: first.to_path_buf(),
                    second: part.path.clone(),
                    id: execution.id.clone(),
                    study: execution.study.clone(),
                });
            }
            let own = part.runs.iter().filter(|run| run.execution == execution.id);
            all.push((&part.path, execution, own.collect()));
        }
    }
    let executions: Vec<(&Execution, Vec<&Run>)> =
        all.into_iter().map(|(_, execution, runs)| (execution, runs)).collect();
    let mut file = ResultsFile::create(out)?;
    let written = file.write_executions(&executions);
    if written.is_err() {
        drop(file);
        // The file is ours and empty.
        let _ = std::fs::remove_file(out);
    }
    written
}
