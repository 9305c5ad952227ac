use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A host name or an IP address without brackets, and a port.
    Tcp { host: String, port: u16 },
    /// A unix socket.
    Unix(PathBuf),
}

/// An invalid server address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not an address: {why}; write `HOST`, `HOST:PORT`, `[IPV6]:PORT` or `/PATH`")]
pub struct AddressError {
    text: String,
    why: String,
}

/// The longest path that a socket's address holds, without its closing zero.
pub const LONGEST_SOCKET: usize = 107;

impl Address {
    /// Reads `HOST`, `HOST:PORT`, `[IPV6]`, `[IPV6]:PORT` or the absolute path of a unix socket.
    ///
    /// # Errors
    /// The problem with the text.
    pub fn parse(text: &str, default_port: u16) -> Result<Address, AddressError> {
        let wrong = |why: &str| AddressError { text: text.to_owned(), why: why.to_owned() };
        if text.starts_with('/') {
            if text.len() > LONGEST_SOCKET {
                return Err(wrong(&format!(
                    "the path of a unix socket has at most {LONGEST_SOCKET} bytes, and this one {}",
                    text.len()
                )));
            }
            if text.contains('\0') {
                return Err(wrong("a path holds no zero byte"));
            }
            return Ok(Address::Unix(text.into()));
        }
        if let Some((_, host)) = text.rsplit_once('@') {
            // The part before it may be a password.
            let why = "it holds no user and no password".to_owned();
            return Err(AddressError { text: format!("***@{host}"), why });
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) =
                    rest.split_once(']').ok_or_else(|| wrong("the bracket is not closed"))?;
                match rest {
                    "" => (host, None),
                    _ => (
                        host,
                        Some(
                            rest.strip_prefix(':')
                                .ok_or_else(|| wrong("`:` and a port follow the bracket"))?,
                        ),
                    ),
                }
            }
            None => match text.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err(wrong("an IPv6 address needs brackets"));
                }
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        if host.contains(char::is_whitespace) {
            return Err(wrong("a host has no spaces"));
        }
        let port = match port {
            None => default_port,
            Some(port) => match port.parse() {
                Ok(port) if port > 0 => port,
                _ => return Err(wrong("a port is a number from 1 to 65535")),
            },
        };
        Ok(Address::Tcp { host: host.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_reads_back() {
        for (text, shown) in [
            ("localhost", "localhost:11211"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("[::1]", "[::1]:11211"),
            ("[fe80::1%eth0]:6379", "[fe80::1%eth0]:6379"),
            ("/run/mc.sock", "/run/mc.sock"),
        ] {
            let address = Address::parse(text, 11211).unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(Address::parse(shown, 1).unwrap(), address);
        }
    }

    #[test]
    fn errors_explain_the_mistake() {
        for (text, why) in [
            ("", "the host is missing"),
            (":11211", "the host is missing"),
            ("::1", "needs brackets"),
            ("[::1", "not closed"),
            ("[::1]11211", "follow the bracket"),
            ("host:", "a number"),
            ("host:0", "a number"),
            ("host:65536", "a number"),
            ("a b", "no spaces"),
            ("user:x@host", "no user and no password"),
            (&format!("/{}", "a".repeat(107)), "at most 107 bytes, and this one 108"),
        ] {
            let error = Address::parse(text, 11211).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
