//! A results file and a selection of its runs, as named on the command line.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::error::RecordError;
use crate::file::ResultsFile;
use crate::filter::RunFilter;
use crate::read_extent::ReadExtent;
use model::{Execution, Run};

/// Runs that [`RunSelection::for_each`] holds in memory at once.
const BATCH: usize = 256;

/// Runs of one results file with the executions that they belong to.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSelection {
    pub path: PathBuf,
    pub filter: RunFilter,
    /// The executions of the runs; without a filter all of the file, even those without a run.
    pub executions: Vec<Execution>,
    pub runs: Vec<Run>,
}

impl RunSelection {
    /// Reads `FILE` or `FILE?key=value&key=value`; see [`RunFilter`].
    pub fn open(text: &str) -> Result<RunSelection, RecordError> {
        let (path, filter) = parse_target(text)?;
        RunSelection::read(path, filter)
    }

    pub fn read(path: impl AsRef<Path>, filter: RunFilter) -> Result<RunSelection, RecordError> {
        RunSelection::of(path.as_ref(), filter, usize::MAX, |_| ReadExtent::Whole)
    }

    /// As [`RunSelection::open`], but more than `listed` runs are read as an overview only
    /// ([`ReadExtent::Overview`]), with the readings that `extent` names.
    pub fn overview(
        text: &str,
        listed: usize,
        extent: impl FnOnce(&[Execution]) -> ReadExtent,
    ) -> Result<RunSelection, RecordError> {
        let (path, filter) = parse_target(text)?;
        RunSelection::of(Path::new(path), filter, listed, extent)
    }

    fn of(
        path: &Path,
        filter: RunFilter,
        listed: usize,
        extent: impl FnOnce(&[Execution]) -> ReadExtent,
    ) -> Result<RunSelection, RecordError> {
        let file = ResultsFile::read(path)?;
        let snapshot = file.snapshot()?;
        let keys = snapshot.matching_keys(&filter)?;
        let count = keys.as_ref().map_or_else(|| snapshot.count(), |keys| Ok(keys.len()))?;
        let overview = count > listed;
        let mut executions = snapshot.executions(overview)?;
        let extent = match overview {
            true => extent(&executions),
            false => ReadExtent::Whole,
        };
        let designed = executions.iter().filter(|execution| !execution.design.is_empty());
        let designed = designed.map(|execution| execution.id.clone()).collect();
        let runs = snapshot.runs(keys.as_ref(), &extent, &designed)?;
        drop(snapshot);
        if !filter.is_all() {
            let of: HashSet<&str> = runs.iter().map(|run| run.execution.as_str()).collect();
            executions.retain(|execution| of.contains(execution.id.as_str()));
        }
        Ok(RunSelection { path: file.path().to_owned(), filter, executions, runs })
    }

    /// Reads the runs one by one with their executions, by execution and ordinal, in bounded
    /// memory. Only the first execution on a machine has its facts, and planned runs have no
    /// settings.
    ///
    /// # Errors Those of [`RunSelection::open`] and of `read`.
    pub fn for_each<E: From<RecordError>>(
        text: &str,
        mut read: impl FnMut(&Execution, &Run) -> Result<(), E>,
    ) -> Result<(), E> {
        let (path, filter) = parse_target(text)?;
        let file = ResultsFile::read(path)?;
        let snapshot = file.snapshot()?;
        let mut keys = snapshot.keys()?;
        if let Some(chosen) = snapshot.matching_keys(&filter)? {
            keys.retain(|key| chosen.contains(key));
        }
        let executions = snapshot.executions(true)?;
        let of: HashMap<&str, &Execution> =
            executions.iter().map(|execution| (execution.id.as_str(), execution)).collect();
        for part in keys.chunks(BATCH) {
            let part = part.iter().copied().collect();
            for run in snapshot.runs(Some(&part), &ReadExtent::Whole, &HashSet::new())? {
                if let Some(execution) = of.get(run.execution.as_str()) {
                    read(execution, &run)?;
                }
            }
        }
        Ok(())
    }

    /// Each execution with its runs.
    pub fn by_execution(self) -> Vec<(Execution, Vec<Run>)> {
        let mut of: HashMap<String, Vec<Run>> = HashMap::new();
        for run in self.runs {
            of.entry(run.execution.clone()).or_default().push(run);
        }
        let with_runs = |execution: Execution| {
            let runs = of.remove(&execution.id).unwrap_or_default();
            (execution, runs)
        };
        self.executions.into_iter().map(with_runs).collect()
    }

    /// Each run with its execution: what [`export`](crate::export::export) takes.
    pub fn pairs(&self) -> Vec<(&Execution, &Run)> {
        let of: HashMap<&str, &Execution> =
            self.executions.iter().map(|execution| (execution.id.as_str(), execution)).collect();
        self.runs.iter().filter_map(|run| Some((*of.get(run.execution.as_str())?, run))).collect()
    }
}

fn parse_target(text: &str) -> Result<(&str, RunFilter), RecordError> {
    let (path, filter) = split_target(text);
    Ok((path, filter.map_or_else(|| Ok(RunFilter::all()), str::parse)?))
}

/// The path ends at the first `?` before which there is a file; so a path may contain one.
fn split_target(text: &str) -> (&str, Option<&str>) {
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
        assert_eq!(split_target(odd), (odd, None));
        let filtered = format!("{odd}?store=a?b");
        assert_eq!(split_target(&filtered), (odd, Some("store=a?b")));
        assert_eq!(split_target("missing?a=b"), ("missing", Some("a=b")));
        assert_eq!(split_target("missing"), ("missing", None));
    }
}
