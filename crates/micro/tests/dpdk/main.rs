//! Both network benchmarks over DPDK's virtual devices, without a card and without huge pages.
//!
//! DPDK's environment runs once per process, so this executable also provides the processes:
//! with `ROLE` set, the test `a_process` is one of them.
#![allow(clippy::unwrap_used)]

use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use dpdk::{Config, DpdkError, Eal, Port};
use micro::net::{
    CellConfig, Client, Kind, Listener, MeasuredCell, NetError, NetJob, NoMeter, Server, Transport,
};
use model::Address;

const ROLE: &str = "KVMETER_TEST_ROLE";
/// The arguments of a role.
const WORDS: &str = "KVMETER_TEST_WORDS";
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_process() {
    let words = std::env::var(WORDS).unwrap_or_default();
    let words: Vec<&str> = words.split('\u{1f}').collect();
    // The harness has begun a line.
    println!();
    match (std::env::var(ROLE).as_deref(), words.as_slice()) {
        (Ok("rings"), _) => rings(),
        (Ok("server"), [eal, port, socket]) => server(eal, port, socket),
        (Ok("client"), [eal, port, socket]) => client(eal, port, socket),
        (Ok("start"), [eal, port]) => say_start(eal, port),
        _ => {}
    }
}

fn job(kind: Kind, size: u64) -> NetJob {
    let transport = Transport::Ethernet;
    NetJob { kind, transport, size, timeout_s: 20.0, stride: 8, ..NetJob::default() }
}

/// From one byte to many frames, alone and with others.
fn jobs() -> Vec<NetJob> {
    let mut jobs: Vec<NetJob> = [1, 60, 1454, 1455, 20_000]
        .into_iter()
        .flat_map(|size| [job(Kind::Pingpong, size), job(Kind::Flow, size)])
        .collect();
    jobs.push(NetJob { connections: 16, ..job(Kind::Pingpong, 256) });
    jobs.push(NetJob { connections: 4, stride: 64, reuse: 100_000, ..job(Kind::Flow, 1000) });
    jobs
}

fn config() -> CellConfig {
    CellConfig { warm_up: Duration::ZERO, time: LIMIT, messages: Some(400), cpus: Vec::new() }
}

/// Checks a cell: no message is wrong, and every lost one is counted.
fn judge(cell: &MeasuredCell) {
    let job = &cell.job;
    assert_eq!(cell.invalid_because(), Vec::<String>::new(), "{job:?}");
    assert_eq!(cell.messages() + cell.lost(), 400, "{job:?}");
    println!("cell: {} {} {} lost {}", job.kind, job.size, job.connections, cell.lost());
}

fn words(eal: &str) -> Vec<String> {
    eal.split_whitespace().map(str::to_owned).collect()
}

fn rings() {
    let mut eal = Eal::start(&[], Config::default()).unwrap();
    assert_eq!(Eal::start(&[], Config::default()).unwrap_err(), DpdkError::Again);
    let (mut near, far) = eal.ring_pair().unwrap();
    let stop = AtomicBool::new(false);
    let (here, there) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| Server::new(Some(far), Vec::new(), &stop).serve_pair(there, &mut NoMeter));
        let mut client = Client::over(here, &mut near, &stop).unwrap();
        for job in jobs() {
            let cell = client.measure(&job, &config(), &mut NoMeter).unwrap();
            // A ring that is full makes its sender wait.
            assert_eq!(cell.lost(), 0, "{job:?}");
            judge(&cell);
        }
        let far = NetJob { reuse: 1 << 30, ..job(Kind::Flow, 1000) };
        let error = client.measure(&far, &config(), &mut NoMeter).unwrap_err();
        assert!(error.is_request() && error.to_string().contains("--reuse"), "{error}");
    });
    println!("counted: {}", near.counts().unwrap().sent > 0);
    println!("all done");
}

fn server(eal: &str, port: &str, socket: &str) {
    let config = Config { frames: 8192, ..Config::default() };
    let port = Eal::start(&words(eal), config).unwrap().port(port, 1).unwrap();
    let stop = AtomicBool::new(false);
    let listener = Listener::bind(&Address::Unix(socket.into())).unwrap();
    let mut say = |error: &NetError| println!("server: {error}");
    let mut server = Server::new(Some(port), Vec::new(), &stop);
    server.serve(&listener, Some(LIMIT), &mut NoMeter, &mut say).unwrap();
    println!("all done");
}

fn client(eal: &str, port: &str, socket: &str) {
    let frames = Config { frames: 8192, ..Config::default() };
    let mut port = Eal::start(&words(eal), frames).unwrap().port(port, 1).unwrap();
    let stop = AtomicBool::new(false);
    let until = Instant::now() + LIMIT;
    while !std::path::Path::new(socket).exists() {
        assert!(Instant::now() < until, "no server");
        thread::sleep(Duration::from_millis(10));
    }
    let place = Address::Unix(socket.into());
    let mut client = Client::connect(&place, Kind::Flow, LIMIT, None::<&mut Port>, &stop).unwrap();
    port.wait_up(LIMIT).unwrap();
    client.use_port(&mut port);
    for job in jobs() {
        judge(&client.measure(&job, &config(), &mut NoMeter).unwrap());
    }
    println!("all done");
}

/// Starts the environment and a port, and prints the outcome.
fn say_start(eal: &str, port: &str) {
    let started = Eal::start(&words(eal), Config::default());
    let outcome = started.and_then(|mut eal| eal.port(port, 1).map(drop));
    println!("outcome: {}", outcome.map_or_else(|error| error.to_string(), |()| "ok".to_owned()));
}

/// This executable in a role, in a network namespace where one is named.
fn play(role: &str, words: &[&str], namespace: Option<&str>) -> Child {
    let this = std::env::current_exe().unwrap();
    let mut command = match namespace {
        None => Command::new(this),
        Some(name) => {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", name]).arg(this);
            command
        }
    };
    command
        .args(["a_process", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(WORDS, words.join("\u{1f}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The output of a process, and DPDK's log.
fn end(child: Child) -> (String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr))
}

fn is_done(child: Child) -> String {
    let (out, err) = end(child);
    assert!(out.contains("all done"), "{out}\n{err}");
    out
}

#[test]
fn rings_join_two_threads_of_a_process() {
    let out = is_done(play("rings", &[], None));
    assert_eq!(out.matches("cell: ").count(), jobs().len());
    assert!(out.contains("counted: true"), "{out}");
}

#[test]
fn memif_joins_two_processes() {
    let folder = tempfile::tempdir().unwrap();
    let (wire, socket) = (folder.path().join("wire"), folder.path().join("control"));
    let socket = socket.to_str().unwrap();
    let eal = |role: &str| {
        let wire = wire.display();
        format!(
            "--no-huge --no-pci -m 128 \
             --vdev=net_memif0,role={role},socket={wire},socket-abstract=no"
        )
    };
    let server = play("server", &[&eal("server"), "net_memif0", socket], None);
    // A memif's client looks for its server once.
    let until = Instant::now() + LIMIT;
    while !std::path::Path::new(socket).exists() {
        assert!(Instant::now() < until, "no server");
        thread::sleep(Duration::from_millis(10));
    }
    let client = play("client", &[&eal("client"), "net_memif0", socket], None);
    let out = is_done(client);
    assert_eq!(out.matches("cell: ").count(), jobs().len());
    is_done(server);
}

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split(' ')).output().map_err(|e| e.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {words}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Two namespaces with a line between them; they go when this is dropped.
struct Net([String; 2]);

impl Net {
    fn new() -> Net {
        Net(["a", "b"].map(|end| format!("kvmdpdk{}{end}", std::process::id())))
    }

    fn set_up(&self) -> Result<(), String> {
        let Net([a, b]) = self;
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("-n {a} link add v type veth peer name v netns {b}"))?;
        ip(&format!("-n {a} link set v up"))?;
        ip(&format!("-n {b} link set v up"))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

#[test]
fn raw_sockets_join_two_network_namespaces() {
    let net = Net::new();
    if let Err(why) = net.set_up() {
        eprintln!("SKIPPED: no network namespaces here: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control");
    let words = [
        "--no-huge --no-pci -m 128 --vdev=net_af_packet0,iface=v",
        "net_af_packet0",
        socket.to_str().unwrap(),
    ];
    let server = play("server", &words, Some(&net.0[0]));
    let client = play("client", &words, Some(&net.0[1]));
    let out = is_done(client);
    assert_eq!(out.matches("cell: ").count(), jobs().len());
    is_done(server);
}

#[test]
fn refusals_of_dpdk_have_a_remedy() {
    let plain = "--no-huge --no-pci -m 64";
    let null = format!("{plain} --vdev=net_null0");
    for (eal, port, said, logged) in [
        (plain, "0000:03:00.0", "it knows none", ""),
        (null.as_str(), "net_memif7", "it knows net_null0", ""),
        ("--no-pci", "x", "does not start", "there are no huge pages"),
        ("--no-such-flag", "x", "does not start", "is not one of DPDK's"),
    ] {
        let (out, err) = end(play("start", &[eal, port], None));
        let huge = std::fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap();
        if logged.contains("huge") && huge.trim() != "0" {
            eprintln!("SKIPPED: this machine has huge pages");
            continue;
        }
        // DPDK writes to the same output, in its own portions.
        let outcome = out.split_once("outcome: ").map(|(_, rest)| rest);
        let outcome = outcome.unwrap_or_else(|| panic!("{out}\n{err}"));
        assert!(outcome.contains(said), "{eal}: {outcome}");
        let meaning = dpdk::explain(&err);
        assert!(meaning.contains(logged), "{eal}: {meaning}");
    }
}
