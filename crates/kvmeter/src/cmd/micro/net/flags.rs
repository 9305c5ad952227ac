//! Flags of both network benchmarks.

use clap::{Args, ValueEnum, ValueHint};
use micro::net::{ServerLimits, Stack, Transport};
use model::{Bytes, Count, Span};

use crate::cmd::micro::flags::{CpuList, PlacementFlags, Sizes};

/// The default port of a server.
pub const PORT: u16 = 9378;

/// The default limits of a server.
const LIMITS: ServerLimits = ServerLimits::DEFAULT;

/// Heading of flags for the two ends.
const ENDS: &str = "Ends";
/// Heading of flags for DPDK.
const DPDK: &str = "DPDK";

/// The network stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StackFlag {
    Kernel,
    Dpdk,
}

/// The transport of the kernel's stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TransportFlag {
    Tcp,
    Unix,
    Udp,
}

impl From<TransportFlag> for Transport {
    fn from(flag: TransportFlag) -> Transport {
        match flag {
            TransportFlag::Tcp => Transport::Tcp,
            TransportFlag::Unix => Transport::Unix,
            TransportFlag::Udp => Transport::Udp,
        }
    }
}

#[derive(Debug, Args)]
pub struct NetFlags {
    #[command(flatten)]
    pub at: PlacementFlags,
    /// The network stack; with both, each cell is measured with either
    #[arg(
        long,
        value_name = "STACK,...",
        value_enum,
        value_delimiter = ',',
        default_value = "kernel"
    )]
    pub stack: Vec<StackFlag>,
    /// The transport of the kernel's stack
    #[arg(long, value_name = "NAME,...", value_enum, value_delimiter = ',', default_value = "tcp")]
    pub transport: Vec<TransportFlag>,
    /// Bytes of a message: 64,1KiB, or 1..1MiB for every fourth power of two [default: 1..1MiB;
    /// of datagrams up to 32 KiB]
    #[arg(long, short, value_name = "SIZES")]
    pub size: Option<Sizes>,
    /// Connections
    #[arg(long, short, value_name = "N,...", value_delimiter = ',', default_value = "1")]
    pub connections: Vec<u32>,
    /// Threads of each end, which share the connections
    #[arg(long, short = 'j', value_name = "N", default_value_t = 1)]
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
    pub busy_poll: bool,
    /// Send and receive buffer of each socket [default: the kernel's]
    #[arg(long, value_name = "SIZE")]
    pub socket_buffer: Option<Bytes>,
    /// Leave the threads to the scheduler
    #[arg(long)]
    pub no_pin: bool,
    /// Serve clients on other machines: HOST, HOST:PORT or /PATH; port 0 is any free one [default
    /// port: 9378]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "connect", help_heading = ENDS)]
    pub listen: Option<String>,
    /// With --listen: maximum length of a message that a client may request
    #[arg(long, value_name = "SIZE", requires = "listen", default_value_t = Bytes(LIMITS.size),
        help_heading = ENDS)]
    pub max_size: Bytes,
    /// With --listen: maximum number of connections of a client
    #[arg(long, value_name = "N", requires = "listen", default_value_t = LIMITS.connections,
        help_heading = ENDS)]
    pub max_connections: u32,
    /// With --listen: maximum memory for all connections of a client
    #[arg(long, value_name = "SIZE", requires = "listen", default_value_t = Bytes(LIMITS.memory),
        help_heading = ENDS)]
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
    pub mtu: u16,
    /// Ends after its first client, or after this time without one
    #[arg(long, hide = true, requires = "listen")]
    pub alone_for: Option<Span>,
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
        let flag = match stack {
            Stack::Kernel => StackFlag::Kernel,
            Stack::Dpdk => StackFlag::Dpdk,
        };
        self.stack.contains(&flag)
    }
}
