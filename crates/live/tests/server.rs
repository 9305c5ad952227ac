//! The server as strangers and viewers meet it: over sockets.

// Helpers of tests panic as tests do.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use live::{LiveConfig, LiveServer, OpLatencies, RunEnd, RunEvent, RunProgress, Title, ViewToken};

fn config(listen: &str, token: Option<ViewToken>) -> LiveConfig {
    let title = Title { command: "bench".into(), name: "null".into(), version: "1".into() };
    LiveConfig { listen: listen.parse().unwrap(), token, title, style: "body { margin: 0; }" }
}

fn start() -> (LiveServer, SocketAddr) {
    let server = LiveServer::start(config("127.0.0.1:0", None)).unwrap();
    let address = address(&server);
    (server, address)
}

fn address(server: &LiveServer) -> SocketAddr {
    let url = server.url();
    url.strip_prefix("http://").unwrap().trim_end_matches('/').parse().unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// The whole answer to these bytes; empty if the server just closed.
fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(address);
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: SocketAddr, path: &str) -> String {
    exchange(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
}

/// A viewer that has sent its request and read nothing.
fn viewer(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    let request = format!("GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Reads until this text has come.
fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = String::new();
    let mut buffer = [0; 4096];
    while !read.contains(text) {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => panic!("no `{text}` in: {read}"),
            Ok(count) => read.push_str(&String::from_utf8_lossy(&buffer[..count])),
        }
    }
    read
}

fn begins(run: usize) -> RunEvent {
    RunEvent::Begins {
        run,
        runs: 3,
        label: format!("null ycsb-c {run}"),
        phase: "measure".into(),
        settings: [("store".to_owned(), "null".to_owned())].into(),
    }
}

fn progress(operations: u64) -> RunEvent {
    RunEvent::Progress(Box::new(RunProgress {
        operations,
        answered_ops_s: Some(operations as f64),
        stage: "measures".into(),
        recorded: vec![OpLatencies::of("read", [(1000, 1)].into_iter())],
        ..RunProgress::default()
    }))
}

#[test]
fn the_page_is_one_file_that_may_load_nothing_else() {
    let (server, address) = start();
    server.feed().event(begins(1));
    let answer = get(address, "/");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200"), "{head}");
    for part in [
        "content-security-policy: default-src 'none'; script-src 'nonce-",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
    ] {
        assert!(head.contains(part), "{part} is not in\n{head}");
    }
    assert!(!head.contains("access-control"), "no other origin may read: {head}");
    assert!(!body.contains("{{"), "every part is filled in");
    for outside in ["http:", "https:", "//cdn", "<link rel=\"stylesheet", " src="] {
        assert!(!body.replace("http://www.w3.org/2000/svg", "").contains(outside), "{outside}");
    }
    let nonces = |answer: &str| answer.split("nonce=\"").nth(1).map(|rest| rest[..22].to_owned());
    assert_ne!(nonces(&answer), nonces(&get(address, "/")), "a nonce is used once");
    server.end("done");
}

#[test]
fn events_come_as_they_happen_and_the_last_says_how_it_ended() {
    let (server, address) = start();
    let mut early = viewer(address);
    assert!(read_until(&mut early, "\"first\":true").contains("text/event-stream"));
    server.feed().event(begins(2));
    read_until(&mut early, "\"label\":\"null ycsb-c 2\"");
    server.feed().event(progress(5));
    read_until(&mut early, "\"operations\":5");
    server.feed().event(RunEvent::Ended(Box::new(RunEnd {
        run: 2,
        rate_ops_s: 7.5,
        ..RunEnd::default()
    })));
    read_until(&mut early, "\"rate_ops_s\":7.5");
    let mut late = viewer(address);
    let frame = read_until(&mut late, "\n\n");
    assert!(frame.contains("\"operations\":5"), "a late viewer sees the same: {frame}");
    server.end("done");
    for viewer in [&mut early, &mut late] {
        read_until(viewer, "\"ended\":\"done\"");
        assert_eq!(viewer.read(&mut [0; 16]).unwrap(), 0, "the stream ends");
    }
    assert!(TcpStream::connect(address).is_err(), "the port is free again");
}

#[test]
fn only_reading_is_possible() {
    let (server, address) = start();
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "NONSENSE"] {
        let request =
            format!("{method} / HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n");
        let answer = exchange(address, request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 405"), "{method}: {answer}");
        assert!(answer.to_ascii_lowercase().contains("allow: get, head"), "{answer}");
    }
    for path in ["/", "/metrics", "/events"] {
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let answer = exchange(address, request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n"), "{answer}");
    }
    assert!(get(address, "/nothing").starts_with("HTTP/1.1 404"));
    assert!(get(address, "/../etc/passwd").starts_with("HTTP/1.1 404"));
    server.end("done");
}

#[test]
fn another_name_for_this_address_is_refused() {
    let (server, address) = start();
    for path in ["/", "/events", "/metrics"] {
        for host in ["Host: evil.example\r\n", "", "Host: a\r\nHost: 127.0.0.1\r\n"] {
            let answer = exchange(address, format!("GET {path} HTTP/1.1\r\n{host}\r\n").as_bytes());
            assert!(
                answer.starts_with("HTTP/1.1 421") || answer.starts_with("HTTP/1.1 400"),
                "{path} {host}: {answer}"
            );
        }
    }
    server.end("done");
}

#[test]
fn garbage_gets_no_answer_of_use_and_does_no_harm() {
    let (server, address) = start();
    let long = format!("GET / HTTP/1.1\r\nHost: {address}\r\nX: {}\r\n\r\n", "a".repeat(1 << 20));
    let many = format!("GET / HTTP/1.1\r\nHost: {address}\r\n{}\r\n", "X: y\r\n".repeat(5000));
    for request in [
        &b"\0\0\0\0\xff\xfe\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET\r\n\r\n",
        long.as_bytes(),
        many.as_bytes(),
    ] {
        let mut stream = connect(address);
        let _ = stream.write_all(request);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }
    assert!(get(address, "/").starts_with("HTTP/1.1 200"));
    server.end("done");
}

#[test]
fn a_request_that_never_ends_is_cut_off() {
    let (server, address) = start();
    let begun = Instant::now();
    let mut slow = connect(address);
    slow.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    let silent = connect(address);
    for mut stream in [slow, silent] {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"HTTP/1.1 200"));
    }
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    server.end("done");
}

#[test]
fn viewers_that_read_nothing_hold_up_no_other_and_too_many_are_refused() {
    let (server, address) = start();
    let feed = server.feed();
    feed.event(begins(1));
    // They never read, and their windows are small.
    let hung: Vec<TcpStream> = (0..31).map(|_| viewer(address)).collect();
    let mut reader = viewer(address);
    read_until(&mut reader, "\"first\":true");
    let refused = get(address, "/events");
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    // More than any socket's buffer holds.
    let begun = Instant::now();
    for operations in 0..3000 {
        feed.event(progress(operations));
    }
    feed.event(progress(4242));
    read_until(&mut reader, "\"operations\":4242");
    assert!(get(address, "/metrics").contains("kvmeter_operations_total"));
    server.end("done");
    read_until(&mut reader, "\"ended\":\"done\"");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    drop(hung);
}

#[test]
fn the_feed_never_waits() {
    let (server, _) = start();
    let feed = server.feed();
    let begun = Instant::now();
    for operations in 0..100_000 {
        feed.event(progress(operations));
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    server.end("done");
}

#[test]
fn other_machines_need_a_token() {
    let error = LiveServer::start(config("0.0.0.0:0", None)).unwrap_err().to_string();
    assert!(error.contains("token"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let token = ViewToken::from_file(&file).unwrap();
    let server = LiveServer::start(config("0.0.0.0:0", Some(token))).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], address(&server).port()));
    for path in ["/", "/events", "/metrics"] {
        let answer = get(address, path);
        assert!(answer.starts_with("HTTP/1.1 401"), "{path}: {answer}");
        assert!(answer.to_ascii_lowercase().contains("www-authenticate: basic"), "{answer}");
    }
    let with =
        "GET /metrics HTTP/1.1\r\nHost: server1\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n";
    assert!(exchange(address, with.as_bytes()).starts_with("HTTP/1.1 200"));
    server.end("done");
}

#[test]
fn a_port_that_is_taken_is_reported_with_a_way_out() {
    let (server, address) = start();
    let error = LiveServer::start(config(&address.to_string(), None)).unwrap_err().to_string();
    assert!(error.contains(&address.to_string()) && error.contains("another port"), "{error}");
    let error = LiveServer::start(config("127.0.0.1:1", None));
    // Root may take it.
    if let Err(error) = error {
        assert!(error.to_string().contains("need root"), "{error}");
    }
    server.end("done");
}
