//! A Kubernetes cluster of the test's own on this machine: etcd, an API server, controllers, a
//! scheduler, and two nodes of the test's own agent (`tests/kubernetes`). Each runs in a process
//! namespace that ends with it, so that nothing is left. Says so where it cannot.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::ports::free_ports;

const LIMIT: Duration = Duration::from_secs(180);
const UNSHARE: [&str; 4] = ["--pid", "--fork", "--kill-child", "--mount-proc"];
/// Where the programs lie; `make test-fleet` builds them.
const PLACE: &str = "KVMETER_TEST_KUBERNETES";
const PROGRAMS: [&str; 5] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "node-agent"];
const CONTROLLERS: [&str; 6] = [
    "job-controller",
    "ttl-after-finished-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "namespace-controller",
    "node-lifecycle-controller",
];
pub const NODES: [&str; 2] = ["node1", "node2"];
/// What the tests' users send.
const TOKENS: &str = "admin,admin,1,\"system:masters\"\nlimited,limited,2\nworker,worker,3\n";
pub const NAMESPACE: &str = "bench";

pub struct KubernetesCluster {
    /// By the name of a program or node.
    servers: BTreeMap<&'static str, Child>,
    programs: PathBuf,
    port: u16,
    /// Of etcd.
    store: u16,
    place: TempDir,
}

impl KubernetesCluster {
    pub fn start() -> Option<KubernetesCluster> {
        let programs = match available() {
            Ok(programs) => programs,
            Err(why) => {
                eprintln!("SKIPPED: {why}");
                return None;
            }
        };
        let ports = free_ports(3);
        let mut cluster = KubernetesCluster {
            servers: BTreeMap::new(),
            programs,
            port: ports[0],
            store: ports[1],
            place: TempDir::new().unwrap(),
        };
        cluster.configure();
        cluster.serve_etcd(ports[2]);
        cluster.serve_api();
        let kubeconfig = format!("--kubeconfig={}", cluster.kubeconfig("admin").display());
        let options = ["--leader-elect=false", "--secure-port=0"];
        let controllers = format!("--controllers={}", CONTROLLERS.join(","));
        let grace = "--node-monitor-grace-period=20s";
        cluster.serve(
            "kube-controller-manager",
            &[&options[..], &[&kubeconfig, &controllers, grace]].concat(),
        );
        cluster.serve("kube-scheduler", &[&options[..], &[&kubeconfig]].concat());
        for node in NODES {
            cluster.serve_node(node);
        }
        cluster.until("two nodes", |cluster| {
            let nodes = cluster.get(&["nodes"]);
            nodes.iter().filter(|node| node["spec"]["taints"].is_null()).count() == NODES.len()
        });
        cluster.ask(&["create", "namespace", NAMESPACE]);
        cluster.until("an account", |cluster| !cluster.get(&["serviceaccounts"]).is_empty());
        Some(cluster)
    }

    /// Where the API server listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn configure(&self) {
        std::fs::write(self.file("tokens"), TOKENS).unwrap();
        for user in ["admin", "limited", "worker"] {
            self.write_kubeconfig(user, self.port);
        }
        // It signs the tokens of service accounts, of which the tests use none.
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ecdsa", "-m", "PEM", "-N", "", "-f"])
            .arg(self.file("accounts"))
            .status();
        assert!(made.unwrap().success());
    }

    /// How a user reaches a server at a port.
    pub fn write_kubeconfig(&self, user: &str, port: u16) {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\nclusters:\n- name: test\n  \
             cluster:\n    server: https://127.0.0.1:{port}\n    insecure-skip-tls-verify: true\n\
             contexts:\n- name: test\n  context: {{cluster: test, user: test, namespace: {NAMESPACE}}}\n\
             users:\n- name: test\n  user: {{token: {user}}}\n"
        );
        std::fs::write(self.kubeconfig(user), text).unwrap();
    }

    fn serve_etcd(&mut self, peers: u16) {
        let port = self.store;
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let words = [
            format!("--data-dir={}", self.file("etcd").display()),
            format!("--listen-client-urls={}", url(port)),
            format!("--advertise-client-urls={}", url(port)),
            format!("--listen-peer-urls={}", url(peers)),
            format!("--initial-advertise-peer-urls={}", url(peers)),
            format!("--initial-cluster=default={}", url(peers)),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.serve("etcd", &words);
    }

    /// Also after its end.
    pub fn serve_api(&mut self) {
        let file = |name: &str| self.file(name).display().to_string();
        let words = [
            format!("--etcd-servers=http://127.0.0.1:{}", self.store),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.port),
            format!("--cert-dir={}", file("certificates")),
            format!("--token-auth-file={}", file("tokens")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", file("accounts")),
            format!("--service-account-signing-key-file={}", file("accounts")),
            "--profiling=false".to_owned(),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.serve("kube-apiserver", &words);
        self.until("a ready API server", |cluster| cluster.ask(&["get", "--raw=/readyz"]) == "ok");
    }

    fn serve_node(&mut self, node: &'static str) {
        let words = [
            format!("--kubeconfig={}", self.kubeconfig("admin").display()),
            format!("--name={node}"),
            format!("--labels=pool=arm,disk={node}"),
            format!("--folder={}", self.file(node).display()),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.serve(node, &words);
    }

    fn serve(&mut self, name: &'static str, args: &[&str]) {
        let program = match name {
            "etcd" => PathBuf::from(name),
            node if NODES.contains(&node) => self.programs.join("node-agent"),
            other => self.programs.join(other),
        };
        let log = std::fs::File::create(self.file(&format!("{name}.log"))).unwrap();
        let mut command = Command::new("unshare");
        command.args(UNSHARE).arg(program).args(args);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.servers.insert(name, command.spawn().unwrap());
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// The configuration of a user.
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.file(&format!("{user}.kubeconfig"))
    }

    /// What `kubectl` prints.
    pub fn ask(&self, args: &[&str]) -> String {
        let done = self.kubectl(args).stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    pub fn kubectl(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.programs.join("kubectl"));
        command.arg("--kubeconfig").arg(self.kubeconfig("admin")).args(args);
        // Its cache of what the server knows.
        command.env("HOME", self.place.path());
        command
    }

    /// Applies an object of JSON or YAML.
    pub fn apply(&self, object: &str) {
        std::fs::write(self.file("object"), object).unwrap();
        let file = self.file("object").display().to_string();
        let done = self.kubectl(&["apply", "-f", &file]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// The objects of a kind in the tests' namespace.
    pub fn get(&self, args: &[&str]) -> Vec<Value> {
        let text = self.ask(&[&["get", "--output=json"], args].concat());
        let list: Value = serde_json::from_str(&text).unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Jobs and pods that there are, by their names.
    pub fn objects(&self) -> String {
        self.ask(&["get", "jobs,pods", "--output=name"])
    }

    /// Ends all that runs on a node, or a program, as if its power were cut.
    pub fn kill(&mut self, name: &str) {
        let mut server = self.servers.remove(name).unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
    }

    pub fn until(&self, what: &str, holds: impl Fn(&KubernetesCluster) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            assert!(begin.elapsed() < LIMIT, "no {what}: {}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub fn logs(&self) -> String {
        let tail = |name: &&'static str| {
            let log = self.file(&format!("{name}.log"));
            let text = std::fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(6).collect();
            format!("{name}: {}\n", lines.join("\n"))
        };
        self.servers.keys().map(tail).collect()
    }
}

impl Drop for KubernetesCluster {
    fn drop(&mut self) {
        for server in self.servers.values_mut() {
            let _ = server.kill();
        }
        for server in self.servers.values_mut() {
            let _ = server.wait();
        }
    }
}

fn available() -> Result<PathBuf, String> {
    let place = match std::env::var_os(PLACE) {
        Some(place) => PathBuf::from(place),
        None => {
            let home = std::env::var("HOME").unwrap_or_default();
            Path::new(&home).join(".cache/kvmeter/test-kubernetes")
        }
    };
    for program in PROGRAMS {
        let path = place.join(program);
        if !path.exists() {
            return Err(format!("no {}: `make test-fleet` builds it", path.display()));
        }
    }
    let etcd = Command::new("etcd").arg("--version").output();
    etcd.map_err(|error| format!("etcd: {error}"))?;
    let unshared = Command::new("unshare").args(UNSHARE).arg("true").output();
    match unshared {
        Ok(done) if done.status.success() => Ok(place),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        Err(error) => Err(format!("unshare: {error}")),
    }
}
