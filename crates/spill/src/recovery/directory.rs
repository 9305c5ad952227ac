//! Checks whether a directory is a store or may become one.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::manifest::{self, LatestState, Manifest, State};
use crate::value_log::Staging;

/// Subdirectories of a store.
pub(crate) const LOG: &str = "log";
pub(crate) const INDEX: &str = "index";
/// Marks the directory of an incomplete checkpoint.
pub(crate) const UNFINISHED: &str = "UNFINISHED";
/// Lock file of an earlier format.
const LOCK: &str = "LOCK";

/// Creates a directory and its ancestors, durably.
pub(crate) fn create_directories(fs: &Arc<dyn Fs>, dir: &Path) -> Result<()> {
    use std::io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    let all: Vec<&Path> = dir.ancestors().filter(|dir| !dir.as_os_str().is_empty()).collect();
    let missing = all.iter().take_while(|dir| fs.list(dir).is_err()).count();
    // An earlier attempt may have been interrupted before the name was durable.
    if let Some(parent) = all.get(missing).and_then(|dir| parent_of(dir)) {
        match fs.sync_dir(parent).map_err(|error| (error.kind(), error)) {
            // We created nothing where we may not read, write or sync.
            Ok(())
            | Err((PermissionDenied | ReadOnlyFilesystem | InvalidInput | Unsupported, _)) => {}
            Err((_, error)) => return Err(Error::io(parent, error)),
        }
    }
    for dir in all[..missing].iter().rev() {
        fs.create_dir(dir).map_err(|error| Error::io(dir, error))?;
        let parent = parent_of(dir).unwrap_or(dir);
        fs.sync_dir(parent).map_err(|error| Error::io(parent, error))?;
    }
    Ok(())
}

/// The directory that contains a path; `None` for the root.
pub(super) fn parent_of(path: &Path) -> Option<&Path> {
    let parent = path.parent()?;
    Some(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

/// File systems create it in their root.
const LOST_AND_FOUND: &str = "lost+found";

/// Whether a directory with these names is empty.
pub(crate) fn is_empty(names: &[String]) -> bool {
    names.iter().all(|name| name == LOST_AND_FOUND)
}

pub(super) fn directory_error(dir: &Path, error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => Error::NoStore { path: dir.to_owned() },
        _ => Error::io(dir, error),
    }
}

/// Whether to create a store here. A directory without a manifest is ours only if it holds nothing
/// but the leftovers of an earlier attempt.
pub(super) fn check_directory(fs: &Arc<dyn Fs>, dir: &Path, create: bool) -> Result<bool> {
    let failed = |error| directory_error(dir, error);
    let names = fs.list(dir).map_err(failed)?;
    let is_there = |name: &str| names.iter().any(|there| there == name);
    let foreign = || Err(Error::Foreign { path: dir.to_owned() });
    if is_there("MANIFEST") {
        let is_beside_ours = ["staging", LOG, INDEX].into_iter().any(is_there);
        return if is_beside_ours { Ok(false) } else { foreign() };
    }
    let is_own = |name: &String| {
        manifest::is_own_name(name)
            || matches!(name.as_str(), LOCK | UNFINISHED | "staging" | LOG | INDEX | LOST_AND_FOUND)
    };
    if !names.iter().all(is_own) {
        return foreign();
    }
    if is_there(UNFINISHED) {
        return Err(Error::Unfinished { path: dir.to_owned() });
    }
    let is_filled = |name: &str| match fs.list(&dir.join(name)) {
        _ if !is_there(name) => Ok(false),
        Ok(names) => Ok(!names.is_empty()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(true),
        Err(error) => Err(failed(error)),
    };
    // The manifest is created last, after everything that is empty.
    let (has_log, has_index) = (is_filled(LOG)?, is_filled(INDEX)?);
    if has_log && is_there("staging") && is_there(INDEX) {
        return Err(Error::damaged(&manifest::path(dir), 0, "the file is missing"));
    }
    if has_log || has_index || !Staging::is_new(fs, dir)? {
        return foreign();
    }
    if !create {
        return Err(Error::NoStore { path: dir.to_owned() });
    }
    Ok(true)
}

/// A copied store may lack directories that were empty. The log's is never empty.
pub(super) fn create_missing(fs: &Arc<dyn Fs>, dir: &Path, state: &State) -> Result<()> {
    let names = fs.list(dir).map_err(|error| Error::io(dir, error))?;
    let is_missing = |name: &str| !names.iter().any(|there| there == name);
    let has_levels = state.tables.iter().any(|table| table.levels.iter().any(Option::is_some));
    let (log, index) = (dir.join(LOG), dir.join(INDEX));
    match (is_missing(LOG), is_missing(INDEX)) {
        (true, _) => Err(Error::damaged(&log, 0, "the directory is missing")),
        (_, true) if has_levels => Err(Error::damaged(&index, 0, "the directory is missing")),
        (_, true) => fs.create_dir(&index).map_err(|error| Error::io(&index, error)),
        _ => Ok(()),
    }
}

pub(super) fn create_store(fs: &Arc<dyn Fs>, dir: &Path) -> Result<LatestState> {
    for sub in [dir.join(LOG), dir.join(INDEX)] {
        fs.create_dir(&sub).map_err(|error| Error::io(&sub, error))?;
    }
    Staging::create(fs, dir)?;
    fs.sync_dir(dir).map_err(|error| Error::io(dir, error))?;
    // Hash map keys are random, but forked children share them.
    let one = (dir, std::process::id(), SystemTime::now());
    let store = RandomState::new().hash_one(one).max(1);
    let state = State { next_segment: 1, next_index: 1, store, ..State::default() };
    Ok(Manifest::create(fs, dir, &state)?.last())
}
