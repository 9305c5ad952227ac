//! Joins started servers into a Redis cluster.
//!
//! Source: Redis cluster specification (`CLUSTER ADDSLOTSRANGE`, `SET-CONFIG-EPOCH`, `MEET`,
//! `REPLICATE`, `INFO`).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use model::Address;

use super::error::LaunchError;

/// Slots of a cluster.
const SLOTS: u32 = 16_384;
/// How long a node may take to answer one command.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Nodes tell each other by gossip, and replicas copy an empty dataset: seconds in all.
const FORMING_LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);
/// Most bytes of an answer: a line of `CLUSTER NODES` has some 150.
const LARGEST_ANSWER: u64 = 1 << 20;

/// The shape of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterLayout {
    pub primaries: u32,
    /// Of each primary.
    pub replicas: u32,
}

impl ClusterLayout {
    pub fn nodes(self) -> u32 {
        self.primaries.saturating_mul(self.replicas.saturating_add(1))
    }

    /// The first and last slot of a primary.
    fn slots(self, primary: u32) -> (u32, u32) {
        let first = |at: u32| at * SLOTS / self.primaries;
        (first(primary), first(primary + 1) - 1)
    }
}

/// Joins fresh nodes at these addresses into a cluster: the first are primaries with equal shares
/// of the slots, the others their replicas in turn. Returns when all nodes serve.
///
/// # Errors
/// [`LaunchError::Cluster`]: a node refused, was silent, or they did not join within a minute.
pub fn form_cluster(
    program: &'static str,
    addresses: &[Address],
    layout: ClusterLayout,
    stop: &AtomicBool,
) -> Result<(), LaunchError> {
    form(addresses, layout, stop).map_err(|why| LaunchError::Cluster { program, why })
}

fn form(addresses: &[Address], layout: ClusterLayout, stop: &AtomicBool) -> Result<(), String> {
    let limit = Instant::now() + FORMING_LIMIT;
    let mut nodes = addresses.iter().map(Node::connect).collect::<Result<Vec<_>, _>>()?;
    for (at, node) in (0..).zip(&mut nodes) {
        // Different epochs spare the nodes a vote about them.
        node.ask(&format!("CLUSTER SET-CONFIG-EPOCH {}", at + 1))?;
        if at < layout.primaries {
            let (first, last) = layout.slots(at);
            node.ask(&format!("CLUSTER ADDSLOTSRANGE {first} {last}"))?;
        }
    }
    let Some((first, others)) = nodes.split_first_mut() else { return Ok(()) };
    for other in others {
        first.ask(&format!("CLUSTER MEET {} {}", other.socket.ip(), other.socket.port()))?;
    }
    let all = nodes.len().to_string();
    until(limit, stop, "some nodes do not know all others", || {
        each(&mut nodes, |node| node.has("CLUSTER INFO", "cluster_known_nodes", &all))
    })?;
    let ids = nodes.iter_mut().map(|node| node.ask("CLUSTER MYID"));
    let ids = ids.collect::<Result<Vec<_>, _>>()?;
    let primaries = layout.primaries as usize;
    for at in primaries..nodes.len() {
        nodes[at].ask(&format!("CLUSTER REPLICATE {}", ids[at % primaries]))?;
    }
    until(limit, stop, "some replicas have no link to their primary", || {
        each(&mut nodes[primaries..], |node| {
            node.has("INFO replication", "master_link_status", "up")
        })
    })?;
    // Every node has to know who follows whom: reads of replicas go by it.
    let replicas = nodes.len() - primaries;
    until(limit, stop, "some nodes do not serve", || {
        each(&mut nodes, |node| {
            let known = node.ask("CLUSTER NODES")?;
            let follow = known.lines().filter(|line| line.contains("slave")).count();
            Ok(follow == replicas && node.has("CLUSTER INFO", "cluster_state", "ok")?)
        })
    })
}

/// Whether something holds of all nodes.
fn each(
    nodes: &mut [Node],
    mut holds: impl FnMut(&mut Node) -> Result<bool, String>,
) -> Result<bool, String> {
    for node in nodes {
        if !holds(node)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn until(
    limit: Instant,
    stop: &AtomicBool,
    otherwise: &str,
    mut holds: impl FnMut() -> Result<bool, String>,
) -> Result<(), String> {
    while !holds()? {
        if stop.load(Ordering::Relaxed) {
            return Err("it was stopped".to_owned());
        }
        if Instant::now() > limit {
            return Err(format!("{otherwise} after {} s", FORMING_LIMIT.as_secs()));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// A connection to one node.
struct Node {
    socket: SocketAddr,
    stream: BufReader<TcpStream>,
}

impl Node {
    fn connect(address: &Address) -> Result<Node, String> {
        let failed = |why: String| format!("{address}: {why}");
        let socket = match address {
            Address::Tcp { host, port } => host.parse::<IpAddr>().ok().map(|ip| (ip, *port).into()),
            Address::Unix(_) => None,
        };
        let socket = socket.ok_or_else(|| failed("a node needs a port".to_owned()))?;
        let open = || {
            let stream = TcpStream::connect_timeout(&socket, ANSWER_LIMIT)?;
            stream.set_read_timeout(Some(ANSWER_LIMIT))?;
            stream.set_write_timeout(Some(ANSWER_LIMIT))?;
            Ok(stream)
        };
        let stream = open().map_err(|error: std::io::Error| failed(error.to_string()))?;
        Ok(Node { socket, stream: BufReader::new(stream) })
    }

    /// The answer to an inline command, which has no quotes.
    fn ask(&mut self, command: &str) -> Result<String, String> {
        let failed = |why: &str| format!("{}: `{command}`: {why}", self.socket);
        let io = |error: std::io::Error| failed(&error.to_string());
        self.stream.get_mut().write_all(format!("{command}\r\n").as_bytes()).map_err(io)?;
        let mut line = String::new();
        (&mut self.stream).take(4096).read_line(&mut line).map_err(io)?;
        let line = line.trim_end();
        match line.split_at_checked(1) {
            Some(("+", words)) => Ok(words.to_owned()),
            Some(("$", length)) => {
                let length: Option<u64> = length.parse().ok();
                let length = length.filter(|length| *length <= LARGEST_ANSWER);
                let length = length.ok_or_else(|| failed("its answer is too long"))?;
                let mut text = vec![0; length as usize + 2];
                self.stream.read_exact(&mut text).map_err(io)?;
                text.truncate(length as usize);
                String::from_utf8(text).map_err(|_| failed("its answer is no text"))
            }
            Some(("-", words)) => Err(failed(words)),
            _ => Err(failed("it closed the connection")),
        }
    }

    /// Whether an answer of `name:value` lines has this one.
    fn has(&mut self, command: &str, name: &str, value: &str) -> Result<bool, String> {
        let answer = self.ask(command)?;
        let mut pairs = answer.lines().filter_map(|line| line.split_once(':'));
        Ok(pairs.any(|(key, text)| key == name && text.trim() == value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primaries_share_all_slots() {
        for primaries in [1, 3, 7, 1000] {
            let layout = ClusterLayout { primaries, replicas: 2 };
            let mut next = 0;
            for primary in 0..primaries {
                let (first, last) = layout.slots(primary);
                assert!(first == next && last >= first, "{primary} of {primaries}");
                next = last + 1;
            }
            assert_eq!((next, layout.nodes()), (SLOTS, 3 * primaries));
        }
    }
}
