//! Clusters of real servers: routing, a primary that is killed, slots that migrate.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::ports::free_ports;
use crate::tool::{Place, until, value};

const PRIMARIES: usize = 3;

/// Primaries and as many replicas on this machine, ended when dropped.
struct Cluster {
    program: &'static str,
    nodes: Vec<(u16, Child)>,
}

impl Cluster {
    /// Of Redis; `None` where it is not installed.
    fn start(place: &Place) -> Option<Cluster> {
        Cluster::of(place, "redis-server")
    }

    fn of(place: &Place, program: &'static str) -> Option<Cluster> {
        let mut cluster = Cluster { program, nodes: Vec::new() };
        for number in 0..2 * PRIMARIES {
            cluster.nodes.push(start_node(place, program, &format!("node{number}"))?);
        }
        let addresses: Vec<String> =
            cluster.nodes.iter().map(|(port, _)| format!("127.0.0.1:{port}")).collect();
        until("the nodes answer", || {
            (0..2 * PRIMARIES).all(|at| cluster.ask(at, &["ping"]) == "PONG")
        });
        let mut create = vec!["--cluster", "create"];
        create.extend(addresses.iter().map(String::as_str));
        create.extend(["--cluster-replicas", "1", "--cluster-yes"]);
        let made = Command::new("redis-cli").args(&create).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
        // Replicas follow their primaries, and every node knows it.
        until("the cluster is complete", || {
            (0..2 * PRIMARIES).all(|at| {
                let info = cluster.ask(at, &["cluster", "info"]);
                let nodes = cluster.ask(at, &["cluster", "nodes"]);
                let replication = cluster.ask(at, &["info", "replication"]);
                let follows = replication.contains("role:slave");
                info.contains("cluster_state:ok")
                    && (!follows || replication.contains("master_link_status:up"))
                    && nodes.matches(" slave ").count() + nodes.matches(",slave ").count()
                        == PRIMARIES
            })
        });
        Some(cluster)
    }

    fn url(&self, options: &str) -> String {
        // One node of the six names the others.
        let scheme = self.program.trim_end_matches("-server");
        format!("{scheme}://127.0.0.1:{}?cluster=on{options}", self.nodes[0].0)
    }

    fn ask(&self, node: usize, words: &[&str]) -> String {
        let port = self.nodes[node].0.to_string();
        let output = Command::new("redis-cli").args(["-p", &port]).args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

/// A node and its port; `None` where the program is not installed.
fn start_node(place: &Place, program: &str, name: &str) -> Option<(u16, Child)> {
    let folder = place.file(name);
    std::fs::create_dir(&folder).unwrap();
    let port = bus_port();
    let port_text = port.to_string();
    let mut command = Command::new(program);
    command.args(["--port", &port_text, "--bind", "127.0.0.1", "--cluster-enabled", "yes"]);
    command.args(["--cluster-node-timeout", "1000", "--appendonly", "no", "--save", ""]);
    command.args(["--repl-diskless-sync-delay", "0"]);
    command.current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(child) => Some((port, child)),
        Err(_) => {
            eprintln!("SKIPPED: {program} is not installed");
            None
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for (_, node) in &mut self.nodes {
            let _ = node.kill();
            let _ = node.wait();
        }
    }
}

/// A free port, of which the port of the cluster's bus (10,000 above) is free too.
fn bus_port() -> u16 {
    loop {
        let port = free_ports(1)[0];
        let bus = port.checked_add(10_000).or_else(|| port.checked_sub(10_000));
        if let Some(bus) = bus.filter(|bus| *bus > port)
            && TcpListener::bind(("127.0.0.1", bus)).is_ok()
        {
            return port;
        }
        // Ports above 55,535 have no bus port.
        let low = 20_000 + port % 20_000;
        if TcpListener::bind(("127.0.0.1", low)).is_ok()
            && TcpListener::bind(("127.0.0.1", low + 10_000)).is_ok()
        {
            return low;
        }
    }
}

const SMALL: [&str; 6] = ["--records", "5k", "--threads", "1", "--connections", "4"];

#[test]
fn a_cluster_is_found_from_one_node() {
    let place = Place::new();
    let Some(cluster) = Cluster::start(&place) else { return };
    let loaded = cluster.url("");
    for (options, more) in [
        ("", &["--workload", "ycsb-a"][..]),
        ("", &["--workload", "ycsb-c", "--multi-get", "10"]),
        ("&protocol=resp3&replicas=only", &["--workload", "ycsb-c"]),
    ] {
        let url = format!("{loaded}{options}");
        let args = [&["bench", &url, "--time", "1s", "--json"][..], &SMALL, more].concat();
        let result = place.run(&args).json();
        assert_eq!(result["valid"], true, "{options} {more:?}: {}", result["invalid_because"]);
        assert_eq!(value(&result, "cluster.moved"), 0.0, "{options} {more:?}");
        let answers = cluster
            .nodes
            .iter()
            .map(|(port, _)| value(&result, &format!("node.127.0.0.1:{port}.rate")));
        let answering = answers.filter(|rate| *rate > 0.0).count();
        assert!(answering >= PRIMARIES, "{options} {more:?}: {answering} nodes");
    }
    let single = format!("redis://127.0.0.1:{}", cluster.nodes[0].0);
    let refused = place.run(&[&["bench", &single, "--time", "1s"][..], &SMALL].concat());
    assert_ne!(refused.code, 0);
    assert!(refused.out.contains("`cluster=on`"), "{}", refused.out);
}

#[test]
fn a_primary_is_killed_under_an_open_loop() {
    // One that is stopped closes no connection, as one that is cut off.
    for (program, signal) in
        [("redis-server", "KILL"), ("redis-server", "STOP"), ("valkey-server", "KILL")]
    {
        let place = Place::new();
        if let Some(cluster) = Cluster::of(&place, program) {
            end_a_primary(&place, &cluster, signal);
        }
    }
}

fn end_a_primary(place: &Place, cluster: &Cluster, by: &str) {
    let url = cluster.url("&timeout=20s");
    let args = ["bench", &url, "--time", "10s", "--json", "--rate", "2k", "--workload", "ycsb-a"];
    let child = place.command(&[&args[..], &SMALL].concat());
    let mut child = { child }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Not the node of the URL.
    let victim = (1..cluster.nodes.len())
        .find(|at| cluster.ask(*at, &["role"]).starts_with("master"))
        .unwrap();
    // A load only sets.
    until("the window is open", || {
        cluster.ask(victim, &["info", "commandstats"]).contains("cmdstat_get:")
    });
    std::thread::sleep(Duration::from_secs(1));
    let id = cluster.nodes[victim].1.id().to_string();
    let ended = Command::new("kill").args([&format!("-{by}"), &id]).status().unwrap();
    assert!(ended.success());
    let mut text = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut text).unwrap();
    child.wait().unwrap();
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["failures"], Value::Array(Vec::new()), "{}", result["failures"]);
    assert!(value(&result, "cluster.served_late") > 0.0);
    let (waited, lost) =
        (value(&result, "cluster.unavailable"), value(&result, "cluster.lost_slots"));
    assert!((0.5..20.0).contains(&waited), "{waited}");
    assert!((0.3..0.4).contains(&lost), "{lost}");
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("the node of 33 % of the keys was lost"), "{warnings}");
    // The waits are the cluster's, and no lateness of the client.
    assert!(value(&result, "client.lateness") < 0.05, "{}", value(&result, "client.lateness"));
}

#[test]
fn slots_migrate_under_load_without_a_wrong_answer() {
    let place = Place::new();
    let Some(cluster) = Cluster::start(&place) else { return };
    let url = cluster.url("");
    let primaries: Vec<usize> = (0..cluster.nodes.len())
        .filter(|at| cluster.ask(*at, &["role"]).starts_with("master"))
        .collect();
    let (from, to) = (
        cluster.ask(primaries[0], &["cluster", "myid"]),
        cluster.ask(primaries[1], &["cluster", "myid"]),
    );
    let first = format!("127.0.0.1:{}", cluster.nodes[0].0);
    let resharding = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(2));
        let words = ["--cluster", "reshard", &first, "--cluster-from", &from, "--cluster-to", &to];
        let output = Command::new("redis-cli")
            .args(words)
            .args(["--cluster-slots", "300", "--cluster-yes"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    });
    let args = ["bench", &url, "--time", "8s", "--json", "--workload", "ycsb-a"];
    let result = place.run(&[&args[..], &SMALL].concat()).json();
    resharding.join().unwrap();
    assert_eq!(result["valid"], true, "{}", result["invalid_because"]);
    let redirects = value(&result, "cluster.moved") + value(&result, "cluster.asked");
    assert!(redirects > 0.0, "no slot moved");
}

/// `redis-cli --cluster` with these words.
fn change_cluster(words: &[&str]) {
    let output = Command::new("redis-cli").arg("--cluster").args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_node_joins_serves_and_leaves_under_load() {
    for program in ["redis-server", "valkey-server"] {
        let place = Place::new();
        let Some(mut cluster) = Cluster::of(&place, program) else { return };
        let (port, child) = start_node(&place, program, "joins").unwrap();
        cluster.nodes.push((port, child));
        let newest = cluster.nodes.len() - 1;
        until("the node answers", || cluster.ask(newest, &["ping"]) == "PONG");
        let from = (0..newest).find(|at| cluster.ask(*at, &["role"]).starts_with("master"));
        let [from, to] = [from.unwrap(), newest].map(|at| cluster.ask(at, &["cluster", "myid"]));
        let url = cluster.url("");
        let args = ["bench", &url, "--time", "12s", "--json", "--workload", "ycsb-a"];
        let more = ["--rate", "2k"];
        let child = place.command(&[&args[..], &more, &SMALL].concat());
        let child = { child }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("the window is open", || {
            cluster.ask(0, &["info", "commandstats"]).contains("cmdstat_get:")
        });
        let [first, new] = [0, newest].map(|at| format!("127.0.0.1:{}", cluster.nodes[at].0));
        change_cluster(&["add-node", &new, &first]);
        let move_slots = |from: &str, to: &str| {
            until("the nodes agree", || {
                (0..newest).all(|at| cluster.ask(at, &["cluster", "nodes"]).contains(&new))
                    && cluster.ask(newest, &["cluster", "info"]).contains("cluster_state:ok")
            });
            let words = ["reshard", &first, "--cluster-from", from, "--cluster-to", to];
            change_cluster(&[&words[..], &["--cluster-slots", "200", "--cluster-yes"]].concat());
        };
        move_slots(&from, &to);
        until("it serves", || {
            cluster.ask(newest, &["info", "commandstats"]).contains("cmdstat_get:")
        });
        move_slots(&to, &from);
        cluster.nodes[newest].1.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["failures"], Value::Array(Vec::new()), "{}", result["failures"]);
        assert_eq!(value(&result, "cluster.joined"), 1.0);
        assert!(value(&result, &format!("node.127.0.0.1:{port}.rate")) > 0.0);
        // It had given its slots back.
        assert_eq!(value(&result, "cluster.lost_slots"), 0.0, "{}", result["warnings"]);
    }
}

#[test]
fn a_cluster_without_all_slots_is_refused() {
    let place = Place::new();
    let port = bus_port().to_string();
    let server = Command::new("redis-server")
        .args(["--port", &port, "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--save", ""])
        .current_dir(place.path())
        .stdout(Stdio::null())
        .spawn();
    let Ok(mut server) = server else {
        eprintln!("SKIPPED: redis-server is not installed");
        return;
    };
    let url = format!("redis://127.0.0.1:{port}?cluster=on");
    until("it answers", || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
    let refused = place.run(&["bench", &url, "--time", "1s"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("serves 0 of 16384 slots"), "{}", refused.err);
    let refused = place.run(&["bench", "redis://127.0.0.1:1?replicas=only", "--time", "1s"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("add `cluster=on`"), "{}", refused.err);
    server.kill().unwrap();
    server.wait().unwrap();
}

/// A node that serves all slots, or none, ended when dropped; `None` where Redis is not installed.
fn node(place: &Place, name: &str, serves: bool) -> Option<Cluster> {
    let folder = place.file(name);
    std::fs::create_dir(&folder).unwrap();
    let port = bus_port();
    let child = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--cluster-enabled", "yes"])
        .args(["--save", "", "--appendonly", "no"])
        .current_dir(&folder)
        .stdout(Stdio::null())
        .spawn();
    let Ok(child) = child else {
        eprintln!("SKIPPED: redis-server is not installed");
        return None;
    };
    let cluster = Cluster { program: "redis-server", nodes: vec![(port, child)] };
    until("it answers", || cluster.ask(0, &["ping"]) == "PONG");
    if serves {
        assert_eq!(cluster.ask(0, &["cluster", "addslotsrange", "0", "16383"]), "OK");
        until("it serves", || cluster.ask(0, &["cluster", "info"]).contains("cluster_state:ok"));
    }
    Some(cluster)
}

#[test]
fn nodes_of_different_clusters_are_refused() {
    let place = Place::new();
    let Some(one) = node(&place, "one", true) else { return };
    let Some(other) = node(&place, "other", true) else { return };
    let [first, second] = [&one, &other].map(|own| format!("127.0.0.1:{}", own.nodes[0].0));
    // In either order, behind a server that is gone.
    for (a, b) in [(&first, &second), (&second, &first)] {
        let url = format!("redis://127.0.0.1:1,{a},{b}?cluster=on");
        let words = format!("{b} belongs to another cluster than {a}");
        place.refused(&["bench", &url, "--time", "1s"], &[&words]);
    }
    let url = format!("redis://127.0.0.1:1,{first}?cluster=on");
    let run = ["bench", &url, "--time", "200ms", "--json"];
    assert_eq!(place.run(&[&run[..], &SMALL].concat()).json()["valid"], true);
}

#[test]
fn a_node_with_other_credentials_is_named() {
    let place = Place::new();
    let Some(one) = node(&place, "one", true) else { return };
    let Some(other) = node(&place, "other", false) else { return };
    let ports = [&one, &other].map(|own| own.nodes[0].0.to_string());
    assert_eq!(one.ask(0, &["cluster", "meet", "127.0.0.1", &ports[1]]), "OK");
    until("they know each other", || {
        [&one, &other].iter().all(|own| {
            own.ask(0, &["cluster", "nodes"])
                .lines()
                .filter(|own| own.contains(" connected"))
                .count()
                == 2
        })
    });
    let [first, second] = ports.each_ref().map(|port| format!("127.0.0.1:{port}"));
    assert_eq!(other.ask(0, &["config", "set", "requirepass", "secret"]), "OK");
    // Named, or found by the other.
    for named in [format!("{first},{second}"), format!("{second},{first}"), first.clone()] {
        let url = format!("redis://{named}?cluster=on");
        let words = [format!("{second}: the server requires a login"), format!("{first} answers")];
        place.refused(&["bench", &url, "--time", "1s"], &[&words[0], &words[1]]);
    }
    assert_eq!(one.ask(0, &["config", "set", "requirepass", "another"]), "OK");
    let file = place.secret("password", "another");
    let url = format!("redis://{first}?cluster=on&password_file={}", file.display());
    let words = [format!("{second}: the server refused the login"), format!("{first} answers")];
    place.refused(&["bench", &url, "--time", "1s"], &[&words[0], &words[1]]);
}

#[test]
fn kvmeter_starts_and_ends_a_cluster() {
    if Command::new("redis-server").arg("--version").output().is_err() {
        eprintln!("SKIPPED: redis-server is not installed");
        return;
    }
    let place = Place::new();
    let server = ["--server", "cluster=3,replicas=1", "--workload", "ycsb-b"];
    let args = [&["bench", "redis", "--time", "2500ms", "--json"][..], &server, &SMALL].concat();
    let result = place.run(&args).json();
    assert_eq!(result["valid"], true, "{}", result["invalid_because"]);
    let rates: f64 = (1..=6).map(|at| value(&result, &format!("node.process{at}.rate"))).sum();
    let all = result["operations"].as_f64().unwrap() / result["seconds"].as_f64().unwrap();
    assert!((rates / all - 1.0).abs() < 0.01, "{rates} of {all}");
    for primary in 1..=3 {
        let of = |figure: &str| value(&result, &format!("node.process{primary}.{figure}"));
        assert_eq!(of("hit_ratio"), 1.0);
        assert!(of("p99") >= of("latency") / 10.0 && of("latency") > 0.0 && of("cpu") > 0.0);
    }
    assert!(value(&result, "node.imbalance") < 1.5);
}
