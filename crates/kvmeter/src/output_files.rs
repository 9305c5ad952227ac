//! Default paths of results, and writing of output files.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::exit::request;

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
        return no("is the input; name another file");
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
