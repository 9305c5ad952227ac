//! Passes fjall's version to its adapter: the crate has no constant for it.

use std::path::Path;
use std::{env, fs};

fn main() {
    if env::var_os("CARGO_FEATURE_FJALL").is_none() {
        return;
    }
    let lock =
        Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    match version(&fs::read_to_string(&lock).unwrap_or_default(), "fjall") {
        Some(version) => println!("cargo::rustc-env=FJALL_VERSION={version}"),
        None => println!("cargo::error={} does not name fjall's version", lock.display()),
    }
}

/// The version of a package in the text of a `Cargo.lock`.
fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let (_, after) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    after.split('"').next()
}
