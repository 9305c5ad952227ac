//! Passes the versions of engines to their adapters: the crates have no constant for them.

use std::path::Path;
use std::{env, fs};

fn main() {
    let lock =
        Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(&lock).unwrap_or_default();
    for (feature, package) in [("FJALL", "fjall"), ("REDB", "redb")] {
        if env::var_os(format!("CARGO_FEATURE_{feature}")).is_none() {
            continue;
        }
        match version(&text, package) {
            Some(version) => println!("cargo::rustc-env={feature}_VERSION={version}"),
            None => println!("cargo::error={} does not name {package}'s version", lock.display()),
        }
    }
}

/// The version of a package in the text of a `Cargo.lock`.
fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let (_, after) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    after.split('"').next()
}
