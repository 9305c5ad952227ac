//! Where the runs of a verb without a study are kept.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use record::{Execution, ResultsFile, Run};
use store::StoreUrl;
use study::{Plan, StudyError};

use crate::exit::request;
use crate::files;
use crate::show::Show;

/// The results file of a bench or a search: the one that was named, which is held throughout, or
/// the one that holds all of them, which is opened for each run. The latter is a convenience: where it
/// cannot be written the measurement is still shown.
pub enum Kept {
    Named { file: ResultsFile, path: PathBuf, begun: bool, kept: bool },
    Common { path: Option<PathBuf>, begun: bool },
}

/// How long another bench may hold the common file.
const COMMON_PATIENCE: Duration = Duration::from_secs(10);

impl Kept {
    pub fn open(out: Option<PathBuf>, plan: &Plan) -> anyhow::Result<Kept> {
        let Some(path) = out else {
            return Ok(Kept::Common { path: files::for_bench(), begun: false });
        };
        let inside =
            |url: &StoreUrl| !url.path.as_os_str().is_empty() && path.starts_with(&url.path);
        if plan.segments.iter().any(|segment| inside(&segment.store)) {
            let place = path.display();
            return Err(request(format!("--out {place}: lies in the store's own directory")));
        }
        files::make_room_for(&path)
            .map_err(|error| request(format!("{}: {error}", path.display())))?;
        let mut file = ResultsFile::open_or_create(&path)?;
        file.reserve(plan.room())?;
        Ok(Kept::Named { file, path, begun: false, kept: false })
    }

    /// Keeps a run. That the common file cannot be written is said and no more; of a named one
    /// it is an error, and the caller shows the run all the same.
    pub fn keep(
        &mut self,
        execution: &Execution,
        run: &Run,
        show: &Show,
    ) -> Result<(), StudyError> {
        match self {
            Kept::Named { file, begun, kept, .. } => {
                let ended = match *begun {
                    true => Ok(()),
                    false => file.begin(execution),
                };
                *begun |= ended.is_ok();
                let ended = ended.and_then(|()| file.keep(run));
                *kept |= ended.is_ok();
                ended.map_err(|error| {
                    StudyError::from(error).with_note(
                        "The run that has just ended is shown on standard output and is not in \
                         the file. Make room, or name a file on another disk with --out, and \
                         measure it again",
                    )
                })
            }
            Kept::Common { path: Some(path), begun } => {
                let kept = open_common(path).and_then(|mut file| {
                    if !*begun {
                        file.begin(execution)?;
                        *begun = true;
                    }
                    Ok(file.keep(run)?)
                });
                if let Err(error) = kept {
                    show.warn(&format!(
                        "the result is not kept: {error:#}; name a file with --out"
                    ));
                }
                Ok(())
            }
            Kept::Common { path: None, .. } => {
                show.warn("the result is not kept: neither --out nor HOME says where");
                Ok(())
            }
        }
    }

    pub fn finish(&mut self, execution: &Execution) -> anyhow::Result<()> {
        let at = study::now();
        match self {
            Kept::Named { file, begun: true, .. } => Ok(file.finish(&execution.id, &at)?),
            Kept::Common { path: Some(path), begun: true } => {
                // The runs are kept; that they were all is a detail of the common file.
                let _ = open_common(path).map(|mut file| file.finish(&execution.id, &at));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Where the runs are.
    pub fn place(&self) -> Option<&Path> {
        match self {
            Kept::Named { path, kept, .. } => Some(path.as_path()).filter(|_| *kept),
            Kept::Common { path, begun } => path.as_deref().filter(|_| *begun),
        }
    }
}

/// Keeps a run of a study, and prints it whether or not it could be kept: as a line of JSON where
/// that is asked for, else only where the file has not got it. Where another run follows (`more`),
/// space for that one must be there before it begins.
pub fn keep_or_show(
    file: &mut ResultsFile,
    (execution, run): (&Execution, &Run),
    more: bool,
    json: bool,
    show: &Show,
) -> Result<(), StudyError> {
    let kept = file.keep(run);
    // A reader that went away does not end a study.
    let _ = match (json, &kept) {
        (true, _) => show.json_line(&run.summary(execution)),
        (false, Err(_)) => show.painted(&report::terminal::runs(&[(execution, run)], show.style())),
        (false, Ok(())) => Ok(()),
    };
    kept.map_err(|error| {
        StudyError::from(error).with_note(
            "The run that has just ended is shown on standard output and is not in the file: it \
             is measured again when the study goes on",
        )
    })?;
    match more {
        true => file.reserve_again().map_err(|error| {
            let ended = "The run that has just ended is in the file; the next one is not begun";
            StudyError::Failed(format!("{error}\n{ended}"))
        }),
        false => Ok(()),
    }
}

/// Opens the common file, once no other bench writes to it.
fn open_common(path: &Path) -> anyhow::Result<ResultsFile> {
    // The journal of the knobs lies here, too, and only in a folder that is this user's alone.
    if let Some(folder) = path.parent() {
        safe_file::make_folder(folder).map_err(|error| request(error.to_string()))?;
    }
    let limit = Instant::now() + COMMON_PATIENCE;
    loop {
        match ResultsFile::open_or_create(path) {
            Err(record::Error::Locked { .. }) if Instant::now() < limit => {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return Ok(other?),
        }
    }
}
