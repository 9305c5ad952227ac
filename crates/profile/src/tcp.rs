//! TCP connections of the profiled processes, as the kernel lists them (`sock_diag(7)`).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use model::{KernelCounts, MissingCounts, TcpFigures, Unavailable};

use crate::sampler::Target;
use crate::sys::SocketLister;

/// How often they are listed.
const LOOK: Duration = Duration::from_secs(1);
/// Bytes of `struct nlmsghdr`, of a request and of an answer, `include/uapi/linux/inet_diag.h`.
const HEADER: usize = 16;
const REQUEST: usize = 56;
const ANSWER: usize = 72;
const BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const REQUEST_DUMP: u16 = 0x301;
/// `INET_DIAG_INFO`: the attribute that is a `struct tcp_info`.
const INFO: u16 = 2;
const ESTABLISHED: u32 = 1 << 1;
/// Offsets in an answer, after its header.
const RECEIVE_QUEUE: usize = 56;
const SEND_QUEUE: usize = 60;
const INODE: usize = 68;
/// Offsets in `struct tcp_info`, `include/uapi/linux/tcp.h`.
const RTT_US: usize = 68;
const TOTAL_RETRANSMITTED: usize = 100;

/// A connection at one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Connection {
    inode: u32,
    receive_queue: u32,
    send_queue: u32,
    rtt_us: u32,
    /// Segments that were sent again since it was opened.
    retransmitted: u32,
}

/// What was seen of the connections of one process.
struct Seen {
    target: Target,
    /// By socket: segments sent again until the first look, and until the last one.
    retransmitted: HashMap<u32, (u32, u32)>,
    looks: u64,
    send_queues: u64,
    receive_queues: u64,
    max_send_queue: u32,
    max_receive_queue: u32,
    /// At the last look that found any connection: clients close theirs when the window ends.
    last_rtts_us: Vec<u32>,
}

/// Looks at connections until it is ended.
#[derive(Default)]
pub(crate) struct Connections {
    seen: Vec<Seen>,
    last: Option<Instant>,
    failed: Option<io::Error>,
}

impl Connections {
    /// Looks for the first time.
    pub fn new(targets: &[Target]) -> Connections {
        let seen = |target: &Target| Seen {
            target: target.clone(),
            retransmitted: HashMap::new(),
            looks: 0,
            send_queues: 0,
            receive_queues: 0,
            max_send_queue: 0,
            max_receive_queue: 0,
            last_rtts_us: Vec::new(),
        };
        let mut connections =
            Connections { seen: targets.iter().map(seen).collect(), last: None, failed: None };
        connections.look();
        connections
    }

    pub fn look_if_due(&mut self) {
        if self.last.is_none_or(|last| last.elapsed() >= LOOK) {
            self.look();
        }
    }

    fn look(&mut self) {
        let first = self.last.is_none();
        self.last = Some(Instant::now());
        match listed() {
            Ok(all) => self.seen.iter_mut().for_each(|seen| seen.add(&all, first)),
            Err(error) => self.failed = Some(error),
        }
    }

    /// Looks for the last time, and adds what was seen.
    pub fn end(mut self, counts: &mut KernelCounts) {
        self.look();
        if let Some(error) = self.failed {
            let why = Unavailable::new(
                format!("the kernel does not list TCP connections: {error}"),
                "use a kernel with CONFIG_INET_DIAG and CONFIG_INET_TCP_DIAG",
            );
            counts
                .missing
                .push(MissingCounts { what: "connections".to_owned(), reason: why.to_string() });
            return;
        }
        counts.connections.extend(self.seen.into_iter().filter_map(Seen::figures));
    }
}

impl Seen {
    fn add(&mut self, all: &[Connection], first: bool) {
        let own = sockets_of(self.target.pid);
        let mut rtts_us = Vec::new();
        for connection in all.iter().filter(|connection| own.contains(&connection.inode)) {
            let now = connection.retransmitted;
            // One that was opened meanwhile sent nothing again before.
            let before = if first { now } else { 0 };
            self.retransmitted.entry(connection.inode).or_insert((before, now)).1 = now;
            self.looks += 1;
            self.send_queues += u64::from(connection.send_queue);
            self.receive_queues += u64::from(connection.receive_queue);
            self.max_send_queue = self.max_send_queue.max(connection.send_queue);
            self.max_receive_queue = self.max_receive_queue.max(connection.receive_queue);
            rtts_us.push(connection.rtt_us);
        }
        if !rtts_us.is_empty() {
            self.last_rtts_us = rtts_us;
        }
    }

    /// None for a process without connections.
    fn figures(mut self) -> Option<TcpFigures> {
        self.last_rtts_us.sort_unstable();
        let max_rtt_us = f64::from(*self.last_rtts_us.last()?);
        let middle = self.last_rtts_us[(self.last_rtts_us.len() - 1) / 2];
        let again = self.retransmitted.values().map(|(first, last)| last.saturating_sub(*first));
        let looks = self.looks.max(1) as f64;
        Some(TcpFigures {
            side: self.target.side,
            process: self.target.name,
            connections: self.last_rtts_us.len() as u64,
            retransmitted: again.map(u64::from).sum(),
            median_rtt_us: f64::from(middle),
            max_rtt_us,
            mean_send_queue: self.send_queues as f64 / looks,
            max_send_queue: self.max_send_queue.into(),
            mean_receive_queue: self.receive_queues as f64 / looks,
            max_receive_queue: self.max_receive_queue.into(),
        })
    }
}

/// The numbers of the sockets that a process has open.
fn sockets_of(pid: u32) -> HashSet<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let socket = |entry: fs::DirEntry| {
        let link = fs::read_link(entry.path()).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    entries.filter_map(socket).collect()
}

/// All established TCP connections of this network namespace.
fn listed() -> io::Result<Vec<Connection>> {
    let lister = SocketLister::open()?;
    let mut connections = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        lister.send(&request(family as u8))?;
        let mut buffer = vec![0; 64 << 10];
        while !connections_of(lister.receive(&mut buffer)?, &mut connections)? {}
    }
    Ok(connections)
}

/// A request for all connections of an address family.
fn request(family: u8) -> [u8; HEADER + REQUEST] {
    let mut bytes = [0; HEADER + REQUEST];
    bytes[..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    bytes[HEADER] = family;
    bytes[HEADER + 1] = libc::IPPROTO_TCP as u8;
    bytes[HEADER + 2] = 1 << (INFO - 1);
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&ESTABLISHED.to_ne_bytes());
    bytes
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Adds the connections of one datagram of answers; true after the last one.
fn connections_of(mut bytes: &[u8], connections: &mut Vec<Connection>) -> io::Result<bool> {
    let damaged = || io::Error::from(io::ErrorKind::InvalidData);
    while bytes.len() >= HEADER {
        let length = word(bytes, 0).ok_or_else(damaged)? as usize;
        let answer = bytes.get(..length).filter(|_| length >= HEADER).ok_or_else(damaged)?;
        match half(answer, 4) {
            Some(DONE) => return Ok(true),
            Some(ERROR) => {
                let code = word(answer, HEADER).unwrap_or(0) as i32;
                return Err(io::Error::from_raw_os_error(code.saturating_neg()));
            }
            _ => connections.extend(connection(&answer[HEADER..])),
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// None where the kernel added no figures of TCP.
fn connection(answer: &[u8]) -> Option<Connection> {
    let mut attributes = answer.get(ANSWER..)?;
    let info = loop {
        let length = usize::from(half(attributes, 0)?);
        if half(attributes, 2)? == INFO {
            break attributes.get(4..length)?;
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..)?;
    };
    Some(Connection {
        inode: word(answer, INODE)?,
        receive_queue: word(answer, RECEIVE_QUEUE)?,
        send_queue: word(answer, SEND_QUEUE)?,
        rtt_us: word(info, RTT_US)?,
        retransmitted: word(info, TOTAL_RETRANSMITTED)?,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use model::ProfiledSide;

    use super::*;

    #[test]
    fn connections_have_their_bytes_in_queues() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[1; 1000]).unwrap();
        let own =
            Target { pid: std::process::id(), side: ProfiledSide::Client, name: "test".to_owned() };
        // Other tests of this process have connections, but none with as many unread bytes.
        let connections = Connections::new(std::slice::from_ref(&own));
        let mut counts = KernelCounts::default();
        connections.end(&mut counts);
        if !counts.missing.is_empty() {
            eprintln!("SKIPPED: {:?}", counts.missing);
            return;
        }
        let [figures] = counts.connections.as_slice() else { panic!("{counts:?}") };
        assert!(figures.connections >= 2 && figures.max_receive_queue == 1000, "{figures:?}");
        assert!(figures.median_rtt_us > 0.0 && figures.retransmitted == 0, "{figures:?}");
        server.read_exact(&mut [0; 1000]).unwrap();
        let connections = Connections::new(&[own]);
        // They are gone at the last look.
        drop((client, server));
        let mut counts = KernelCounts::default();
        connections.end(&mut counts);
        let [figures] = counts.connections.as_slice() else { panic!("{counts:?}") };
        assert!(figures.connections >= 2 && figures.max_receive_queue == 0, "{figures:?}");
        let none = Target { pid: u32::MAX, side: ProfiledSide::Server, name: "none".to_owned() };
        let mut counts = KernelCounts::default();
        Connections::new(&[none]).end(&mut counts);
        assert_eq!(counts, KernelCounts::default());
    }

    #[test]
    fn damaged_answers_are_errors_or_nothing() {
        let mut answer = vec![0u8; HEADER + ANSWER + 4];
        let length = answer.len() as u32;
        answer[..4].copy_from_slice(&length.to_ne_bytes());
        answer[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        let mut connections = Vec::new();
        // An attribute of no length.
        assert!(!connections_of(&answer, &mut connections).unwrap());
        for cut in HEADER..answer.len() {
            assert!(connections_of(&answer[..cut], &mut connections).is_err(), "{cut}");
        }
        answer[4..6].copy_from_slice(&ERROR.to_ne_bytes());
        answer[HEADER..HEADER + 4].copy_from_slice(&(-libc::ENOENT).to_ne_bytes());
        let error = connections_of(&answer, &mut connections).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        assert!(connections.is_empty());
    }
}
