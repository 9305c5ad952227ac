//! Where the page is served.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::LiveError;

/// An address of this machine with a port; port 0 is any free one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress(pub SocketAddr);

impl ListenAddress {
    /// Whether only users of this machine reach it.
    pub fn is_loopback(self) -> bool {
        self.0.ip().is_loopback()
    }
}

impl FromStr for ListenAddress {
    type Err = LiveError;

    /// A port of 127.0.0.1, or an address with or without a port.
    fn from_str(text: &str) -> Result<ListenAddress, LiveError> {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let of = |ip, port| Ok(ListenAddress(SocketAddr::new(ip, port)));
        if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
            return match text.parse() {
                Ok(port) => of(loopback, port),
                Err(_) => Err(LiveError::Address(format!("port {text}: ports end at 65535"))),
            };
        }
        if text == "localhost" {
            return of(loopback, 0);
        }
        if let Some(Ok(port)) = text.strip_prefix("localhost:").map(str::parse) {
            return of(loopback, port);
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(ListenAddress(address));
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(Ok(ip)) = bare.map(str::parse::<Ipv6Addr>) {
            return of(IpAddr::V6(ip), 0);
        }
        if let Ok(ip) = text.parse::<IpAddr>() {
            return of(ip, 0);
        }
        Err(LiveError::Address(format!(
            "`{text}` is not an address of this machine with a port; write PORT, ADDRESS:PORT or \
             [ADDRESS]:PORT, such as 9400, 127.0.0.1:9400 or [::1]:9400"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_lack_its_port_or_its_host() {
        for (text, address) in [
            ("9400", "127.0.0.1:9400"),
            ("127.0.0.1:9400", "127.0.0.1:9400"),
            ("localhost", "127.0.0.1:0"),
            ("localhost:80", "127.0.0.1:80"),
            ("[::1]:9400", "[::1]:9400"),
            ("[::1]", "[::1]:0"),
            ("::1", "[::1]:0"),
            ("10.0.0.1", "10.0.0.1:0"),
        ] {
            let read: ListenAddress = text.parse().unwrap();
            assert_eq!(read.0.to_string(), address, "{text}");
        }
        for text in ["", "99999", "host:80", ":80", "127.0.0.1:", "http://127.0.0.1:80", "-1"] {
            text.parse::<ListenAddress>().unwrap_err();
        }
    }

    #[test]
    fn only_loopback_is_of_this_machine_alone() {
        let loopback = |text: &str| text.parse::<ListenAddress>().unwrap().is_loopback();
        assert!(loopback("9400") && loopback("[::1]:1") && loopback("127.9.9.9:1"));
        assert!(!loopback("0.0.0.0:1") && !loopback("[::]:1") && !loopback("192.168.0.1:1"));
    }
}
