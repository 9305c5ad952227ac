use std::net::{IpAddr, ToSocketAddrs, UdpSocket};

use model::Address;

use super::figure::Unavailable;

/// Whether kvmeter, as the client of a server there, runs on the server's machine and so shares
/// its CPUs and caches. A port that is forwarded elsewhere, by a tunnel or a container's proxy,
/// looks like a server here; one in another network namespace of this machine looks remote.
///
/// # Errors
/// The host's name could not be looked up.
pub fn client_of_same_machine(address: &Address) -> Result<bool, Unavailable> {
    match address {
        Address::Unix(_) => Ok(true),
        Address::Tcp { host, port } => Ok(resolve(host, *port)?.into_iter().any(is_ours)),
    }
}

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
    fn this_machine_is_told_from_others() {
        for (text, same) in [
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("localhost:1", true),
            ("/run/x.sock", true),
            // Reserved for documentation (RFC 5737): no interface has it.
            ("192.0.2.1:1", false),
        ] {
            let address = Address::parse(text, 1).unwrap();
            assert_eq!(client_of_same_machine(&address), Ok(same), "{text}");
        }
        let nowhere = Address::parse("no-such-host.invalid:1", 1).unwrap();
        let error = client_of_same_machine(&nowhere).unwrap_err();
        assert!(error.reason.contains("no-such-host.invalid"), "{error}");
    }
}
