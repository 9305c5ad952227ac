//! A node of a cluster whose machine is cut off: no connection to it is refused, and nothing
//! answers.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::machines::{HOSTS, HUB, Machines, Process};
use crate::tool::{command_output, until, value};

/// The primaries, the first alone on a machine of its own, and a replica of it.
const NODES: [(usize, &str); 4] = [(0, "7000"), (2, "7001"), (2, "7002"), (2, "7003")];
const PRIMARIES: usize = 3;

struct Cluster {
    net: Machines,
    _nodes: Vec<Process>,
}

impl Cluster {
    /// The primaries, and the replica if it is wanted; without it they serve the slots that are left.
    fn start(has_replica: bool) -> Option<Cluster> {
        let net = Machines::new("redis-server")?;
        let nodes = &NODES[..PRIMARIES + usize::from(has_replica)];
        let start = |(who, port): &(usize, &str)| {
            std::fs::create_dir(net.place.file(port)).unwrap();
            let coverage = if has_replica { "yes" } else { "no" };
            let mut args = vec!["--bind", HOSTS[*who], "--port", port, "--dir", port];
            args.extend(["--protected-mode", "no", "--appendonly", "no", "--save", ""]);
            args.extend(["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"]);
            args.extend(["--cluster-require-full-coverage", coverage]);
            args.extend(["--repl-diskless-sync-delay", "0"]);
            Process::of(&mut net.on(*who, "redis-server", &args))
        };
        let started = nodes.iter().map(start).collect();
        let cluster = Cluster { net, _nodes: started };
        until("the nodes", || (0..nodes.len()).all(|at| cluster.ask(at, &["ping"]) == "PONG"));
        let all: Vec<String> = nodes.iter().map(address).collect();
        let primaries = all[..PRIMARIES].iter().map(String::as_str);
        cluster.command(&["create"], &primaries.chain(["--cluster-yes"]).collect::<Vec<_>>());
        cluster.is_complete(PRIMARIES);
        if has_replica {
            let first = cluster.ask(0, &["cluster", "myid"]);
            let more = [&all[3], &all[0], "--cluster-slave", "--cluster-master-id", &first];
            cluster.command(&["add-node"], &more);
            until("the replica", || {
                let own = cluster.ask(3, &["info", "replication"]);
                own.contains("role:slave") && own.contains("master_link_status:up")
            });
            cluster.is_complete(nodes.len());
        }
        Some(cluster)
    }

    /// Waits until each of so many nodes knows the others.
    fn is_complete(&self, nodes: usize) {
        let knows = |at| {
            let known = self.ask(at, &["cluster", "nodes"]);
            known.matches(" connected").count() == nodes
                && self.ask(at, &["cluster", "info"]).contains("cluster_state:ok")
        };
        until("the cluster", || (0..nodes).all(knows));
    }

    fn ask(&self, node: usize, words: &[&str]) -> String {
        let (who, port) = NODES[node];
        let args = [&["-h", HOSTS[who], "-p", port], words].concat();
        command_output(self.net.on(2, "redis-cli", &args).output().unwrap()).out.trim().to_owned()
    }

    fn command(&self, verb: &[&str], more: &[&str]) {
        let args = [&["--cluster"], verb, more].concat();
        let done = command_output(self.net.on(2, "redis-cli", &args).output().unwrap());
        assert_eq!(done.code, 0, "{done:?}");
    }

    /// An open loop, in the middle of which the first node is cut off. Returns its exit code too.
    fn bench(&self, options: &str, time: &str) -> (i32, Value) {
        let url = format!("redis://{HUB}:7001?cluster=on{options}");
        let mut args = vec!["bench", &url, "--workload", "ycsb-b", "--json", "--no-pin"];
        args.extend(["--records", "3k", "--threads", "1", "--connections", "4"]);
        args.extend(["--rate", "1k", "--time", time]);
        let mut command = self.net.on(2, env!("CARGO_BIN_EXE_kvmeter"), &args);
        let child: Child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A load only sets.
        until("the window", || self.ask(1, &["info", "commandstats"]).contains("cmdstat_get:"));
        std::thread::sleep(Duration::from_secs(1));
        self.net.cut(0);
        let begun = Instant::now();
        let done = command_output(child.wait_with_output().unwrap());
        assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
        (done.code, done.json())
    }
}

fn address((who, port): &(usize, &str)) -> String {
    format!("{}:{port}", HOSTS[*who])
}

#[test]
fn the_others_are_served_while_a_node_is_cut_off() {
    let Some(cluster) = Cluster::start(false) else { return };
    let (code, run) = cluster.bench("&timeout=1s", "6s");
    assert_eq!(code, 1, "{run:#}");
    let failure = &run["failures"][0];
    assert_eq!((&failure["kind"], &run["failures"][1]), (&"timeout".into(), &Value::Null));
    let first = failure["first"].as_str().unwrap();
    // The first was either sent to the node, or waited for one that serves its slot.
    let reasons = ["no answer within 1s", "no node served it within 1s"];
    let named = |why: &&str| first.contains(&format!("192.0.2.1:7000: {why}"));
    assert!(reasons.iter().any(named), "{first}");
    let of =
        |at: usize, figure: &str| value(&run, &format!("node.{}.{figure}", address(&NODES[at])));
    // What is lost is lost by one node, and the others served theirs in time.
    let lost = failure["count"].as_f64().unwrap();
    assert_eq!([0, 1, 2].map(|at| of(at, "failed")), [lost, 0.0, 0.0]);
    assert!(lost > 500.0 && of(0, "rate") < 150.0, "{lost} {}", of(0, "rate"));
    assert!([1, 2].iter().all(|at| of(*at, "rate") > 200.0));
    let warnings = run["warnings"].to_string();
    let words = format!("the node of 33 % of the keys was lost: {lost} requests failed");
    assert!(warnings.contains(&words), "{warnings}");
}

#[test]
fn a_replica_takes_over_from_a_node_that_is_cut_off() {
    let Some(cluster) = Cluster::start(true) else { return };
    let (_, run) = cluster.bench("&timeout=20s", "10s");
    assert_eq!(run["failures"], Value::Array(Vec::new()), "{}", run["failures"]);
    let waited = value(&run, "cluster.unavailable");
    assert!((0.5..15.0).contains(&waited), "{waited}");
    assert!(value(&run, "cluster.served_late") > 100.0);
    assert!((0.3..0.4).contains(&value(&run, "cluster.lost_slots")));
    let rate = |at: usize| value(&run, &format!("node.{}.rate", address(&NODES[at])));
    assert!(rate(3) > rate(0), "the replica served longer: {} {}", rate(3), rate(0));
}
