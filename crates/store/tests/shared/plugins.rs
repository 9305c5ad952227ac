//! Plug-ins in C, compiled for the tests: those of `examples/plugins`, and broken ones.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// Those that live in a directory, of those whose engine is installed here. They stay until the tests
/// have ended.
#[allow(dead_code)]
pub fn on_disk() -> &'static [PathBuf] {
    static BUILT: OnceLock<(TempDir, Vec<PathBuf>)> = OnceLock::new();
    let (_, all) = BUILT.get_or_init(|| {
        let home = TempDir::new().unwrap();
        let examples =
            [("leveldb", "-lleveldb"), ("wiredtiger", "-lwiredtiger"), ("lmdb", "-llmdb")];
        let built = examples.iter().filter_map(|(name, engine)| {
            build(&example(name), &[engine], home.path())
                .map_err(|why| eprintln!("skipped: the plug-in {name}: {why}"))
                .ok()
        });
        let all = built.collect();
        (home, all)
    });
    all
}

/// The source of a plug-in of `examples/plugins`.
#[allow(dead_code)]
pub fn example(name: &str) -> PathBuf {
    root().join("examples/plugins").join(format!("{name}.c"))
}

/// Compiles a plug-in into a folder.
///
/// # Errors
/// What the compiler says; there may be none.
pub fn build(source: &Path, flags: &[&str], folder: &Path) -> Result<PathBuf, String> {
    let library = folder.join(source.file_stem().unwrap()).with_extension("so");
    let mut command = Command::new("cc");
    command
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", "-pthread"]);
    command.arg("-I").arg(root().join("include")).arg("-o").arg(&library).arg(source).args(flags);
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(library.canonicalize().unwrap()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
