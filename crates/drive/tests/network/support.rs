//! Helpers of these tests.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use drive::{
    DriveError, FailureKind, LoadPlan, Network, NoObserver, PhaseKind, PhaseOutcome, Ticks, drive,
};
use model::{Arrivals, ConnectionConfig, Count, Engine, Pacing, StopCondition};
use store::{StoreError, StoreUrl};
use tempfile::TempDir;
use workload::{Workload, WorkloadSpec};

use crate::ports::free_ports;

/// Upper bound on any step of these tests; only a hang exceeds it.
pub const LONG: Duration = Duration::from_secs(60);

pub fn spec(preset: &str, records: u64) -> WorkloadSpec {
    let mut spec = WorkloadSpec::preset(preset).unwrap();
    spec.records = Count(records);
    spec
}

pub fn made(spec: &WorkloadSpec) -> Arc<Workload> {
    Arc::new(Workload::new(spec).unwrap())
}

pub fn workload(preset: &str, records: u64) -> Arc<Workload> {
    made(&spec(preset, records))
}

pub fn connect(url: &str) -> Result<Arc<Network>, StoreError> {
    let url: StoreUrl = url.parse()?;
    Network::connect(url.remote()?.expect("a networked store")).map(Arc::new)
}

pub fn network(url: &str) -> Arc<Network> {
    connect(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

pub fn plan(what: PhaseKind, threads: usize, count: usize, depth: usize) -> LoadPlan {
    let connections = ConnectionConfig { count, depth, ..ConnectionConfig::default() };
    let interval = Duration::from_millis(100);
    LoadPlan { interval, connections, ..LoadPlan::closed(what, threads) }
}

pub fn mix(threads: usize, count: usize, depth: usize) -> LoadPlan {
    plan(PhaseKind::Mix, threads, count, depth)
}

pub fn operations(count: u64) -> StopCondition {
    StopCondition { operations: Some(count), time: None }
}

pub fn time(millis: u64) -> StopCondition {
    StopCondition { operations: None, time: Some(Duration::from_millis(millis)) }
}

pub fn open(rate: f64) -> Pacing {
    Pacing::Open { rate, arrivals: Arrivals::Constant }
}

pub fn run_phase(
    network: &Arc<Network>,
    workload: &Arc<Workload>,
    plan: &LoadPlan,
) -> Result<PhaseOutcome, DriveError> {
    drive(&Ticks::new(), network.clone(), workload, plan, &mut NoObserver)
}

/// Sets every record of the workload.
pub fn load(network: &Arc<Network>, workload: &Arc<Workload>) {
    let outcome = run_phase(network, workload, &plan(PhaseKind::Load, 1, 2, 8)).unwrap();
    assert_eq!(outcome.failures, []);
    assert_eq!(outcome.operations, workload.spec().records.0);
}

pub fn failures(outcome: &PhaseOutcome) -> Vec<(FailureKind, u64)> {
    outcome.failures.iter().map(|failure| (failure.kind, failure.count)).collect()
}

/// Runs a check with each available engine; prints which are not.
pub fn with_each_engine(check: impl Fn(Engine)) {
    for engine in Engine::ALL {
        match reactor::available(engine) {
            Ok(()) => check(engine),
            Err(why) => eprintln!("NOT TESTED: {why}"),
        }
    }
}

/// A statistic summed over all servers.
pub fn statistic(network: &Network, name: &str) -> u64 {
    let servers = network.server_statistics().unwrap();
    let of = |server: &Vec<(String, String)>| {
        let (_, text) = server.iter().find(|(said, _)| said == name).expect(name);
        text.parse::<u64>().unwrap()
    };
    servers.iter().map(of).sum()
}

/// A real server that runs until this goes out of scope.
pub struct Real {
    child: Child,
    pub port: u16,
    pub socket: PathBuf,
    _folder: TempDir,
}

impl Drop for Real {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Real {
    /// memcached on a free port, of both kinds of loopback.
    pub fn memcached(args: &[&str]) -> Option<Real> {
        Real::start("memcached", |port, _| {
            let fixed = ["-u", "root", "-l", "127.0.0.1", "-l", "::1", "-p", &port.to_string()];
            fixed.iter().chain(args).map(|arg| (*arg).to_owned()).collect()
        })
    }

    pub fn memcached_on_a_socket() -> Option<Real> {
        Real::start("memcached", |_, socket| {
            ["-u", "root", "-s"].map(str::to_owned).into_iter().chain([socket.to_owned()]).collect()
        })
    }

    /// Redis on a free port and a socket.
    pub fn redis(args: &[&str]) -> Option<Real> {
        Real::start("redis-server", |port, socket| {
            let port = port.to_string();
            let tls = args.contains(&"--tls-port");
            let port = if tls {
                ["--tls-port", &port, "--port", "0"]
            } else {
                ["--port", &port, "--tls-port", "0"]
            };
            let fixed = ["--bind", "127.0.0.1", "::1", "--unixsocket", socket, "--save", ""];
            let args = args.iter().filter(|arg| **arg != "--tls-port");
            let all = port.iter().chain(&fixed).chain(["--appendonly", "no"].iter()).chain(args);
            all.map(|arg| (*arg).to_owned()).collect()
        })
    }

    fn start(program: &str, args: impl FnOnce(u16, &str) -> Vec<String>) -> Option<Real> {
        let folder = TempDir::new().unwrap();
        let socket = folder.path().join("socket");
        let port = free_ports(1)[0];
        let args = args(port, socket.to_str().unwrap());
        let mut command = Command::new(program);
        command.args(&args).current_dir(folder.path()).stdin(Stdio::null());
        let child = match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            Ok(child) => child,
            Err(error) => {
                eprintln!("NOT TESTED: {program} ({error}); install Debian's package of it");
                return None;
            }
        };
        let mut real = Real { child, port, socket, _folder: folder };
        let begun = Instant::now();
        let listens = |real: &Real| {
            TcpStream::connect(("127.0.0.1", real.port)).is_ok()
                || UnixStream::connect(&real.socket).is_ok()
        };
        while !listens(&real) {
            let ended = real.child.try_wait().unwrap();
            assert!(ended.is_none(), "{program} {args:?} ended: {ended:?}");
            assert!(begun.elapsed() < LONG, "{program} {args:?} does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(real)
    }

    pub fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// The five protocols, each with a server of its own.
pub fn every_protocol(check: impl Fn(&str, &str)) {
    if let Some(server) = Real::memcached(&["-m", "256", "-t", "1"]) {
        for protocol in ["meta", "text", "binary"] {
            let url = format!("memcached://{}?protocol={protocol}&clear=flush", server.address());
            check(protocol, &url);
        }
    }
    if let Some(server) = Real::redis(&[]) {
        for protocol in ["resp2", "resp3"] {
            let url = format!("redis://{}?protocol={protocol}&clear=flush", server.address());
            check(protocol, &url);
        }
    }
}
