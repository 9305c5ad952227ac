use std::process::Command;

use store::wire::Protocol::{MemcachedBinary, MemcachedMeta, MemcachedText, Resp2, Resp3};
use store::wire::{HandshakeError, Kind, Login, Refusal, Response};

use super::{Server, converse, login};

const LINES: [store::wire::Protocol; 2] = [MemcachedText, MemcachedMeta];

fn memcached(
    arguments: &[&str],
    prepare: impl FnOnce(&std::path::Path, &mut Command),
) -> Option<Server> {
    Server::start("memcached", "memcached", |directory, command| {
        command.args(["-u", "root", "-t", "1", "-s"]).arg(directory.join("socket")).args(arguments);
        prepare(directory, command);
    })
}

#[test]
fn all_three_protocols() {
    let Some(server) = memcached(&[], |_, _| {}) else { return };
    for protocol in [MemcachedText, MemcachedMeta, MemcachedBinary] {
        let version = converse(&server, protocol, &Login::default());
        assert!(version.starts_with("memcached 1."), "{version}");
        let refused = server.greet(protocol, &login(Some("bob"), "secret")).map(|_| ());
        assert!(matches!(refused, Err(HandshakeError::LoginNotRequired { .. })), "{refused:?}");
    }
    for protocol in [Resp2, Resp3] {
        let error = server.handshake_error(protocol);
        assert!(error.to_string().contains("memcached://"), "{error}");
    }
}

#[test]
fn full_and_too_large_keep_the_connection_in_step() {
    // Nothing is evicted.
    let Some(server) = memcached(&["-M", "-m", "4", "-I", "1m"], |_, _| {}) else { return };
    for protocol in [MemcachedText, MemcachedMeta, MemcachedBinary] {
        let (mut client, _) = server.greet(protocol, &Login::default()).expect("a greeting");
        let why = |answer: Response| match answer {
            Response::Refused { why, .. } => Some(why),
            _ => None,
        };
        let large = vec![b'x'; 3 << 20];
        assert_eq!(why(client.request(Kind::Set, &[b"key"], &large).0), Some(Refusal::TooLarge));
        assert_eq!(client.request(Kind::Get, &[b"key"], b"").0, Response::Found(0));
        let full = (0..2000).find_map(|key| {
            let key = format!("{protocol:?}:{key}");
            why(client.request(Kind::Set, &[key.as_bytes()], &large[..8000]).0)
        });
        assert_eq!(full, Some(Refusal::OutOfMemory), "{protocol:?}");
        assert_eq!(client.request(Kind::Delete, &[b"absent"], b"").0, Response::Deleted(false));
    }
}

#[test]
fn login_in_text() {
    let start = memcached(&[], |directory, command| {
        let users = directory.join("users");
        std::fs::write(&users, "alice:other\nbob:secret\n").expect("written");
        command.arg("-Y").arg(users);
    });
    let Some(server) = start else { return };
    for protocol in LINES {
        converse(&server, protocol, &login(Some("bob"), "secret"));
        let refused = server.greet(protocol, &login(Some("bob"), "wrong")).map(|_| ());
        assert!(matches!(refused, Err(HandshakeError::LoginRefused { .. })), "{refused:?}");
        let refused = server.greet(protocol, &Login::default()).map(|_| ());
        assert!(matches!(refused, Err(HandshakeError::LoginRequired { .. })), "{refused:?}");
        let refused = server.greet(protocol, &login(None, "secret")).map(|_| ());
        assert!(matches!(refused, Err(HandshakeError::IncompleteLogin { .. })), "{refused:?}");
    }
    let error = server.handshake_error(MemcachedBinary);
    assert!(error.to_string().contains("text or meta"), "{error}");
}

#[test]
fn login_by_sasl() {
    let configuration = tempfile::tempdir().expect("a directory");
    let users = configuration.path().join("users");
    let text = format!(
        "mech_list: plain\npwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {}\n",
        users.display()
    );
    std::fs::write(configuration.path().join("memcached.conf"), text).expect("written");
    let mut add = Command::new("saslpasswd2");
    add.args(["-p", "-c", "-a", "memcached", "-u", "kvmeter", "-f"]).arg(&users).arg("bob");
    let Ok(mut add) = add.stdin(std::process::Stdio::piped()).spawn() else {
        eprintln!("NOT TESTED: no saslpasswd2; install the Debian package `sasl2-bin`");
        return;
    };
    let mut input = add.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, b"secret").expect("written");
    drop(input);
    assert!(add.wait().expect("waited").success(), "saslpasswd2 failed");

    let start = memcached(&["-S"], |_, command| {
        command.env("SASL_CONF_PATH", configuration.path());
    });
    let Some(server) = start else { return };
    converse(&server, MemcachedBinary, &login(Some("bob@kvmeter"), "secret"));
    let refused = server.greet(MemcachedBinary, &login(Some("bob@kvmeter"), "wrong")).map(|_| ());
    assert!(matches!(refused, Err(HandshakeError::LoginRefused { .. })), "{refused:?}");
    let refused = server.greet(MemcachedBinary, &login(None, "secret")).map(|_| ());
    assert!(matches!(refused, Err(HandshakeError::IncompleteLogin { .. })), "{refused:?}");
    let refused = server.greet(MemcachedBinary, &Login::default()).map(|_| ());
    assert!(matches!(refused, Err(HandshakeError::LoginRequired { .. })), "{refused:?}");
    let error = server.handshake_error(MemcachedText);
    assert!(error.to_string().contains("binary"), "{error}");
}
