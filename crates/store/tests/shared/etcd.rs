//! Real etcd servers, as Debian packages them: started for a test, killed at its end.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::ports::free_ports;

/// The members of one cluster.
pub struct Etcd {
    members: Vec<Child>,
    /// Where clients reach the members.
    pub ports: Vec<u16>,
    _folder: TempDir,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for member in &mut self.members {
            // It may have ended by itself.
            let _ = member.kill();
            let _ = member.wait();
        }
    }
}

impl Etcd {
    /// Starts a cluster, with further arguments for each member. None without the program, which is
    /// printed.
    pub fn start(members: usize, arguments: &[&str]) -> Option<Etcd> {
        if Command::new("etcd").arg("--version").output().is_err() {
            eprintln!("NOT TESTED: there is no etcd; install the Debian package `etcd-server`");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let tls = arguments
            .iter()
            .any(|argument| *argument == "--auto-tls" || *argument == "--cert-file");
        let scheme = if tls { "https" } else { "http" };
        let ports = free_ports(2 * members);
        let (clients, peers) = ports.split_at(members);
        let peer = |at: usize| format!("http://127.0.0.1:{}", peers[at]);
        let all: Vec<String> = (0..members).map(|at| format!("m{at}={}", peer(at))).collect();
        let start = |at: usize| {
            let client = format!("{scheme}://127.0.0.1:{}", clients[at]);
            Command::new("etcd")
                .args(["--name", &format!("m{at}"), "--initial-cluster", &all.join(",")])
                .args(["--data-dir", folder.path().join(at.to_string()).to_str().unwrap()])
                .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
                .args(["--listen-peer-urls", &peer(at)])
                .args(["--initial-advertise-peer-urls", &peer(at)])
                // Ports are taken anew, and another cluster's member may still look for one of them.
                .args(["--initial-cluster-token", folder.path().to_str().unwrap()])
                .args(["--heartbeat-interval", "100", "--election-timeout", "1000"])
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        let started = (0..members).map(start).collect();
        let etcd = Etcd { members: started, ports: clients.to_vec(), _folder: folder };
        etcd.wait();
        Some(etcd)
    }

    /// Waits until every member listens for clients, which it does once there is a leader.
    fn wait(&self) {
        let limit = Instant::now() + Duration::from_secs(30);
        for port in &self.ports {
            while TcpStream::connect(("127.0.0.1", *port)).is_err() {
                assert!(Instant::now() < limit, "etcd does not listen at {port}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// The URL of these members, without options.
    pub fn url(&self) -> String {
        let servers: Vec<String> =
            self.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!("etcd://{}", servers.join(","))
    }

    pub fn kill(&mut self, member: usize) {
        self.members[member].kill().unwrap();
        self.members[member].wait().unwrap();
    }

    /// Runs `etcdctl` against the first member; false where it is not installed.
    pub fn control(&self, arguments: &[&str]) -> bool {
        let output = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &format!("127.0.0.1:{}", self.ports[0])])
            .args(arguments)
            .output();
        let Ok(output) = output else {
            eprintln!("NOT TESTED: there is no etcdctl; install the Debian package `etcd-client`");
            return false;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        true
    }

    /// Adds users and switches logins on: `root` and `user` with the password `secret`, and `user`
    /// may do everything below `kvmeter/`.
    pub fn require_login(&self) -> bool {
        self.control(&["user", "add", "root:secret"])
            && self.control(&["user", "grant-role", "root", "root"])
            && self.control(&["user", "add", "user:secret"])
            && self.control(&["role", "add", "some"])
            && self.control(&[
                "role",
                "grant-permission",
                "some",
                "readwrite",
                "--prefix=true",
                "kvmeter/",
            ])
            && self.control(&["user", "grant-role", "user", "some"])
            && self.control(&["auth", "enable"])
    }
}
