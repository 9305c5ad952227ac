//! What a person names on the command line: a file, and which of its runs.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::extent::ReadExtent;
use crate::file::ResultsFile;
use crate::filter::RunFilter;
use crate::run::{Execution, Run};

/// So many runs of those that are read one after the other are in memory at once.
const AT_ONCE: usize = 256;

/// Runs of one results file with the executions that they belong to.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSelection {
    pub path: PathBuf,
    pub filter: RunFilter,
    /// Those of the runs; every one of the file, those without a run too, if nothing is
    /// filtered.
    pub executions: Vec<Execution>,
    pub runs: Vec<Run>,
}

impl RunSelection {
    /// Reads `FILE` or `FILE?key=value&key=value`; see [`Filter`].
    pub fn open(text: &str) -> Result<RunSelection, Error> {
        let (path, filter) = named(text)?;
        RunSelection::read(path, filter)
    }

    pub fn read(path: impl AsRef<Path>, filter: RunFilter) -> Result<RunSelection, Error> {
        RunSelection::of(path.as_ref(), filter, usize::MAX, |_| ReadExtent::Whole)
    }

    /// As [`Selection::open`], but of more than `listed` runs only an overview is read
    /// ([`Extent::Overview`]), with the readings that `extent` names.
    pub fn overview(
        text: &str,
        listed: usize,
        extent: impl FnOnce(&[Execution]) -> ReadExtent,
    ) -> Result<RunSelection, Error> {
        let (path, filter) = named(text)?;
        RunSelection::of(Path::new(path), filter, listed, extent)
    }

    fn of(
        path: &Path,
        filter: RunFilter,
        listed: usize,
        extent: impl FnOnce(&[Execution]) -> ReadExtent,
    ) -> Result<RunSelection, Error> {
        let file = ResultsFile::read(path)?;
        let snapshot = file.snapshot()?;
        let keys = snapshot.choose(&filter)?;
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

    /// Reads each run, whole, beside its execution, by execution and ordinal, as it is needed: a
    /// file takes no more memory for being long. Of the executions the facts of a machine stand in
    /// the first on it alone, and what is planned has no settings.
    ///
    /// # Errors
    /// Those of [`Selection::open`], and what `read` ends with.
    pub fn each<E: From<Error>>(
        text: &str,
        mut read: impl FnMut(&Execution, &Run) -> Result<(), E>,
    ) -> Result<(), E> {
        let (path, filter) = named(text)?;
        let file = ResultsFile::read(path)?;
        let snapshot = file.snapshot()?;
        let mut keys = snapshot.keys()?;
        if let Some(chosen) = snapshot.choose(&filter)? {
            keys.retain(|key| chosen.contains(key));
        }
        let executions = snapshot.executions(true)?;
        let of: HashMap<&str, &Execution> =
            executions.iter().map(|execution| (execution.id.as_str(), execution)).collect();
        for part in keys.chunks(AT_ONCE) {
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

    /// Each run beside its execution: what [`export`](crate::export::export) takes.
    pub fn pairs(&self) -> Vec<(&Execution, &Run)> {
        let of: HashMap<&str, &Execution> =
            self.executions.iter().map(|execution| (execution.id.as_str(), execution)).collect();
        self.runs.iter().filter_map(|run| Some((*of.get(run.execution.as_str())?, run))).collect()
    }
}

fn named(text: &str) -> Result<(&str, RunFilter), Error> {
    let (path, filter) = split(text);
    Ok((path, filter.map_or_else(|| Ok(RunFilter::all()), str::parse)?))
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
