//! Where a verb without a study stores its runs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use execute::ExecuteError;
use model::{Execution, Run};
use record::ResultsFile;
use store::StoreUrl;
use study::Plan;

use crate::exit::request;
use crate::output::Output;
use crate::output_files;

/// The results file of a bench or a search: a named one, which stays open, or the common one, which
/// is opened for each run. If the common one cannot be written the measurement is still shown.
pub enum ResultsTarget {
    Named { file: ResultsFile, path: PathBuf, begun: bool, kept: bool },
    Common { path: Option<PathBuf>, begun: bool },
}

/// How long to wait for another bench that writes to the common file.
const COMMON_FILE_TIMEOUT: Duration = Duration::from_secs(10);

impl ResultsTarget {
    pub fn open(out: Option<PathBuf>, plan: &Plan) -> anyhow::Result<ResultsTarget> {
        let Some(path) = out else {
            return Ok(ResultsTarget::Common { path: output_files::bench_results(), begun: false });
        };
        let inside =
            |url: &StoreUrl| !url.path.as_os_str().is_empty() && path.starts_with(&url.path);
        if plan.segments.iter().any(|segment| inside(&segment.store)) {
            let place = path.display();
            return Err(request(format!("--out {place}: lies in the store's own directory")));
        }
        output_files::create_parent(&path)
            .map_err(|error| request(format!("{}: {error}", path.display())))?;
        let mut file = ResultsFile::open_or_create(&path)?;
        file.reserve(plan.room())?;
        Ok(ResultsTarget::Named { file, path, begun: false, kept: false })
    }

    /// Stores a run. A failure is a warning for the common file, and an error for a named one; the
    /// caller shows the run in either case.
    pub fn keep(
        &mut self,
        execution: &Execution,
        run: &Run,
        show: &Output,
    ) -> Result<(), ExecuteError> {
        match self {
            ResultsTarget::Named { file, begun, kept, .. } => {
                let ended = match *begun {
                    true => Ok(()),
                    false => file.begin(execution),
                };
                *begun |= ended.is_ok();
                let ended = ended.and_then(|()| file.write_run(run));
                *kept |= ended.is_ok();
                ended.map_err(|error| {
                    ExecuteError::from(error).with_note(
                        "The run that has just ended is on standard output, but not in the file. \
                         Free some space, or name a file on another disk with --out, and measure \
                         it again",
                    )
                })
            }
            ResultsTarget::Common { path: Some(path), begun } => {
                let kept = open_common(path).and_then(|mut file| {
                    if !*begun {
                        file.begin(execution)?;
                        *begun = true;
                    }
                    Ok(file.write_run(run)?)
                });
                if let Err(error) = kept {
                    show.warn(&format!(
                        "the result is not stored: {error:#}; name a file with --out"
                    ));
                }
                Ok(())
            }
            ResultsTarget::Common { path: None, .. } => {
                show.warn("the result is not stored: there is neither --out nor HOME");
                Ok(())
            }
        }
    }

    pub fn finish(&mut self, execution: &Execution) -> anyhow::Result<()> {
        let at = execute::now();
        match self {
            ResultsTarget::Named { file, begun: true, .. } => Ok(file.finish(&execution.id, &at)?),
            ResultsTarget::Common { path: Some(path), begun: true } => {
                // The runs are stored; the end of the execution is optional in the common file.
                let _ = open_common(path).map(|mut file| file.finish(&execution.id, &at));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The file of the stored runs.
    pub fn path(&self) -> Option<&Path> {
        match self {
            ResultsTarget::Named { path, kept, .. } => Some(path.as_path()).filter(|_| *kept),
            ResultsTarget::Common { path, begun } => path.as_deref().filter(|_| *begun),
        }
    }
}

/// Stores a run of a study, and prints it: as a line of JSON if `json`, else only if it could not
/// be stored. If another run follows (`more`), renews the disk reservation for it.
pub fn keep_or_show(
    file: &mut ResultsFile,
    (execution, run): (&Execution, &Run),
    more: bool,
    json: bool,
    show: &Output,
) -> Result<(), ExecuteError> {
    let kept = file.write_run(run);
    // A closed output does not end a study.
    let _ = match (json, &kept) {
        (true, _) => show.json_line(&record::summary(run, execution)),
        (false, Err(_)) => {
            show.print_styled(&report::terminal::runs(&[(execution, run)], show.style()))
        }
        (false, Ok(())) => Ok(()),
    };
    kept.map_err(|error| {
        ExecuteError::from(error).with_note(
            "The run that has just ended is on standard output, but not in the file: a resumed \
             study measures it again",
        )
    })?;
    match more {
        true => file.reserve_again().map_err(|error| {
            let ended = "The run that has just ended is in the file; the next one was not started";
            ExecuteError::Failed(format!("{error}\n{ended}"))
        }),
        false => Ok(()),
    }
}

/// Opens the common file, waiting for other benches that write to it.
fn open_common(path: &Path) -> anyhow::Result<ResultsFile> {
    // The journal of the knobs is in the same folder, which must be private to this user.
    if let Some(folder) = path.parent() {
        safe_file::make_folder(folder).map_err(|error| request(error.to_string()))?;
    }
    let limit = Instant::now() + COMMON_FILE_TIMEOUT;
    loop {
        match ResultsFile::open_or_create(path) {
            Err(record::RecordError::Locked { .. }) if Instant::now() < limit => {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return Ok(other?),
        }
    }
}
