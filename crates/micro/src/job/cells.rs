//! The cells to be measured, in an order that puts comparable ones next to each other.

use model::Bytes;

use super::net::{FlowArgs, NetFlags, PingpongArgs};
use crate::net::{Kind, LARGEST_DATAGRAM, NetError, NetJob, Stack, Transport};

/// Sizes where none are named: every fourth power of two.
const USUAL: (u64, u64) = (1, 1 << 20);

/// The cells in the order in which they are shown.
#[derive(Debug)]
pub struct NetCells {
    pub kind: Kind,
    pub jobs: Vec<NetJob>,
}

impl NetCells {
    fn new(flags: &NetFlags, usual: &NetJob, touches: &[(u64, u64)]) -> Result<NetCells, NetError> {
        let sizes = match &flags.size {
            Some(sizes) => sizes.all(quarters),
            None => quarters(USUAL.0, USUAL.1),
        };
        if sizes.is_empty() {
            let why = "no size of 1, 4, 16, 64, ... lies in that range".to_owned();
            return Err(NetError::InvalidSetting { flag: "size", why });
        }
        let mut jobs = Vec::new();
        for size in sizes {
            for connections in &flags.connections {
                for (stride, reuse) in touches {
                    for transport in transports(flags) {
                        // A default that a transport cannot carry is left out; what was named
                        // is refused.
                        let most = default_max_size(transport);
                        if flags.size.is_none() && size > most {
                            continue;
                        }
                        let job = NetJob {
                            size,
                            transport,
                            connections: *connections,
                            stride: *stride,
                            reuse: *reuse,
                            threads: if transport == Transport::Ethernet {
                                1
                            } else {
                                usual.threads
                            },
                            ..usual.clone()
                        };
                        job.check()?;
                        jobs.push(job);
                    }
                }
            }
        }
        Ok(NetCells { kind: usual.kind, jobs })
    }

    pub fn of(&self, stack: Stack) -> Vec<&NetJob> {
        self.jobs.iter().filter(|job| job.transport.stack() == stack).collect()
    }

    /// Where a cell stands in the order.
    pub fn position(&self, job: &NetJob) -> usize {
        self.jobs.iter().position(|other| other == job).unwrap_or(self.jobs.len())
    }
}

impl PingpongArgs {
    /// # Errors
    /// A cell is impossible.
    pub fn cells(&self) -> Result<NetCells, NetError> {
        let job = NetJob { kind: Kind::Pingpong, stride: 0, ..usual(&self.net) };
        NetCells::new(&self.net, &job, &[(0, 0)])
    }
}

impl FlowArgs {
    /// # Errors
    /// A cell is impossible.
    pub fn cells(&self) -> Result<NetCells, NetError> {
        let rate = self.rate.map(|rate| rate.0);
        let job = NetJob { kind: Kind::Flow, rate, ..usual(&self.net) };
        let touches: Vec<(u64, u64)> = self
            .stride
            .iter()
            .flat_map(|stride| self.reuse.iter().map(move |reuse| (stride.0, reuse.0)))
            .collect();
        NetCells::new(&self.net, &job, &touches)
    }
}

fn usual(flags: &NetFlags) -> NetJob {
    NetJob {
        threads: flags.threads,
        busy_poll: flags.busy_poll,
        timeout_s: flags.timeout.0.as_secs_f64(),
        socket_buffer: flags.socket_buffer.map(|Bytes(bytes)| bytes),
        ..NetJob::default()
    }
}

/// In the order of their naming, each once.
fn transports(flags: &NetFlags) -> Vec<Transport> {
    let mut all = Vec::new();
    if flags.has(Stack::Kernel) {
        all.extend(&flags.transport);
    }
    if flags.has(Stack::Dpdk) {
        all.push(Transport::Ethernet);
    }
    all.dedup();
    all
}

/// The largest message that is sent where no size was named.
fn default_max_size(transport: Transport) -> u64 {
    if transport.is_lossy() { LARGEST_DATAGRAM } else { u64::MAX }
}

/// Every fourth power of two in a range.
fn quarters(from: u64, to: u64) -> Vec<u64> {
    (0..u64::BITS).step_by(2).map(|shift| 1 << shift).filter(|s| (from..=to).contains(s)).collect()
}
