//! The compiler that made this program, kept by the build script.

use super::Facts;
use crate::root::Root;

pub(super) fn add(_root: &Root, facts: &mut Facts) {
    let source = "the build";
    let lost = "the compiler did not say at build time";
    for (name, value) in [
        ("toolchain.rustc", env!("KVMETER_RUSTC")),
        ("toolchain.target", env!("KVMETER_TARGET")),
        ("toolchain.target_features", env!("KVMETER_TARGET_FEATURES")),
    ] {
        facts.add(name, source, if value.is_empty() { Err(lost) } else { Ok(value) });
    }
    let codegen = match env!("KVMETER_CODEGEN") {
        "" => "the target's defaults",
        options => options,
    };
    facts.known("toolchain.codegen", source, codegen);
    let profile = format!("{}, opt-level {}", env!("KVMETER_PROFILE"), env!("KVMETER_OPT_LEVEL"));
    facts.known("toolchain.profile", source, profile);
}
