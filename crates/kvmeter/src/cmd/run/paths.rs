//! Where results and page of a study go.

use std::path::{Path, PathBuf};

use super::args::RunArgs;
use crate::exit::request;
use crate::output_files::{check_output, sibling};

/// Results of studies, relative to where kvmeter runs.
const STUDIES: &str = "results";

/// The paths of a study's results and page: as given; else the newest file of the study if it is
/// resumed, or a new one, and the page next to it.
pub fn output_paths(args: &RunArgs, name: &str) -> anyhow::Result<(PathBuf, PathBuf)> {
    let out = match &args.out {
        Some(out) => out.clone(),
        None if args.resume => newest_of(name).ok_or_else(|| {
            request(format!("there is no results file of `{name}` to resume; name it with --out"))
        })?,
        None => study_results(name),
    };
    let html = args.html.clone().unwrap_or_else(|| sibling(&out, "html"));
    check_output("--html", &html, &[Path::new(&args.study), &out])?;
    Ok((out, html))
}

/// A new results file for a study, named by its start.
fn study_results(name: &str) -> PathBuf {
    let stamp: String = execute::now().chars().filter(char::is_ascii_alphanumeric).collect();
    let path = |more: &str| Path::new(STUDIES).join(format!("{name}-{stamp}{more}.sqlite"));
    let more = (2..).map(|n| format!("-{n}"));
    let mut paths = std::iter::once(String::new()).chain(more).map(|more| path(&more));
    // Two studies may begin in the same second.
    paths.find(|path| !path.exists()).unwrap_or_else(|| path(""))
}

/// The newest results file of a study, to resume.
fn newest_of(name: &str) -> Option<PathBuf> {
    let prefix = format!("{name}-");
    let files = std::fs::read_dir(STUDIES).ok()?.flatten().filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Stamps sort by time; a study with a longer name of the same prefix does not match.
        name.strip_prefix(&prefix)
            .and_then(|rest| rest.strip_suffix(".sqlite"))
            .is_some_and(|stamp| stamp.starts_with(|c: char| c.is_ascii_digit()))
    });
    files.map(|entry| entry.path()).max()
}
