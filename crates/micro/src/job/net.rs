//! The network benchmarks.

use std::time::Duration;

use clap::{ArgAction, Args, ValueHint};
use model::{Bytes, Count, Rate, Span};
use serde::{Deserialize, Serialize};

use super::{CpuList, PlacementFlags, Sizes, as_text};
use crate::net::{CellConfig, NetError, ServerLimits, Stack, Transport};

/// The default port of a server.
pub const PORT: u16 = 9378;

/// The default limits of a server.
const LIMITS: ServerLimits = ServerLimits::DEFAULT;

/// Heading of flags for the two ends.
const ENDS: &str = "Ends";
/// Heading of flags for DPDK.
const DPDK: &str = "DPDK";

/// Keys of the kernel's stack alone.
pub const KERNEL_KEYS: [&str; 3] = ["transport", "busy_poll", "socket_buffer"];
/// Keys of DPDK alone.
pub const DPDK_KEYS: [&str; 6] = ["port", "server_port", "eal", "server_eal", "frames", "mtu"];

#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct NetFlags {
    #[command(flatten)]
    #[serde(flatten)]
    pub at: PlacementFlags,
    /// The network stack; with both, each cell is measured with either
    #[arg(
        long,
        value_name = "STACK,...",
        value_enum,
        value_delimiter = ',',
        default_value = "kernel"
    )]
    #[serde(with = "as_text::one")]
    pub stack: Vec<Stack>,
    /// The transport of the kernel's stack
    #[arg(long, value_name = "NAME,...", value_enum, value_delimiter = ',', default_value = "tcp")]
    #[serde(with = "as_text::one")]
    pub transport: Vec<Transport>,
    /// Bytes of a message: 64,1KiB, or 1..1MiB for every fourth power of two [default: 1..1MiB;
    /// of datagrams up to 32 KiB]
    #[arg(long, short, value_name = "SIZES")]
    pub size: Option<Sizes>,
    /// Connections
    #[arg(long, short, value_name = "N,...", value_delimiter = ',', default_value = "1")]
    #[serde(with = "as_text::one")]
    pub connections: Vec<u32>,
    /// Threads of each end, which share the connections
    #[arg(long, short = 'j', value_name = "N", default_value_t = 1)]
    #[serde(with = "as_text")]
    pub threads: u32,
    /// Measured time of each cell [default: 1s; 1m with --messages]
    #[arg(long, short, value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<Span>,
    /// Maximum number of messages of a cell
    #[arg(long, short = 'n', value_name = "N", allow_hyphen_values = true)]
    pub messages: Option<Count>,
    /// Warm-up of each cell
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "100ms")]
    pub warm_up: Span,
    /// Time without an answer after which a datagram or frame is lost, and a stream has failed
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "1s")]
    pub timeout: Span,
    /// Both ends poll without sleeping
    #[arg(long)]
    #[serde(with = "as_text::switch")]
    pub busy_poll: bool,
    /// Send and receive buffer of each socket [default: the kernel's]
    #[arg(long, value_name = "SIZE")]
    pub socket_buffer: Option<Bytes>,
    /// Leave the threads to the scheduler
    #[arg(long = "no-pin", action = ArgAction::SetFalse)]
    #[serde(with = "as_text::switch")]
    pub pin: bool,
    /// Serve clients on other machines: HOST, HOST:PORT or /PATH; port 0 is any free one [default
    /// port: 9378]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "connect", help_heading = ENDS)]
    #[serde(skip)]
    pub listen: Option<String>,
    /// With --listen: maximum length of a message that a client may request
    #[arg(long, value_name = "SIZE", requires = "listen", default_value_t = Bytes(LIMITS.size),
        help_heading = ENDS)]
    #[serde(skip)]
    pub max_size: Bytes,
    /// With --listen: maximum number of connections of a client
    #[arg(long, value_name = "N", requires = "listen", default_value_t = LIMITS.connections,
        help_heading = ENDS)]
    #[serde(skip)]
    pub max_connections: u32,
    /// With --listen: maximum memory for all connections of a client
    #[arg(long, value_name = "SIZE", requires = "listen", default_value_t = Bytes(LIMITS.memory),
        help_heading = ENDS)]
    #[serde(skip)]
    pub max_memory: Bytes,
    /// Address of a server that was started with --listen [default: start one on this machine]
    #[arg(long, value_name = "ADDRESS", help_heading = ENDS)]
    pub connect: Option<String>,
    /// The CPUs of the server that is started here [default: after those of the client]
    #[arg(long, value_name = "LIST", conflicts_with_all = ["listen", "connect"],
        help_heading = ENDS)]
    pub server_cpus: Option<CpuList>,
    /// DPDK's port of this end: a PCI address or a virtual device's name [default: a pair of
    /// rings in memory, where the server is started here]
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Other, help_heading = DPDK)]
    pub port: Option<String>,
    /// DPDK's port of a server that is started here: in this process, or with --server-eal in one
    /// of its own
    #[arg(long, value_name = "NAME", requires = "port", help_heading = DPDK,
        conflicts_with_all = ["listen", "connect"])]
    pub server_port: Option<String>,
    /// Arguments of DPDK's environment, such as '--no-huge -m 512 --vdev=net_memif0,role=client'
    /// [default: no cards, ordinary memory]
    #[arg(long, value_name = "ARGUMENTS", allow_hyphen_values = true, help_heading = DPDK)]
    pub eal: Option<String>,
    /// Arguments of DPDK's environment in a server's process that is started here
    #[arg(long, value_name = "ARGUMENTS", allow_hyphen_values = true, requires = "server_port",
        help_heading = DPDK)]
    pub server_eal: Option<String>,
    /// Frames of DPDK's pool
    #[arg(long, value_name = "N", default_value = "16384", help_heading = DPDK)]
    pub frames: Count,
    /// The largest payload of a frame
    #[arg(long, value_name = "SIZE", default_value_t = 1500, help_heading = DPDK)]
    #[serde(with = "as_text")]
    pub mtu: u16,
    /// Ends after its first client, or after this time without one
    #[arg(long, hide = true, requires = "listen")]
    #[serde(skip)]
    pub alone_for: Option<Span>,
    #[command(flatten)]
    #[serde(skip)]
    pub inner: InnerFlags,
}

#[derive(Debug, Clone, Default, Args)]
pub struct InnerFlags {
    /// Runs as the child process for DPDK's environment, which may terminate it
    #[arg(long, hide = true)]
    pub inner: bool,
    /// Address of the server that was started for it
    #[arg(long, hide = true, requires = "inner")]
    pub inner_connect: Option<String>,
}

impl NetFlags {
    /// The limits of a server: none if it was started for this client.
    pub fn limits(&self) -> ServerLimits {
        if self.alone_for.is_some() {
            return ServerLimits::NONE;
        }
        let (size, memory) = (self.max_size.0, self.max_memory.0);
        ServerLimits { size, connections: self.max_connections, memory }
    }

    pub fn has(&self, stack: Stack) -> bool {
        self.stack.contains(&stack)
    }

    /// The measured time of a cell.
    pub fn time(&self) -> Duration {
        let usual = Duration::from_secs(if self.messages.is_some() { 60 } else { 1 });
        self.time.map_or(usual, |time| time.0)
    }

    /// How each cell is measured, with this end's threads on `cpus`.
    ///
    /// # Errors
    /// Nothing would be measured.
    pub fn config(&self, cpus: Vec<u32>) -> Result<CellConfig, NetError> {
        let wrong = |flag, why: &str| Err(NetError::InvalidSetting { flag, why: why.to_owned() });
        let (messages, time) = (self.messages.map(|count| count.0), self.time());
        if messages == Some(0) {
            return wrong("messages", "at least 1");
        }
        if time.is_zero() {
            return wrong("time", "must be more than zero");
        }
        Ok(CellConfig { warm_up: self.warm_up.0, time, messages, cpus })
    }
}

#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default)]
#[command(after_help = "Examples:\n  \
    kvmeter micro pingpong                                TCP over loopback, 1 B to 1 MiB\n  \
    kvmeter micro pingpong --transport tcp,unix,udp --size 64 --connections 1,16\n  \
    kvmeter micro pingpong --listen 0.0.0.0               on the other machine, then here:\n  \
    kvmeter micro pingpong --connect server --busy-poll --json\n  \
    kvmeter micro pingpong --stack kernel,dpdk --size 64  DPDK beside it, over rings in memory\n  \
    kvmeter micro pingpong --stack dpdk --connect server --port 0000:03:00.0\n\n\
    Each message is answered with itself, and every byte of the answer is checked. Lost datagrams\n\
    are counted. Exit code 1 where a message was wrong or none came through.")]
pub struct PingpongArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub net: NetFlags,
}

#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(default)]
#[command(after_help = "Examples:\n  \
    kvmeter micro flow                                    TCP over loopback\n  \
    kvmeter micro flow --size 16KiB --stride 64,256,4096 --reuse 0,64MiB\n  \
    kvmeter micro flow --transport udp --rate 100k        loss is counted, not hidden\n  \
    kvmeter micro flow --listen 0.0.0.0                   on the other machine, then here:\n  \
    kvmeter micro flow --connect server --messages 1M --size 1KiB\n  \
    kvmeter micro flow --stack kernel,dpdk --size 1KiB --stride 64,4096\n\n\
    The server touches each byte of the stream whose position is a multiple of the stride, as soon\n\
    as the reuse distance has arrived after it. It checks what it touches.")]
pub struct FlowArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub net: NetFlags,
    /// Distance of touched bytes; up to 8 all bytes are read, at 0 none
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "64")]
    #[serde(with = "as_text::one")]
    pub stride: Vec<Bytes>,
    /// Reuse distance: bytes that arrive on a connection after a byte, before it is touched
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "0")]
    #[serde(with = "as_text::one")]
    pub reuse: Vec<Bytes>,
    /// Messages a second over all connections [default: as fast as possible]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<Rate>,
}
