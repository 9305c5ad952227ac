//! Figures of a process agree with those of real servers and the kernel.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../model/tests/shared/ports.rs"]
mod ports;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::{SOON, eventually, start};
use model::{Address, Unit};
use ports::free_ports;
use server::launch::{Launched, ServerSettings};
use server::watch::{Process, UsageDelta};

struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn of(server: &Launched) -> Client {
        let Address::Tcp { host, port } = &server.addresses[0] else { panic!("a unix socket") };
        let stream = TcpStream::connect((host.as_str(), *port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    /// Asks, and reads lines until one begins with `last`.
    fn request(&mut self, question: &str, last: &str) -> Vec<String> {
        self.stream.get_mut().write_all(question.as_bytes()).unwrap();
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.stream.read_line(&mut line).unwrap() > 0, "closed");
            let ends = line.starts_with(last);
            lines.push(line);
            if ends {
                return lines;
            }
        }
    }

    /// User and system CPU seconds as memcached reports them (`getrusage`).
    fn memcached_cpu(&mut self) -> f64 {
        let lines = self.request("stats\r\n", "END");
        let value = |name: &str| -> f64 {
            let line = lines.iter().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().parse().unwrap()
        };
        value("STAT rusage_user ") + value("STAT rusage_system ")
    }
}

fn number(used: &UsageDelta, name: &str) -> f64 {
    used.value(name).unwrap_or_else(|| panic!("{name}: {:?}", used.figures))
}

#[test]
fn cpu_time_agrees_with_memcached() {
    let server = start("memcached", ServerSettings::default()).unwrap();
    let process = Process::of(server.pid).unwrap();
    let mut client = Client::of(&server);
    let outer = client.memcached_cpu();
    let before = process.usage().unwrap();
    let inner = client.memcached_cpu();
    for _ in 0..5_000 {
        client.request("get key\r\n", "END");
    }
    let inner = client.memcached_cpu() - inner;
    let used = process.usage().unwrap().since(&before).unwrap();
    let outer = client.memcached_cpu() - outer;
    let cpu = number(&used, "server.cpu");
    // Both are the scheduler's sum; memcached rounds to microseconds.
    assert!(inner > 0.0 && inner - 4e-6 <= cpu && cpu <= outer + 4e-6, "{inner} {cpu} {outer}");
    // The parts are in clock ticks of 10 ms, each cut off at both ends.
    let parts = number(&used, "server.cpu.user") + number(&used, "server.cpu.system");
    assert!((parts - cpu).abs() <= 0.0401, "{parts} {cpu}");
    let source = &used.figures[0].source;
    assert!(source.contains("clock_getcpuclockid"), "{source}");
    // One connection is one worker's: that thread was the busiest, and has nearly all of it.
    let busiest = used.threads[0].cpu_s.clone().unwrap();
    assert!(used.threads.len() > 4 && busiest > 0.0);
    assert!((used.threads_started, used.threads_ended) == (0, 0));
}

#[test]
fn calls_and_switches_are_those_of_the_requests() {
    const REQUESTS: u32 = 100;
    for (name, question, last, writes) in
        [("memcached", "get key\r\n", "END", false), ("redis", "GET key\r\n", "$-1", true)]
    {
        let server = start(name, ServerSettings::default()).unwrap();
        let process = Process::of(server.pid).unwrap();
        let mut client = Client::of(&server);
        client.request(question, last);
        let before = process.usage().unwrap();
        for _ in 0..REQUESTS {
            client.request(question, last);
            // Long enough for the server to sleep.
            thread::sleep(Duration::from_millis(1));
        }
        let used = process.usage().unwrap().since(&before).unwrap();
        let requests = f64::from(REQUESTS);
        assert!(number(&used, "server.calls.read") >= requests, "{name}: {:?}", used.figures);
        // memcached answers with sendmsg, which the kernel does not count there.
        let written = number(&used, "server.calls.write");
        assert_eq!(written >= requests, writes, "{name}: {written}");
        assert!(number(&used, "server.switches.voluntary") >= requests / 2.0, "{name}");
        let resident = number(&used, "server.memory.resident");
        assert!(resident > 500_000.0 && resident < 1e9, "{name}: {resident}");
        assert!(used.window >= Duration::from_millis(u64::from(REQUESTS)));
        for figure in &used.figures {
            assert!(
                figure.value.is_ok() && figure.source.contains('/') || figure.name == "server.cpu"
            );
            assert_eq!(figure.unit == Unit::Seconds, figure.name.starts_with("server.cpu"));
        }
    }
}

#[test]
fn ended_threads_keep_cpu_time_but_lose_counts() {
    let (end_sender, end_receiver) = mpsc::channel::<()>();
    let (ready_sender, ready_receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        ready_sender.send(()).unwrap();
        end_receiver.recv().unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(30) {}
    });
    ready_receiver.recv().unwrap();
    let process = Process::of(process::id()).unwrap();
    let before = process.usage().unwrap();
    end_sender.send(()).unwrap();
    thread.join().unwrap();
    // A joined thread may still be in /proc.
    let mut used = None;
    eventually("the thread is gone", || {
        used = Some(process.usage().unwrap().since(&before).unwrap());
        used.as_ref().unwrap().threads_ended > 0
    });
    let used = used.unwrap();
    assert!(number(&used, "server.cpu") > 0.0);
    let switches =
        used.figures.iter().find(|figure| figure.name == "server.switches.voluntary").unwrap();
    let why = switches.value.clone().unwrap_err();
    assert!(why.reason.contains("threads ended in the window"), "{why}");
}

#[test]
fn finds_a_server_by_every_address() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a socket");
    for name in ["memcached", "redis"] {
        let socket = ServerSettings::default().with("socket", path.to_str().unwrap());
        let every = ServerSettings::default().with("listen", "0.0.0.0");
        let six = ServerSettings::default().with("listen", "::1");
        let all = [("", ServerSettings::default()), ("", every), ("six", six), ("", socket)];
        for (kind, settings) in all {
            if kind == "six" && TcpListener::bind("[::1]:0").is_err() {
                continue;
            }
            let server = start(name, settings).unwrap();
            let found = Process::listening_at(&server.addresses[0]).unwrap();
            assert_eq!(found.pid(), server.pid, "{}", server.addresses[0]);
            assert_eq!(found, Process::of(server.pid).unwrap());
            assert!(found.name().starts_with(name));
        }
    }
}

#[test]
fn explains_what_cannot_be_found() {
    let free = free_ports(1)[0];
    for (address, why) in [
        (format!("127.0.0.1:{free}"), "nothing listens"),
        ("/no/such.sock".to_owned(), "nothing listens at /no/such.sock"),
        // Reserved for documentation (RFC 5737).
        ("192.0.2.1:11211".to_owned(), "another machine, or another network namespace"),
        ("no-such-host.invalid:11211".to_owned(), "could not be looked up"),
    ] {
        let error = Process::listening_at(&Address::parse(&address, 1).unwrap()).unwrap_err();
        assert!(error.reason.contains(why), "{address}: {error}");
    }
}

#[test]
fn a_process_that_ended_has_no_usage() {
    let server = start("memcached", ServerSettings::default()).unwrap();
    let process = Process::of(server.pid).unwrap();
    assert!(process.exists());
    server.end(SOON).unwrap();
    assert!(!process.exists());
    for error in [process.usage().map(|_| ()), Process::of(process.pid()).map(|_| ())] {
        let reason = error.unwrap_err().reason;
        assert!(reason.contains(&format!("process {}", process.pid())), "{reason}");
    }
}
