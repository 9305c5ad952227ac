//! TLS, with certificates that the tests make: the blocking stream and both engines.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use model::Address;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use reactor::{ConnectError, ConnectionState, Stream, Tls, TlsError, TlsFailure};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use support::{TIMEOUT, poll_to_end, poll_until, reactor, with_each_engine};
use tempfile::TempDir;

/// A signer of certificates and a folder to keep them in.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

struct Pair {
    cert: CertificateDer<'static>,
    key: KeyPair,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Authority { issuer, folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn issue(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        Pair { cert: cert.der().clone(), key }
    }

    /// Writes a client's pair down; the paths of its certificate and its key.
    fn client(&self, name: &str) -> (Option<PathBuf>, Option<PathBuf>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        let paths = (self.file(&format!("{name}.pem")), self.file(&format!("{name}.key")));
        fs::write(&paths.0, cert.pem()).unwrap();
        fs::write(&paths.1, key.serialize_pem()).unwrap();
        fs::set_permissions(&paths.1, fs::Permissions::from_mode(0o600)).unwrap();
        (Some(paths.0), Some(paths.1))
    }

    /// The client's options to trust it.
    fn tls(&self) -> Tls {
        Tls { ca: Some(self.file("ca.pem")), ..Tls::default() }
    }

    fn good(&self) -> Pair {
        self.issue(&["localhost", "127.0.0.1"], |_| {})
    }

    fn server(&self, pair: Pair, mutual: bool) -> ServerConfig {
        let builder =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap();
        let builder = match mutual {
            false => builder.with_no_client_auth(),
            true => {
                let mut roots = RootCertStore::empty();
                roots.add(self.issuer.der().clone()).unwrap();
                let provider = Arc::new(rustls::crypto::ring::default_provider());
                builder.with_client_cert_verifier(
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()
                        .unwrap(),
                )
            }
        };
        let key = PrivateKeyDer::Pkcs8(pair.key.serialize_der().into());
        builder.with_single_cert(vec![pair.cert], key).unwrap()
    }
}

/// Serves `connections` connections, each echoed until it ends.
fn echo(config: ServerConfig, connections: usize) -> (Address, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = Arc::new(config);
    let serving = thread::spawn(move || {
        thread::scope(|scope| {
            for _ in 0..connections {
                let (socket, _) = listener.accept().unwrap();
                socket.set_read_timeout(Some(TIMEOUT)).unwrap();
                let session = ServerConnection::new(Arc::clone(&config)).unwrap();
                scope.spawn(move || {
                    let mut stream = StreamOwned::new(session, socket);
                    let mut bytes = vec![0; 40_000];
                    while let Ok(count @ 1..) = stream.read(&mut bytes) {
                        if stream.write_all(&bytes[..count]).is_err() {
                            return;
                        }
                    }
                });
            }
        });
    });
    (Address::Tcp { host: "localhost".into(), port }, serving)
}

/// How connecting to a server with this certificate fails.
fn failure(authority: &Authority, pair: Pair, tls: &Tls) -> TlsFailure {
    let (address, serving) = echo(authority.server(pair, false), 1);
    let tls = tls.load().unwrap();
    let error = Stream::connect(&address, Some(&tls), TIMEOUT).unwrap_err();
    assert!(error.to_string().starts_with(&address.to_string()), "{error}");
    serving.join().unwrap();
    match error {
        ConnectError::Tls { why, .. } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn blocking_stream_over_tls() {
    let authority = Authority::new("ours");
    for server_name in [None, Some("127.0.0.1".to_owned())] {
        let (address, serving) = echo(authority.server(authority.good(), false), 1);
        let tls = Tls { server_name, ..authority.tls() }.load().unwrap();
        let mut stream = Stream::connect(&address, Some(&tls), TIMEOUT).unwrap();
        stream.write_all(b"version\r\n").unwrap();
        stream.flush().unwrap();
        let mut answer = [0; 9];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"version\r\n");
        drop(stream);
        serving.join().unwrap();
    }
}

#[test]
fn both_engines_over_tls() {
    let authority = Authority::new("ours");
    with_each_engine(|engine| {
        let (address, serving) = echo(authority.server(authority.good(), false), 3);
        let tls = authority.tls().load().unwrap();
        let mut reactor = reactor(engine);
        for conn in 0..3 {
            let mut stream = Stream::connect(&address, Some(&tls), TIMEOUT).unwrap();
            // Decrypted but unread data must not be lost.
            stream.write_all(b"greeting").unwrap();
            let mut answer = [0; 3];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(reactor.add(stream).unwrap(), conn);
        }
        let all: Vec<u8> = (0..(3usize << 20) + 5).map(|at| ((at * 31) >> 7) as u8).collect();
        for conn in 0..3 {
            poll_until(&mut reactor, |reactor| reactor.incoming(conn) == b"eting");
            reactor.consume(conn, 5);
            for part in all.chunks(700_001) {
                reactor.outgoing(conn).extend_from_slice(part);
                reactor.send(conn);
            }
        }
        for conn in 0..3 {
            poll_until(&mut reactor, |reactor| reactor.incoming(conn).len() == all.len());
            assert!(reactor.incoming(conn) == all);
            assert_eq!((reactor.unsent(conn), reactor.state(conn)), (0, ConnectionState::Open));
        }
        assert!(reactor.counters().bytes_received > 3 * all.len() as u64);
        drop(reactor);
        serving.join().unwrap();
    });
}

#[test]
fn engines_detect_close_and_invalid_tls() {
    let authority = Authority::new("ours");
    with_each_engine(|engine| {
        for garbage in [false, true] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let config = Arc::new(authority.server(authority.good(), false));
            let serving = thread::spawn(move || {
                let (socket, _) = listener.accept().unwrap();
                let session = ServerConnection::new(config).unwrap();
                let mut stream = StreamOwned::new(session, socket);
                stream.write_all(b"half an ans").unwrap();
                match garbage {
                    true => stream.sock.write_all(b"ERROR\r\nERROR\r\n").unwrap(),
                    false => {
                        stream.conn.send_close_notify();
                        stream.flush().unwrap();
                    }
                }
                // Until the client ends it.
                let _ = stream.sock.read(&mut [0; 100]);
            });
            let tls = authority.tls().load().unwrap();
            let address = Address::Tcp { host: "localhost".into(), port };
            let mut reactor = reactor(engine);
            let stream = Stream::connect(&address, Some(&tls), TIMEOUT).unwrap();
            let conn = reactor.add(stream).unwrap();
            match (garbage, poll_to_end(&mut reactor, conn)) {
                (false, ConnectionState::Closed) => {}
                (true, ConnectionState::Failed(why)) => {
                    assert!(why.to_string().starts_with("TLS: "), "{why}");
                }
                (_, other) => panic!("{other:?}"),
            }
            assert_eq!(reactor.incoming(conn), b"half an ans");
            drop(reactor);
            serving.join().unwrap();
        }
    });
}

#[test]
fn an_expired_certificate() {
    let authority = Authority::new("ours");
    let old = authority.issue(&["localhost"], |params| {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    });
    let why = failure(&authority, old, &authority.tls());
    assert!(matches!(&why, TlsFailure::Expired { when } if when.contains("days")), "{why:?}");
    let young = authority.issue(&["localhost"], |params| {
        params.not_before = date_time_ymd(2990, 1, 1);
        params.not_after = date_time_ymd(2991, 1, 1);
    });
    let why = failure(&authority, young, &authority.tls());
    assert!(matches!(why, TlsFailure::NotYetValid { .. }), "{why:?}");
}

#[test]
fn an_unknown_issuer() {
    let authority = Authority::new("ours");
    // An unknown signer, and a signer with a new key.
    for name in ["theirs", "ours"] {
        let why = failure(&authority, authority.good(), &Authority::new(name).tls());
        assert_eq!(why, TlsFailure::UnknownIssuer);
    }
}

#[test]
fn a_wrong_name() {
    let authority = Authority::new("ours");
    let other = authority.issue(&["cache.example"], |_| {});
    let why = failure(&authority, other, &authority.tls()).to_string();
    assert!(why.contains("`localhost`") && why.contains("cache.example"), "{why}");
    let expected = Tls { server_name: Some("cache.example".into()), ..authority.tls() };
    let why = failure(&authority, authority.good(), &expected);
    assert!(matches!(why, TlsFailure::WrongName { .. }), "{why:?}");
}

#[test]
fn insecure_accepts_any_certificate() {
    let authority = Authority::new("ours");
    let worst = authority.issue(&["cache.example"], |params| {
        params.not_after = date_time_ymd(2002, 1, 1);
    });
    let (address, serving) = echo(authority.server(worst, false), 1);
    let tls = Tls { insecure: true, ..Tls::default() }.load().unwrap();
    drop(Stream::connect(&address, Some(&tls), TIMEOUT).unwrap());
    serving.join().unwrap();
}

#[test]
fn mutual_tls() {
    let (authority, unknown) = (Authority::new("ours"), Authority::new("theirs"));
    let talk = |(cert, key): (Option<PathBuf>, Option<PathBuf>)| {
        let (address, serving) = echo(authority.server(authority.good(), true), 1);
        let tls = Tls { cert, key, ..authority.tls() }.load().unwrap();
        let mut stream = Stream::connect(&address, Some(&tls), TIMEOUT).unwrap();
        // A refusal comes only after the handshake.
        let answer = stream.write_all(b"hello").and_then(|()| {
            let mut answer = [0; 5];
            stream.read_exact(&mut answer).map(|()| answer)
        });
        drop(stream);
        serving.join().unwrap();
        answer.map_err(|error| error.to_string())
    };
    assert_eq!(talk(authority.client("good")), Ok(*b"hello"));
    assert_eq!(talk((None, None)).unwrap_err(), TlsFailure::ClientCertificateRequired.to_string());
    let refused = talk(unknown.client("bad")).unwrap_err();
    assert!(refused.contains("does not accept the client certificate"), "{refused}");
}

#[test]
fn a_server_without_tls() {
    let authority = Authority::new("ours");
    let tls = authority.tls().load().unwrap();
    let answers: [Option<&[u8]>; 3] = [Some(b"ERROR\r\n"), Some(b""), None];
    for answer in answers {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            match answer {
                Some(words) => {
                    peer.read_exact(&mut [0; 100]).unwrap();
                    peer.write_all(words).unwrap();
                }
                // It waits for a line end that is never sent.
                None => drop(peer.read_to_end(&mut Vec::new())),
            }
        });
        let address = Address::Tcp { host: "127.0.0.1".into(), port };
        let limit = match answer {
            Some(_) => TIMEOUT,
            None => Duration::from_millis(300),
        };
        let error = Stream::connect(&address, Some(&tls), limit).unwrap_err();
        match (&error, answer) {
            (ConnectError::Tls { why: TlsFailure::NotTls(_), .. }, Some(_)) => {}
            (ConnectError::TimedOut { .. }, None) => {}
            _ => panic!("{error:?}"),
        }
        assert!(error.to_string().contains("speak TLS"), "{error}");
        serving.join().unwrap();
    }
}

#[test]
fn a_unix_socket_needs_a_name() {
    let authority = Authority::new("ours");
    let path = authority.file("server.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let tls = authority.tls().load().unwrap();
    let error = Stream::connect(&Address::Unix(path), Some(&tls), TIMEOUT).unwrap_err();
    assert!(matches!(error, ConnectError::Tls { why: TlsFailure::NoServerName, .. }), "{error:?}");
}

#[test]
fn explains_invalid_tls_files() {
    let authority = Authority::new("ours");
    let (cert, key) = authority.client("one");
    let (_, other) = authority.client("two");
    let junk = authority.file("junk.pem");
    fs::write(&junk, "no certificate").unwrap();
    fs::set_permissions(&junk, fs::Permissions::from_mode(0o600)).unwrap();
    let broken = authority.file("broken.pem");
    fs::write(&broken, "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n").unwrap();
    let load = |tls: Tls| tls.load().unwrap_err();
    let missing = load(Tls { ca: Some("/nowhere/ca.pem".into()), ..Tls::default() });
    assert!(matches!(&missing, TlsError::Unreadable { source, .. }
        if source.kind() == ErrorKind::NotFound));
    assert!(missing.to_string().contains("CA file /nowhere/ca.pem"), "{missing}");
    let empty = load(Tls { ca: Some(junk.clone()), ..Tls::default() });
    assert!(matches!(empty, TlsError::Empty { expected: "certificate", .. }), "{empty:?}");
    let bad = load(Tls { ca: Some(broken), ..Tls::default() });
    assert!(matches!(bad, TlsError::NotPem { .. }), "{bad:?}");
    let no_key = load(Tls { cert: cert.clone(), ..authority.tls() });
    assert!(matches!(no_key, TlsError::IncompletePair { missing: "key" }), "{no_key:?}");
    let no_cert = load(Tls { key: key.clone(), ..authority.tls() });
    assert!(matches!(no_cert, TlsError::IncompletePair { missing: "cert" }), "{no_cert:?}");
    let mixed = load(Tls { cert: cert.clone(), key: other, ..authority.tls() });
    assert!(matches!(mixed, TlsError::OtherKey { .. }), "{mixed:?}");
    let (cert, key) = authority.client("exposed");
    fs::set_permissions(key.as_ref().unwrap(), fs::Permissions::from_mode(0o644)).unwrap();
    let exposed = Tls { cert: cert.clone(), key, ..Tls::default() }.load().unwrap_err();
    assert!(exposed.to_string().contains("everyone can read the key"), "{exposed}");
    let not_a_key = load(Tls { cert, key: Some(junk), ..authority.tls() });
    assert!(matches!(not_a_key, TlsError::Empty { expected: "private key", .. }), "{not_a_key:?}");
    let name = load(Tls { server_name: Some("no name".into()), ..authority.tls() });
    assert!(matches!(name, TlsError::NoName { .. }), "{name:?}");
}
