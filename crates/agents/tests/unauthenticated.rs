//! Unauthenticated connections must not keep coordinators out.
// Failing is what unwraps are for here.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use agents::{AgentLogEvent, Credentials, PeerOptions, serve};
use common::*;
use model::Address;

const ROLE: &str = "KVMETER_TEST_ROLE";

fn unauthenticated(address: &Address) -> TcpStream {
    let Address::Tcp { port, .. } = address else { panic!("agents listen on TCP") };
    let stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], *port))).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Whether the agent closes the connection.
fn is_closed(mut stream: &TcpStream) -> bool {
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(_) => return true,
        }
    }
}

/// By a token, and by certificates of a fresh authority: the agent's and the coordinator's.
fn both_kinds() -> [(Credentials, Credentials); 2] {
    let ca = Authority::new("one");
    let load = |host: &str| Credentials::load(&ca.sign(host, 2100, &ca), None).unwrap();
    [(by_token(TOKEN), by_token(TOKEN)), (load("127.0.0.1"), load("coordinator"))]
}

#[test]
fn silent_and_slow_connections_are_closed() {
    for (own, theirs) in both_kinds() {
        let agent = Agent::new(&own);
        let silent = unauthenticated(&agent.address);
        let dripping = unauthenticated(&agent.address);
        let mut drops = dripping.try_clone().unwrap();
        // The beginning of HTTP/2, a byte at a time: no single byte is late.
        let drip = thread::spawn(move || {
            let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
            let until = Instant::now() + LIMIT;
            for byte in preface.iter().cycle() {
                if Instant::now() > until || drops.write_all(&[*byte]).is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(100));
            }
        });
        // Speaks HTTP/2, and shows no token.
        let mut speaking = unauthenticated(&agent.address);
        speaking.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
        for (stream, what) in [(&silent, "silent"), (&dripping, "slow"), (&speaking, "unknown")] {
            assert!(is_closed(stream), "a {what} peer keeps its connection");
        }
        drip.join().unwrap();
        assert!(run_all(&mut connect(&[&agent], &theirs).unwrap(), &["size=1"]).is_ok());
    }
}

#[test]
fn unauthenticated_connections_keep_no_coordinator_out() {
    let mut options = options();
    options.connections = 4;
    // No connection times out.
    options.timing.greeting = Duration::from_secs(600);
    for (own, theirs) in both_kinds() {
        let agent = Agent::with(&own, options.clone());
        let crowd: Vec<TcpStream> = (0..12).map(|_| unauthenticated(&agent.address)).collect();
        let mut group = connect(&[&agent], &theirs).unwrap();
        agent.until(|event| matches!(event, AgentLogEvent::Crowded { .. }));
        assert!(is_closed(&crowd[0]));
        // Authenticated ones stay.
        prepare(&mut group, &["run=300"]).unwrap();
        let more: Vec<TcpStream> = (0..12).map(|_| unauthenticated(&agent.address)).collect();
        group.start(Duration::ZERO, &no_stop()).unwrap();
        group.run(LIMIT, &mut |_, _| {}, &no_stop()).unwrap();
        assert!(is_closed(&more[0]));
        // Its next assignment comes long after it connected.
        assert!(run_all(&mut group, &["size=1"]).is_ok());
    }
}

#[test]
fn a_session_outlives_the_authentication_limit() {
    let credentials = by_token(TOKEN);
    let mut options = options();
    options.timing.greeting = Duration::from_millis(500);
    let agent = Agent::with(&credentials, options);
    let mut group = connect(&[&agent], &credentials).unwrap();
    assert!(run_all(&mut group, &["run=1200"]).is_ok());
    assert!(run_all(&mut group, &["run=1"]).is_ok());
}

#[test]
fn a_process() {
    if std::env::var(ROLE).as_deref() != Ok("agent") {
        return;
    }
    println!();
    let say = |event| match event {
        AgentLogEvent::Listening { address, .. } => println!("listening {}", address.port()),
        other => println!("event {other}"),
    };
    let mut options = PeerOptions { connections: 10_000, ..options() };
    options.timing.greeting = Duration::from_secs(600);
    serve(&local(0), &by_token(TOKEN), Arc::new(FakeTask::default()), options, say, &no_stop())
        .unwrap();
}

/// A process that ends with its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The limit of descriptors is far below the limit of connections.
#[test]
fn an_agent_without_descriptors_still_serves() {
    let own = std::env::current_exe().unwrap();
    let child = Command::new("sh")
        .args(["-c", "ulimit -n 40; exec \"$0\" a_process --exact --nocapture --test-threads 1"])
        .arg(own)
        .env(ROLE, "agent")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = Process(child);
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut port = None;
    while port.is_none() {
        let line = lines.next().unwrap().unwrap();
        port = line.strip_prefix("listening ").map(|port| port.parse().unwrap());
    }
    let address = local(port.unwrap());
    let crowd: Vec<TcpStream> = (0..60).map(|_| unauthenticated(&address)).collect();
    let credentials = by_token(TOKEN);
    let group = agents::AgentGroup::connect(&[address], &credentials, options(), LIMIT);
    let done = group.and_then(|mut group| run_all(&mut group, &["size=1"]));
    drop(crowd);
    assert!(done.is_ok(), "{done:?}");
}
