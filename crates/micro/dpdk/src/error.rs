use std::time::Duration;

use thiserror::Error;

/// Errors of DPDK.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DpdkError {
    #[error("DPDK's environment does not start: {why}")]
    Start { why: String },
    #[error("DPDK's environment was started in this process before, and can be started only once")]
    Again,
    #[error("--eal: `{0}` holds a NUL byte")]
    Argument(String),
    #[error(
        "DPDK does not know the port `{name}`; {known}. Bind a card with `dpdk-devbind.py \
         --bind=vfio-pci ADDRESS` and name its PCI address, or make a virtual device with --eal \
         '--vdev=net_memif0,...'"
    )]
    NoPort { name: String, known: String },
    #[error("--port {name}: {doing} failed: {why}")]
    Port { name: String, doing: &'static str, why: String },
    #[error("--mtu {mtu}: the port {name} takes {least} to {most}")]
    Mtu { mtu: u16, name: String, least: u16, most: u16 },
    #[error(
        "--frames {frames}: the memory for {bytes} B of frames is not available ({why}); reserve \
         more huge pages, raise -m in --eal, or take fewer frames"
    )]
    Pool { frames: u32, bytes: u64, why: String },
    #[error("--frames {frames}: the ports' queues alone take {least}; take more")]
    FewFrames { frames: u32, least: u32 },
    #[error(
        "--port {name}: its link is not up after {} s; see that the other end runs and is \
         connected", .limit.as_secs()
    )]
    Down { name: String, limit: Duration },
}
