//! Where the runs of a verb without a study are kept.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use record::{Execution, File, Run};
use store::StoreUrl;
use study::{Plan, StudyError};

use crate::exit::request;
use crate::files;
use crate::show::Show;

/// The results file of a bench or a search: the one that was named, which is held throughout, or
/// the one that holds all of them, which is opened for each run. The latter is a convenience: where it
/// cannot be written the measurement is still shown.
pub enum Kept {
    Named { file: File, path: PathBuf, begun: bool },
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
        Ok(Kept::Named { file: File::open_or_create(&path)?, path, begun: false })
    }

    /// Keeps a run. That the common file cannot be written is said and no more.
    pub fn keep(
        &mut self,
        execution: &Execution,
        run: &Run,
        show: &Show,
    ) -> Result<(), StudyError> {
        match self {
            Kept::Named { file, begun, .. } => {
                if !std::mem::replace(begun, true) {
                    file.begin(execution)?;
                }
                Ok(file.keep(run)?)
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
            Kept::Named { path, .. } => Some(path),
            Kept::Common { path, begun } => path.as_deref().filter(|_| *begun),
        }
    }
}

/// Opens the common file, once no other bench writes to it.
fn open_common(path: &Path) -> anyhow::Result<File> {
    // The journal of the knobs lies here, too, and only in a folder that is this user's alone.
    if let Some(folder) = path.parent() {
        safe_file::make_folder(folder).map_err(|error| request(error.to_string()))?;
    }
    let limit = Instant::now() + COMMON_PATIENCE;
    loop {
        match File::open_or_create(path) {
            Err(record::Error::Locked { .. }) if Instant::now() < limit => {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return Ok(other?),
        }
    }
}
