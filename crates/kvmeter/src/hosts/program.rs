//! The kvmeter that a host runs: its own where it is of this version, else one that is copied.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use fleet::HostFolder;

use crate::exit::request;
use crate::flags::machine::this_program;

/// Name of the copy in the host's folder.
const COPY: &str = "kvmeter";

/// Programs for other architectures.
#[derive(Clone, Copy)]
pub struct GivenPrograms<'a> {
    pub files: &'a [PathBuf],
    /// The flag that gives them.
    pub flag: &'static str,
}

/// Puts kvmeter on a host if it has none of this version; returns how it is called there.
pub fn install(folder: &HostFolder, given: GivenPrograms<'_>) -> anyhow::Result<String> {
    let version = crate::command().render_long_version();
    let version = version.trim();
    for program in ["kvmeter", "./kvmeter"] {
        let known = folder.first_line(&format!("{program} --version 2>/dev/null"))?;
        // The target in its version may differ.
        if known.is_some_and(|known| same_but_target(known.trim(), version)) {
            return Ok(program.to_owned());
        }
    }
    let path = fitting(&folder.architecture, given)
        .map_err(|error| request(format!("{}: {error}", folder.host())))?;
    folder.put_file(&path, COPY)?;
    match folder.first_line(&format!("chmod 700 {COPY} && ./{COPY} --version"))? {
        Some(_) => Ok(format!("./{COPY}")),
        None => Err(request(format!(
            "{}: {} does not run there: an older C library, or a folder from which nothing may be \
             started; install kvmeter on the host, or give another one with {}",
            folder.host(),
            path.display(),
            given.flag
        ))),
    }
}

/// Whether two versions are of the same commit: `kvmeter 0.2.0 (COMMIT, TARGET)`.
fn same_but_target(one: &str, other: &str) -> bool {
    let commit = |version: &str| version.rsplit_once(',').map(|(commit, _)| commit.to_owned());
    commit(one).is_some_and(|one| Some(one) == commit(other))
}

/// This program, or the given one for the architecture of a host.
fn fitting(architecture: &str, given: GivenPrograms<'_>) -> anyhow::Result<PathBuf> {
    for path in given.files {
        if architecture_of(path, given.flag)? == architecture {
            return Ok(path.clone());
        }
    }
    if architecture == std::env::consts::ARCH {
        return this_program();
    }
    anyhow::bail!(
        "it is an {architecture} machine, and this kvmeter is for {}; name one for it with \
         {} FILE (`make dist` builds both)",
        std::env::consts::ARCH,
        given.flag
    )
}

/// The architecture of an ELF file, as `uname -m` says it. Source: the ELF specification,
/// `e_machine`.
fn architecture_of(path: &Path, flag: &str) -> anyhow::Result<&'static str> {
    let mut header = [0; 20];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    let wrong = |why: &str| request(format!("{flag}: {}: {why}", path.display()));
    read.map_err(|error| wrong(&error.to_string()))?;
    match (&header[..4], u16::from_le_bytes([header[18], header[19]])) {
        (b"\x7fELF", 62) => Ok("x86_64"),
        (b"\x7fELF", 183) => Ok("aarch64"),
        (b"\x7fELF", _) => Err(wrong("is for another architecture than x86_64 and aarch64")),
        _ => Err(wrong("is no program for Linux")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_same_on_every_architecture() {
        let version = "kvmeter 0.2.0 (abc, x86_64-unknown-linux-gnu)";
        assert!(same_but_target(version, "kvmeter 0.2.0 (abc, aarch64-unknown-linux-gnu)"));
        assert!(!same_but_target(version, "kvmeter 0.2.0 (abd, x86_64-unknown-linux-gnu)"));
        assert!(!same_but_target(version, "kvmeter 0.2.0"));
    }

    #[test]
    fn a_host_of_another_architecture_needs_a_program_for_it() {
        let given = GivenPrograms { files: &[], flag: "--agents-binary" };
        let error = fitting("riscv64", given).expect_err("none").to_string();
        assert!(error.contains("riscv64") && error.contains("--agents-binary FILE"), "{error}");
        let this = this_program().expect("a program");
        assert_eq!(architecture_of(&this, "").expect("ELF"), std::env::consts::ARCH);
        let text = architecture_of(Path::new("/etc/passwd"), "").expect_err("text").to_string();
        assert!(text.contains("is no program"));
    }
}
