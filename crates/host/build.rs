//! Keeps what the compiler knows of this build, for the toolchain facts.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_default();
    keep("KVMETER_RUSTC", version.trim());
    keep("KVMETER_TARGET", &env::var("TARGET").unwrap_or_default());
    keep("KVMETER_PROFILE", &env::var("PROFILE").unwrap_or_default());
    keep("KVMETER_OPT_LEVEL", &env::var("OPT_LEVEL").unwrap_or_default());
    keep("KVMETER_TARGET_FEATURES", &env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default());
    // Only `-C` options: other flags may hold paths of the machine that built this.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let words: Vec<&str> = flags.split('\u{1f}').collect();
    let options: Vec<&str> = words
        .windows(2)
        .filter(|pair| pair[0] == "-C")
        .map(|pair| pair[1])
        .chain(words.iter().filter_map(|word| word.strip_prefix("-C")).filter(|o| !o.is_empty()))
        .filter(|option| option.starts_with("target-") || option.starts_with("lto"))
        .collect();
    keep("KVMETER_CODEGEN", &options.join(" "));
}

fn keep(name: &str, value: &str) {
    println!("cargo:rustc-env={name}={value}");
}
