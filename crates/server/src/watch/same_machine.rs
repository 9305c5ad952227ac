//! Whether addresses belong to this machine.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};

use model::Unavailable;

/// The addresses of a host.
pub(super) fn resolve(host: &str, port: u16) -> Result<Vec<IpAddr>, Unavailable> {
    let unknown = |why: String| {
        Unavailable::new(format!("`{host}` could not be looked up: {why}"), "check the host's name")
    };
    let found = (host, port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    let ips: Vec<IpAddr> = found.map(|address| address.ip().to_canonical()).collect();
    match ips.is_empty() {
        true => Err(unknown("it has no address".to_owned())),
        false => Ok(ips),
    }
}

/// Only an address of an interface here can be bound; a datagram socket disturbs no server.
pub(super) fn is_ours(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_local_addresses() {
        let ours = |host: &str| resolve(host, 1).unwrap().into_iter().any(is_ours);
        assert!(ours("127.0.0.1") && ours("::1") && ours("localhost"));
        // Reserved for documentation (RFC 5737): no interface has it.
        assert!(!ours("192.0.2.1"));
        let error = resolve("no-such-host.invalid", 1).unwrap_err();
        assert!(error.reason.contains("no-such-host.invalid"), "{error}");
    }
}
