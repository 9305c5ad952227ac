//! The settings of one cell.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use model::suggest::hint;
use serde::{Deserialize, Serialize};

use super::error::NetError;

/// Which benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A message there and the same message back, one under way on each connection.
    Pingpong,
    /// Messages from the client to the server without a pause.
    Flow,
}

/// The network stack that moves the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stack {
    Kernel,
    Dpdk,
}

/// The transport of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    Tcp,
    Unix,
    Udp,
    /// Bare Ethernet frames through a port that DPDK drives.
    #[value(skip)]
    Ethernet,
}

impl Transport {
    pub const fn stack(self) -> Stack {
        match self {
            Transport::Tcp | Transport::Unix | Transport::Udp => Stack::Kernel,
            Transport::Ethernet => Stack::Dpdk,
        }
    }

    /// Whether messages can be lost; a stream delivers all or ends.
    pub const fn is_lossy(self) -> bool {
        matches!(self, Transport::Udp | Transport::Ethernet)
    }
}

/// Reads what a flag can be.
fn read<T: ValueEnum + fmt::Display>(text: &str) -> Result<T, String> {
    let known: Vec<String> = T::value_variants().iter().map(T::to_string).collect();
    let unknown = |_| format!("`{text}`: {}", hint(text, known.iter().map(String::as_str)));
    T::from_str(text, false).map_err(unknown)
}

impl FromStr for Stack {
    type Err = String;
    fn from_str(text: &str) -> Result<Stack, String> {
        read(text)
    }
}

impl FromStr for Transport {
    type Err = String;
    fn from_str(text: &str) -> Result<Transport, String> {
        read(text)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Pingpong => "pingpong",
            Kind::Flow => "flow",
        })
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stack::Kernel => "kernel",
            Stack::Dpdk => "dpdk",
        })
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Tcp => "tcp",
            Transport::Unix => "unix",
            Transport::Udp => "udp",
            Transport::Ethernet => "ethernet",
        })
    }
}

/// The largest payload of a datagram over IPv4 (RFC 768, RFC 791).
pub const LARGEST_DATAGRAM: u64 = 65_507;
/// A message is held whole by the ends.
const MAX_MESSAGE: u64 = 1 << 30;
/// Largest reuse distance.
const MAX_REUSE: u64 = 16 << 30;
const MAX_CONNECTIONS: u32 = 50_000;
const MAX_THREADS: u32 = 1024;

/// One cell: both ends are given the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetJob {
    pub kind: Kind,
    pub transport: Transport,
    /// Bytes of a message, at least 1.
    pub size: u64,
    pub connections: u32,
    /// Threads of each end, among which the connections are shared out.
    pub threads: u32,
    /// Of a flow: the receiver touches the byte at each multiple of it in the stream; up to 8
    /// it reads all, at 0 nothing.
    pub stride: u64,
    /// Of a flow: the reuse distance, bytes received before a byte is touched.
    pub reuse: u64,
    /// Poll for data without sleeping.
    pub busy_poll: bool,
    /// Seconds without an answer after which a message of a lossy transport counts as lost, and a
    /// stream has failed.
    pub timeout_s: f64,
    /// Of a flow: messages a second over all connections; none for as many as possible.
    pub rate: Option<f64>,
    /// Bytes of each socket's send and receive buffer; none for the kernel's choice.
    pub socket_buffer: Option<u64>,
}

/// What a server grants its clients: anyone who reaches it can use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Bytes of a message.
    pub size: u64,
    pub connections: u32,
    /// Bytes that a cell holds for all its connections.
    pub memory: u64,
}

impl ServerLimits {
    /// Enough for what the documents show.
    pub const DEFAULT: ServerLimits =
        ServerLimits { size: 64 << 20, connections: 4096, memory: 1 << 30 };
    /// No limits.
    pub const NONE: ServerLimits =
        ServerLimits { size: MAX_MESSAGE, connections: MAX_CONNECTIONS, memory: u64::MAX };

    /// # Errors
    /// A value of the job exceeds a limit; the message names the flags of both ends.
    pub fn check(&self, job: &NetJob) -> Result<(), NetError> {
        let wrong = |flag, what: String, own: &str| {
            let why = format!("{what} for this server; start it with a larger --{own} there");
            Err(NetError::InvalidSetting { flag, why })
        };
        if job.size > self.size {
            return wrong(
                "size",
                format!("{} B are more than {} B", job.size, self.size),
                "max-size",
            );
        }
        if job.connections > self.connections {
            let what = format!("{} are more than {}", job.connections, self.connections);
            return wrong("connections", what, "max-connections");
        }
        let memory = job.memory();
        if memory > self.memory {
            let flag = if job.reuse > job.size { "reuse" } else { "connections" };
            let what = format!("it would hold {memory} B, which is more than {} B", self.memory);
            return wrong(flag, what, "max-memory");
        }
        Ok(())
    }
}

impl Default for NetJob {
    fn default() -> Self {
        NetJob {
            kind: Kind::Pingpong,
            transport: Transport::Tcp,
            size: 64,
            connections: 1,
            threads: 1,
            stride: 64,
            reuse: 0,
            busy_poll: false,
            timeout_s: 1.0,
            rate: None,
            socket_buffer: None,
        }
    }
}

impl NetJob {
    /// # Errors
    /// The first invalid value, with its flag.
    pub fn check(&self) -> Result<(), NetError> {
        let wrong = |flag, why: String| Err(NetError::InvalidSetting { flag, why });
        if self.size == 0 || self.size > MAX_MESSAGE {
            return wrong("size", format!("{} B; a message has 1 B to 1 GiB", self.size));
        }
        if self.transport == Transport::Udp && self.size > LARGEST_DATAGRAM {
            return wrong(
                "size",
                format!(
                    "{} B do not fit a UDP datagram of at most {LARGEST_DATAGRAM} B; use TCP for \
                     larger messages",
                    self.size
                ),
            );
        }
        if self.connections == 0 || self.connections > MAX_CONNECTIONS {
            return wrong("connections", format!("1 to {MAX_CONNECTIONS} are possible"));
        }
        if self.threads == 0 || self.threads > MAX_THREADS {
            return wrong("threads", format!("1 to {MAX_THREADS} are possible"));
        }
        if self.threads > 1 && self.transport == Transport::Ethernet {
            return wrong("threads", "a port is driven by one thread".to_owned());
        }
        if self.reuse > MAX_REUSE {
            return wrong("reuse", format!("{} B; at most 16 GiB are held back", self.reuse));
        }
        if !(self.timeout_s > 0.0 && self.timeout_s <= 3600.0) {
            return wrong("timeout", "more than 0 s and at most an hour is possible".to_owned());
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e9)) {
            return wrong("rate", "more than 0 and at most 1G messages a second".to_owned());
        }
        if self.rate.is_some() && self.kind == Kind::Pingpong {
            return wrong(
                "rate",
                "a ping-pong sends when it has its answer; only `flow` has a rate".to_owned(),
            );
        }
        if self.socket_buffer.is_some_and(|bytes| bytes == 0 || bytes > 1 << 30) {
            return wrong("socket-buffer", "1 B to 1 GiB are possible".to_owned());
        }
        Ok(())
    }

    /// Bytes that an end needs for it, about: message buffers, reuse distance and socket buffers.
    fn memory(&self) -> u64 {
        let each = self.reuse + self.size.max(64 << 10) + 2 * self.socket_buffer.unwrap_or(0);
        each.saturating_mul(u64::from(self.connections))
    }

    /// Messages per time stamp. Reading a stamp touches the data, so small messages carry one per
    /// 16 KiB only.
    pub(super) fn stamp_every(&self) -> u64 {
        (16_384 / self.size.max(1)).max(1)
    }

    /// The connections of one thread, by number.
    pub(super) fn share(&self, thread: u32) -> impl Iterator<Item = usize> + use<> {
        let (from, step, to) =
            (thread as usize, self.threads() as usize, self.connections as usize);
        (from..to).step_by(step)
    }

    /// Threads that have a connection.
    pub(super) fn threads(&self) -> u32 {
        self.threads.min(self.connections).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_invalid_cells_by_flag() {
        let usual = NetJob::default();
        assert_eq!(usual.check().map_err(|error| error.to_string()), Ok(()));
        let udp = |size| NetJob { transport: Transport::Udp, size, ..NetJob::default() };
        assert!(udp(LARGEST_DATAGRAM).check().is_ok());
        for (job, flag) in [
            (NetJob { size: 0, ..usual.clone() }, "--size"),
            (NetJob { size: (1 << 30) + 1, ..usual.clone() }, "--size"),
            (udp(LARGEST_DATAGRAM + 1), "--size"),
            (NetJob { connections: 0, ..usual.clone() }, "--connections"),
            (NetJob { threads: 0, ..usual.clone() }, "--threads"),
            (NetJob { transport: Transport::Ethernet, threads: 2, ..usual.clone() }, "--threads"),
            (NetJob { timeout_s: 0.0, ..usual.clone() }, "--timeout"),
            (NetJob { timeout_s: f64::NAN, ..usual.clone() }, "--timeout"),
            (NetJob { rate: Some(1.0), ..usual.clone() }, "--rate"),
            (NetJob { kind: Kind::Flow, rate: Some(-1.0), ..usual.clone() }, "--rate"),
            (NetJob { reuse: u64::MAX, ..usual.clone() }, "--reuse"),
            (NetJob { socket_buffer: Some(0), ..usual }, "--socket-buffer"),
        ] {
            let error = job.check().unwrap_err();
            assert!(error.is_request() && error.to_string().starts_with(flag), "{error}");
        }
    }

    #[test]
    fn a_server_enforces_its_limits() {
        let usual = NetJob::default();
        let most = ServerLimits::DEFAULT;
        // What the documents show.
        for job in [
            usual.clone(),
            NetJob { size: 1 << 20, connections: 16, ..usual.clone() },
            NetJob { kind: Kind::Flow, size: 16 << 10, reuse: 64 << 20, ..usual.clone() },
        ] {
            assert!(job.check().is_ok() && most.check(&job).is_ok(), "{job:?}");
        }
        for (job, flags) in [
            (NetJob { size: 1 << 30, ..usual.clone() }, ["--size", "--max-size"]),
            (
                NetJob { connections: 50_000, ..usual.clone() },
                ["--connections", "--max-connections"],
            ),
            (
                NetJob { size: 1 << 20, connections: 4096, ..usual.clone() },
                ["--connections", "--max-memory"],
            ),
            (NetJob { reuse: 16 << 30, ..usual.clone() }, ["--reuse", "--max-memory"]),
            (NetJob { socket_buffer: Some(1 << 30), ..usual }, ["--connections", "--max-memory"]),
        ] {
            assert!(job.check().is_ok() && ServerLimits::NONE.check(&job).is_ok());
            let error = most.check(&job).unwrap_err();
            let words = error.to_string();
            assert!(error.is_request() && flags.iter().all(|flag| words.contains(flag)), "{words}");
        }
    }

    #[test]
    fn each_connection_belongs_to_one_thread() {
        for (connections, threads) in [(1, 1), (5, 2), (2, 8), (7, 7)] {
            let job = NetJob { connections, threads, ..NetJob::default() };
            let mut all: Vec<usize> = (0..job.threads()).flat_map(|t| job.share(t)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..connections as usize).collect::<Vec<_>>());
        }
    }
}
