//! memcached and Redis as their packages bring them, traced from outside.

#![allow(clippy::unwrap_used)]

#[path = "../../../model/tests/shared/ports.rs"]
mod ports;

use model::Unavailable;
use ports::free_ports;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use syscall_trace::{BpfError, Snapshot, Tracer, UnavailableReason, name_of};

const LIMIT: Duration = Duration::from_secs(10);

/// Ends its process when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Server {
    process: Running,
    port: u16,
}

impl Server {
    fn start(program: &str, arguments: &[&str], port_flag: &str) -> Server {
        let port = free_ports(1)[0];
        let process = Command::new(program)
            .args(arguments)
            .args([port_flag, &port.to_string()])
            .current_dir(std::env::temp_dir())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut server = Server { process: Running(process.unwrap()), port };
        drop(server.connect());
        let ended = server.process.0.try_wait().unwrap();
        assert!(ended.is_none(), "{program} {arguments:?} ended: {ended:?}");
        server
    }

    fn memcached(threads: &str) -> Server {
        let user = ["-l", "127.0.0.1", "-U", "0", "-u", "root", "-t", threads];
        Server::start("memcached", &user, "-p")
    }

    fn redis(arguments: &[&str]) -> Server {
        let own = ["--bind", "127.0.0.1", "--save", ""];
        Server::start("redis-server", &[&own, arguments].concat(), "--port")
    }

    fn pid(&self) -> u32 {
        self.process.0.id()
    }

    fn connect(&self) -> Client {
        let begin = Instant::now();
        loop {
            match TcpStream::connect(("127.0.0.1", self.port)) {
                Ok(stream) => {
                    stream.set_nodelay(true).unwrap();
                    stream.set_read_timeout(Some(LIMIT)).unwrap();
                    return Client(BufReader::new(stream));
                }
                Err(error) => assert!(begin.elapsed() < LIMIT, "{error}"),
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    /// Sends `request` in one piece and reads the answer up to a line `last`.
    fn request(&mut self, request: &str, last: &str) {
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        self.expect(last);
    }

    fn expect(&mut self, last: &str) {
        let mut line = String::new();
        while line.trim_end() != last {
            line.clear();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "closed before {last:?}");
            assert!(!line.contains("ERR"), "{line}");
        }
    }
}

/// Prints that a test was skipped.
fn possible() -> bool {
    match syscall_trace::available() {
        Ok(()) => true,
        // A defect of the programs is no reason to skip.
        Err(why) => {
            assert!(!matches!(why, UnavailableReason::Bpf(BpfError::Rejected { .. })), "{why}");
            eprintln!("SKIPPED: {why}");
            false
        }
    }
}

fn count_of(snapshot: &Snapshot, name: &str) -> u64 {
    snapshot.calls().filter(|(number, _)| name_of(*number) == Some(name)).map(|(_, n)| n).sum()
}

/// The snapshot after the server sleeps again.
fn settled(tracer: &Tracer) -> Snapshot {
    let begin = Instant::now();
    let mut last = tracer.snapshot();
    while begin.elapsed() < LIMIT {
        thread::sleep(Duration::from_millis(30));
        let now = tracer.snapshot();
        if now.requests() == last.requests() && now.wakeups == last.wakeups {
            break;
        }
        last = now;
    }
    last
}

#[test]
fn memcached_requests_are_counted_exactly_over_all_its_threads() {
    if !possible() {
        return;
    }
    let server = Server::memcached("4");
    // Half of the connections are there before the tracer.
    let mut clients: Vec<Client> = (0..4).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| client.request("mn\r\n", "MN"));
    let tracer = Tracer::attach(server.pid()).unwrap();
    clients.extend((0..4).map(|_| server.connect()));
    thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(move || {
                for _ in 0..50 {
                    client.request("set key 0 0 5\r\nvalue\r\n", "STORED");
                    client.request("get key\r\n", "END");
                }
            });
        }
    });
    let counted = tracer.snapshot();
    assert_eq!(counted.requests(), 800);
    assert_eq!((counted.reads, counted.joined_reads), (800, 0));
    assert_eq!((counted.further_writes, counted.untracked), (0, 0));
    assert_eq!(count_of(&counted, "sendmsg"), 800);
    assert!(counted.wakeups > 0 && counted.ready >= counted.wakeups);
    assert!(counted.total_calls() > 1600);
    assert!(!tracer.exited());
}

#[test]
fn pipelined_batch_counts_as_one_request() {
    if !possible() {
        return;
    }
    let server = Server::memcached("1");
    let mut client = server.connect();
    let tracer = Tracer::attach(server.pid()).unwrap();
    for _ in 0..10 {
        client.request(&"get key\r\n".repeat(8), "END");
        (1..8).for_each(|_| client.expect("END"));
    }
    let counted = settled(&tracer);
    assert_eq!((counted.requests(), counted.further_writes), (10, 70));
}

#[test]
fn counts_redis_requests_but_not_files() {
    if !possible() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("syscall-trace-redis-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.to_str().unwrap();
    let server = Server::redis(&["--appendonly", "yes", "--dir", path]);
    let mut clients: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    let tracer = Tracer::attach(server.pid()).unwrap();
    for _ in 0..100 {
        for client in &mut clients {
            client.request("SET key value\r\n", "+OK");
        }
    }
    let alone = tracer.snapshot();
    assert_eq!((alone.requests(), alone.reads, alone.further_writes), (300, 300, 0));
    assert!(count_of(&alone, "write") > 300, "the log is written too");
    // All three send before Redis answers any: it reads them all, then answers.
    for _ in 0..100 {
        clients.iter_mut().for_each(|client| {
            client.0.get_mut().write_all(b"PING\r\n").unwrap();
        });
        clients.iter_mut().for_each(|client| client.expect("+PONG"));
    }
    let together = tracer.snapshot().since(&alone);
    assert_eq!((together.requests(), together.further_writes), (300, 0));
    drop(server);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn outgoing_connections_are_not_counted() {
    if !possible() {
        return;
    }
    let master = Server::redis(&[]);
    let port = master.port.to_string();
    let replica = Server::redis(&["--replicaof", "127.0.0.1", &port, "--dir", "/tmp"]);
    let mut client = replica.connect();
    let begin = Instant::now();
    loop {
        client.request("INFO replication\r\n", "role:slave");
        let mut line = String::new();
        while !line.starts_with("master_link_status") {
            line.clear();
            client.0.read_line(&mut line).unwrap();
        }
        client.request("PING\r\n", "+PONG");
        if line.trim_end().ends_with(":up") {
            break;
        }
        assert!(begin.elapsed() < LIMIT, "the replica does not come up");
        thread::sleep(Duration::from_millis(20));
    }
    // A master streams nothing before its replica's first acknowledgement, which takes a second.
    let mut writer = master.connect();
    writer.request("SET first value\r\n", "+OK");
    loop {
        client.0.get_mut().write_all(b"EXISTS first\r\n").unwrap();
        let mut line = String::new();
        client.0.read_line(&mut line).unwrap();
        if line.trim_end() == ":1" {
            break;
        }
        assert!(begin.elapsed() < LIMIT, "nothing is replicated");
        thread::sleep(Duration::from_millis(20));
    }
    let tracer = Tracer::attach(replica.pid()).unwrap();
    for _ in 0..100 {
        writer.request("SET key value\r\n", "+OK");
        client.request("PING\r\n", "+PONG");
    }
    assert_eq!(tracer.snapshot().requests(), 100, "the replicated writes are no requests");
    assert!(count_of(&tracer.snapshot(), "read") > 100, "but they were read");
}

#[test]
fn counts_survive_the_server() {
    if !possible() {
        return;
    }
    let server = Server::memcached("1");
    let mut client = server.connect();
    let tracer = Tracer::attach(server.pid()).unwrap();
    (0..20).for_each(|_| client.request("get key\r\n", "END"));
    let pid = server.pid();
    drop(server);
    assert!(tracer.exited());
    assert_eq!(tracer.snapshot().requests(), 20);
    assert_eq!(Tracer::attach(pid).err().unwrap(), UnavailableReason::NoProcess(pid));
}

const TARGET: &str = "SYSCALL_TRACE_TARGET";

/// Not a test: the process that others of this file start, to kill it or to take
/// its privileges away.
#[test]
#[ignore = "started by other tests"]
fn traces_until_it_is_killed() {
    let Ok(target) = std::env::var(TARGET) else { return };
    match Tracer::attach(target.parse().unwrap()) {
        Ok(_tracer) => {
            println!("\nattached");
            thread::sleep(6 * LIMIT);
        }
        Err(why) => println!("\nunavailable: {why:?}: {}", Unavailable::from(why.clone())),
    }
}

/// This program again as the process above, started by `launcher`, and the line that it prints.
fn other_tracer(target: u32, launcher: &[&str]) -> (Running, String) {
    let own = std::env::current_exe().unwrap();
    let mut words = launcher.to_vec();
    words.push(own.to_str().unwrap());
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .args(["--ignored", "--exact", "traces_until_it_is_killed", "--nocapture"])
        .env(TARGET, target.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let output = lines.find(|line| line.starts_with("attached") || line.starts_with("unavailable"));
    (Running(child), output.unwrap_or_default())
}

#[test]
fn killed_tracer_leaves_nothing() {
    if !possible() {
        return;
    }
    let own = || -> HashSet<u32> {
        let all = syscall_trace::loaded_programs().unwrap();
        all.into_iter().filter(|(_, name)| name.starts_with("kvmeter_")).map(|(id, _)| id).collect()
    };
    let before = own();
    let server = Server::memcached("1");
    let (mut tracer, output) = other_tracer(server.pid(), &[]);
    assert_eq!(output, "attached");
    // Other tests' programs may be among the new ones; they end with their tests.
    let new: HashSet<u32> = own().difference(&before).copied().collect();
    assert!(new.len() >= 2, "{new:?}");
    tracer.0.kill().unwrap();
    tracer.0.wait().unwrap();
    let begin = Instant::now();
    while own().intersection(&new).next().is_some() {
        assert!(begin.elapsed() < LIMIT, "{:?} of {new:?} are left", own());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn explains_missing_privileges() {
    if !possible() {
        return;
    }
    let server = Server::memcached("1");
    let unprivileged = |capabilities: &str| {
        let gain = [format!("--inh-caps={capabilities}"), format!("--ambient-caps={capabilities}")];
        let launcher =
            ["setpriv", "--reuid=65534", "--clear-groups", gain[0].as_str(), gain[1].as_str()];
        other_tracer(server.pid(), &launcher).1
    };
    let look = "+sys_ptrace,+dac_read_search";
    let output = unprivileged(look);
    assert!(
        output.contains("load BPF") && output.contains("setcap cap_bpf,cap_perfmon+ep"),
        "{output:?}"
    );
    let output = unprivileged("+bpf,+perfmon,+dac_read_search");
    assert!(output.contains("another user") && output.contains("cap_sys_ptrace"), "{output:?}");
    // The capabilities of the remedies suffice.
    assert_eq!(unprivileged(&format!("+bpf,+perfmon,{look}")), "attached");
}
