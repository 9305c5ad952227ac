//! Keeps the commit and the target of this build, for `--version`.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=KVMETER_COMMIT");
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file])
            && Path::new(&path).exists()
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    // A packager who builds without the repository says what it is.
    let commit = env::var("KVMETER_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = commit.or_else(|| git(&["log", "-1", "--format=%h %cs"]));
    keep("KVMETER_COMMIT", commit.as_deref().unwrap_or("no repository"));
    keep("KVMETER_TARGET", &env::var("TARGET").unwrap_or_default());
}

/// What git prints in this folder, unless it is another repository's.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && is_ours()).then(|| text.trim().to_owned())
}

/// Whether the repository around this folder has this file: an unpacked archive may lie in any.
fn is_ours() -> bool {
    let mut known = Command::new("git");
    known.args(["ls-files", "--error-unmatch", "build.rs"]);
    known.output().is_ok_and(|output| output.status.success())
}

fn keep(name: &str, value: &str) {
    println!("cargo::rustc-env={name}={value}");
}
