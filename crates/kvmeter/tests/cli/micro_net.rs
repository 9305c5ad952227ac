//! `kvmeter micro pingpong` and `flow`: on loopback, between two network namespaces, with what
//! users get wrong, and over DPDK's virtual devices where that is built in.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::tool::{Place, command_output};

fn cells(out: &Value) -> &Vec<Value> {
    out["cells"].as_array().unwrap()
}

/// Nothing went wrong, and all that was sent is accounted for.
fn is_sound(cell: &Value) {
    assert_eq!(cell["valid"], true, "{cell:#}");
    assert_eq!(cell["corrupt"], 0, "{cell:#}");
    let number = |key: &str| cell[key].as_u64().unwrap();
    assert!(number("operations") > 0, "{cell:#}");
    assert_eq!(number("operations") + number("lost"), number("sent"), "{cell:#}");
    // What came at one instant has no rate.
    let lasted = cell["seconds"].as_f64().unwrap() > 0.0;
    assert_eq!(cell["throughput_bytes_s"].as_f64().is_some_and(|rate| rate > 0.0), lasted);
    for end in ["client", "server"] {
        assert!(cell["cpu_ns_per_byte"][end].as_f64().is_some(), "{cell:#}");
    }
}

/// A counter is a number, or it says why it is none.
fn is_told(cell: &Value, end: &str) {
    let readings = cell["readings"][end].as_array().unwrap();
    let misses = readings.iter().find(|reading| reading["signal"] == "llc.miss_ratio").unwrap();
    let answer = &misses["answer"];
    assert!(
        answer["value"].is_number() || answer["unavailable"]["reason"].is_string(),
        "{misses:#}"
    );
}

#[test]
fn round_trips_over_every_transport_side_by_side() {
    let place = Place::new();
    let out = place.json(&[
        "micro",
        "pingpong",
        "--transport",
        "tcp,unix,udp",
        "--size",
        "1,9000",
        "--messages",
        "200",
        "--connections",
        "1,3",
        "--timeout",
        "20s",
        "--json",
    ]);
    assert_eq!(out["micro"], "pingpong");
    assert_eq!(cells(&out).len(), 12);
    for cell in cells(&out) {
        is_sound(cell);
        is_told(cell, "client");
        is_told(cell, "server");
        assert!(cell["latency_us"]["round_trip"]["p99"].as_f64().unwrap() > 0.0);
        assert!(cell["latency_histogram"].as_str().unwrap().len() > 20);
    }
    // What is compared stands together.
    let order: Vec<&str> =
        cells(&out)[..3].iter().map(|c| c["transport"].as_str().unwrap()).collect();
    assert_eq!(order, ["tcp", "unix", "udp"]);
}

#[test]
fn flows_by_stride_and_reuse_distance_as_a_table() {
    let place = Place::new();
    let args = [
        "micro",
        "flow",
        "--size",
        "16KiB",
        "--stride",
        "64,4096",
        "--reuse",
        "0,1MiB",
        "--messages",
        "300",
        "--timeout",
        "20s",
    ];
    let out = place.ok(&args);
    assert_eq!(
        out.lines().filter(|line| line.trim_start().starts_with("16KiB")).count(),
        4,
        "{out}"
    );
    assert!(out.contains("stride") && out.contains("1MiB"), "{out}");
    let out = place.json(&[&args[..], &["--json"]].concat());
    for cell in cells(&out) {
        is_sound(cell);
        let touched = 300 * 16_384 / cell["stride_bytes"].as_u64().unwrap();
        assert_eq!(cell["touched"].as_u64(), Some(touched));
        assert!(cell["latency_us"]["one_way"]["p50"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn mistakes_are_named_and_end_with_2() {
    let place = Place::new();
    let refused = |verb: &str, args: &[&str], words: &[&str]| {
        place.refused(&[&["micro", verb], args].concat(), words);
    };
    refused("pingpong", &["--transport", "udp", "--size", "100KiB"], &["--size", "65507", "TCP"]);
    refused("pingpong", &["--connections", "0"], &["--connections"]);
    refused("flow", &["--rate", "0"], &["--rate"]);
    refused("flow", &["--listen", "192.0.2.77"], &["cannot listen on 192.0.2.77:9378"]);
    refused("flow", &["--listen", "a b"], &["--listen", "no spaces"]);
    refused("pingpong", &["--cpus", "1000"], &["--cpus", "CPU 1000"]);
    refused("pingpong", &["--messages", "0"], &["--messages"]);
    // Nobody is there: the request is right, and the measurement failed.
    let none = place.run(&["micro", "flow", "--connect", "127.0.0.1:1"]);
    assert_eq!(none.code, 1, "{none:?}");
    assert!(none.err.contains("127.0.0.1:1") && none.err.contains("--listen"), "{}", none.err);
}

fn ip(words: &str) -> Result<(), String> {
    let done = Command::new("ip").args(words.split(' ')).output().map_err(|e| e.to_string())?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("ip {words}: {}", String::from_utf8_lossy(&done.stderr).trim())),
    }
}

/// Two namespaces with a line between them; they go when this is dropped.
struct Net([String; 2]);

impl Net {
    /// None, loudly, where there can be none.
    fn new(mark: &str) -> Option<Net> {
        let net = Net(["a", "b"].map(|end| format!("kvmnet{}{mark}{end}", std::process::id())));
        match net.set_up() {
            Ok(()) => Some(net),
            Err(why) => {
                eprintln!("SKIPPED: no network namespaces here: {why}");
                None
            }
        }
    }

    fn set_up(&self) -> Result<(), String> {
        let Net([a, b]) = self;
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("-n {a} link add v type veth peer name v netns {b}"))?;
        for (name, last) in [(a, 1), (b, 2)] {
            ip(&format!("-n {name} addr add 192.0.2.{last}/30 dev v"))?;
            ip(&format!("-n {name} link set v up"))?;
        }
        Ok(())
    }

    fn within(&self, at: usize, place: &Place, args: &[&str]) -> Command {
        let inner = place.command(args);
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.0[at]])
            .arg(inner.get_program())
            .args(inner.get_args());
        command.current_dir(place.path()).env("HOME", place.path()).stdin(Stdio::null());
        command
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

/// A server in a namespace, until it is dropped.
struct Serving(Child);

impl Serving {
    fn new(mut command: Command) -> Serving {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "{line}");
        Serving(child)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn two_network_namespaces_measure_between_them() {
    let Some(net) = Net::new("k") else { return };
    let place = Place::new();
    let _server = Serving::new(net.within(0, &place, &["micro", "flow", "--listen", "192.0.2.1"]));
    // One server for both benchmarks, one client after the other.
    for verb in ["pingpong", "flow"] {
        let args = [
            "micro",
            verb,
            "--connect",
            "192.0.2.1",
            "--transport",
            "tcp,udp",
            "--size",
            "1,1000,60000",
            "--messages",
            "50",
            "--timeout",
            "20s",
            "--json",
        ];
        let out = command_output(net.within(1, &place, &args).output().unwrap());
        assert_eq!(out.code, 0, "{}", out.err);
        let out = out.json();
        assert_eq!(cells(&out).len(), 6);
        cells(&out).iter().for_each(is_sound);
    }
    // The line is cut: there is no answer, and an end.
    ip(&format!("-n {} link set v down", net.0[0])).unwrap();
    let args = ["micro", "pingpong", "--connect", "192.0.2.1"];
    let out = command_output(net.within(1, &place, &args).output().unwrap());
    assert_eq!(out.code, 1, "{out:?}");
    assert!(out.err.contains("192.0.2.1:9378"), "{}", out.err);
}

#[cfg(not(feature = "dpdk"))]
#[test]
fn without_dpdk_it_says_how_to_get_it() {
    let words = ["--stack dpdk", "libdpdk-dev", "--features dpdk"];
    Place::new().refused(&["micro", "flow", "--stack", "kernel,dpdk"], &words);
}

#[cfg(feature = "dpdk")]
mod dpdk {
    use super::*;

    #[test]
    fn both_stacks_side_by_side_over_rings() {
        let place = Place::new();
        for verb in ["pingpong", "flow"] {
            let out = place.json(&[
                "micro",
                verb,
                "--stack",
                "kernel,dpdk",
                "--size",
                "64,4000",
                "--messages",
                "200",
                "--timeout",
                "20s",
                "--json",
            ]);
            let stacks: Vec<&str> =
                cells(&out).iter().map(|cell| cell["stack"].as_str().unwrap()).collect();
            assert_eq!(stacks, ["kernel", "dpdk", "kernel", "dpdk"]);
            cells(&out).iter().for_each(is_sound);
        }
    }

    #[test]
    fn memif_between_two_processes_that_it_starts() {
        let place = Place::new();
        let eal = |role: &str| {
            format!(
                "--no-huge --no-pci -m 256 \
                 --vdev=net_memif0,role={role},socket={}/wire,socket-abstract=no",
                place.path().display()
            )
        };
        let out = place.json(&[
            "micro",
            "pingpong",
            "--stack",
            "dpdk",
            "--size",
            "64",
            "--messages",
            "100",
            "--timeout",
            "20s",
            "--port",
            "net_memif0",
            "--server-port",
            "net_memif0",
            "--eal",
            &eal("client"),
            "--server-eal",
            &eal("server"),
            "--json",
        ]);
        cells(&out).iter().for_each(is_sound);
    }

    #[test]
    fn raw_sockets_between_two_network_namespaces() {
        let Some(net) = Net::new("d") else { return };
        let place = Place::new();
        let ends = [
            "--stack",
            "dpdk",
            "--port",
            "net_af_packet0",
            "--eal",
            "--no-huge --no-pci -m 256 --vdev=net_af_packet0,iface=v",
        ];
        let listen = [&["micro", "flow", "--listen", "192.0.2.1"], &ends[..]].concat();
        let _server = Serving::new(net.within(0, &place, &listen));
        for verb in ["pingpong", "flow"] {
            let what: &[&str] = &[
                "micro",
                verb,
                "--connect",
                "192.0.2.1",
                "--size",
                "64,3000",
                "--messages",
                "50",
                "--timeout",
                "20s",
                "--json",
            ];
            let args = [what, &ends].concat();
            let out = command_output(net.within(1, &place, &args).output().unwrap());
            assert_eq!(out.code, 0, "{}", out.err);
            cells(&out.json()).iter().for_each(is_sound);
        }
    }

    #[test]
    fn what_dpdk_refuses_ends_with_2_and_what_to_do() {
        let place = Place::new();
        let refused = |args: &[&str], words: &[&str]| {
            place.refused(&[&["micro", "flow", "--stack", "dpdk"], args].concat(), words);
        };
        let plain = "--no-huge --no-pci -m 64";
        let two = ["--port", "0000:03:00.0", "--server-port", "0000:03:00.1"];
        refused(&[&two[..], &["--eal", plain]].concat(), &["0000:03:00.0", "dpdk-devbind"]);
        refused(&["--eal", "--no-such-flag"], &["--eal", "is not one of DPDK's"]);
        refused(&["--connect", "127.0.0.1"], &["--port"]);
        refused(&["--port", "x"], &["--server-port"]);
        refused(&["--frames", "10"], &["--frames"]);
        let huge = std::fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap();
        if huge.trim() == "0" {
            refused(&["--eal", "--no-pci"], &["there are no huge pages", "--no-huge"]);
        } else {
            eprintln!("SKIPPED: this machine has huge pages");
        }
    }
}
