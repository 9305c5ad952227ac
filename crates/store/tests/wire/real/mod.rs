//! The real servers, as Debian packages them: started here on unix sockets, killed by a guard.

mod memcached;
mod redis;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::Expiry;
use store::wire::{
    HandshakeError, KeyList, Kind, Login, ParsedResponse, Protocol, Request, Response, Secret,
};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(10);

/// A server that runs until this goes out of scope.
struct Server {
    child: Child,
    socket: PathBuf,
    /// Removed after the server has ended.
    directory: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts a program that listens on `socket` in its own new directory, and waits for it.
    /// Without the program the test is skipped with a message.
    fn start(
        program: &str,
        package: &str,
        prepare: impl FnOnce(&Path, &mut Command),
    ) -> Option<Server> {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let mut command = Command::new(program);
        prepare(directory.path(), &mut command);
        let spawned =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = match spawned {
            Ok(child) => child,
            Err(error) => {
                eprintln!(
                    "NOT TESTED: cannot start {program} ({error}); install the Debian package `{package}`"
                );
                return None;
            }
        };
        let mut server = Server { child, socket, directory };
        let started = Instant::now();
        while UnixStream::connect(&server.socket).is_err() {
            let ended = server.child.try_wait().expect("a child");
            assert!(ended.is_none(), "{program} ended: {ended:?}");
            assert!(started.elapsed() < LIMIT, "{program} does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(server)
    }

    /// The handshake error of another kind of server; some never answer, which is not awaited.
    fn handshake_error(&self, protocol: Protocol) -> HandshakeError {
        let mut stream = self.connect();
        stream.set_read_timeout(Some(Duration::from_millis(300))).expect("a limit");
        protocol.handshake(&mut stream, &Login::default()).expect_err("another kind of server")
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).expect("a connection");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        stream.set_write_timeout(Some(LIMIT)).expect("a limit");
        stream
    }

    fn greet(&self, protocol: Protocol, login: &Login) -> Result<(Client, String), HandshakeError> {
        let mut stream = self.connect();
        let greeting = protocol.handshake(&mut stream, login)?;
        Ok((Client { protocol, stream, received: Vec::new(), tag: 0 }, greeting.version))
    }
}

/// A password from a file.
fn login(user: Option<&str>, password: &str) -> Login {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), format!("{password}\n")).expect("written");
    let password = Secret::from_file(file.path()).expect("a password");
    Login { user: user.map(Into::into), password: Some(password), database: 0 }
}

/// One connection, for single and pipelined requests.
struct Client {
    protocol: Protocol,
    stream: UnixStream,
    received: Vec<u8>,
    tag: u32,
}

impl Client {
    fn send(&mut self, requests: &[(Kind, &KeyList, &[u8])]) {
        use std::io::Write;
        let mut out = Vec::new();
        for (tag, (kind, keys, value)) in (self.tag..).zip(requests) {
            self.protocol
                .write(&Request { kind: *kind, keys, value, expiry: Expiry::Never, tag }, &mut out);
        }
        self.stream.write_all(&out).expect("sent");
    }

    /// The answer to the oldest request, with the values that were found.
    fn receive(&mut self, kind: Kind, keys: &KeyList) -> (Response, Vec<(usize, Vec<u8>)>) {
        use std::io::Read;
        loop {
            let mut values = Vec::new();
            let read = self.protocol.read(kind, keys, self.tag, &self.received, |place, value| {
                values.push((place, value.to_vec()));
            });
            match read.expect("an answer of this protocol") {
                ParsedResponse::Whole { used, answer } => {
                    self.received.drain(..used);
                    self.tag += 1;
                    return (answer, values);
                }
                ParsedResponse::Incomplete { needs } => assert!(needs > self.received.len()),
            }
            let mut piece = [0; 65_536];
            let bytes = self.stream.read(&mut piece).expect("an answer in time");
            assert!(bytes > 0, "the server closed the connection");
            self.received.extend_from_slice(&piece[..bytes]);
        }
    }

    /// Sets a value that expires.
    fn set_for(&mut self, key: &[u8], expiry: Expiry) -> Response {
        use std::io::Write;
        let (kind, keys, mut out) = (Kind::Set, key_list(&[key]), Vec::new());
        let request = Request { kind, keys: &keys, value: b"value", expiry, tag: self.tag };
        self.protocol.write(&request, &mut out);
        self.stream.write_all(&out).expect("sent");
        self.receive(kind, &keys).0
    }

    fn request(
        &mut self,
        kind: Kind,
        keys: &[&[u8]],
        value: &[u8],
    ) -> (Response, Vec<(usize, Vec<u8>)>) {
        let keys = key_list(keys);
        self.send(&[(kind, &keys, value)]);
        self.receive(kind, &keys)
    }
}

fn key_list(names: &[&[u8]]) -> KeyList {
    let mut keys = KeyList::new();
    names.iter().for_each(|name| keys.push(name));
    keys
}

/// The common behaviour of all servers and protocols.
fn converse(server: &Server, protocol: Protocol, login: &Login) -> String {
    let (mut client, version) = server.greet(protocol, login).expect("a greeting");
    let nothing = || (Response::Found(0), Vec::new());
    protocol.flush(&mut client.stream).expect("emptied");

    assert_eq!(client.request(Kind::Get, &[b"absent"], b""), nothing());
    assert_eq!(client.request(Kind::Delete, &[b"absent"], b"").0, Response::Deleted(false));
    for value in [&b""[..], b"one", b"\r\nEND\r\n\0$-1\r\n", &[0xff; 100_000]] {
        assert_eq!(client.request(Kind::Set, &[b"key"], value).0, Response::Stored);
        let found = (Response::Found(1), vec![(0, value.to_vec())]);
        assert_eq!(client.request(Kind::Get, &[b"key"], b""), found);
    }
    assert_eq!(client.request(Kind::Delete, &[b"key"], b"").0, Response::Deleted(true));
    assert_eq!(client.request(Kind::Get, &[b"key"], b""), nothing());

    let longest = vec![b'k'; protocol.longest_key().min(4000)];
    let binary: Vec<u8> = (0..=255).cycle().take(protocol.longest_binary_key().min(4000)).collect();
    for key in [longest, binary].iter().filter(|key| !key.is_empty()) {
        protocol.check_key(key).expect("a key that it takes");
        assert_eq!(client.request(Kind::Set, &[key], b"value").0, Response::Stored);
        let both = client.request(Kind::Get, &[b"absent", key, b"key"], b"");
        assert_eq!(both, (Response::Found(1), vec![(1, b"value".to_vec())]));
        assert_eq!(client.request(Kind::Delete, &[key], b"").0, Response::Deleted(true));
    }

    // A second, an hour, and more than the thirty days that memcached counts from now.
    let times = [(&b"second"[..], 1), (b"hour", 3600), (b"month", 40 * 24 * 3600), (b"ever", 0)];
    for (key, seconds) in times {
        assert_eq!(client.set_for(key, Expiry::after(seconds)), Response::Stored);
    }
    // A value that expires at once replaces the old one and is absent.
    assert_eq!(client.set_for(b"gone", Expiry::Never), Response::Stored);
    assert_eq!(client.set_for(b"gone", Expiry::AtOnce), Response::Stored);
    assert_eq!(client.request(Kind::Get, &[b"gone"], b"").0, Response::Found(0));
    std::thread::sleep(Duration::from_millis(2100));
    let remaining = client.request(Kind::Get, &times.map(|(key, _)| key), b"");
    assert_eq!(remaining.1.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [1, 2, 3]);
    for (key, _) in times {
        client.request(Kind::Delete, &[key], b"");
    }

    // Pipelined, in step, with several long keys a get.
    let names: Vec<Vec<u8>> = (0..50).map(|key| format!("user:{key:0>200}").into_bytes()).collect();
    let singles: Vec<KeyList> = names.iter().map(|name| key_list(&[name])).collect();
    let all = key_list(&names.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let mut requests: Vec<(Kind, &KeyList, &[u8])> = Vec::new();
    requests
        .extend(singles.iter().zip(&names).map(|(key, name)| (Kind::Set, key, name.as_slice())));
    requests.push((Kind::Get, &all, b""));
    requests.extend(singles.iter().step_by(2).map(|key| (Kind::Delete, key, &b""[..])));
    requests.push((Kind::Get, &all, b""));
    client.send(&requests);
    for key in &singles {
        assert_eq!(client.receive(Kind::Set, key).0, Response::Stored);
    }
    let (answer, values) = client.receive(Kind::Get, &all);
    assert_eq!(answer, Response::Found(50));
    assert!(values.iter().all(|(place, value)| *value == names[*place]));
    for key in singles.iter().step_by(2) {
        assert_eq!(client.receive(Kind::Delete, key).0, Response::Deleted(true));
    }
    let (answer, values) = client.receive(Kind::Get, &all);
    assert_eq!(answer, Response::Found(25));
    assert!(values.iter().all(|(place, value)| place % 2 == 1 && *value == names[*place]));
    assert!(client.received.is_empty());

    let statistics = protocol.statistics(&mut client.stream).expect("statistics");
    let reports = |names: &[&str]| {
        statistics.iter().any(|(name, text)| names.contains(&&name[..]) && !text.is_empty())
    };
    assert!(reports(&["get_hits", "keyspace_hits"]) && statistics.len() > 30, "{statistics:?}");

    protocol.flush(&mut client.stream).expect("emptied");
    assert_eq!(client.request(Kind::Get, &[&names[1]], b""), nothing());
    version
}
