//! Redis Cluster: which slot a key belongs to, which node serves a slot, and redirects.
//!
//! Source: Redis cluster specification (hash slots, hash tags, `MOVED`, `ASK`).

use std::io::{Read, Write};

use model::Address;

use super::Protocol;
use super::error::{WireError, excerpt};
use super::handshake::{self, HandshakeError};

/// Slots of a cluster.
pub const SLOTS: usize = 16_384;

/// The most nodes of a cluster, as its specification advises; each gets connections.
const MOST_NODES: usize = 1000;

/// The slot of a key: CRC16 (XMODEM) of it, or of its hash tag, modulo the slots.
#[inline]
pub fn slot_of(key: &[u8]) -> u16 {
    let tagged = hash_tag(key);
    let crc = tagged
        .iter()
        .fold(0_u16, |crc, &byte| crc << 8 ^ CRC16[usize::from((crc >> 8) as u8 ^ byte)]);
    crc % SLOTS as u16
}

/// What lies between the first `{` and the next `}`, unless it is empty; else the key.
#[inline]
fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else { return key };
    match memchr::memchr(b'}', &key[open + 1..]) {
        Some(length) if length > 0 => &key[open + 1..open + 1 + length],
        _ => key,
    }
}

/// The table of CRC16 with the polynomial 0x1021.
const CRC16: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// A node's answer that another one serves the slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// This request alone, after `ASKING`: the slot is being migrated. Otherwise the slot moved.
    pub asks: bool,
    pub slot: u16,
    /// `HOST:PORT`; the host is empty where the node does not know its own.
    pub to: String,
}

impl Redirect {
    /// Of an error such as `MOVED 3999 127.0.0.1:6381`.
    pub(super) fn parse(words: &[u8]) -> Option<Redirect> {
        let text = std::str::from_utf8(words).ok()?;
        let mut parts = text.split(' ');
        let asks = match parts.next()? {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        let slot: u16 = parts.next()?.parse().ok().filter(|slot| usize::from(*slot) < SLOTS)?;
        let to = parts.next().filter(|to| to.len() <= 256)?.to_owned();
        Some(Redirect { asks, slot, to })
    }
}

/// Nodes of a cluster with the slots that they serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterMap {
    pub nodes: Vec<ClusterNode>,
    /// The primary of each slot, by its number in `nodes`; [`ClusterMap::NOBODY`] without one.
    pub owners: Vec<u16>,
}

/// A node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterNode {
    /// What the node calls itself: it keeps the name when its address changes.
    pub id: String,
    pub address: Address,
    /// The number of the primary that it follows; None of a primary.
    pub follows: Option<u16>,
    /// The other nodes hold it for dead.
    pub failed: bool,
}

impl ClusterMap {
    pub const NOBODY: u16 = u16::MAX;

    /// Whether a node is in both maps: then they are of one cluster.
    pub fn shares_a_node_with(&self, other: &ClusterMap) -> bool {
        self.nodes.iter().any(|node| other.nodes.iter().any(|known| known.id == node.id))
    }

    /// Slots that no node serves.
    pub fn uncovered(&self) -> usize {
        self.owners.iter().filter(|owner| **owner == Self::NOBODY).count()
    }

    /// Slots of each node.
    pub fn slots(&self) -> Vec<usize> {
        let mut slots = vec![0; self.nodes.len()];
        for owner in &self.owners {
            if let Some(slots) = slots.get_mut(usize::from(*owner)) {
                *slots += 1;
            }
        }
        slots
    }

    /// The map of the answer to `CLUSTER NODES`. `via` stands for a node that does not know its own
    /// host, and `port` says which of a node's ports is used.
    pub(super) fn parse(text: &str, via: &str, tls: bool) -> Option<ClusterMap> {
        struct Line<'a> {
            id: &'a str,
            primary: Option<&'a str>,
            slots: Vec<&'a str>,
        }
        let mut nodes = Vec::new();
        let mut lines = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            // ID HOST:PORT@BUS[,HOSTNAME,...] FLAGS PRIMARY PING PONG EPOCH LINK SLOT...
            let parts: Vec<&str> = line.split_whitespace().collect();
            let [id, place, flags, primary, _, _, _, _, slots @ ..] = parts.as_slice() else {
                return None;
            };
            let has = |flag: &str| flags.split(',').any(|own| own == flag);
            if has("noaddr") || has("handshake") {
                continue;
            }
            let address = address(place, via, tls)?;
            if nodes.len() == MOST_NODES {
                return None;
            }
            let (id_text, failed) = ((*id).to_owned(), has("fail"));
            nodes.push(ClusterNode { id: id_text, address, follows: None, failed });
            let primary = has("slave").then_some(*primary);
            lines.push(Line { id, primary, slots: slots.to_vec() });
        }
        let number = |id: &str| lines.iter().position(|line| line.id == id);
        let mut owners = vec![Self::NOBODY; SLOTS];
        for (at, line) in lines.iter().enumerate() {
            nodes[at].follows = line.primary.and_then(number).and_then(|at| at.try_into().ok());
            // `[93-<-ID]` is a slot that is being migrated; it is served as before.
            for range in line.slots.iter().filter(|range| !range.starts_with('[')) {
                let (from, to) = range.split_once('-').unwrap_or((range, range));
                let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
                owners.get_mut(from..=to)?.fill(at as u16);
            }
        }
        (!nodes.is_empty()).then_some(ClusterMap { nodes, owners })
    }
}

/// The address of `HOST:PORT@BUS,HOSTNAME,tls-port=PORT`.
fn address(place: &str, via: &str, tls: bool) -> Option<Address> {
    let mut parts = place.split(',');
    let (host, port) = parts.next()?.split('@').next()?.rsplit_once(':')?;
    let (mut host, mut port) = (host, port);
    for part in parts {
        match part.strip_prefix("tls-port=") {
            Some(own) if tls => port = own,
            _ => {}
        }
    }
    if host.is_empty() || host == "?" {
        host = via;
    }
    Some(Address::Tcp { host: host.to_owned(), port: port.parse().ok()? })
}

/// The command that lets the next one be served for a slot that is being imported.
pub(super) const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";
/// Its answer.
pub(super) const OK: &[u8] = b"+OK\r\n";

impl Protocol {
    /// Appends what goes before a request that a node asked for elsewhere.
    pub fn write_asking(self, out: &mut Vec<u8>) {
        out.extend_from_slice(ASKING);
    }

    /// The length of the answer to [`Protocol::write_asking`] at the start of `bytes`, with the push
    /// messages before it; None while it is not whole.
    ///
    /// # Errors
    /// It is another answer.
    pub fn read_asking(self, bytes: &[u8]) -> Result<Option<usize>, WireError> {
        let Some(pushes) = self.read_pushes(bytes)? else { return Ok(None) };
        let bytes = &bytes[pushes..];
        match bytes.get(..OK.len()) {
            Some(OK) => Ok(Some(pushes + OK.len())),
            None if OK.starts_with(bytes) => Ok(None),
            _ => Err(WireError::OutOfStep { expected: "OK".to_owned(), got: excerpt(bytes) }),
        }
    }

    /// The nodes of the cluster that a server belongs to, on a connection after the handshake. `via`
    /// is the host that was connected to.
    ///
    /// # Errors
    /// See [`HandshakeError`]; a server without cluster mode refuses.
    pub fn cluster(
        self,
        stream: &mut (impl Read + Write),
        via: &str,
        tls: bool,
    ) -> Result<ClusterMap, HandshakeError> {
        handshake::cluster(self, stream, via, tls)
    }

    /// Lets a replica answer reads, on a connection after the handshake.
    ///
    /// # Errors
    /// See [`HandshakeError`].
    pub fn read_only(self, stream: &mut (impl Read + Write)) -> Result<(), HandshakeError> {
        handshake::read_only(self, stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        // CRC16 of `123456789` is 0x31c3; the others are what `CLUSTER KEYSLOT` answers.
        assert_eq!(slot_of(b"123456789"), 0x31c3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b""), 0);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"user1000"));
        assert_eq!(slot_of(b"{user1000}.followers"), slot_of(b"{user1000}.following"));
        assert_eq!(hash_tag(b"foo{}{bar}"), b"foo{}{bar}");
        assert_eq!(hash_tag(b"foo{{bar}}zap"), b"{bar");
        assert_eq!(hash_tag(b"foo{bar}{zap}"), b"bar");
        assert_eq!(hash_tag(b"foo}{bar"), b"foo}{bar");
    }

    #[test]
    fn redirects_are_parsed() {
        let moved = Redirect { asks: false, slot: 3999, to: "127.0.0.1:6381".to_owned() };
        assert_eq!(Redirect::parse(b"MOVED 3999 127.0.0.1:6381"), Some(moved));
        assert!(Redirect::parse(b"ASK 16383 :7000").unwrap().asks);
        for other in ["MOVED 16384 h:1", "MOVED x h:1", "MOVED 1", "ERR no", "ASK", ""] {
            assert_eq!(Redirect::parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn nodes_are_parsed() {
        let text = "\
            a1 127.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-5460 5462 [5463->-b2]\n\
            b2 127.0.0.1:7001@17001,host,tls-port=8001 master,fail - 0 0 2 disconnected 5461\n\
            c3 :7002@17002 slave a1 0 0 1 connected\n\
            d4 ::1:7003@17003 master - 0 0 3 connected\n\
            e5 :0@0 master,noaddr - 0 0 3 disconnected\n";
        let map = ClusterMap::parse(text, "10.0.0.9", false).unwrap();
        let names: Vec<String> = map.nodes.iter().map(|node| node.address.to_string()).collect();
        assert_eq!(names, ["127.0.0.1:7000", "127.0.0.1:7001", "10.0.0.9:7002", "[::1]:7003"]);
        assert_eq!(map.nodes[2].follows, Some(0));
        assert!(map.nodes[1].failed && !map.nodes[0].failed);
        assert_eq!(map.slots(), [5462, 1, 0, 0]);
        assert_eq!((map.owners[5461], map.owners[5463]), (1, ClusterMap::NOBODY));
        assert_eq!(map.uncovered(), SLOTS - 5463);
        let tls = ClusterMap::parse(text, "10.0.0.9", true).unwrap();
        assert_eq!(tls.nodes[1].address.to_string(), "127.0.0.1:8001");
        let line = |at: usize| format!("n{at} 10.0.0.1:{} master - 0 0 1 connected\n", 1000 + at);
        assert!(map.shares_a_node_with(&tls));
        let other =
            ClusterMap::parse("f6 127.0.0.1:7000@17000 master - 0 0 1 connected", "h", false);
        assert!(!map.shares_a_node_with(&other.unwrap()));
        let all = |count| ClusterMap::parse(&(0..count).map(line).collect::<String>(), "h", false);
        assert!(all(MOST_NODES).is_some() && all(MOST_NODES + 1).is_none());
        for wrong in
            ["", "a b c", "a h:1@1 master - 0 0 1 connected 0-16384", "a h master - 0 0 1 c"]
        {
            assert_eq!(ClusterMap::parse(wrong, "h", false), None, "{wrong}");
        }
    }
}
