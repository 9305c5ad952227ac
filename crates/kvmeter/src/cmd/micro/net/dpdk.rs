//! The cells over DPDK. Its environment may end its process, so it runs in a process of its own:
//! the same command with `--inner`, whose result is read here.

#[cfg(feature = "dpdk")]
mod inner;
#[cfg(feature = "dpdk")]
mod outer;

#[cfg(feature = "dpdk")]
pub use self::inner::{inner_client, inner_server};
#[cfg(feature = "dpdk")]
pub use self::outer::{check, guarded_client, guarded_server};

#[cfg(not(feature = "dpdk"))]
pub use self::absent::{check, guarded_client, guarded_server, inner_client, inner_server};

/// This kvmeter was built without DPDK.
#[cfg(not(feature = "dpdk"))]
mod absent {
    use std::sync::atomic::AtomicBool;

    use micro::job::{NetCells, NetFlags};
    use micro::net::{Kind, MeasuredCell, Stack};

    use crate::exit::{ExitOutcome, request};
    use crate::output::Output;

    fn not_built<T>() -> anyhow::Result<T> {
        Err(request(
            "--stack dpdk: this kvmeter was built without DPDK; install libdpdk-dev (Debian, \
             Ubuntu) and build it with `cargo build --release --package kvmeter --features dpdk`",
        ))
    }

    pub fn check(flags: &NetFlags) -> anyhow::Result<()> {
        if flags.has(Stack::Dpdk) { not_built() } else { Ok(()) }
    }

    pub fn guarded_client(
        _: &NetFlags,
        _: Kind,
        _: &[u32],
        _: &AtomicBool,
    ) -> anyhow::Result<Vec<MeasuredCell>> {
        not_built()
    }

    pub fn guarded_server(_: &Output) -> anyhow::Result<ExitOutcome> {
        not_built()
    }

    pub fn inner_client(_: &NetFlags, _: &NetCells, _: &Output) -> anyhow::Result<ExitOutcome> {
        not_built()
    }

    pub fn inner_server(_: &str, _: &NetFlags, _: &Output) -> anyhow::Result<ExitOutcome> {
        not_built()
    }
}
