//! Default paths of results, and writing of output files.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::cmd::run::RunArgs;
use crate::exit::request;

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

/// The default results file of `bench`: `$XDG_STATE_HOME/kvmeter/bench.sqlite`.
pub fn bench_results() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(state.join("kvmeter").join("bench.sqlite"))
}

/// A path next to a results file with another extension, never the same.
pub fn sibling(results: &Path, ending: &str) -> PathBuf {
    match results.extension().is_some_and(|ending| ending == "sqlite") {
        true => results.with_extension(ending),
        false => {
            let mut name = results.as_os_str().to_owned();
            name.push(".");
            name.push(ending);
            PathBuf::from(name)
        }
    }
}

/// Refuses an output path that would overwrite something else: a directory, a database, or one of
/// `inputs`.
pub fn check_output(flag: &str, path: &Path, inputs: &[&Path]) -> anyhow::Result<()> {
    let no = |why: &str| Err(request(format!("{flag} {}: {why}", path.display())));
    if path.is_dir() {
        return no("is a directory; name a file");
    }
    safe_file::check_output(path).map_err(|error| request(format!("{flag} {error}")))?;
    let Ok(real) = path.canonicalize() else { return Ok(()) };
    if inputs.iter().any(|input| input.canonicalize().is_ok_and(|input| input == real)) {
        return no("is what is read; name another file");
    }
    let mut head = [0; 16];
    let read = std::fs::File::open(&real).and_then(|mut file| file.read_exact(&mut head));
    if read.is_ok() && &head == b"SQLite format 3\0" {
        return no("is a database, and is not overwritten; name another file");
    }
    Ok(())
}

/// Creates the directory of a file.
pub fn create_parent(file: &Path) -> std::io::Result<()> {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => std::fs::create_dir_all(parent),
        _ => Ok(()),
    }
}

/// Writes a file that a flag names; so does the error.
pub fn write_named(flag: &str, path: &Path, text: &[u8]) -> anyhow::Result<()> {
    write(path, text).map_err(|error| request(format!("{flag} {error}")))
}

/// Writes a file atomically, and creates its directory.
pub fn write(path: &Path, text: &[u8]) -> anyhow::Result<()> {
    create_parent(path).map_err(|error| request(format!("{}: {error}", path.display())))?;
    safe_file::replace(path, text).map_err(|error| request(error.to_string()))
}
