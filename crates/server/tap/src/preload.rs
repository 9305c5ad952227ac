//! Building the preloaded library.
//!
//! For a build script that embeds it:
//!
//! ```text
//! let out = PathBuf::from(env::var_os("OUT_DIR")?);
//! let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
//! let target = env::var("TARGET").ok();
//! println!("cargo::rerun-if-changed={}", tap::preload::sources().display());
//! tap::preload::compile(&rustc, target.as_deref(), None, &out)?;   // OUT_DIR/libkvmeter_tap.so
//! ```
//!
//! and in the crate
//! `include_bytes!(concat!(env!("OUT_DIR"), "/libkvmeter_tap.so"))`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable that names the shared file to the library.
pub const VARIABLE: &str = "KVMETER_TAP";

/// The library's file name.
pub const FILE_NAME: &str = "libkvmeter_tap.so";

/// Why the library could not be built.
#[derive(Debug)]
pub enum CompileError {
    /// The compiler did not start.
    Start {
        /// The compiler.
        rustc: PathBuf,
        /// Why it was not.
        source: std::io::Error,
    },
    /// The compiler refused; its own words.
    Refused(String),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Start { rustc, .. } => {
                write!(f, "cannot start {}; set RUSTC to a Rust compiler", rustc.display())
            }
            CompileError::Refused(words) => write!(f, "the preloaded library: {words}"),
        }
    }
}

impl std::error::Error for CompileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CompileError::Start { source, .. } => Some(source),
            CompileError::Refused(_) => None,
        }
    }
}

/// The source folder, whose changes require a rebuild.
pub fn sources() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))
}

/// Builds the library with `rustc` into the folder `into`, for `target` or this machine, with
/// `linker` or the compiler's default one; returns the path of the file.
///
/// # Errors
/// [`CompileError`] when the compiler does not start or refuses.
pub fn compile(
    rustc: &OsStr,
    target: Option<&str>,
    linker: Option<&OsStr>,
    into: &Path,
) -> Result<PathBuf, CompileError> {
    let library = into.join(FILE_NAME);
    let mut command = Command::new(rustc);
    if let Some(linker) = linker {
        command.arg("-C").arg(joined("linker=", linker));
    }
    // Without paths of the build machine.
    let mut remapped = joined("--remap-path-prefix=", sources().as_os_str());
    remapped.push("=tap");
    command
        .arg(remapped)
        .args(["--crate-name", "kvmeter_tap", "--crate-type", "cdylib", "--edition", "2024"])
        // Not `panic=abort`: a thread that is cancelled in a call
        // (`pthread_cancel`) unwinds through the library, which would abort.
        .args(["-C", "opt-level=3", "-C", "panic=unwind", "-C", "codegen-units=1"])
        .args(["-C", "lto=fat", "-C", "strip=symbols", "--cap-lints", "warn"])
        .args(target.map(|target| format!("--target={target}")))
        .arg("-o")
        .arg(&library)
        .arg(sources().join("preload/root.rs"));
    let output = command
        .output()
        .map_err(|source| CompileError::Start { rustc: PathBuf::from(rustc), source })?;
    if output.status.success() {
        return Ok(library);
    }
    Err(CompileError::Refused(String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn joined(key: &str, value: &OsStr) -> OsString {
    let mut joined = OsString::from(key);
    joined.push(value);
    joined
}
