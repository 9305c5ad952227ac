//! Workload files: made by `kvmeter workload describe --out`, checked, and used by other verbs.

use std::fmt::Write;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;

use model::random::{RandomStream, mix, unit};

use crate::network::Server;
use crate::tool::Place;

/// Reads by a skewed popularity, some writes that expire, and a rate that doubles for ten seconds.
fn skewed() -> String {
    let random = RandomStream::new(11, 3);
    let (mut text, mut request) = (String::new(), 0);
    for second in 0..40 {
        for _ in 0..if (20..30).contains(&second) { 600 } else { 300 } {
            let draw = random.at(request);
            let key = (unit(draw).powi(3) * 2000.0) as u64;
            let (operation, ttl) = if request % 20 == 0 { ("set", 60) } else { ("get", 0) };
            let size = 100 + mix(draw) % 100;
            writeln!(text, "{second},key:{key:08},12,{size},1,{operation},{ttl}").unwrap();
            request += 1;
        }
    }
    text
}

/// With the trace and a workload file of it.
fn place() -> Place {
    let place = Place::new();
    place.write("requests.csv", &skewed());
    place.ok(&["workload", "describe", "requests.csv", "--out", "mine.toml", "--quiet"]);
    place
}

const DESCRIBE: [&str; 3] = ["workload", "describe", "requests.csv"];

#[test]
fn a_workload_file_is_like_its_trace() {
    let place = Place::new();
    place.write("requests.csv", &skewed());
    let args = [&DESCRIBE[..], &["--out", "mine.toml", "--check", "--json", "--quiet"]].concat();
    let json = place.json(&args);
    assert_eq!(json["check"]["holds"], true, "{:#}", json["check"]["figures"]);
    let text = std::fs::read_to_string(place.file("mine.toml")).unwrap();
    let made = "# Made by `kvmeter workload describe` of 15k requests of requests.csv.";
    assert!(text.starts_with(made), "{text}");
    for part in ["version = 1", "rate_profile = \"steps:", "seconds = [[60, 1.0]]"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("key:0"), "no key of the trace: {text}");
    // What it wrote is replaced, and compared as it stands.
    place.ok(&[&DESCRIBE[..], &["--out", "mine.toml", "--quiet"]].concat());
    let words = place.ok(&[&DESCRIBE[..], &["--check=mine.toml"]].concat());
    for part in ["like the trace within every limit", "Miss ratio of both", "mean TTL"] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

#[test]
fn a_workload_file_is_taken_by_bench_and_studies() {
    let place = place();
    let bench = |more: &[&str]| {
        let args = ["bench", "null", "--workload", "mine.toml", "--json", "--quiet"];
        place.run(&[&args[..], more].concat()).json()
    };
    let run = bench(&["--ops", "1000"]);
    assert_eq!((&run["workload"], &run["operations"]), (&"mine.toml".into(), &1000.into()));
    let records = |run: &serde_json::Value| -> u64 {
        run["settings"]["workload.records"].as_str().unwrap().parse().unwrap()
    };
    let scaled = bench(&["--ops", "1000", "--scale", "3"]);
    assert_eq!(records(&scaled), 3 * records(&run));
    let paced = bench(&["--rate-profile", "mine.toml", "--time", "1s"]);
    assert_eq!(paced["loop"], "open");
    place.write(
        "study.toml",
        "name = 's'\nsequence = ['load', 'mine.toml', 'mine']\n[store.null]\n[workloads.mine]\n\
         from = 'mine.toml'\nmulti_get = 2\n[measure]\noperations = 1000\n",
    );
    let plan = place.ok(&["run", "study.toml", "--dry-run"]);
    assert!(plan.contains("mine.toml"), "{plan}");
}

#[test]
fn a_loop_is_a_sequential_workload() {
    let place = Place::new();
    let line = |request: u64| format!("{},key{:03},6,100,1,get,0\n", request / 100, request % 50);
    place.write("requests.csv", &(0..5000).map(line).collect::<String>());
    let args = [&DESCRIBE[..], &["--out", "mine.toml", "--check", "--json", "--quiet"]].concat();
    let json = place.json(&args);
    assert_eq!(json["check"]["holds"], true, "{:#}", json["check"]["figures"]);
    let text = std::fs::read_to_string(place.file("mine.toml")).unwrap();
    assert!(text.contains("popularity = \"sequential\""), "{text}");
}

#[test]
fn a_trace_that_the_model_does_not_have_is_named_with_the_difference() {
    let place = place();
    // Each second requests other keys in a loop.
    let line = |request: u64| {
        let second = request / 300;
        format!("{second},key:{:08},12,150,1,get,0\n", second * 40 + request % (20 + second))
    };
    place.write("loops.csv", &(0..12_000).map(line).collect::<String>());
    for check in ["--check", "--check=mine.toml"] {
        let result = place.run(&["workload", "describe", "loops.csv", check, "--json", "--quiet"]);
        assert_eq!(result.code, 1, "{check}: {result:?}");
        let json = result.json();
        let figures = json["check"]["figures"].as_array().unwrap();
        let misses = figures.iter().find(|figure| figure["figure"] == "miss ratio").unwrap();
        assert_eq!(misses["holds"], false, "{misses}");
        assert!(misses["difference"].as_f64().unwrap() > 0.02, "{misses}");
    }
    let result = place.run(&["workload", "describe", "loops.csv", "--out", "loops.toml"]);
    assert_eq!(result.code, 0, "{result:?}");
    assert!(result.err.contains("differs from the trace's by up to"), "{}", result.err);
}

#[test]
fn what_is_no_workload_file_is_a_wrong_request() {
    let place = place();
    place.write("bad.toml", "[workload]\nrecods = 5\n");
    place.write("flat.toml", "[workload]\nrecords = 5\n");
    place.write("new.toml", "version = 2\n");
    place.write("noise.toml", "\u{1}{{{\n");
    place.write("study.toml", "name = 's'\n");
    let before = std::fs::read_to_string(place.file("mine.toml")).unwrap();
    let refused = |args: &[&str], words: &[&str]| {
        place.refused(&[&DESCRIBE[..], args].concat(), words);
    };
    refused(&["--out", "mine.txt"], &["--out mine.txt", "ends in .toml"]);
    refused(&["--out", "study.toml"], &["--out study.toml", "exists", "name another one"]);
    refused(&["--out", "requests.csv/mine.toml"], &["--out requests.csv/mine.toml"]);
    refused(&["--out", "/proc/none/mine.toml"], &["--out /proc/none"]);
    refused(&["--out", "a.toml", "--check=mine.toml"], &["--check=FILE", "leave out one"]);
    refused(&["--check=missing.toml"], &["missing.toml", "No such file"]);
    refused(&["--check=bad.toml"], &["bad.toml", "recods"]);
    refused(&["--check=noise.toml"], &["noise.toml", "line 1"]);
    refused(&["--check=new.toml"], &["new.toml: `version` is 2", "update kvmeter"]);
    let bench = |args: &[&str], word| {
        place.refused(&[&["bench", "null", "--workload"], args].concat(), &[word]);
    };
    bench(&["missing.toml"], "missing.toml");
    bench(&["bad.toml"], "recods");
    bench(&["flat.toml", "--rate-profile", "flat.toml"], "has no `rate_profile`");
    place.refused(
        &["workload", "describe", "none.csv", "--out", "mine.toml", "--check"],
        &["none.csv", "No such file"],
    );
    assert_eq!(std::fs::read_to_string(place.file("mine.toml")).unwrap(), before);
    assert_eq!(std::fs::read_to_string(place.file("study.toml")).unwrap(), "name = 's'\n");
}

/// Of five requests two come back soon, and one never; the others are for popular keys.
fn local(requests: usize) -> String {
    let random = RandomStream::new(5, 8);
    let (mut text, mut keys) = (String::new(), Vec::<u64>::new());
    for request in 0..requests {
        let draw = random.at(request as u64);
        let (kind, of) = (mix(draw) % 5, unit(mix(draw ^ 1)));
        let key = match kind {
            0 | 1 if request > 30_000 => keys[request - 1 - (of.powi(3) * 30_000.0) as usize],
            2 => 1_000_000 + request as u64,
            _ => (of.powi(3) * 50_000.0) as u64,
        };
        keys.push(key);
        let operation = if draw.is_multiple_of(20) { "set" } else { "get" };
        let second = request / 5000;
        writeln!(text, "{second},key:{key:08},12,900,1,{operation},0").unwrap();
    }
    text
}

#[test]
fn memcached_hits_the_workload_as_often_as_the_trace() {
    let place = Place::new();
    place.write("requests.csv", &local(250_000));
    // Memory for a tenth of the data.
    let memcached = || Server::start("memcached", &place, &["-m", "8"]);
    let Some(server) = memcached() else { return };
    let describe = [&DESCRIBE[..], &["--out", "mine.toml", "--check", "--json", "--quiet"]];
    let json = place.json(&describe.concat());
    let bytes = json["miss_ratio"]["bytes"]["value"].as_f64().unwrap();
    assert!((60e6..100e6).contains(&bytes), "{bytes}");
    let hit_ratio = |server: &Server, load: &[&str]| {
        let store = format!("memcached://{}", server.address);
        let args = ["bench", &store, "--refill", "--connections", "1", "--json", "--quiet"];
        let run = place.run(&[&args[..], load].concat()).json();
        assert_eq!((&run["errors"], &run["operations"]), (&0.into(), &250_000.into()), "{run}");
        run["hit_ratio"].as_f64().unwrap()
    };
    let replayed = hit_ratio(&server, &["--trace", "requests.csv", "--speed", "max"]);
    let server = memcached().unwrap();
    let generated = hit_ratio(&server, &["--workload", "mine.toml", "--ops", "250k"]);
    println!("hit ratio: {replayed:.4} replayed, {generated:.4} generated");
    assert!((0.2..0.9).contains(&replayed), "{replayed}");
    assert!((replayed - generated).abs() <= 0.02, "{replayed} {generated}");
}

#[test]
fn a_server_gets_the_time_to_live_of_a_workload_file() {
    let place = Place::new();
    let Some(server) = Server::start("memcached", &place, &["-m", "64"]) else { return };
    place.write(
        "mine.toml",
        "[workload]\nrecords = 10\norder = 'ordered'\nmix = { update = 1 }\n\
         popularity = 'uniform'\n[workload.key]\nform = 'decimal'\nsize = 4\n\
         [workload.ttl]\nseconds = [[1000, 1.0]]\n",
    );
    let store = format!("memcached://{}", server.address);
    let args = ["bench", &store, "--workload", "mine.toml", "--ops", "1000", "--json", "--quiet"];
    assert_eq!(place.run(&args).json()["errors"], 0);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(b"mg 0003 t\r\n").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    let seconds: u32 = answer.trim().trim_start_matches("HD t").parse().unwrap();
    assert!((900..=1000).contains(&seconds), "{answer}");
}
