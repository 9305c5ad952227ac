//! From an address to the pid of the process that listens there.

use std::net::IpAddr;

use host::{Root, RootError};

use model::{Address, Unavailable};

use super::same_machine::{is_ours, resolve};
use super::sockets::{self, Listening};
use super::stat::Stat;

/// A listening socket and the user that opened it.
struct Socket {
    inode: u64,
    /// Unknown for unix sockets.
    uid: Option<u32>,
}

/// The pid of the process that listens at `address`, in this process' network namespace.
pub(super) fn pid(root: &Root, address: &Address) -> Result<u32, Unavailable> {
    let sockets = match address {
        Address::Unix(path) => {
            let table = root.text("/proc/net/unix")?;
            let inodes = sockets::unix(&table, &path.to_string_lossy());
            inodes.into_iter().map(|inode| Socket { inode, uid: None }).collect()
        }
        Address::Tcp { host, port } => listening(root, host, *port)?,
    };
    if sockets.is_empty() {
        return Err(Unavailable::new(
            format!("nothing listens at {address} in this network namespace"),
            "start the server, or run kvmeter in the server's network namespace",
        ));
    }
    let holders = holders(root, &sockets)?;
    match holders.owners.as_slice() {
        [pid] => Ok(*pid),
        [] => Err(hidden(address, &sockets, &holders)),
        several => Err(Unavailable::new(
            format!("several processes listen at {address}: pids {several:?} (SO_REUSEPORT)"),
            "let one process listen, or name the process by its pid",
        )),
    }
}

/// The listening sockets that take connections to the host's port: those of exactly the
/// address if there are any, as the kernel prefers them, else those of every address.
fn listening(root: &Root, host: &str, port: u16) -> Result<Vec<Socket>, Unavailable> {
    let ips = resolve(host, port)?;
    if root.is_live() && !ips.iter().any(|ip| is_ours(*ip)) {
        return Err(Unavailable::new(
            format!("{host} {}", model::IS_ELSEWHERE),
            "run an agent there to watch the server",
        ));
    }
    let mut table = sockets::tcp(&root.text("/proc/net/tcp")?);
    // A machine without IPv6 has no such table.
    if let Ok(text) = root.text("/proc/net/tcp6") {
        table.extend(sockets::tcp(&text));
    }
    table.retain(|socket| socket.port == port);
    let exact = |socket: &&Listening| ips.contains(&socket.ip.to_canonical());
    let every = |socket: &&Listening| {
        // `::` takes IPv4 connections too, unless the server set IPV6_V6ONLY.
        socket.ip.is_unspecified()
            && ips.iter().any(|ip| matches!(ip, IpAddr::V4(_)) || socket.ip.is_ipv6())
    };
    let mut matching: Vec<&Listening> = table.iter().filter(exact).collect();
    if matching.is_empty() {
        matching = table.iter().filter(every).collect();
    }
    Ok(matching
        .into_iter()
        .map(|socket| Socket { inode: socket.inode, uid: Some(socket.uid) })
        .collect())
}

/// The processes with the sockets open.
#[derive(Default)]
struct Holders {
    /// Those whose parent is none of them: children inherit listening sockets.
    owners: Vec<u32>,
    /// How many processes' descriptors could not be seen.
    unseen: usize,
}

fn holders(root: &Root, sockets: &[Socket]) -> Result<Holders, Unavailable> {
    let targets: Vec<String> =
        sockets.iter().map(|socket| format!("socket:[{}]", socket.inode)).collect();
    let mut pids = Vec::new();
    let mut unseen = 0;
    for pid in root.numbers("/proc")? {
        let folder = format!("/proc/{pid}/fd");
        let descriptors = match root.numbers(&folder) {
            Ok(descriptors) => descriptors,
            Err(RootError::Denied { .. }) => {
                unseen += 1;
                continue;
            }
            // It ended.
            Err(_) => continue,
        };
        let holds = |fd: u32| {
            root.link(&format!("{folder}/{fd}")).is_ok_and(|target| targets.contains(&target))
        };
        if descriptors.into_iter().any(holds) {
            pids.push(pid);
        }
    }
    let inherits = |pid: &u32| {
        let path = format!("/proc/{pid}/stat");
        let text = root.text(&path).ok();
        let parent = text.and_then(|text| Stat::parse(&path, &text).ok()).map(|stat| stat.parent);
        parent.is_some_and(|parent| pids.contains(&parent))
    };
    let owners = pids.iter().copied().filter(|pid| !inherits(pid)).collect();
    Ok(Holders { owners, unseen })
}

fn hidden(address: &Address, sockets: &[Socket], holders: &Holders) -> Unavailable {
    let user = match sockets.first().and_then(|socket| socket.uid) {
        Some(uid) => format!(", opened by user {uid},"),
        None => String::new(),
    };
    match holders.unseen {
        0 => Unavailable::new(
            format!("the socket at {address}{user} belongs to another pid namespace"),
            "run kvmeter in the server's pid namespace, such as in its container",
        ),
        unseen => Unavailable::new(
            format!(
                "which process listens at {address}{user} is unknown: {unseen} processes hide \
                 their files from this user"
            ),
            "run kvmeter as the server's user or as root (CAP_SYS_PTRACE)",
        ),
    }
}
