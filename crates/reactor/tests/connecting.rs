//! Connecting, and its error messages.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, SocketAddrV6, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use model::Address;
use reactor::{ConnectError, Stream};
use support::TIMEOUT;

fn tcp(host: &str, port: u16) -> Address {
    Address::Tcp { host: host.into(), port }
}

/// Exchanges one word over a stream with its other end.
fn check(mut stream: Stream, mut peer: impl Read + Write) {
    let mut word = [0; 4];
    stream.write_all(b"ping").unwrap();
    peer.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"ping");
    peer.write_all(b"pong").unwrap();
    stream.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"pong");
}

#[test]
fn by_name_address_and_path() {
    for (listen, hosts) in
        [("127.0.0.1:0", &["localhost", "127.0.0.1"][..]), ("[::1]:0", &["::1"][..])]
    {
        let listener = match TcpListener::bind(listen) {
            Ok(listener) => listener,
            Err(error) => {
                assert!(listen.starts_with('['), "{error}");
                eprintln!("left out: no IPv6 here ({error})");
                continue;
            }
        };
        let port = listener.local_addr().unwrap().port();
        for host in hosts {
            let stream = Stream::connect(&tcp(host, port), None, TIMEOUT).unwrap();
            assert!(stream.is_tcp());
            check(stream, listener.accept().unwrap().0);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let stream = Stream::connect(&Address::Unix(path), None, TIMEOUT).unwrap();
    assert!(!stream.is_tcp());
    check(stream, listener.accept().unwrap().0);
}

#[test]
fn a_link_local_address_and_its_interface() {
    // Lines of address, index, prefix, scope (0x20: link-local), flags and name.
    let table = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let Some(local) = lines.find(|it| it.len() == 6 && it[3] == "20") else {
        eprintln!("left out: no interface has a link-local address");
        return;
    };
    let address = Ipv6Addr::from_bits(u128::from_str_radix(local[0], 16).unwrap());
    let index = u32::from_str_radix(local[1], 16).unwrap();
    let listener = TcpListener::bind(SocketAddrV6::new(address, 0, 0, index)).unwrap();
    let port = listener.local_addr().unwrap().port();
    for scope in [local[5], &index.to_string()] {
        let stream = Stream::connect(&tcp(&format!("{address}%{scope}"), port), None, TIMEOUT);
        check(stream.unwrap(), listener.accept().unwrap().0);
    }
}

#[test]
fn refused_connection_names_every_address() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = Stream::connect(&tcp("localhost", free), None, TIMEOUT).unwrap_err();
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
    let words = error.to_string();
    assert!(words.starts_with(&format!("localhost:{free}: ")), "{words}");
    assert!(words.contains(&format!("127.0.0.1:{free}")), "{words}");

    let error = Stream::connect(&tcp("no-such-host.invalid", 1), None, TIMEOUT).unwrap_err();
    assert!(
        matches!(error, ConnectError::NoSuchHost { .. } | ConnectError::TimedOut { .. }),
        "{error:?}"
    );

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.sock");
    let error = Stream::connect(&Address::Unix(path.clone()), None, TIMEOUT).unwrap_err();
    assert!(matches!(error, ConnectError::NoSuchSocket { .. }), "{error:?}");
    drop(UnixListener::bind(&path).unwrap());
    let error = Stream::connect(&Address::Unix(path), None, TIMEOUT).unwrap_err();
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
}

#[test]
fn a_server_that_does_not_accept_or_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let limit = Duration::from_millis(50);
    // The last connection waits for room in the queue.
    let mut waiting = Vec::new();
    let error = loop {
        match Stream::connect(&Address::Unix(path.clone()), None, limit) {
            Ok(stream) => waiting.push(stream),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ConnectError::TimedOut { .. }), "{error:?}");
    drop(listener);

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let mut stream = Stream::connect(&tcp("127.0.0.1", port), None, limit).unwrap();
    let error = stream.read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let full = loop {
        if let Err(error) = stream.write(&[0; 64 << 10]) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::TimedOut);
}

#[test]
fn accepts_connected_sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    check(Stream::from(socket), listener.accept().unwrap().0);
}
