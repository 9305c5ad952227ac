//! `kvmeter simulate dca`: what is simulated is said whole and called so, and what makes no sense
//! is shown in its place.

use serde_json::Value;

use crate::tool::{CommandOutput, Place};

const MACHINE: &str = include_str!("../../../cachesim/src/machines/xeon-gold-6140.toml");

/// Forwarding at line rate, in short.
const TRAFFIC: &str = r#"name = "short"

[port]
packet = 1500

[queues]
receive = 128

[workers]
cores = 1

[run]
warm-up = "1ms"
measure = "500us"
"#;

/// A place with `machine.toml` and `traffic.toml`.
fn place() -> Place {
    let place = Place::new();
    place.write("machine.toml", MACHINE);
    place.write("traffic.toml", TRAFFIC);
    place
}

/// The command over both files with more words.
fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let base = ["simulate", "dca", "--machine", "machine.toml", "--traffic", "traffic.toml"];
    [&base, more].concat()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_machine_and_traffic_of_ones_own_are_simulated_and_called_so() {
    let place = place();
    // What one send queue of this machine carries of packets that are posted one by one.
    let rate = "packet = 1500\nrate = \"3M\"\n";
    place.write("traffic.toml", &TRAFFIC.replace("packet = 1500\n", rate));
    let json = place.json(&words(&["--json"]));
    assert_eq!(json["kind"], "simulated");
    assert_eq!((&json["machine"], &json["traffic"]), (&"Xeon Gold 6140".into(), &"short".into()));
    // 128 descriptors fit the card's two ways.
    assert!(number(&json["pcie_write_hit_percent"]) > 99.5, "{json}");
    assert!(number(&json["pcie_read_hit_percent"]) > 90.0, "{json}");
    assert_eq!(number(&json["drops"]["share"]), 0.0);
    let offered = number(&json["offered_packets_s"]);
    let done = number(&json["throughput_packets_s"]);
    assert!((done / offered - 1.0).abs() < 0.02, "{done} of {offered}");
    // 1,500 B a packet, none of which goes to memory.
    assert!((number(&json["received_bits_s"]) / (offered * 12_000.0) - 1.0).abs() < 0.02);
    assert!(number(&json["memory"]["device_writes_bytes_s"]) == 0.0);
    let latency = ["p50", "p90", "p99", "p999", "max"].map(|at| number(&json["latency_us"][at]));
    assert!(latency.is_sorted() && latency[0] > 0.5, "{latency:?}");
    let energy = &json["energy"];
    assert_eq!(energy["kind"], "modelled");
    let delay = number(&energy["nj_per_packet"]) * number(&json["latency_us"]["mean"]);
    assert!((number(&energy["energy_delay_nj_us"]) / delay - 1.0).abs() < 1e-6, "{energy}");
}

#[test]
fn cores_descriptors_ways_packet_and_rate_are_free() {
    let keys =
        ["cores=2", "descriptors=256", "ways=4", "packet=512", "rate=1M", "seed=7", "cycles=300"];
    let sweeps: Vec<&str> = keys.iter().flat_map(|key| ["--sweep", key]).collect();
    let json = place().json(&words(&[sweeps.as_slice(), &["--json"]].concat()));
    let runs = json["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0]["at"]["ways"], "4");
    let outcome = &runs[0]["outcome"];
    assert_eq!(outcome["workers"], 2);
    assert_eq!(outcome["receive_descriptors"], 256);
    assert_eq!(outcome["packet_bytes"], 512);
    assert_eq!(outcome["seed"], 7);
    assert_eq!(outcome["settings"][0]["card_ways"], "0x780", "the highest four of eleven");
    assert!((number(&outcome["offered_packets_s"]) - 1e6).abs() < 2e4, "{outcome}");
}

#[test]
fn every_combination_and_policy_is_simulated_drawn_and_shown() {
    let place = place();
    let swept = [
        "--sweep",
        "descriptors=128,4096",
        "--sweep",
        "packet=256,1500",
        "--policy",
        "on,off",
        "--figures",
        "swept.html",
    ];
    let json = place.json(&words(&[swept.as_slice(), &["--json"]].concat()));
    let runs = json["runs"].as_array().unwrap();
    let at: Vec<String> = runs
        .iter()
        .map(|run| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let at = &run["at"];
            [text(&at["descriptors"]), text(&at["packet"]), text(&run["outcome"]["policy"])]
                .join(" ")
        })
        .collect();
    let all = [
        "128 256 on",
        "128 256 off",
        "128 1500 on",
        "128 1500 off",
        "4096 256 on",
        "4096 256 off",
        "4096 1500 on",
        "4096 1500 off",
    ];
    assert_eq!(at, all);
    let hits = |i: usize| number(&runs[i]["outcome"]["pcie_write_hit_percent"]);
    assert!(hits(6) < hits(2) - 20.0, "a ring that does not fit: {} {}", hits(6), hits(2));
    assert!([1, 3, 5, 7].iter().all(|i| hits(*i) == 0.0), "off never hits");
    let page = std::fs::read_to_string(place.file("swept.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("simulated"));

    let table = place.ok(&words(&["--sweep", "descriptors=128,256"]));
    assert!(table.contains("Every number is simulated.") && table.contains("PCIe write hit %"));
    assert!(!table.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn validation_reports_errors_and_limits() {
    let place = Place::new();
    let json = place.json(&["simulate", "dca", "--validate=ways", "--json"]);
    assert_eq!((&json["kind"], &json["valid"]), (&"simulated".into(), &true.into()));
    let points = json["points"].as_array().unwrap();
    assert_eq!(points.len(), 5);
    let mut sum = 0.0;
    for point in points {
        let error = number(&point["simulated_percent"]) - number(&point["published_percent"]);
        assert!((number(&point["error_points"]) - error).abs() < 1e-9, "{point}");
        sum += error.abs();
    }
    assert!((number(&json["mean_error_points"]) - sum / 5.0).abs() < 1e-9);
    assert_eq!(json["series"][0]["points"], 5);
    place.refused(
        &["simulate", "dca", "--validate=way"],
        &["no published series `way`", "did you mean `ways`?"],
    );

    // The series that was met last: the code is 1 where a limit is broken.
    let result = place.run(&["simulate", "dca", "--validate=4-cores-ways", "--json"]);
    let json = result.json();
    let most = number(&json["max_error_points"]);
    let valid = most <= 10.0 && number(&json["mean_error_points"]) <= 5.0;
    assert_eq!((result.code, &json["valid"]), (i32::from(!valid), &valid.into()), "{most}");
    assert!(valid, "docs/cache-simulation.md says that it is: {most}");
}

#[test]
fn a_trace_goes_through_the_caches_alone() {
    let place = place();
    place.write(
        "trace.txt",
        "# a packet\ncard write 0x10000 1500\ncore0 read 0x10000 64\ncard read 0x10000 1500\n",
    );
    let json = place.json(&[
        "simulate",
        "dca",
        "--machine",
        "machine.toml",
        "--trace",
        "trace.txt",
        "--json",
    ]);
    assert_eq!(json["kind"], "simulated");
    let counts = ["lines", "card_write_misses", "card_read_hits", "llc_hits", "llc_misses"];
    assert_eq!(counts.map(|key| json[key].as_u64().unwrap()), [49, 24, 24, 1, 0]);
    let off = ["simulate", "dca", "--trace", "trace.txt", "--policy", "off", "--json"];
    // What the core read is in its own cache, and that gives it: the shared one is a victim cache.
    assert_eq!(place.json(&off)["card_read_hits"], 1);

    place.write("bad.txt", "core0 read 0x0 8\n\ncore0 reed 0x0 8\n");
    place.refused(
        &["simulate", "dca", "--trace", "bad.txt"],
        &["bad.txt:3: `reed` is neither `read` nor `write`", "3 | core0 reed 0x0 8"],
    );
    place.refused(
        &["simulate", "dca", "--trace", "trace.txt", "--policy", "iat"],
        &["a trace has no time"],
    );
    place.refused(&["simulate", "dca", "--trace", "none.txt"], &["none.txt: cannot be read"]);
}

/// What the command says when one line of the machine or the traffic is another.
fn changed(file: &str, text: &str, from: &str, to: &str) -> CommandOutput {
    assert!(text.contains(from), "{from}");
    let place = place();
    place.write(file, &text.replacen(from, to, 1));
    place.run(&words(&["--json"]))
}

#[test]
fn a_mistake_in_a_description_is_shown_in_its_place() {
    let machine = |from, to| changed("machine.toml", MACHINE, from, to);
    let traffic = |from, to| changed("traffic.toml", TRAFFIC, from, to);
    for (result, says) in [
        (machine("sets = 2048", "sets = 2000"), "`shared.sets` must be a power of two"),
        (machine("sets = 1024", "sets = 1000"), "`private.sets` must be a power of two"),
        (machine("[dca]\nways = 2", "[dca]\nways = 12"), "`dca.ways` must be at most 11"),
        (machine("inclusive = false", "inclusiv = false"), "did you mean `inclusive`?"),
        (machine("replacement = \"random\"", "replacement = \"randon\""), "did you mean `random`?"),
        (machine("cores = 18", "cores = 0"), "`cores` must be 1 to 64"),
        (traffic("receive = 128", "recieve = 128"), "did you mean `receive`?"),
        (traffic("packet = 1500", "packet = 4000"), "`port.packet` must be 1 to 2048 B"),
        (traffic("cores = 1", "cores = 19"), "must add up to 1 to 18, the cores of Xeon Gold 6140"),
        (traffic("cores = 1", "cores = 1\nways = 0x800"), "a mask of 0x1 to 0x7ff"),
        (traffic("\"500us\"", "\"500 parsecs\""), "500 parsecs"),
    ] {
        assert_eq!(result.code, 2, "{says}: {result:#?}");
        assert!(result.err.contains(says), "{says}: {}", result.err);
        let file = result.err.contains("machine.toml:") || result.err.contains("traffic.toml:");
        assert!(file && result.out.is_empty(), "{says}: the place is not said: {}", result.err);
    }
}

#[test]
fn a_mistake_in_the_request_is_refused_with_the_way_out() {
    let place = place();
    let refused = |more: &[&str], says: &[&str]| place.refused(&words(more), says);
    refused(&["--sweep", "ways=12"], &["ways=12: must be 0 to 11"]);
    refused(&["--sweep", "descriptor=128"], &["`descriptor`", "did you mean `descriptors`?"]);
    refused(&["--sweep", "descriptors"], &["write it as `key=value,value`"]);
    refused(&["--sweep", "descriptors=128,,256"], &["a value is empty"]);
    refused(&["--sweep", "packet=64", "--sweep", "packet=128"], &["`packet` is swept already"]);
    refused(&["--sweep", "cores=19"], &["the cores of Xeon Gold 6140"]);
    refused(&["--sweep", "stride=64"], &["do not read packets", "e.g. flow"]);
    refused(&["--sweep", "rate=0"], &["`port.rate` must be above 0"]);
    refused(&["--policy", "ways:12"], &["the cache has 11 ways"]);
    refused(&["--policy", "iatt"], &["did you mean `iat`?"]);
    refused(&["--published-figures"], &["--figures"]);
    refused(&["--figures", "machine.toml/x.html"], &["--figures", "machine.toml"]);
    place.refused(
        &["simulate", "dca", "--machine", "xeon-gold-6141"],
        &["no built-in machine", "did you mean `xeon-gold-6140`?"],
    );
    place.refused(&["simulate", "dca", "--traffic", "forwrad"], &["did you mean `forward`?"]);
    place.refused(
        &["simulate", "dca", "--validate", "--sweep", "ways=2"],
        &["--validate", "cannot be used with"],
    );
}
