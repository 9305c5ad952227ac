//! The kernel's tables of sockets: `/proc/net/{tcp,tcp6,unix}`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `TCP_LISTEN` of the kernel's table of states.
const LISTENING: &str = "0A";
/// `__SO_ACCEPTCON`: a unix socket that accepts connections.
const ACCEPTS: u32 = 0x1_0000;

/// A listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listening {
    pub ip: IpAddr,
    pub port: u16,
    pub uid: u32,
    pub inode: u64,
}

/// The listening sockets of `/proc/net/tcp` or `tcp6`.
pub(super) fn tcp(text: &str) -> Vec<Listening> {
    text.lines().skip(1).filter_map(tcp_line).collect()
}

/// `sl local rem st queues timer retransmits uid timeout inode ..`
fn tcp_line(line: &str) -> Option<Listening> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    if *fields.get(3)? != LISTENING {
        return None;
    }
    let (ip, port) = fields.get(1)?.split_once(':')?;
    Some(Listening {
        ip: ip_of(ip)?,
        port: u16::from_str_radix(port, 16).ok()?,
        uid: fields.get(7)?.parse().ok()?,
        inode: fields.get(9)?.parse().ok()?,
    })
}

/// The address is printed as words in the machine's own byte order.
fn ip_of(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = hex.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    match hex.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut bytes = [0; 16];
            for (at, four) in bytes.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(at)?);
            }
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// The inodes of the listening unix sockets of this path.
/// `Num RefCount Protocol Flags Type St Inode Path`, where a path may hold spaces.
pub(super) fn unix(text: &str, path: &str) -> Vec<u64> {
    let inode = |line: &str| {
        let (fields, name) = line.split_once(" /")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let flags = u32::from_str_radix(fields.get(3)?, 16).ok()?;
        let inode = fields.get(6)?.parse().ok()?;
        (flags & ACCEPTS != 0 && Some(name) == path.strip_prefix('/')).then_some(inode)
    };
    text.lines().skip(1).filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // The words of the table are in the machine's byte order; these are of a little-endian one.
    #[cfg(target_endian = "little")]
    #[test]
    fn listening_sockets_of_both_families() {
        let four = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 f 100 0 0 10 0\n   \
            1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 f 20 4 30 10 -1\n";
        let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert_eq!(tcp(four), [Listening { ip, port: 8080, uid: 1000, inode: 4711 }]);
        let six = "header\n   0: 00000000000000000000000001000000:2BCB 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 99 1 f\n";
        let ip = IpAddr::V6(Ipv6Addr::LOCALHOST);
        assert_eq!(tcp(six), [Listening { ip, port: 11211, uid: 0, inode: 99 }]);
    }

    #[test]
    fn unix_sockets_by_their_path() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            ffff: 00000002 00000000 00010000 0001 01 31 /run/a b.sock\n\
            ffff: 00000003 00000000 00000000 0001 03 32 /run/a b.sock\n\
            ffff: 00000002 00000000 00010000 0001 01 33 /run/a\n\
            ffff: 00000002 00000000 00010000 0001 01 34\n";
        assert_eq!(unix(text, "/run/a b.sock"), [31]);
        assert_eq!(unix(text, "/run/a"), [33]);
        assert!(unix(text, "/run/b").is_empty());
    }

    #[test]
    fn broken_tables_are_no_sockets() {
        for text in ["", "header", "header\n0: x:y z 0A", "header\n 0: 01:1 0 0A 0 0 0 1 0 7"] {
            assert!(tcp(text).is_empty(), "{text}");
            assert!(unix(text, "/x").is_empty(), "{text}");
        }
    }
}
