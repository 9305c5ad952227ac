//! What a person names on the command line: a file, and which of its runs.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::file::File;
use crate::filter::Filter;
use crate::run::{Execution, Run};

/// Runs of one results file with the executions that they belong to.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    pub path: PathBuf,
    pub filter: Filter,
    /// Those of the runs; every one of the file, those without a run too, if nothing is
    /// filtered.
    pub executions: Vec<Execution>,
    pub runs: Vec<Run>,
}

impl Selection {
    /// Reads `FILE` or `FILE?key=value&key=value`; see [`Filter`].
    pub fn open(text: &str) -> Result<Selection, Error> {
        let (path, filter) = split(text);
        let filter = match filter {
            Some(filter) => filter.parse()?,
            None => Filter::all(),
        };
        Selection::read(path, filter)
    }

    pub fn read(path: impl AsRef<Path>, filter: Filter) -> Result<Selection, Error> {
        let file = File::read(path)?;
        // Runs first: a writer may add an execution in between, but never take one away.
        let runs = file.runs(&filter)?;
        let mut executions = file.executions()?;
        if !filter.is_all() {
            executions.retain(|execution| runs.iter().any(|run| run.execution == execution.id));
        }
        Ok(Selection { path: file.path().to_owned(), filter, executions, runs })
    }

    /// Each run beside its execution: what [`export`](crate::export::export) takes.
    pub fn pairs(&self) -> Vec<(&Execution, &Run)> {
        let execution_of = |run: &Run| self.executions.iter().find(|e| e.id == run.execution);
        self.runs.iter().filter_map(|run| Some((execution_of(run)?, run))).collect()
    }
}

/// The path ends at the first `?` before which there is a file; so a path may contain one.
fn split(text: &str) -> (&str, Option<&str>) {
    if Path::new(text).is_file() {
        return (text, None);
    }
    let at = |position: usize| (&text[..position], Some(&text[position + 1..]));
    let marks = || text.match_indices('?').map(|(position, _)| position);
    match marks().find(|position| Path::new(&text[..*position]).is_file()) {
        Some(position) => at(position),
        None => marks().next().map_or((text, None), at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_contain_a_question_mark() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("why?.sqlite");
        std::fs::write(&odd, "x").unwrap();
        let odd = odd.to_str().unwrap();
        assert_eq!(split(odd), (odd, None));
        let filtered = format!("{odd}?store=a?b");
        assert_eq!(split(&filtered), (odd, Some("store=a?b")));
        assert_eq!(split("missing?a=b"), ("missing", Some("a=b")));
        assert_eq!(split("missing"), ("missing", None));
    }
}
