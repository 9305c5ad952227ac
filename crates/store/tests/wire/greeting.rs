//! Handshakes with the wrong kind of server, over a scripted stream.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};

use store::wire::{HandshakeError, Login, Protocol, Secret};

/// Sends its lines whatever it receives, in pieces of `piece` bytes; then closes, stalls or repeats
/// for ever.
struct Actor {
    lines: VecDeque<u8>,
    piece: usize,
    then: Then,
}

enum Then {
    Close,
    Stall,
    Babble(u8),
    /// The same again and again.
    Repeat(Vec<u8>),
}

impl Actor {
    fn new(lines: &[u8], piece: usize, then: Then) -> Actor {
        Actor { lines: lines.iter().copied().collect(), piece, then }
    }
}

impl Read for Actor {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = into.len().min(self.piece).min(self.lines.len());
        if length > 0 {
            into.iter_mut().zip(self.lines.drain(..length)).for_each(|(to, from)| *to = from);
            return Ok(length);
        }
        match &self.then {
            Then::Close => Ok(0),
            Then::Stall => Err(ErrorKind::WouldBlock.into()),
            Then::Babble(byte) => {
                into.fill(*byte);
                Ok(into.len())
            }
            Then::Repeat(words) => {
                self.lines.extend(words);
                self.read(into)
            }
        }
    }
}

impl Write for Actor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn greet(protocol: Protocol, lines: &[u8], then: Then) -> Result<String, HandshakeError> {
    let mut actor = Actor::new(lines, usize::MAX, then);
    protocol.handshake(&mut actor, &Login::default()).map(|greeting| greeting.version)
}

#[test]
fn names_the_wrong_kind_of_server() {
    let cases = [
        (Protocol::MemcachedText, "-ERR unknown command 'version'\r\n", "redis://"),
        (Protocol::MemcachedBinary, "-ERR unknown command\r\n", "redis://"),
        (Protocol::MemcachedBinary, "ERROR\r\n", "text or meta"),
        (Protocol::Resp2, "ERROR\r\nERROR\r\n", "memcached://"),
        (Protocol::Resp3, "CLIENT_ERROR unauthenticated\r\n", "memcached://"),
        (Protocol::Resp3, "HTTP/1.1 400 Bad Request\r\n", "web server"),
        (Protocol::MemcachedMeta, "SSH-2.0-OpenSSH_9.2\r\n", "check the address"),
    ];
    for (protocol, lines, way_out) in cases {
        let error = greet(protocol, lines.as_bytes(), Then::Stall).expect_err("another server");
        assert!(matches!(error, HandshakeError::WrongServer { .. }), "{protocol:?}: {error}");
        assert!(error.to_string().contains(way_out), "{protocol:?}: {error}");
    }
}

#[test]
fn distinguishes_protected_mode_from_required_login() {
    let denied = "-DENIED Redis is running in protected mode because protected mode is enabled and \
                  no password is set for the default user. In this mode connections are only \
                  accepted from the loopback interface.\r\n";
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        // Of everyone's environment.
        for password in [None, Some(Secret::from_env("PATH").unwrap())] {
            let mut actor = Actor::new(denied.as_bytes(), usize::MAX, Then::Close);
            let login = Login { password, ..Login::default() };
            let error = protocol.handshake(&mut actor, &login).unwrap_err();
            assert!(matches!(error, HandshakeError::ProtectedMode), "{protocol:?}: {error}");
            assert!(error.to_string().contains("requirepass"), "{error}");
        }
        let refusal = greet(protocol, b"-NOAUTH Authentication required.\r\n", Then::Close);
        let error = refusal.unwrap_err();
        assert!(error.to_string().contains("`password_env`"), "{error}");
    }
}

#[test]
fn waits_are_bounded() {
    for protocol in Protocol::ALL {
        for beginning in ["", "VERS", "$", "\u{81}"] {
            let greeted = greet(protocol, beginning.as_bytes(), Then::Stall);
            assert!(greeted.is_err(), "{protocol:?} after {beginning:?}");
        }
        let greeted = greet(protocol, b"", Then::Stall);
        assert!(matches!(greeted, Err(HandshakeError::TimedOut { .. })), "{protocol:?}");
        let greeted = greet(protocol, b"", Then::Close);
        assert!(matches!(greeted, Err(HandshakeError::Closed { .. })), "{protocol:?}");
        for byte in [0, b'1', b'a', b'$', b'>', 0x81] {
            assert!(greet(protocol, b"", Then::Babble(byte)).is_err(), "{protocol:?} {byte}");
        }
    }
    // Statistics that never end.
    let mut actor = Actor::new(b"", 0, Then::Babble(b'x'));
    assert!(Protocol::MemcachedText.statistics(&mut actor).is_err());
    let mut actor = Actor::new(b"$400000000\r\n", 100, Then::Babble(b'x'));
    let error = Protocol::Resp2.statistics(&mut actor).expect_err("too much");
    assert!(matches!(error, HandshakeError::Wire { .. }), "{error}");
}

/// What speaks Redis's protocol names itself beside the version that it is compatible with.
#[test]
fn compatible_servers_are_named() {
    for (field, name) in [
        ("dragonfly_version:df-1.2", "Dragonfly df-1.2"),
        ("garnet_version:1.0.50", "Garnet 1.0.50"),
        ("kvrocks_version:2.9.0", "Kvrocks 2.9.0"),
        // KeyDB 6.3.4 has no field of its own.
        ("executable:/usr/bin/keydb-server", "KeyDB 7.2.4"),
        ("keydb_version:6.3.5", "KeyDB 6.3.5"),
        ("executable:/usr/bin/redis-server", "Redis 7.2.4"),
        ("os:Linux", "Redis 7.2.4"),
    ] {
        let info = format!("# Server\r\nredis_version:7.2.4\r\n{field}\r\n");
        let answer = format!("${}\r\n{info}\r\n", info.len());
        let mut actor = Actor::new(answer.as_bytes(), 1000, Then::Stall);
        let greeting = Protocol::Resp2.handshake(&mut actor, &Login::default()).unwrap();
        assert_eq!(greeting.version, name);
    }
}

/// Pogocache has neither `INFO` nor `HELLO`; `STATS` answers pairs.
#[test]
fn a_server_without_info_is_named_by_its_statistics() {
    let unknown = |command: &str| format!("-ERR unknown command '{command}'\r\n");
    let pair = |name: &str, text: &str| {
        format!("*2\r\n${}\r\n{name}\r\n${}\r\n{text}\r\n", name.len(), text.len())
    };
    let pairs = [pair("pid", "7"), pair("product", "pogocache"), pair("version", "1.3.1")].concat();
    let lines = format!("{}*3\r\n{pairs}", unknown("INFO"));
    let mut actor = Actor::new(lines.as_bytes(), 1000, Then::Stall);
    let greeting = Protocol::Resp2.handshake(&mut actor, &Login::default()).unwrap();
    assert_eq!(greeting.version, "Pogocache 1.3.1");
    let mut actor = Actor::new(lines.as_bytes(), 1000, Then::Stall);
    let statistics = Protocol::Resp2.statistics(&mut actor).unwrap();
    assert_eq!(statistics[2], ("version".to_owned(), "1.3.1".to_owned()));

    // Without any of them it can be measured all the same.
    let lines = ["INFO", "STATS", "HELLO"].map(unknown).concat();
    let mut actor = Actor::new(lines.as_bytes(), 1000, Then::Stall);
    assert!(Protocol::Resp2.handshake(&mut actor, &Login::default()).is_ok());
    let error = greet(Protocol::Resp3, unknown("HELLO").as_bytes(), Then::Stall).unwrap_err();
    assert!(matches!(error, HandshakeError::WrongServer { .. }), "{error}");
}

/// What a server or a login does not have is no error.
#[test]
fn control_connections_need_no_client_command() {
    for answers in [
        "+OK\r\n+OK\r\n",
        "-ERR unknown command 'CLIENT'\r\n-ERR unknown command 'CLIENT'\r\n",
        "+OK\r\n-ERR unknown subcommand 'NO-TOUCH'. Try CLIENT HELP.\r\n",
        "-NOPERM no permissions\r\n-NOPERM no permissions\r\n",
    ] {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let mut actor = Actor::new(answers.as_bytes(), 1000, Then::Stall);
            protocol.control(&mut actor).unwrap_or_else(|error| panic!("{answers}: {error}"));
        }
    }
    let mut actor = Actor::new(b"", 1000, Then::Stall);
    assert!(Protocol::MemcachedMeta.control(&mut actor).is_ok(), "nothing is sent");
}

#[test]
fn version_may_arrive_in_pieces() {
    let info = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n";
    let info = format!("${}\r\n{info}\r\n", info.len());
    let hello = "%1\r\n$5\r\nproto\r\n:3\r\n";
    let no_info = "-NOPERM this user has no permissions to run the 'info' command\r\n";
    let facts = "*4\r\n$6\r\nserver\r\n$6\r\nvalkey\r\n$7\r\nversion\r\n$5\r\n8.1.0\r\n";
    let cases = [
        (Protocol::MemcachedText, "VERSION 1.6.18\r\n".to_owned(), "memcached 1.6.18"),
        (Protocol::Resp2, info.clone(), "Valkey 8.0.1"),
        (Protocol::Resp3, format!("{hello}{info}"), "Valkey 8.0.1"),
        (Protocol::Resp3, format!(">1\r\n+hi\r\n{hello}{info}"), "Valkey 8.0.1"),
        (Protocol::Resp2, format!("{no_info}{facts}"), "Valkey 8.1.0"),
        (Protocol::Resp2, format!("{no_info}{no_info}"), "Redis"),
    ];
    for (protocol, lines, version) in cases {
        for piece in [1, 2, 7, 1000] {
            let mut actor = Actor::new(lines.as_bytes(), piece, Then::Stall);
            let greeting = protocol.handshake(&mut actor, &Login::default()).expect("greeted");
            assert_eq!(greeting.version, version);
        }
    }
    let more = greet(Protocol::MemcachedText, b"VERSION 1\r\nVERSION 1\r\n", Then::Stall);
    assert!(matches!(more, Err(HandshakeError::Wire { .. })), "{more:?}");
}

#[test]
fn reports_a_server_without_resp3_or_still_loading() {
    let old = b"-ERR unknown command `HELLO`, with args beginning with: `3`\r\n";
    let error = greet(Protocol::Resp3, old, Then::Stall).expect_err("no RESP3").to_string();
    assert!(error.contains("RESP3"), "{error}");
    let loading = greet(Protocol::Resp2, b"-LOADING Redis is loading\r\n", Then::Stall);
    let Err(HandshakeError::Refused { why, .. }) = loading else { panic!("{loading:?}") };
    assert_eq!(why, store::wire::Refusal::Busy);
    let database = Login { database: 3, ..Login::default() };
    let error = Protocol::MemcachedMeta
        .handshake(&mut Actor::new(b"", 1, Then::Stall), &database)
        .expect_err("memcached has one database");
    assert!(matches!(error, HandshakeError::NoDatabases(3)));
}

/// Each line or packet is good, and there is no end of them.
#[test]
fn limits_endless_statistics() {
    let line = b"STAT name 1\r\n".to_vec();
    // A response to STAT of the name `name` and the text `1`, with the opaque of the handshake.
    let mut packet = vec![0x81, 0x10, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0x0d, 0x0a, 0x0d, 0x0a];
    packet.extend([0; 8]);
    packet.extend(b"name1");
    let push = b">1\r\n+invalidate\r\n".to_vec();
    for (protocol, endless) in [
        (Protocol::MemcachedText, line.clone()),
        (Protocol::MemcachedMeta, line),
        (Protocol::MemcachedBinary, packet),
        (Protocol::Resp3, push),
        (Protocol::Resp2, b"*100000000\r\n".to_vec()),
        (Protocol::Resp2, b"$5000000\r\n".to_vec()),
    ] {
        let mut actor = Actor::new(b"", usize::MAX, Then::Repeat(endless));
        let error = protocol.statistics(&mut actor).unwrap_err().to_string();
        assert!(error.contains("the limit is 4194304"), "{protocol:?}: {error}");
    }
}
