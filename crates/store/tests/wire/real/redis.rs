use store::wire::Protocol::{MemcachedBinary, MemcachedMeta, MemcachedText, Resp2, Resp3};
use store::wire::{HandshakeError, Kind, Login, Refusal, Response};

use super::{Server, converse, login};

const BOTH: [store::wire::Protocol; 2] = [Resp2, Resp3];

fn redis(arguments: &[&str]) -> Option<Server> {
    Server::start("redis-server", "redis-server", |directory, command| {
        command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(directory.join("socket"));
        command.arg("--dir").arg(directory).args(arguments);
    })
}

#[test]
fn both_versions() {
    let Some(server) = redis(&[]) else { return };
    assert!(server.directory.path().exists());
    for protocol in BOTH {
        let version = converse(&server, protocol, &Login::default());
        assert!(version.starts_with("Redis ") || version.starts_with("Valkey "), "{version}");
        let refused = server.greet(protocol, &login(None, "secret")).map(|_| ());
        assert!(matches!(refused, Err(HandshakeError::LoginNotRequired { .. })), "{refused:?}");
    }
    for protocol in [MemcachedText, MemcachedMeta, MemcachedBinary] {
        let error = server.handshake_error(protocol);
        assert!(error.to_string().contains("redis://"), "{protocol:?}: {error}");
    }
}

#[test]
fn databases_are_apart() {
    let Some(server) = redis(&[]) else { return };
    for protocol in BOTH {
        let database = |database| Login { database, ..Login::default() };
        let (mut first, _) = server.greet(protocol, &database(0)).expect("a greeting");
        let (mut other, _) = server.greet(protocol, &database(5)).expect("a greeting");
        assert_eq!(other.request(Kind::Set, &[b"key"], b"5").0, Response::Stored);
        assert_eq!(first.request(Kind::Get, &[b"key"], b"").0, Response::Found(0));
        protocol.flush(&mut first.stream).expect("emptied");
        assert_eq!(other.request(Kind::Get, &[b"key"], b"").0, Response::Found(1));
        let statistics = protocol.statistics(&mut other.stream).expect("statistics");
        assert!(statistics.contains(&("db5.keys".into(), "1".into())), "{statistics:?}");
        let refused = server.greet(protocol, &database(99)).map(|_| ());
        assert!(matches!(refused, Err(HandshakeError::Refused { .. })), "{refused:?}");
    }
}

#[test]
fn requires_a_password() {
    let Some(server) = redis(&["--requirepass", "secret"]) else { return };
    for protocol in BOTH {
        converse(&server, protocol, &login(None, "secret"));
        converse(&server, protocol, &login(Some("default"), "secret"));
        let refused = server.greet(protocol, &login(None, "wrong")).map(|_| ());
        assert!(matches!(refused, Err(HandshakeError::LoginRefused { .. })), "{refused:?}");
        let refused = server.greet(protocol, &Login::default()).map(|_| ());
        assert!(matches!(refused, Err(HandshakeError::LoginRequired { .. })), "{refused:?}");
    }
}

#[test]
fn user_with_restricted_rights() {
    let Some(server) =
        redis(&["--user", "bob", "on", ">secret", "~user:*", "+get", "+mget", "+hello"])
    else {
        return;
    };
    let bob = login(Some("bob"), "secret");
    for protocol in BOTH {
        let (mut client, version) = server.greet(protocol, &bob).expect("a greeting");
        assert!(version.starts_with("Redis 7.") || version.starts_with("Valkey "), "{version}");
        assert_eq!(client.request(Kind::Get, &[b"user:1", b"user:2"], b"").0, Response::Found(0));
        for (kind, key) in [(Kind::Set, &b"user:1"[..]), (Kind::Get, b"other")] {
            let (answer, _) = client.request(kind, &[key], b"value");
            let Response::Refused { why, words } = answer else { panic!("{answer:?}") };
            assert!(why == Refusal::Auth && words.starts_with("NOPERM"), "{words}");
        }
        assert_eq!(client.request(Kind::Get, &[b"user:1"], b"").0, Response::Found(0));
        protocol.control(&mut client.stream).expect("done without the right to it");
        let refused = protocol.statistics(&mut client.stream).expect_err("no right to it");
        assert!(matches!(refused, HandshakeError::Refused { why: Refusal::Auth, .. }), "{refused}");
    }
}

#[test]
fn control_connections_are_marked() {
    use std::io::{Read, Write};
    let Some(server) = redis(&[]) else { return };
    for protocol in BOTH {
        let (mut client, _) = server.greet(protocol, &Login::default()).expect("a greeting");
        protocol.control(&mut client.stream).expect("marked");
        client.stream.write_all(b"*2\r\n$6\r\nCLIENT\r\n$4\r\nINFO\r\n").expect("sent");
        let mut piece = [0; 4096];
        let read = client.stream.read(&mut piece).expect("an answer");
        let own = String::from_utf8_lossy(&piece[..read]).into_owned();
        let (_, flags) = own.split_once(" flags=").expect(&own);
        let (flags, _) = flags.split_once(' ').expect(&own);
        assert!(flags.contains('e'), "{own}");
    }
}

#[test]
fn full_server_keeps_the_connection_in_step() {
    let Some(server) = redis(&["--maxmemory", "1", "--maxmemory-policy", "noeviction"]) else {
        return;
    };
    for protocol in BOTH {
        let (mut client, _) = server.greet(protocol, &Login::default()).expect("a greeting");
        let (answer, _) = client.request(Kind::Set, &[b"key"], b"value");
        let Response::Refused { why, words } = answer else { panic!("{answer:?}") };
        assert!(why == Refusal::OutOfMemory && words.starts_with("OOM"), "{words}");
        assert_eq!(client.request(Kind::Get, &[b"key"], b"").0, Response::Found(0));
    }
}
