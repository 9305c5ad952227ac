//! The directories in which the data of embedded stores lies.

use std::path::Path;

use model::Phase;
use store::{Directory, DirectoryState, StoreUrl};
use study::{Plan, Segment};

use crate::error::ExecuteError;
use crate::load_step::LoadStep;

pub(crate) fn on_disk(segment: &Segment) -> bool {
    segment.store.has_directory()
}

/// Checks that all directories can be used, before anything is measured or written.
pub fn check_directories(plan: &Plan) -> Result<(), ExecuteError> {
    for segment in plan.segments.iter().filter(|segment| on_disk(segment)) {
        if let Some(first) = segment.steps.first() {
            let first = LoadStep::of(first)?;
            Directory::check(&segment.store, room(segment, first))?;
        }
    }
    Ok(())
}

/// Refuses to overwrite the data of another store: it may have taken hours to load.
pub(crate) fn check_store_owner(
    directory: &Directory,
    store: &StoreUrl,
) -> Result<(), ExecuteError> {
    let marker = directory.marker();
    if marker.scheme == store.scheme || marker.dataset.is_none() {
        return Ok(());
    }
    Err(ExecuteError::Request(format!(
        "{}: holds data of `{}`; name another directory, or delete this one",
        directory.path().display(),
        marker.scheme
    )))
}

/// Required disk space in bytes: none for data that exists; otherwise the data and half as much
/// for compactions of a log-structured store.
pub(crate) fn room(segment: &Segment, first: LoadStep<'_>) -> u64 {
    let there = match Directory::inspect(&segment.store.path) {
        Ok(DirectoryState::Ours(marker)) => {
            marker.dataset == Some(first.load.workload.dataset().to_string())
        }
        _ => false,
    };
    if there && first.phase() == Phase::Measure {
        return 0;
    }
    let sizes = segment
        .steps
        .iter()
        .filter_map(|step| step.activity.load())
        .map(|load| load.workload.data_bytes());
    let most = sizes.max().unwrap_or(0);
    most.saturating_add(most / 2)
}

/// Removes, when a study has ended, what nobody needs after it: temporary directories, and copies of
/// loaded data.
pub(crate) fn remove_what_is_not_kept(plan: &Plan) -> Result<(), ExecuteError> {
    for segment in &plan.segments {
        if segment.temporary {
            remove_temporary(&segment.store.path)?;
        } else if segment.copies {
            Directory::claim(&segment.store, 0)?.drop_prepared()?;
        }
    }
    Ok(())
}

/// Deletes a directory that kvmeter made for a study, and its parent if that is empty then.
fn remove_temporary(path: &Path) -> Result<(), ExecuteError> {
    if !path.exists() {
        return Ok(());
    }
    let failed = |error: std::io::Error| {
        ExecuteError::Failed(format!("{}: cannot be removed: {error}", path.display()))
    };
    Directory::delete(path).map_err(failed)?;
    if let Some(parent) = path.parent() {
        // Fails while another store's data is in it.
        let _ = std::fs::remove_dir(parent);
    }
    Ok(())
}
