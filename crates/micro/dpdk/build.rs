//! Compiles the shim and links libdpdk, where the feature `link` asks for it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "link")]
    link();
}

#[cfg(feature = "link")]
fn link() {
    println!("cargo::rerun-if-changed=shim/shim.c");
    println!("cargo::rerun-if-changed=shim/shim.h");
    // Probing also tells cargo what to link.
    let library = match pkg_config::Config::new().atleast_version("21.11").probe("libdpdk") {
        Ok(library) => library,
        Err(error) => {
            println!(
                "cargo::error=the feature `dpdk` needs DPDK 21.11 or later with its headers \
                 (Debian, Ubuntu: apt-get install libdpdk-dev): {error}"
            );
            return;
        }
    };
    // A driver is loaded when DPDK starts and not linked, but its function that joins rings to
    // ports is called by name.
    println!("cargo::rustc-link-lib=rte_net_ring");
    let mut build = cc::Build::new();
    build.file("shim/shim.c").includes(&library.include_paths).opt_level(3);
    // The headers refuse compilers that are told of a lesser CPU, and want their own set-up.
    build.flag("-include").flag("rte_config.h");
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64") {
        build.flag("-march=corei7");
    }
    build.compile("kvmeter_dpdk_shim");
}
