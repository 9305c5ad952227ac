//! Builds the preloaded library: one call of the compiler.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = env::var_os("OUT_DIR").map(PathBuf::from).ok_or("cargo gives no OUT_DIR")?;
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let target = env::var("TARGET").ok();
    // The linker of the whole build: it determines the compatible C libraries.
    let linker = env::var_os("RUSTC_LINKER");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    println!("cargo::rerun-if-changed={}", tap::preload::sources().display());
    tap::preload::compile(&rustc, target.as_deref(), linker.as_deref(), &out)?;
    Ok(())
}
